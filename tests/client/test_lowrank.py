"""Couplings of low rank over HTTP and through the client."""

import httpx
import numpy as np
from allot_client import Client, LowRankResult

from tests.app.conftest import Service
from tests.app.test_bad_input import check


def test_over_http_and_by_the_client(service: Service, allot: Client) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((30, 2)), rng.random((25, 2))
    answer = allot.lowrank(x=x, y=y, rank=4, time_limit_s=5)
    assert isinstance(answer, LowRankResult)
    assert (answer.q.shape, answer.r.shape, answer.g.shape) == ((30, 4), (25, 4), (4,))
    np.testing.assert_allclose(answer.plan.sum(axis=1), 1 / 30)
    assert answer.objective is not None
    assert answer.certificate.bound is not None
    assert answer.certificate.bound < answer.objective
    whole = allot.lowrank(row_factors=-x, column_factors=y, rank=25, time_limit_s=5)
    assert whole.certificate.verified
    url = f"{service.url}/v1/jobs"
    wrong = {"solver": "lowrank", "inputs": {"x": [[1, 2]], "y": [[1]]}}
    check(httpx.post(url, json=wrong), 422, "y")
    check(httpx.post(url, json=wrong | {"options": {"rank": 0}}), 422, "rank")
