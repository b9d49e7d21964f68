"""Every bad input of the contract: a problem document that names the field, and nothing enqueued."""

import functools
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.conftest import LAP
from tests.bombs import Made, made

NAN = float("nan")
SQUARE = [[1, 2], [3, 4]]
QAP = {"flow": SQUARE, "distance": SQUARE}
UOT = {"cost": SQUARE, "a": [1, 1], "b": [1, 1]}


def job(solver: str, inputs: Any, **more: Any) -> dict[str, Any]:
    return {"solver": solver, "inputs": inputs, **more}


def csr(**changes: Any) -> dict[str, Any]:
    whole = {"indptr": [0, 1, 2], "indices": [0, 1], "values": [5, 6], "shape": [2, 2]}
    return {"benefit": {"csr": {**whole, **changes}}}


JSON: dict[str, tuple[dict[str, Any], str]] = {
    "nan": (job("lap", {"cost": [[1, NAN], [2, 3]]}), "inputs.cost"),
    "nan-uot-mass": (job("uot", {**UOT, "a": [1, NAN]}), "inputs.a"),
    "minus-inf-in-cost": (job("lap", {"cost": [[1, -float("inf")], [2, 3]]}), "inputs.cost"),
    "plus-inf-in-benefit": (job("auction", {"benefit": [[1, float("inf")], [2, 3]]}), "inputs.benefit"),
    "inf-in-flow": (job("qap", {**QAP, "flow": [[1, float("inf")], [2, 3]]}), "inputs.flow"),
    "null-in-vector": (job("uot", {**UOT, "a": [1, None]}), "inputs.a"),
    "empty": (job("lap", {"cost": []}), "inputs.cost"),
    "empty-rows": (job("lap", {"cost": [[], []]}), "inputs.cost"),
    "empty-auction": (job("auction", {"benefit": []}), "inputs.benefit"),
    "empty-csr": (job("auction", csr(indptr=[0], indices=[], values=[], shape=[0, 3])), "inputs.benefit"),
    "ragged": (job("lap", {"cost": [[1, 2], [3]]}), "inputs.cost"),
    "boolean": (job("lap", {"cost": [[True, 2], [3, 4]]}), "inputs.cost"),
    "string": (job("lap", {"cost": [["1", 2], [3, 4]]}), "inputs.cost"),
    "one-dimensional": (job("lap", {"cost": [1, 2]}), "inputs.cost"),
    "four-dimensional": (job("lap", {"cost": [[[[1]]]]}), "inputs.cost"),
    "beyond-int64": (job("lap", {"cost": [[2**63, 1], [1, 1]]}), "inputs.cost"),
    "sum-beyond-int64": (job("lap", {"cost": [[2**62, 2**62], [2**62, 2**62]]}), "inputs.cost"),
    "qap-beyond-int64": (job("qap", {"flow": [[0, 2**40], [2**40, 0]], "distance": [[0, 2**40], [2**40, 0]]}), "flow"),
    "fewer-locations": (job("qap", {**QAP, "distance": [[1]]}), "distance"),
    "flow-not-square": (job("qap", {**QAP, "flow": [[1, 2, 3], [4, 5, 6]]}), "flow"),
    "a-too-long": (job("uot", {**UOT, "a": [1, 1, 1]}), "inputs.a"),
    "b-negative": (job("uot", {**UOT, "b": [1, -1]}), "inputs.b"),
    "reg-negative": (job("uot", UOT, options={"reg": -1}), "options.reg"),
    "reg-zero": (job("uot", UOT, options={"reg": 0}), "options.reg"),
    "reg-text": (job("uot", UOT, options={"reg": "0.1"}), "options.reg"),
    "reg_m-negative": (job("uot", UOT, options={"reg_m": -1}), "options.reg_m"),
    "unknown-solver": (job("sudoku", {"cost": SQUARE}), "solver"),
    "no-solver": ({"inputs": {"cost": SQUARE}}, "solver"),
    "unknown-option": (job("lap", {"cost": SQUARE}, options={"speed": 11}), "options.speed"),
    "option-beyond-int64": (job("qap", QAP, options={"iterations": 10**30}), "options"),
    "benefit-beyond-float64": (job("auction", csr(values=[1e308, -1e308])), "inputs.benefit"),
    "options-list": (job("lap", {"cost": SQUARE}, options=[1]), "options"),
    "unknown-input": (job("lap", {"kost": SQUARE}), "inputs.kost"),
    "no-input": (job("lap", {}), "inputs.cost"),
    "inputs-list": (job("lap", [1]), "inputs"),
    "unknown-field": (job("lap", {"cost": SQUARE}, urgency=1), "urgency"),
    "priority-beyond": (job("lap", {"cost": SQUARE}, priority=10), "priority"),
    "unknown-device": (job("lap", {"cost": SQUARE}, device="tpu"), "device"),
    "time-limit-negative": (job("lap", {"cost": SQUARE}, time_limit_s=-1), "time_limit_s"),
    "time-limit-nan": (job("lap", {"cost": SQUARE}, time_limit_s=NAN), "time_limit_s"),
    "time-limit-text": (job("lap", {"cost": SQUARE}, time_limit_s="abc"), "time_limit_s"),
    "time-limit-true": (job("lap", {"cost": SQUARE}, time_limit_s=True), "time_limit_s"),
    "time-limit-beyond": (job("lap", {"cost": SQUARE}, time_limit_s=1e9), "time_limit_s"),
    "unknown-blob": (job("lap", {"cost": {"blob": "sha256:" + "0" * 64}}), "inputs.cost"),
    "blob-path": (job("lap", {"cost": {"blob": "../../etc/passwd"}}), "inputs.cost"),
    "blob-number": (job("lap", {"cost": {"blob": 7}}), "inputs.cost"),
    "part-in-json": (job("lap", {"cost": {"part": "cost"}}), "inputs.cost"),
    "strange-reference": (job("lap", {"cost": {"url": "http://localhost/"}}), "inputs.cost"),
    "csr-for-lap": (job("lap", {"cost": csr()["benefit"]}), "inputs.cost"),
    "csr-without-shape": (job("auction", {"benefit": {"csr": {"indptr": [0], "indices": [], "values": []}}}), "csr"),
    "csr-index-out": (job("auction", csr(indices=[0, 7])), "inputs.benefit"),
    "csr-indptr-short": (job("auction", csr(indptr=[0, 1])), "inputs.benefit"),
    "csr-indptr-falls": (job("auction", csr(indptr=[0, 3, 2])), "inputs.benefit"),
    "csr-float-indices": (job("auction", csr(indices=[0.5, 1.0])), "inputs.benefit"),
    "csr-value-nan": (job("auction", csr(values=[NAN, 1])), "inputs.benefit"),
    "csr-huge-shape": (job("auction", csr(shape=[10**18, 10**18])), "inputs.benefit"),
    "warm-start-unknown": (job("lap", {"cost": SQUARE}, warm_start="0" * 32), "warm_start"),
    "warm-start-path": (job("lap", {"cost": SQUARE}, warm_start="../x"), "warm_start"),
    "ttl-negative": (job("lap", {"cost": SQUARE}, result_ttl_s=-1), "result_ttl_s"),
}


