"""What a reference may say of the bytes that it names, and what is asked for where they do not say it themselves."""

import gzip
import json
from typing import Any

import httpx
import numpy as np
import safetensors.numpy
from pydantic import TypeAdapter

from app.http.schemas import REF, BlobView, InputDigests, JobView
from tests.app.references import FRESH, as_raw, dat, matrix, plain, solve, sparse_file, upload
from tests.app.test_bad_input import check, npy, npz


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
    told = {"solver": "qap", "inputs": both, "time_limit_s": 5, "keep_inputs": True}
    twice = ann.post("/v1/jobs", data={"job": json.dumps(told)},
                     files={"f": ("f.npz", data)}, headers={"Prefer": "wait=30"}).json()  # fmt: skip
    flow, distance = (twice["input_digests"][name] for name in ("flow", "distance"))
    assert (flow["member"], distance["member"], flow["blob"]) == ("a", "b", distance["blob"])


def test_the_digests_of_a_result_are_references(ann: httpx.Client) -> None:
    csr = {"indptr": [0, 1, 2], "indices": [1, 0], "values": [5, 6], "shape": [2, 2]}
    answer = solve(ann, "auction", {"benefit": {"csr": csr}}, keep_inputs=True)
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
    for kept in (False, True):
        dense = solve(ann, "lap", {"cost": [[1]]}, keep_inputs=kept)
        for found in (dense, solve(ann, "auction", {"benefit": {"csr": csr}}, keep_inputs=kept)):
            shown = TypeAdapter(InputDigests).validate_python(found["input_digests"])
            assert TypeAdapter(InputDigests).dump_python(shown, exclude_none=True) == found["input_digests"]
            JobView.model_validate(ann.get(found["links"]["self"]).json())


def test_one_key_and_another_member_are_two_requests(ann: httpx.Client) -> None:
    uploaded = upload(ann, npz(a=matrix(), b=matrix()))
    jobs = [{"solver": "lap", "inputs": {"cost": {"blob": uploaded["blob"], "member": member}}} for member in "ab"]
    key = {"Idempotency-Key": f"key-{next(FRESH)}"}
    assert ann.post("/v1/jobs", json=jobs[0], headers=key).status_code == 202
    check(ann.post("/v1/jobs", json=jobs[1], headers=key), 409)
