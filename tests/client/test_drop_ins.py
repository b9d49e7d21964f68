"""The drop-in functions beside the originals, on the same data."""

from typing import Any

import lap
import numpy as np
import ot
import pytest
import scipy.optimize
from allot_client import gradients
from allot_client.lap import lapjv
from allot_client.pot import sinkhorn_unbalanced
from allot_client.scipy import linear_sum_assignment

from kernels import SOLVERS, Array, Deadline

pytestmark = pytest.mark.usefixtures("default_service")
random = np.random.default_rng(1)


@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3), (1, 1), (0, 3)])
@pytest.mark.parametrize("maximize", [False, True])
def test_scipy(shape: tuple[int, int], maximize: bool) -> None:
    cost = random.random(shape)
    ours, theirs = linear_sum_assignment(cost, maximize), scipy.optimize.linear_sum_assignment(cost, maximize)
    assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


REFUSED: dict[str, Any] = {
    "infeasible": [[np.inf, 1.0], [np.inf, 2.0]],
    "nan": [[np.nan]],
    "1d": np.zeros(3),
    "text": [["a"]],
    "array of text": np.array([["a"]]),
    "complex": np.array([[1j]]),
    "objects": np.array([[1, 2], [3, 4]], object),
    "none": [[None, 1], [2, 3]],
    "long doubles": np.ones((2, 2), np.longdouble),
    "wrong infinity": [[-np.inf, 1.0], [1.0, 2.0]],
}


@pytest.mark.parametrize("cost", REFUSED.values(), ids=REFUSED)
def test_scipy_refuses_the_same(cost: Any) -> None:
    told = []
    for solve in (linear_sum_assignment, scipy.optimize.linear_sum_assignment):
        with pytest.raises((ValueError, TypeError)) as wrong:
            solve(cost)
        told.append((wrong.type, str(wrong.value)))
    assert told[0] == told[1]


@pytest.mark.parametrize("dtype", [bool, np.float16, np.float32, np.int8, np.uint64])
def test_scipy_in_every_type(dtype: Any) -> None:
    cost = (random.random((5, 6)) * 200 - (100 if np.dtype(dtype).kind in "fi" else 0)).astype(dtype)
    cost[0, 0] = 0
    if dtype == np.uint64:
        cost[0, 0] = 2**63 + 4096  # as SciPy does, rounded to a float
    for given in (cost, cost.tolist(), cost.astype(np.longdouble).tolist(), np.asfortranarray(cost)):
        (rows, ours), (same, theirs) = linear_sum_assignment(given), scipy.optimize.linear_sum_assignment(given)
        assert rows.tolist() == same.tolist()
        assert float(cost[rows, ours].sum()) == float(cost[same, theirs].sum())


@pytest.mark.parametrize("maximize", [0, 1, None, np.bool_(True), np.int8(0), "yes"])
def test_scipy_takes_whatever_is_true(maximize: Any) -> None:
    cost = random.random((5, 6))
    ours, theirs = linear_sum_assignment(cost, maximize), scipy.optimize.linear_sum_assignment(cost, maximize)
    assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("most", [2**55 - 1, 2**56, 2**60, 2**63 - 1, 2**64 - 1, 2**70])
def test_scipy_of_whole_numbers_whose_sums_may_overflow(most: int, maximize: bool) -> None:
    """As floats, which SciPy makes of all; where they are solved as integers the answer is no worse."""
    for sign in (1, -1):
        cost = [[sign * most, 1, 5], [1, sign * most, 2]]
        _, ours = linear_sum_assignment(cost, maximize)
        _, theirs = scipy.optimize.linear_sum_assignment(cost, maximize)
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("options", [{}, {"extend_cost": True}, {"cost_limit": 0.5}])
def test_lapx_without_boxes(shape: tuple[int, int], options: dict[str, Any]) -> None:
    ours, theirs = lapjv(np.zeros(shape), **options), lap.lapjv(np.zeros(shape), **options)
    assert ours[0] == theirs[0]
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        assert (one.tolist(), one.dtype) == (other.tolist(), other.dtype)