def npy(array: Any, **how: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), **how)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def lying(shape: str) -> bytes:
    return npy(np.ones((2, 2))).replace(b"(2, 2), }" + b" " * (len(shape) - 6), shape.encode() + b", }", 1)


@functools.cache
def bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cost.npy", npy(np.zeros(1))[:128] + bytes(200 << 20))
    return stream.getvalue()


FILES: dict[str, tuple[str, str, Made]] = {  # solver, name of the part, bytes
    "dat-truncated": ("qap", "qaplib", b"3\n0 1 2\n1 0 3\n2 3 0\n0 1 1\n1 0"),
    "dat-extra": ("qap", "qaplib", b"2\n0 1\n1 0\n0 1\n1 0\n5 5 5"),
    "dat-n-zero": ("qap", "qaplib", b"0\n"),
    "dat-n-huge": ("qap", "qaplib", b"1000000000\n1 2 3"),
    "dat-n-negative": ("qap", "qaplib", b"-3\n1 2 3"),
    "dat-letters": ("qap", "qaplib", b"2\n0 x\n1 0\n0 1\n1 0"),
    "dat-nan": ("qap", "qaplib", b"2\n0 nan\n1 0\n0 1\n1 0"),
    "dat-empty": ("qap", "qaplib", b""),
    "dat-binary": ("qap", "qaplib", bytes(range(256))),
    "npy-objects": ("lap", "cost", npy(np.array([[{}, 1], [2, 3]], dtype=object))),
    "npy-big-endian": ("lap", "cost", npy(np.eye(2, dtype=">f8"))),
    "npy-more-than-came": ("lap", "cost", lying("(20000, 2)")),
    "npy-less-than-came": ("lap", "cost", lying("(1, 2)")),
    "npy-open-header": ("lap", "cost", npy(np.ones((2, 2))).replace(b"(2, 2), }", b"(2, 2    ")),
    "npy-cut": ("lap", "cost", npy(np.ones((2, 2)))[:-5]),
    "npy-text": ("lap", "cost", npy(np.array([["a", "b"]]))),
    "npy-complex": ("lap", "cost", npy(np.eye(2) * 1j)),
    "npy-boolean": ("lap", "cost", npy(np.eye(2) > 0)),
    "npy-nan": ("lap", "cost", npy(np.array([[1, NAN], [2, 3]]))),
    "npy-empty": ("lap", "cost", npy(np.ones((0, 3)))),
    "npz-bomb": ("lap", "cost", bomb),
    "npz-of-two": ("lap", "cost", npz(one=np.eye(2), two=np.eye(2))),
    "gzip-bomb": ("lap", "cost", lambda: gzip.compress(bytes(100 << 20))),
    "gzip-cut": ("lap", "cost", gzip.compress(npy(np.eye(5)))[:-9]),
    "no-format": ("lap", "cost", b"hello, world"),
    "unknown-part": ("lap", "kost", npy(np.eye(2))),
}


