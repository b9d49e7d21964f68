"""What a reference means is never changed by an upload, and no upload, look or job tells what others have.

Two owners on one service. Every attack of the table is made by a stranger and by the owner, before and after the
owner's own upload; whatever was said, read and solved before it must be said, read and solved after it.
"""

import gzip
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest
import safetensors.numpy
from pydantic import TypeAdapter
from scipy.sparse import csr_array, save_npz

from app.http.auth import new_key
from app.http.config import HttpSettings
from app.http.main import create_app
from app.http.schemas import REF, BlobView, InputDigests, JobView
from tests.app.conftest import Service, serve
from tests.app.test_auth import as_owner
from tests.app.test_bad_input import check, npy, npz

ANN, ANN_ENTRY = new_key("ann")
BOB, BOB_ENTRY = new_key("bob")
REFERENCE = ("blob", "format", "member", "dtype", "shape")
FRESH = itertools.count()


@pytest.fixture(scope="module")
def address(service: Service) -> Iterator[str]:
    url, stop = serve(create_app(service.settings, HttpSettings(api_keys=(ANN_ENTRY, BOB_ENTRY), inline_elements=1000)))
    yield url
    stop()


@pytest.fixture
def ann(address: str) -> Iterator[httpx.Client]:
    with as_owner(address, ANN) as client:
        yield client


@pytest.fixture
def bob(address: str) -> Iterator[httpx.Client]:
    with as_owner(address, BOB) as client:
        yield client


def upload(client: httpx.Client, data: bytes, **how: Any) -> dict[str, Any]:
    made = client.post("/v1/blobs", content=data, **how)
    assert made.status_code == 201, made.text
    return dict(made.json())


def as_raw(client: httpx.Client, data: bytes) -> dict[str, Any]:
    return upload(client, data, params={"dtype": "uint8", "shape": str(len(data))})


