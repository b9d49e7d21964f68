"""Arrays as bytes in the JSON: the same problem as their numbers as text, and each mistake is named."""

import base64
import json
from typing import Any

import httpx
import numpy as np
import pytest

from app.intake.document import read_document
from app.intake.json_bytes import array_from_bytes, is_packed
from kernels import InvalidProblem
from tests.app.conftest import Service


def packed(array: Any, **others: Any) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"data": data, "dtype": str(array.dtype), "shape": list(array.shape), **others}


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 0), (2, 3, 2)])
def test_bytes_are_read_as_they_are(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype) - 2
    found = array_from_bytes("inputs.cost", packed(array), 100)
    assert found.dtype == dtype
    assert found.shape == shape
    assert found.tolist() == array.tolist()


WHOLE = np.arange(4.0).reshape(2, 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (packed(WHOLE, dtype="float16"), "cost.dtype.*'float16'; expected one of int32, int64, float32, float64"),
        (packed(WHOLE, dtype=["float64"]), r"cost.dtype.*\['float64'\]"),
        (packed(WHOLE, shape=[]), r"cost.shape.*\[\]; expected 1 to 4 extents"),
        (packed(WHOLE, shape=[2, True]), r"cost.shape.*\[2, True\]"),
        (packed(WHOLE, shape=[2, -2]), r"cost.shape.*\[2, -2\]"),
        (packed(WHOLE, shape=4), "cost.shape.*is 4"),
        (packed(WHOLE, shape=[1, 1, 1, 2, 2]), "cost.shape"),
        (packed(WHOLE, shape=[2, 3]), "cost.data.*32 bytes; expected 48, which are 6 of float64"),
        (packed(WHOLE, shape=[10**9, 10**9]), "holds 1000000000000000000 entries; at most 100"),
        (packed(WHOLE, data="", shape=[0, 2**31]), r"has shape \[0, 2147483648\]; at most 100 are taken"),
        (packed(WHOLE, data="", shape=[10**30, 0]), "at most 100 are taken"),
        (packed(WHOLE, data="AA=A"), "cost.data.*is not base64"),
        (packed(WHOLE, data="A\u00e9A="), "cost.data.*is not base64"),
        (packed(WHOLE, data=[[1.0]]), "cost.data.*is no text"),
    ],
)
def test_what_does_not_fit_is_named(value: dict[str, Any], message: str) -> None:
    assert is_packed(value)
    with pytest.raises(InvalidProblem, match=message):
        array_from_bytes("inputs.cost", value, 100)


def test_every_place_of_an_array_takes_them() -> None:
    csr = {"indptr": packed(np.array([0, 1, 2])), "indices": [0, 1], "values": packed(np.ones(2)), "shape": [2, 2]}
    text = json.dumps({"solver": "auction", "inputs": {"benefit": {"csr": csr}}}).encode()
    found = read_document(text, (), 100).inputs["benefit"]["csr"]
    assert found["indptr"].tolist() == [0, 1, 2]
    assert found["values"].tolist() == [1, 1]


def test_an_answer_is_that_of_the_numbers_as_text(service: Service, client: httpx.Client) -> None:
    cost = np.random.default_rng(0).random((12, 12))
    cost[0, 3] = np.inf
    wait = {"Prefer": "wait=20"}
    texts = [[None if one == np.inf else one for one in row] for row in cost.tolist()]
    answers = [
        client.post("/v1/jobs", json={"solver": "lap", "inputs": {"cost": given}}, headers=wait).json()
        for given in (texts, packed(cost))
    ]
    for name in ("objective", "assignment", "input_digests", "certificate", "duals"):
        assert answers[0][name] == answers[1][name]
    cost[5, 7] = np.nan
    refused = client.post("/v1/jobs", json={"solver": "lap", "inputs": {"cost": packed(cost)}}, headers=wait)
    assert refused.status_code == 422
    assert "[5, 7]" in refused.text
