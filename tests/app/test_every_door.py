"""One problem by every way that leads in: numbers, bytes, parts, files and blobs have the same answer."""

import base64
import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from safetensors.numpy import save
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from kernels import Array
from tests.app.test_bad_input import npy, npz

SIZES = [5, 60, 200]
"""Rows of problems that travel with their job, that do where its answer is waited for, and that do not."""
Post = Callable[[httpx.Client, str, str, Any, dict[str, str]], httpx.Response]


def packed(array: Array) -> dict[str, Any]:
    kind = "float64" if array.dtype.kind == "f" else "int64"
    data = base64.b64encode(np.ascontiguousarray(array, kind).tobytes()).decode()
    return {"data": data, "dtype": kind, "shape": list(array.shape)}


def by_json(shown: Callable[[httpx.Client, Any], Any]) -> Post:
    """The input in the document, as `shown` puts it."""

    def post(client: httpx.Client, solver: str, name: str, value: Any, headers: dict[str, str]) -> httpx.Response:
        job = {"solver": solver, "inputs": {name: shown(client, value)}}
        return client.post("/v1/jobs", json=job, headers=headers)

    return post


def by_file(file: Callable[[Any], bytes]) -> Post:
    """The input in a file part of its name."""

    def post(client: httpx.Client, solver: str, name: str, value: Any, headers: dict[str, str]) -> httpx.Response:
        files: Any = {"job": (None, json.dumps({"solver": solver})), name: ("file", file(value))}
        return client.post("/v1/jobs", files=files, headers=headers)

    return post


def blob(client: httpx.Client, data: bytes) -> dict[str, Any]:
    answer = client.post("/v1/blobs", content=data)
    assert answer.status_code == 201, answer.text
    return {key: value for key, value in answer.json().items() if key in ("blob", "format", "dtype", "shape")}


def three(matrix: scipy.sparse.csr_array) -> dict[str, Array]:
    return {"indptr": matrix.indptr, "indices": matrix.indices, "values": matrix.data}


def in_three(shown: Callable[[httpx.Client, Array], Any]) -> Post:
    """A sparse matrix in the document, as its three arrays."""
    return by_json(
        lambda client, value: {
            "csr": {**{part: shown(client, array) for part, array in three(value).items()}, "shape": list(value.shape)}
        }
    )


def by_parts(
    client: httpx.Client, solver: str, name: str, value: scipy.sparse.csr_array, headers: dict[str, str]
) -> httpx.Response:
    """A sparse matrix as three file parts."""
    csr = {**{part: {"part": f"{name}.{part}"} for part in three(value)}, "shape": list(value.shape)}
    files: Any = {"job": (None, json.dumps({"solver": solver, "inputs": {name: {"csr": csr}}}))}
    files |= {f"{name}.{part}": ("file.npy", npy(array)) for part, array in three(value).items()}
    return client.post("/v1/jobs", files=files, headers=headers)


def scipys(matrix: scipy.sparse.csr_array, compressed: bool = True) -> bytes:
    file = io.BytesIO()
    scipy.sparse.save_npz(file, matrix, compressed)
    return file.getvalue()


def market(matrix: Any) -> bytes:
    file = io.BytesIO()
    scipy.io.mmwrite(file, matrix.tocoo() if scipy.sparse.issparse(matrix) else matrix, precision=17)
    return file.getvalue()


DENSE: dict[str, Post] = {
    "lists": by_json(lambda client, value: value.tolist()),
    "bytes": by_json(lambda client, value: packed(value)),
    "a blob": by_json(lambda client, value: blob(client, npy(value))),
    "npy": by_file(npy),
    "npy by columns": by_file(lambda value: npy(np.asfortranarray(value))),
    "npy.gz": by_file(lambda value: gzip.compress(npy(value))),
    "npz": by_file(lambda value: npz(cost=value)),
    "safetensors": by_file(lambda value: save({"cost": value})),
    "MatrixMarket": by_file(market),
}
SPARSE: dict[str, Post] = {
    "lists": in_three(lambda client, array: array.tolist()),
    "bytes": in_three(lambda client, array: packed(array)),
    "blobs": in_three(lambda client, array: blob(client, npy(array))),
    "parts": by_parts,
    "npz": by_file(scipys),
    "npz as it is": by_file(lambda value: scipys(value, compressed=False)),
    "MatrixMarket": by_file(market),
    "MatrixMarket.gz": by_file(lambda value: gzip.compress(market(value))),
    "a blob of npz": by_json(lambda client, value: blob(client, scipys(value))),
    "a blob of MatrixMarket": by_json(lambda client, value: blob(client, market(value))),
}


def graph(n: int) -> tuple[scipy.sparse.csr_array, float]:
    """A sparse matrix, and the most that a full assignment along its entries brings."""
    numbers = np.random.default_rng(n)
    dense = numbers.integers(1, 100, (n, n)) * (numbers.random((n, n)) < 0.4)
    np.fill_diagonal(dense, 3)
    rows, cols = min_weight_full_bipartite_matching(scipy.sparse.csr_array(dense), maximize=True)
    return scipy.sparse.csr_array(dense.astype(float)), float(dense[rows, cols].sum())


def answered(client: httpx.Client, answer: httpx.Response) -> Any:
    """The result, now or later."""
    if answer.status_code == 202:
        links = answer.json()["links"]
        assert client.get(links["self"], params={"wait": 30}).json()["state"] == "succeeded"
        answer = client.get(links["result"])
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("way", DENSE)
def test_a_matrix(client: httpx.Client, way: str, waits: bool) -> None:
    headers = {"Prefer": "wait=30"} if waits else {}
    for n in SIZES:
        cost = np.random.default_rng(n).random((n, n + 1))
        told = answered(client, DENSE[way](client, "lap", "cost", cost, headers))
        assert told["assignment"] == linear_sum_assignment(cost)[1].tolist()


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("way", SPARSE)
def test_a_sparse_matrix(client: httpx.Client, way: str, waits: bool) -> None:
    headers = {"Prefer": "wait=30"} if waits else {}
    for n in SIZES:
        matrix, best = graph(n)
        told = answered(client, SPARSE[way](client, "auction", "benefit", matrix, headers))
        assert told["objective"] == best
