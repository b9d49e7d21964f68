"""A barycenter over HTTP and through the client: the same answer, its proof, and what a wrong input is told."""

import numpy as np
import pytest
from allot_client import BarycenterResult, Client, InvalidInput

from kernels import SOLVERS
from tests.app.conftest import Service
from tests.instances.barycenter import clouds, histograms


def test_over_http_and_by_the_client(service: Service) -> None:
    with Client(service.url) as allot:
        inputs = histograms(3, 12)
        answer = allot.barycenter(inputs["histograms"], cost=inputs["cost"], reg=0.1)
        assert isinstance(answer, BarycenterResult)
        assert answer.termination == "gap_reached"
        assert answer.barycenter.sum() == pytest.approx(1)
        assert answer.arrays["f"].shape == (3, 12)
        assert answer.gap is not None
        assert answer.gap <= 1e-6 * abs(answer.objective or 0)
        moved = allot.barycenter(x=clouds(2, 5)["x"], support_points=4)
        assert moved.points.shape == (4, 2)
        assert moved.gap is not None
        assert moved.gap >= 0
        with pytest.raises(InvalidInput, match="histograms"):
            allot.barycenter(inputs["histograms"][:1], cost=inputs["cost"])


def test_the_example_is_answered(service: Service) -> None:
    with Client(service.url) as allot:
        job = SOLVERS["barycenter"].example
        inputs = {name: np.array(value) for name, value in job["inputs"].items()}
        placed = allot.submit("barycenter", inputs, **job["options"])
        assert placed.result().certificate.holds
