"""Gromov-Wasserstein over HTTP and through the client."""

from typing import Any

import httpx
import numpy as np
from allot_client import Client, GromovResult

from tests.app.conftest import Service
from tests.app.test_bad_input import check

SQUARE = [[0, 3, 4, 5], [3, 0, 5, 4], [4, 5, 0, 3], [5, 4, 3, 0]]


def test_a_space_beside_itself_turned_is_proved_over_http(service: Service) -> None:
    url = f"{service.url}/v1/jobs"
    turned = np.array(SQUARE)[np.ix_([2, 0, 3, 1], [2, 0, 3, 1])].tolist()
    job = {"solver": "gromov", "inputs": {"x_distance": SQUARE, "y_distance": turned}, "time_limit_s": 5}
    answer = httpx.post(url, json=job, headers={"Prefer": "wait=30"}, timeout=60).json()
    assert (answer["termination"], answer["certificate"]["verified"]) == ("optimal", True)
    assert answer["certificate"]["bound"] == 0
    plan = np.array(answer["plan"])
    crossed = (np.array(SQUARE)[:, None, :, None] - np.array(turned)[None, :, None, :]) ** 2
    assert np.einsum("ijkl,ij,kl->", crossed, plan, plan) < 1e-12
    wrong = {"x_distance": SQUARE, "y_distance": [[1, 2]]}
    check(httpx.post(url, json={"solver": "gromov", "inputs": wrong}), 422, "y_distance")


def test_the_client_sends_points_features_and_an_answer_to_begin_with(allot: Client) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((8, 2)), rng.random((6, 3))
    features: dict[str, Any] = {"x_features": rng.random((8, 4)), "y_features": rng.random((6, 4))}
    answer = allot.gromov(x=x, y=y, **features, alpha=0.3, metric="euclidean", time_limit_s=5)
    assert isinstance(answer, GromovResult)
    np.testing.assert_allclose(answer.plan.sum(axis=1), 1 / 8)
    assert answer.objective is not None
    assert answer.certificate.bound is not None
    assert answer.certificate.bound <= answer.objective
    again = allot.gromov(x=x, y=y, **features, alpha=0.3, metric="euclidean", starts=1, warm_start=answer)
    assert again.objective is not None
    assert again.objective <= answer.objective + 1e-9
