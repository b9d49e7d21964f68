"""What a reference means is never changed by an upload, and no upload, look or job tells what others have.

Two owners on one service. Every attack of the table is made by a stranger and by the owner, before and after the
owner's own upload; whatever was said, read and solved before it must be said, read and solved after it.
"""

import gzip
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest
import safetensors.numpy

from tests.app.references import FRESH, as_raw, dat, matrix, plain, solve, sparse_file, upload
from tests.app.test_bad_input import check, npy, npz
from tests.workers.service import eventually
from workers.jobs.entry import Entry
from workers.jobs.job import Job, QuotaFull, Submission

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
    n = 70
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
    assert again.pop("timings_ms").keys() < answer.pop("timings_ms").keys()  # who waited sees the way back, too
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
    kept = solve(ann, "lap", {"cost": cost.tolist()}, keep_inputs=True)
    assert kept["objective"] == plainly["objective"]
    blob = kept["input_digests"]["cost"]
    assert np.array_equal(np.load(io.BytesIO(ann.get(f"/v1/blobs/{blob['blob']}").content)), cost)
    assert solve(ann, "lap", {"cost": blob})["objective"] == kept["objective"]
    named = plainly["input_digests"]["cost"]  # it travelled with its job: named, and no blob that could be fetched
    assert named == {"digest": blob["blob"], **{name: said for name, said in blob.items() if name != "blob"}}
    assert ann.post("/v1/jobs", json={"solver": "lap", "inputs": {"cost": named}}).status_code == 422
    assert plainly["objective"] == solve(ann, "lap", {"cost": (cost + 1).tolist()})["objective"] - 8


def test_what_came_with_a_request_that_waits_travels_while_there_is_room(
    ann: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = {"cost": np.random.default_rng(next(FRESH)).random((100, 100)).tolist()}
    waited = solve(ann, "lap", inputs)["input_digests"]["cost"]
    assert "blob" not in waited
    kept = ann.post("/v1/jobs", json={"solver": "lap", "inputs": inputs}).json()["input_digests"]["cost"]
    assert kept == {"blob": waited["digest"], **{name: said for name, said in waited.items() if name != "digest"}}

    submit, refused = Entry.submit, list[str]()

    async def full(entry: Entry, submission: Submission) -> tuple[Job | None, str]:
        if "data" in submission.inputs["cost"]:
            refused.append(submission.owner)
            raise QuotaFull("there is no room in Redis for this owner")
        return await submit(entry, submission)

    with monkeypatch.context() as patched:
        patched.setattr(Entry, "submit", full)
        assert solve(ann, "lap", inputs)["input_digests"]["cost"] == kept
    assert len(refused) == 1
    monkeypatch.setattr("workers.jobs.entry.is_roomy", lambda told: False)
    # what is known of the memory is renewed beside a request
    eventually(lambda: solve(ann, "lap", inputs)["input_digests"]["cost"] == kept)


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
    changing = ("date", "last-modified", "x-request-id")
    return {name: value for name, value in answer.headers.items() if name not in changing}


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
    inputs = {"cost": (cost + 5).tolist()}
    solved = solve(ann, "lap", inputs, keep_inputs=True)["input_digests"]["cost"]["blob"]
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