def solve(client: httpx.Client, solver: str, inputs: Any, **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/jobs", json={"solver": solver, "inputs": inputs, **more}, headers={"Prefer": "wait=30"})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def matrix() -> Any:
    """A cost matrix that nobody has uploaded before."""
    return np.random.default_rng([11, next(FRESH)]).integers(0, 1000, (8, 8))


def plain(uploaded: dict[str, Any]) -> dict[str, Any]:
    """The reference alone."""
    return {name: uploaded[name] for name in REFERENCE if name in uploaded}


# --- as it was reported --------------------------------------------------------------------------------------------


def test_a_stranger_cannot_change_what_a_job_solves(ann: httpx.Client, bob: httpx.Client) -> None:
    cost = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    as_raw(bob, npy(cost))
    mine = ann.post("/v1/blobs", content=npy(cost)).json()
    answer = solve(ann, "lap", {"cost": {"blob": mine["digest"]}})
    assert answer["objective"] == 5
    assert (mine["dtype"], mine["shape"]) == ("int64", [3, 3])


def test_an_archive_is_read_as_each_upload_says(ann: httpx.Client) -> None:
    one, other = matrix(), matrix()
    data = npz(a=one, b=other)
    first = upload(ann, data, params={"member": "a"})
    second = upload(ann, data, params={"member": "b"})
    assert (first["digest"], first["member"], second["member"]) == (second["digest"], "a", "b")
    for uploaded, cost in ((first, one), (second, other), (first, one)):
        assert (
            solve(ann, "lap", {"cost": uploaded})["objective"]
            == solve(ann, "lap", {"cost": cost.tolist()})["objective"]
        )


@pytest.mark.parametrize("by_owner", [False, True])
def test_a_result_is_read_as_it_was_written(ann: httpx.Client, bob: httpx.Client, by_owner: bool) -> None:
    n = 50
    cost = np.random.default_rng(next(FRESH)).random((n, n))
    inputs = {"cost": cost.tolist(), "a": [1.0] * n, "b": [2.0] * n}
    answer = solve(ann, "uot", inputs, options={"reg": 0.1})
    where, plan = answer["links"]["result"], answer["plan"]
    packed = ann.get(where, headers={"Accept": "application/x-safetensors"}).content
    solved = solve(ann, "lap", {"cost": plan})
    file = ann.get(plan["href"]).content
    as_raw(ann if by_owner else bob, file)
    for array in safetensors.numpy.load(packed).values():  # the small ones too, which the answer holds in line
        as_raw(ann if by_owner else bob, npy(array))
    again = ann.get(where).json()
    assert again == answer
    assert ann.get(where, headers={"Accept": "application/x-safetensors"}).content == packed
    assert plain(plan) == {"blob": plan["blob"], "format": "npy", "dtype": "float64", "shape": [n, n]}
    repeated = solve(ann, "lap", {"cost": plan})
    assert repeated["objective"] == solved["objective"]
    assert repeated["input_digests"] == solved["input_digests"] == {"cost": plain(plan)}
    warm = solve(ann, "uot", inputs, options={"reg": 0.1}, warm_start=answer["id"])
    assert warm["input_digests"]["f0"]["format"] == "npy"


def test_an_inline_input_is_read_as_it_was_written(ann: httpx.Client, bob: httpx.Client) -> None:
    cost = matrix()
    for client in (ann, bob):
        as_raw(client, npy(cost))
    plainly = solve(ann, "lap", {"cost": cost.tolist()})
    assert plainly["input_digests"]["cost"]["format"] == "npy"
    assert plainly["objective"] == solve(ann, "lap", {"cost": (cost + 1).tolist()})["objective"] - 8


# --- the table of attacks ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thing:
    """Bytes, how their owner uploads them, and the job that they are for."""

    data: bytes
    params: dict[str, str]
    solver: str
    name: str
    bare: bool = True

    def job(self, reference: Any) -> dict[str, Any]:
        return {"solver": self.solver, "inputs": {self.name: reference}, "time_limit_s": 5}


def sparse_file(cost: Any) -> bytes:
    stream = io.BytesIO()
    save_npz(stream, csr_array(cost + 1))
    return stream.getvalue()


def dat(cost: Any) -> bytes:
    text = "\n".join(" ".join(map(str, row)) for row in cost[:4, :4].tolist())
    return f"4\n{text}\n{text}\n".encode()


THINGS: dict[str, Callable[[], Thing]] = {
    "npy": lambda: Thing(npy(matrix()), {}, "lap", "cost"),
    "gzip": lambda: Thing(gzip.compress(npy(matrix())), {}, "lap", "cost"),
    "raw": lambda: Thing(matrix().tobytes(), {"dtype": "int64", "shape": "8,8"}, "lap", "cost", bare=False),
    "member": lambda: Thing(npz(a=matrix(), b=matrix()), {"member": "a"}, "lap", "cost", bare=False),
    "tensor": lambda: Thing(
        safetensors.numpy.save({"a": matrix(), "b": matrix()}), {"member": "b"}, "lap", "cost", bare=False
    ),
    "only-member": lambda: Thing(npz(a=matrix()), {}, "lap", "cost"),
    "sparse": lambda: Thing(sparse_file(matrix()), {}, "auction", "benefit"),
    "text": lambda: Thing(dat(matrix()), {}, "qap", "qaplib"),
}

FORMS: list[dict[str, str]] = [
    {"dtype": "uint8", "shape": "{size}"},
    {"dtype": "int8", "shape": "1,{size}"},
    {"dtype": "float64", "shape": "8,8"},
    {"dtype": "uint64", "shape": "8,8"},
    {"format": "raw", "dtype": "uint8", "shape": "{size},1"},
    *({"member": member} for member in ("a", "b", "data", "indptr", "c")),
    *({"format": format} for format in ("npy", "npz", "safetensors", "qaplib", "mtx", "auction", "raw")),
    *({"filename": name} for name in ("x.bin", "x.dat", "x.mtx", "x.npz", "x.sln")),
]
HEADERS = [
    {"Content-Type": "application/x-qaplib"},
    {"Content-Disposition": 'attachment; filename="x.bin"'},
    {"X-Dtype": "uint8", "X-Shape": "{size}"},
]


def attack(client: httpx.Client, thing: Thing) -> None:
    """Upload the same bytes in every other form, and use them in jobs in every other form; some are refused."""

    def filled(given: dict[str, str]) -> dict[str, str]:
        return {name: text.format(size=len(thing.data)) for name, text in given.items()}

    for params in FORMS:
        client.post("/v1/blobs", content=thing.data, params=filled(params))
    for headers in HEADERS:
        client.post("/v1/blobs", content=thing.data, headers=filled(headers))
    digest = client.post("/v1/blobs", content=thing.data, params=thing.params).json()["digest"]
    for form in (
        {"format": "raw", "dtype": "uint8", "shape": [1, len(thing.data)]},
        {"member": "b"},
        {"format": "npz"},
    ):
        client.post("/v1/jobs", json=thing.job({"blob": digest, **form}), headers={"Prefer": "wait=10"})
        job = json.dumps(thing.job({"part": thing.name, **form}))
        client.post("/v1/jobs", data={"job": job}, files={thing.name: ("x.bin", thing.data)})


def told(client: httpx.Client, thing: Thing, reference: dict[str, Any]) -> dict[str, Any]:
    """All that its owner can see of an upload."""
    where = reference["links"]["self"]
    head, got = client.head(where), client.get(where)
    answers = {"full": client.post("/v1/jobs", json=thing.job(reference), headers={"Prefer": "wait=30"}).json()}
    bare = client.post("/v1/jobs", json=thing.job({"blob": reference["digest"]}), headers={"Prefer": "wait=30"})
    if thing.bare:
        answers["bare"] = bare.json()
    else:
        check(bare, 422, f"inputs.{thing.name}.")
    return {
        "head": (head.status_code, seen(head)),
        "get": (got.status_code, seen(got), got.content),
        **{name: (found["objective"], found["input_digests"]) for name, found in answers.items()},
    }


def seen(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in ("date", "last-modified")}


@pytest.mark.parametrize("attacker", ["stranger", "owner"])
@pytest.mark.parametrize("kind", THINGS)
def test_no_upload_changes_how_another_is_read(ann: httpx.Client, bob: httpx.Client, kind: str, attacker: str) -> None:
    thing = THINGS[kind]()
    villain = bob if attacker == "stranger" else ann
    mine = upload(ann, thing.data, params=thing.params)
    before = told(ann, thing, mine)
    attack(villain, thing)
    assert told(ann, thing, mine) == before
    assert upload(ann, thing.data, params=thing.params) == mine
    assert told(ann, thing, mine) == before
    if villain is bob:
        bob.delete(mine["links"]["self"])
        assert told(ann, thing, mine) == before


@pytest.mark.parametrize("kind", THINGS)
def test_no_earlier_upload_changes_how_a_later_one_is_read(ann: httpx.Client, bob: httpx.Client, kind: str) -> None:
    thing = THINGS[kind]()
    attack(bob, thing)
    mine = upload(ann, thing.data, params=thing.params)
    answer = told(ann, thing, mine)
    bob.delete(mine["links"]["self"])
    ann.delete(mine["links"]["self"])
    assert upload(ann, thing.data, params=thing.params) == mine
    assert told(ann, thing, mine) == answer
    if kind not in ("text", "sparse"):
        digests = answer["full"][1]["cost"]
        assert digests == plain(mine)
        assert digests["shape"] == [8, 8]


# --- what a reference may say --------------------------------------------------------------------------------------


def test_a_bare_digest_means_what_the_bytes_say(ann: httpx.Client) -> None:
    cost = matrix()
    objective = solve(ann, "lap", {"cost": cost.tolist()})["objective"]
    for data in (npy(cost), gzip.compress(npy(cost)), npz(only=cost), safetensors.numpy.save({"x": cost})):
        uploaded = upload(ann, data)
        answer = solve(ann, "lap", {"cost": {"blob": uploaded["blob"]}})
        assert answer["objective"] == objective
        assert answer["input_digests"] == {"cost": plain(uploaded)}
    assert uploaded["member"] == "x"
    text = upload(ann, dat(cost))
    assert solve(ann, "qap", {"qaplib": {"blob": text["blob"]}}, time_limit_s=5)["termination"]


def test_what_the_bytes_do_not_say_is_asked_for(ann: httpx.Client) -> None:
    raw = as_raw(ann, matrix().tobytes())["blob"]
    several = upload(ann, npz(a=matrix(), b=matrix()))
    assert (several["kind"], set(several["arrays"])) == ("arrays", {"a", "b"})
    graph = upload(ann, npy(np.arange(3)))
    cases: list[tuple[Any, str]] = [
        ({"blob": raw}, "inputs.cost.dtype"),
        ({"blob": raw, "shape": [8, 8]}, "inputs.cost.dtype"),
        ({"blob": raw, "dtype": "int64"}, "inputs.cost.shape"),
        ({"blob": raw, "format": "raw", "dtype": "int64"}, "inputs.cost.shape"),
        ({"blob": raw, "dtype": "no such", "shape": [8, 8]}, "inputs.cost.dtype"),
        ({"blob": raw, "dtype": 7, "shape": [8, 8]}, "inputs.cost.dtype"),
        ({"blob": raw, "dtype": "int64", "shape": "8,8"}, "inputs.cost.shape"),
        ({"blob": raw, "dtype": "int64", "shape": [8, -8]}, "inputs.cost.shape"),
        ({"blob": raw, "dtype": "int64", "shape": [8, True]}, "inputs.cost.shape"),
        ({"blob": raw, "dtype": "int64", "shape": [8, 9]}, "inputs.cost"),
        ({"blob": raw, "format": "xml"}, "inputs.cost.format"),
        ({"blob": raw, "format": ["raw"]}, "inputs.cost.format"),
        ({"blob": raw, "format": "raw", "dtype": "int64", "shape": [8, 8], "member": "a"}, "inputs.cost.member"),
        ({"blob": several["blob"]}, "inputs.cost.member"),
        (several, "inputs.cost.member"),
        ({"blob": several["blob"], "dtype": "int64"}, "inputs.cost.member"),
        ({"blob": several["blob"], "member": "c"}, "inputs.cost.member"),
        ({"blob": several["blob"], "member": 5}, "inputs.cost.member"),
        ({"blob": several["blob"], "member": "a", "dtype": "int32"}, "inputs.cost.dtype"),
        ({"blob": several["blob"], "member": "a", "shape": [64]}, "inputs.cost.shape"),
        ({"blob": graph["blob"], "member": "a"}, "inputs.cost.member"),
        ({"blob": graph["blob"], "dtype": "float64", "shape": [3]}, "inputs.cost.dtype"),
        ({"blob": graph["blob"], "encoding": "gzip"}, "inputs.cost"),
    ]
    for reference, field in cases:
        answer = ann.post("/v1/jobs", json={"solver": "lap", "inputs": {"cost": reference}})
        check(answer, 422)
        assert [error["field"] for error in answer.json()["errors"]] == [field], (reference, answer.text)
    for data, params, field in ((b"hello", {}, "dtype"), (b"hello", {"dtype": "uint8"}, "shape"),
                                (npz(a=matrix()), {"member": "b"}, "member")):  # fmt: skip
        refused = ann.post("/v1/blobs", content=data, params=params)
        assert [error["field"] for error in refused.json()["errors"]] == [field]


def test_raw_bytes_that_look_packed_are_taken_as_they_are(ann: httpx.Client) -> None:
    cost = matrix()
    cost[0, 0] = 0x08_8B1F  # the first bytes of a gzip file
    uploaded = upload(ann, cost.tobytes(), params={"dtype": "int64", "shape": "8,8"})
    assert solve(ann, "lap", {"cost": uploaded})["objective"] == solve(ann, "lap", {"cost": cost.tolist()})["objective"]
    packed = upload(ann, gzip.compress(cost.tobytes()), params={"dtype": "int64", "shape": "8,8"})
    assert solve(ann, "lap", {"cost": packed})["objective"] == solve(ann, "lap", {"cost": cost.tolist()})["objective"]


def test_a_file_part_says_how_it_is_read(ann: httpx.Client) -> None:
    cost, data = matrix(), npz(a=matrix(), b=matrix())
    raw = {"part": "c", "dtype": "int64", "shape": [8, 8]}
    sent = ann.post("/v1/jobs", data={"job": json.dumps({"solver": "lap", "inputs": {"cost": raw}})},
                    files={"c": ("c", cost.tobytes())}, headers={"Prefer": "wait=30"}).json()  # fmt: skip
    assert sent["objective"] == solve(ann, "lap", {"cost": cost.tolist()})["objective"]
    assert sent["input_digests"]["cost"].items() >= {"format": "raw", "dtype": "int64", "shape": [8, 8]}.items()
    both = {"flow": {"part": "f", "member": "a"}, "distance": {"part": "f", "member": "b"}}
    twice = ann.post("/v1/jobs", data={"job": json.dumps({"solver": "qap", "inputs": both, "time_limit_s": 5})},
                     files={"f": ("f.npz", data)}, headers={"Prefer": "wait=30"}).json()  # fmt: skip
    flow, distance = (twice["input_digests"][name] for name in ("flow", "distance"))
    assert (flow["member"], distance["member"], flow["blob"]) == ("a", "b", distance["blob"])


def test_the_digests_of_a_result_are_references(ann: httpx.Client) -> None:
    csr = {"indptr": [0, 1, 2], "indices": [1, 0], "values": [5, 6], "shape": [2, 2]}
    answer = solve(ann, "auction", {"benefit": {"csr": csr}})
    parts = answer["input_digests"]["benefit"]["csr"]
    assert parts["shape"] == [2, 2]
    for name, count in (("indptr", 3), ("indices", 2), ("values", 2)):
        assert (parts[name]["format"], parts[name]["dtype"], parts[name]["shape"]) == ("npy", "int64", [count])
    again = solve(ann, "auction", answer["input_digests"])
    assert (again["objective"], again["input_digests"]) == (answer["objective"], answer["input_digests"])
    values = upload(ann, npy(np.array([5, 6], np.int32)))
    mixed = solve(ann, "auction", {"benefit": {"csr": {**csr, "values": values}}})
    assert mixed["input_digests"]["benefit"]["csr"]["values"] == plain(values)
    points = {name: np.random.default_rng(7).random((5, 2)).tolist() for name in ("x", "y")}
    cloud = solve(ann, "uot", {**points, "a": [1] * 5, "b": [1] * 5}, options={"reg": 0.5})
    assert {name: one["shape"] for name, one in cloud["input_digests"].items()} == {"x": [5, 2], "y": [5, 2],
                                                                                  "a": [5], "b": [5]}  # fmt: skip
    shown = ann.get(cloud["links"]["self"]).json()
    assert shown["input_digests"] == cloud["input_digests"]


def test_what_is_answered_is_documented(ann: httpx.Client) -> None:
    for data in (npy(matrix()), npz(a=matrix(), b=matrix()), sparse_file(matrix()), dat(matrix())):
        uploaded = upload(ann, data)
        assert uploaded.keys() <= BlobView.model_fields.keys()
        BlobView.model_validate(uploaded)
        assert uploaded.keys() <= REF[0]["properties"].keys()
    csr = {"indptr": [0, 1], "indices": [0], "values": [5], "shape": [1, 1]}
    for found in (solve(ann, "lap", {"cost": [[1]]}), solve(ann, "auction", {"benefit": {"csr": csr}})):
        TypeAdapter(InputDigests).validate_python(found["input_digests"])
        JobView.model_validate(ann.get(found["links"]["self"]).json())


def test_one_key_and_another_member_are_two_requests(ann: httpx.Client) -> None:
    uploaded = upload(ann, npz(a=matrix(), b=matrix()))
    jobs = [{"solver": "lap", "inputs": {"cost": {"blob": uploaded["blob"], "member": member}}} for member in "ab"]
    key = {"Idempotency-Key": f"key-{next(FRESH)}"}
    assert ann.post("/v1/jobs", json=jobs[0], headers=key).status_code == 202
    check(ann.post("/v1/jobs", json=jobs[1], headers=key), 409)


# --- what an owner can learn ---------------------------------------------------------------------------------------


def test_an_upload_is_answered_alike_whoever_has_the_bytes(ann: httpx.Client, bob: httpx.Client) -> None:
    def answered(data: bytes, params: dict[str, str]) -> tuple[int, dict[str, str], str]:
        made = bob.post("/v1/blobs", content=data, params=params)
        digest = made.json()["digest"]
        return made.status_code, {k: v for k, v in seen(made).items() if k not in ("location", "repr-digest")}, (
            made.text.replace(digest, "DIGEST"))  # fmt: skip

    for params in ({}, {"dtype": "uint8", "shape": "640"}):
        anns, bobs, new = (npy(matrix()) for _ in range(3))
        upload(ann, anns, params={"dtype": "uint8", "shape": "5,128"})
        upload(bob, bobs, params={"dtype": "uint8", "shape": "128,5"})
        assert answered(anns, params) == answered(bobs, params) == answered(new, params)


def test_nothing_tells_another_owners_blob_from_one_that_nobody_has(ann: httpx.Client, bob: httpx.Client) -> None:
    cost = matrix()
    kept = upload(ann, npy(cost))["digest"]
    given = upload(ann, npy(matrix()))["digest"]
    ann.delete(f"/v1/blobs/{given}")
    solved = solve(ann, "lap", {"cost": (cost + 5).tolist()})["input_digests"]["cost"]["blob"]
    nobodys = "sha256:" + "5a" * 32

    def probes(digest: str) -> list[tuple[int, dict[str, str], str]]:
        here, found = f"/v1/blobs/{digest}", []
        job: dict[str, Any] = {"solver": "lap", "inputs": {"cost": {"blob": digest}}}
        full = {"blob": digest, "format": "npy", "dtype": "int64", "shape": [8, 8]}
        wrong = {"blob": digest, "format": "npy", "dtype": "int32", "shape": [9, 9]}
        csr = {"indptr": [0, 1], "indices": [0], "values": {"blob": digest}, "shape": [1, 1]}
        for verb, path, more in (
            ("HEAD", here, {}),
            ("GET", here, {}),
            ("GET", here, {"headers": {"If-None-Match": "*"}}),
            ("GET", here, {"headers": {"Range": "bytes=0-3"}}),
            ("DELETE", here, {}),
            *(("POST", path, {"json": job}) for path in ("/v1/jobs", "/v1/estimates")),
            *(("POST", "/v1/jobs", {"json": {**job, "inputs": {"cost": one}}}) for one in (full, wrong)),
            ("POST", "/v1/jobs", {"json": {"solver": "auction", "inputs": {"benefit": {"csr": csr}}}}),
            ("POST", "/v1/jobs", {"json": {"solver": "qap", "inputs": {"qaplib": {"blob": digest}}}}),
        ):
            answer = bob.request(verb, path, **more)  # type: ignore[arg-type]
            found.append((answer.status_code, seen(answer), answer.text.replace(digest, "DIGEST")))
        return found

    expected = probes(nobodys)
    assert {status for status, _, _ in expected} == {404, 422}
    for digest in (kept, given, solved):
        assert probes(digest) == expected
    assert ann.get(f"/v1/blobs/{kept}").content == npy(cost)
    assert ann.get(f"/v1/blobs/{solved}").status_code == 200
    assert not re.search(r"\bfloat|int64", json.dumps(expected))