def check(answer: httpx.Response, status: int | tuple[int, ...], field: str | None = None) -> None:
    statuses = status if isinstance(status, tuple) else (status,)
    assert answer.status_code in statuses, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert {"type", "title", "status", "detail"} <= problem.keys()
    assert problem["status"] == answer.status_code
    if field is not None:
        named = [error["field"] for error in problem["errors"]]
        assert any(field in one for one in named), problem
        assert all(error["message"] for error in problem["errors"])


@pytest.fixture(autouse=True)
def nothing_enqueued(client: httpx.Client) -> Any:
    def newest() -> list[str]:  # of others, which a test before may have left in the line, the states may change
        return [job["id"] for job in client.get("/v1/jobs").json()["jobs"]]

    before = newest()
    yield
    assert newest() == before


@pytest.mark.parametrize("name", JSON)
def test_json_that_cannot_be_taken(client: httpx.Client, name: str) -> None:
    body, field = JSON[name]
    check(client.post("/v1/jobs", content=json.dumps(body)), 422, field)


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_taken(client: httpx.Client, name: str) -> None:
    solver, part, data = FILES[name]
    filename = "x.dat" if part == "qaplib" else "x.npy"
    body = {"job": json.dumps({"solver": solver})}
    check(client.post("/v1/jobs", data=body, files={part: (filename, made(data))}), 422, part)


def test_a_gpu_that_is_not_there(client: httpx.Client) -> None:
    check(client.post("/v1/jobs", json={**LAP, "device": "gpu"}), (422, 503), "device")


@pytest.mark.parametrize("body", [b"{", b"", b"[1,", b"\xff\xfe", b"[" * 100_000, b'{"solver": lap}'])
def test_malformed_json(client: httpx.Client, body: bytes) -> None:
    check(client.post("/v1/jobs", content=body), 400)


@pytest.mark.parametrize("body", [b"[]", b"5", b"null", b'"lap"'])
def test_json_that_is_no_object(client: httpx.Client, body: bytes) -> None:
    check(client.post("/v1/jobs", content=body), 422, "")


