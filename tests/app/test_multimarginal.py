"""Transport among three measures over HTTP and through the client: the same answer, its proof, wrong inputs."""

import asyncio

import numpy as np
import pytest
from allot_client import AsyncClient, Client, InvalidInput, MultimarginalResult

from kernels import SOLVERS
from tests.app.conftest import Service
from tests.instances.multimarginal import clouds, tensor


def test_over_http_and_by_the_client(service: Service) -> None:
    with Client(service.url) as allot:
        answer = allot.multimarginal(**clouds(6, 7, 8), reg=0.2, output="marginals", pair_weights=[1, 2, 3])
        assert isinstance(answer, MultimarginalResult)
        assert answer.termination == "gap_reached"
        assert [one.shape for one in answer.potentials] == [(6,), (7,), (8,)]
        np.testing.assert_allclose(answer.plan_xy.sum(axis=1), answer.plan_xz.sum(axis=1), atol=1e-14)
        np.testing.assert_allclose(answer.plan_yz.sum(axis=0), 1 / 8, atol=1e-14)
        assert answer.gap is not None
        assert answer.gap <= 1e-6
        with pytest.raises(AttributeError, match="no plan"):
            _ = answer.plan
        exact = allot.multimarginal(tensor(4, 5, 6)["cost"], reg=0)
        assert exact.termination == "optimal"
        assert exact.plan.shape == (4, 5, 6)
        for wrong, name in (({"z": np.ones((3, 5))}, "z"), ({"b": -np.ones(7)}, "b"), ({"cost": [[[1.0]]]}, "x")):
            with pytest.raises(InvalidInput, match=name):
                allot.multimarginal(**{**clouds(6, 7, 8), **wrong})


def test_without_waiting(service: Service) -> None:
    async def ask() -> MultimarginalResult:
        async with AsyncClient(service.url) as allot:
            return await allot.multimarginal(**clouds(4, 5, 6), reg=0.3, output="plan")

    answer = asyncio.run(ask())
    assert answer.plan.sum() == pytest.approx(1)
    assert answer.certificate.holds


def test_the_example_is_answered(service: Service) -> None:
    with Client(service.url) as allot:
        job = SOLVERS["multimarginal"].example
        inputs = {name: np.array(value) for name, value in job["inputs"].items()}
        assert allot.submit("multimarginal", inputs, **job["options"]).result().certificate.holds
