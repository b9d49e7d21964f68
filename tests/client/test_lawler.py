"""Quadratic assignment with general costs over HTTP, through the client, and by files."""

import asyncio

import httpx
import numpy as np
from allot_client import AsyncClient, Client, QuadraticResult

from kernels import SOLVERS
from tests.app.conftest import Service
from tests.app.test_bad_input import check
from tests.instances.lawler import general


def test_over_http_and_by_the_client(service: Service, allot: Client) -> None:
    cost = general(5, 6)["cost"]
    answer = allot.lawler(cost, time_limit_s=5)
    assert isinstance(answer, QuadraticResult)
    assert sorted(answer.permutation) == list(range(6))
    assert answer.certificate.verified
    again = allot.lawler(cost.tolist(), permutation0=answer.permutation, time_limit_s=5)
    assert again.objective == answer.objective
    larger = general(10, 10)["cost"]
    proved = allot.lawler(larger, duals=True, maximize=True, sweeps=5, rounds=2, time_limit_s=20)
    assert proved.certificate.bound is not None
    assert proved.objective is not None
    assert proved.certificate.bound >= proved.objective
    assert proved.arrays["rows"].shape == (10, 10, 10)
    sent = allot.lawler(allot.upload(general(20, 20, np.float64)["cost"]), rounds=1, sweeps=1, time_limit_s=20)
    assert sent.certificate.holds
    warm = allot.lawler(larger, maximize=True, warm_start=proved.id, sweeps=0, rounds=1, time_limit_s=20)
    assert warm.objective is not None
    assert warm.objective >= proved.objective


def test_without_waiting(service: Service) -> None:
    async def ask() -> QuadraticResult:
        async with AsyncClient(service.url) as allot:
            return await allot.lawler(general(4, 4)["cost"], fixed={0: 2})

    assert asyncio.run(ask()).permutation[0] == 2


def test_wrong_inputs_are_named(service: Service) -> None:
    url = f"{service.url}/v1/jobs"
    wrong = {"solver": "lawler", "inputs": {"cost": [[1, 2], [3, 4]]}}
    check(httpx.post(url, json=wrong), 422, "cost")
    missing = {"solver": "lawler", "inputs": {"flow": [[1]], "distance": [[1]]}}
    assert httpx.post(url, json=missing).status_code == 422
    fine = {"solver": "lawler", "inputs": {"cost": general(2, 2)["cost"].tolist()}}
    check(httpx.post(url, json=fine | {"options": {"sweeps": -1}}), 422, "sweeps")
    check(httpx.post(url, json=fine | {"device": "gpu"}), 422, "device")


def test_null_forbids_nothing_that_is_paid(service: Service) -> None:
    url = f"{service.url}/v1/jobs"
    cost = general(2, 2)["cost"].tolist()
    cost[0][0][0][1] = None
    told = httpx.post(url, json={"solver": "lawler", "inputs": {"cost": cost}}, headers={"Prefer": "wait=10"})
    assert told.json()["objective"] is not None
    cost[0][0][1][1] = None
    check(httpx.post(url, json={"solver": "lawler", "inputs": {"cost": cost}}), 422, "cost")


def test_the_example_is_answered(service: Service, allot: Client) -> None:
    job = SOLVERS["lawler"].example
    answer = allot.submit("lawler", {"cost": np.array(job["inputs"]["cost"])}).result()
    assert answer.objective == 1 + 4 + 6 + 1
