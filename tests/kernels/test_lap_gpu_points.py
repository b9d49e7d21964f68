"""Costs of points that are worked out on the device: as the CPU has them, and solved there."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, Device, Termination, solve_and_prove
from kernels.problems.metrics import METRICS, costs
from kernels.problems.points import PointAssignment
from tests.conftest import gpu_is_here
from tests.kernels.test_metrics import points

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
LAP = SOLVERS["lap"]


def built(metric: str, m: int, n: int, **options: Any) -> tuple[PointAssignment, Any]:
    given = LAP.options(metric=metric, **options)
    problem = LAP.build(points(metric, m, n, 7), given)
    assert isinstance(problem, PointAssignment)
    return problem, given


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", [(300, 300), (129, 517), (517, 129), (3, 1)])
def test_the_matrix_is_that_of_the_cpu(metric: str, shape: tuple[int, int]) -> None:
    from kernels.lap.points.gpu_points import costs_on_device

    problem, _ = built(metric, *shape)
    matrix, _ = costs_on_device(problem)
    expected = costs(problem.points.x, problem.points.y, metric)
    assert matrix.shape == shape
    scale = np.abs(expected).max() if metric == "inner" else 1.0
    np.testing.assert_allclose(np.asarray(matrix), expected, rtol=1e-13, atol=1e-14 * scale)
    np.testing.assert_array_equal(matrix[0], np.asarray(matrix)[0])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", [(300, 300), (129, 517), (517, 129)])
@pytest.mark.parametrize("maximize", [False, True])
def test_the_optimum_is_that_of_the_cpu(metric: str, shape: tuple[int, int], maximize: bool) -> None:
    problem, options = built(metric, *shape, maximize=maximize)
    objectives = []
    devices: tuple[Device, ...] = ("gpu", "cpu")
    for device in devices:
        solution, certificate = solve_and_prove(LAP, problem, options, Deadline(60), device)
        assert solution.termination is Termination.OPTIMAL
        assert certificate.objective is not None
        objectives.append(certificate.objective)
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-14)


def test_old_duals_and_no_time_are_taken() -> None:
    problem, options = built("sqeuclidean", 400, 400)
    first, _ = solve_and_prove(LAP, problem, options, Deadline(60), "gpu")
    warm = replace(problem, u0=first.arrays["u"], v0=first.arrays["v"])
    again, _ = solve_and_prove(LAP, warm, options, Deadline(60), "gpu")
    assert again.termination is Termination.OPTIMAL
    stopped, certificate = solve_and_prove(LAP, problem, options, Deadline(0.0), "gpu")
    assert stopped.termination is Termination.TIME_LIMIT
    assert certificate.objective is not None


def test_more_points_than_a_matrix_has_room_for() -> None:
    n = 70_000
    rng = np.random.default_rng(5)
    options = LAP.options()
    problem = LAP.build({"x": rng.random((n, 2)), "y": rng.random((n, 2))}, options)
    solution, certificate = solve_and_prove(LAP, problem, options, Deadline(120), "gpu")
    assert solution.method == "columns"
    assert certificate.objective is not None
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-9