@pytest.mark.parametrize("shape", [(5, 5), (4, 7), (7, 4)])
@pytest.mark.parametrize("limit", [np.inf, 0.9, 0.3])
def test_lapx(shape: tuple[int, int], limit: float) -> None:
    cost = random.random(shape)
    ours, theirs = lapjv(cost, True, limit), lap.lapjv(cost, extend_cost=True, cost_limit=limit)
    assert ours[0] == pytest.approx(theirs[0])
    assert ours[1].tolist() == theirs[1].tolist()
    assert ours[2].tolist() == theirs[2].tolist()


@pytest.mark.parametrize("reg_type", ["kl", "entropy"])
def test_pot(reg_type: str) -> None:
    x, y = random.normal(size=(15, 2)), random.normal(size=(12, 2))
    cost = ot.dist(x, y)
    a, b = np.full(15, 1 / 15), np.full(12, 1.5 / 12)
    ours = sinkhorn_unbalanced(a, b, cost, 0.3, 1.0, reg_type=reg_type, stopThr=1e-9)
    theirs = ot.unbalanced.sinkhorn_unbalanced(a, b, cost, 0.3, 1.0, reg_type=reg_type, stopThr=1e-12, numItermax=20000)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    halves = [one.astype(np.float32) for one in (a, b, cost)]
    small = sinkhorn_unbalanced(halves[0], halves[1], halves[2], 0.3, 1.0, reg_type=reg_type)
    assert small.dtype == np.float32
    np.testing.assert_allclose(small, theirs, atol=1e-4)


def value(cost: Array, a: Array, b: Array, reg_m: tuple[float, float]) -> tuple[float, Array, Array, Array]:
    card = SOLVERS["uot"]
    options = card.options.model_validate({"reg": 0.2, "reg_m": reg_m, "tolerance": 1e-12})
    problem = card.build({"cost": cost, "a": a, "b": b}, options)
    solution = card.solve(problem, options, Deadline(20), "cpu")
    objective = card.certify(problem, solution).objective
    assert objective is not None
    plan, f, g = (solution.arrays[name].astype(float) for name in ("plan", "f", "g"))
    return float(objective), plan, f, g


@pytest.mark.parametrize("reg_m", [(1.0, 1.0), (0.5, 3.0)])
def test_gradients_against_finite_differences(reg_m: tuple[float, float]) -> None:
    cost, a, b = random.random((5, 4)), random.random(5) + 0.5, random.random(4) + 0.5
    _, plan, f, g = value(cost, a, b, reg_m)
    slopes = {
        "cost": gradients.by_cost(plan)[1, 2],
        "a": gradients.by_mass(f, a, plan.sum(1), reg_m[0], 0.2, float(b.sum()))[3],
        "b": gradients.by_mass(g, b, plan.sum(0), reg_m[1], 0.2, float(a.sum()))[2],
    }
    step = 1e-4
    for name, place in (("cost", (1, 2)), ("a", (3,)), ("b", (2,))):
        ends = []
        for sign in (1, -1):
            moved = {"cost": cost.copy(), "a": a.copy(), "b": b.copy()}
            moved[name][place] += sign * step
            ends.append(value(moved["cost"], moved["a"], moved["b"], reg_m)[0])
        assert slopes[name] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-6), name


def test_gradient_by_points() -> None:
    x, y, plan = random.random((4, 3)), random.random((5, 3)), random.random((4, 5))

    def total(points: Array) -> float:
        return float((plan * ((points[:, None] - y) ** 2).sum(-1)).sum())

    moved, step = x.copy(), 1e-6
    moved[2, 1] += step
    slope = gradients.by_points(x, y, plan)[2, 1]
    assert slope == pytest.approx((total(moved) - total(x)) / step, rel=1e-4)
