"""What owners do with references: shared by the tests of these."""

import io
import itertools
from typing import Any

import httpx
import numpy as np
from scipy.sparse import csr_array, save_npz

REFERENCE = ("blob", "format", "member", "dtype", "shape")
FRESH = itertools.count()


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


def dat(cost: Any) -> bytes:
    text = "\n".join(" ".join(map(str, row)) for row in cost[:4, :4].tolist())
    return f"4\n{text}\n{text}\n".encode()


def sparse_file(cost: Any) -> bytes:
    stream = io.BytesIO()
    save_npz(stream, csr_array(cost + 1))
    return stream.getvalue()