def test_wrong_accept(client: httpx.Client) -> None:
    check(client.post("/v1/jobs", json=LAP, headers={"Accept": "text/html"}), 406)
    check(client.get("/v1/solvers", headers={"Accept": "image/png;q=1, application/json;q=0"}), 406)


def test_wrong_content_type(client: httpx.Client) -> None:
    check(client.post("/v1/jobs", content=json.dumps(LAP), headers={"Content-Type": "text/xml"}), 415)
    check(client.post("/v1/jobs", content=b"x", headers={"Content-Encoding": "gzip"}), 415)


def test_body_over_the_limit(client: httpx.Client) -> None:
    check(client.post("/v1/jobs", content=b" " * (5 << 20)), 413)
    check(client.post("/v1/jobs", content=(b" " * 65536 for _ in range(80))), 413)
    check(client.post("/v1/blobs", content=(bytes(1 << 20) for _ in range(17))), 413)


def test_no_body(client: httpx.Client) -> None:
    request = client.build_request("POST", "/v1/jobs")
    del request.headers["content-length"]
    check(client.send(request), 411)


def test_digest_that_does_not_match(client: httpx.Client) -> None:
    data = npy(np.eye(2))
    wrong = "sha-256=:" + "A" * 43 + "=:"
    check(client.post("/v1/blobs", content=data, headers={"Content-Digest": wrong}), 422, "digest")
    check(client.post("/v1/blobs", content=data, params={"digest": "sha256:" + "0" * 64}), 422, "digest")
    check(client.post("/v1/blobs", content=data, params={"digest": "md5:0"}), 422, "digest")
    check(client.post("/v1/blobs", content=data, headers={"Repr-Digest": "sha-256=nonsense"}), 400)


@pytest.mark.parametrize("params", [{"format": "xml"}, {"shape": "2,x"}, {"dtype": "object", "shape": "2"}])
def test_blob_parameters(client: httpx.Client, params: dict[str, str]) -> None:
    check(client.post("/v1/blobs", content=bytes(16), params=params), 422)


@pytest.mark.parametrize("path", ["/v1/jobs/x", "/v1/jobs/" + "0" * 32, "/v1/jobs/" + "0" * 32 + "/result",
                                  "/v1/blobs/sha256:" + "0" * 64, "/v1/blobs/..%2f..%2fetc", "/nowhere"])  # fmt: skip
def test_what_is_not_there(client: httpx.Client, path: str) -> None:
    check(client.get(path), 404)


def test_wrong_verb(client: httpx.Client) -> None:
    answer = client.put("/v1/jobs")
    check(answer, 405)
    assert answer.headers["allow"] == "GET, POST"


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "cursor=;", "state=lost", "solver=sudoku"])
def test_wrong_queries(client: httpx.Client, query: str) -> None:
    check(client.get(f"/v1/jobs?{query}"), 422, query.split("=")[0])


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"nonsense"),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="job"\r\n\r\n{}'),
        ("multipart/form-data; boundary=b", b"--b\r\nX: y\r\n\r\n{}\r\n--b--\r\n"),
    ],
)
def test_multipart_that_cannot_be_read(client: httpx.Client, content_type: str, body: bytes) -> None:
    check(client.post("/v1/jobs", content=body, headers={"Content-Type": content_type}), 400)


def test_multipart_without_a_job(client: httpx.Client) -> None:
    check(client.post("/v1/jobs", files={"cost": ("c.npy", npy(np.eye(2)))}), 422, "job")


def test_sln_that_does_not_belong(client: httpx.Client, post: Callable[..., httpx.Response]) -> None:
    dat, sln = b"2\n0 1\n1 0\n0 3\n3 0\n", b"2 999\n1 2\n"
    body = {"job": json.dumps({"solver": "qap"})}
    check(client.post("/v1/jobs", data=body, files={"qaplib": ("a.dat", dat), "sln": ("a.sln", sln)}), 422, "sln")


def test_a_sparse_matrix_is_called_that(client: httpx.Client) -> None:
    answer = client.post("/v1/jobs", json=job("lap", {"cost": csr()["benefit"]}))
    assert answer.json()["detail"] == "inputs.cost: is sparse; lap takes a dense cost"
