"""Warm starts of problems with more columns than rows, or fewer: columns that become free get their price back."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, Termination
from kernels.lap.cpu import by_steps, near, near_back, near_early, near_rows, near_seats, near_wide, whole
from kernels.problems import ranges
from kernels.problems.arrays import STRIP, transposed
from tests.kernels.test_lap_warm import answer, clusters, plane, searched, wide
from tests.oracles.assignment import scipy_optimum

LAP = SOLVERS["lap"]
Rng = np.random.Generator


def uniform(rng: Rng, n: int, m: int) -> Array:
    return rng.random((n, m))


def short(rng: Rng, n: int, m: int) -> Array:
    return rng.random((n, m), np.float32)


FAMILIES = [uniform, short, plane, clusters, wide]


def changed(rng: Rng, family: Any, cost: Array, rows: int) -> Array:
    """The costs with so many rows drawn anew."""
    now, places = cost.copy(), rng.permutation(len(cost))[:rows]
    now[places] = family(rng, *cost.shape)[places].astype(cost.dtype)
    return now


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(300, 310), (310, 300), (256, 700), (700, 200)])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_old_prices_are_of_use_to_wide_and_tall_problems(
    family: Any, shape: tuple[int, int], maximize: bool, checks: bool
) -> None:
    """All have the optimum, whether they start from old prices or from nothing, as distances may."""
    rng = np.random.default_rng([41, *shape, FAMILIES.index(family)])
    used = 0
    for trial in range(5):
        old = family(rng, *shape)
        cost = changed(rng, family, old, 3) if trial < 4 else changed(rng, family, old.T.copy(), 3).T.copy()
        duals = answer(old, maximize)[0].arrays
        with (
            patch.object(near_early, "MOST_THREADS", 1 << 10),
            patch.object(ranges, "beside", near_early.early if checks else None),
        ):
            solution, certificate = answer(cost, maximize, u0=duals["u"], v0=duals["v"])
        assert certificate.holds
        assert certificate.objective == pytest.approx(scipy_optimum(cost, maximize), rel=1e-12)
        assert certificate.gap_rel == pytest.approx(0, abs=1e-12)
        used += solution.facts["row_reductions"] == 0
    if family not in (plane, clusters):
        assert used == 5
    elif family is plane and not maximize and shape[0] < shape[1]:
        assert used >= 4


def levelled(cost: Array, v: Array) -> tuple[whole.Whole, near.Near, bool]:
    s = searched(cost, v)
    lists = near.new_near(s)
    assert lists is not None
    assert near_rows.list_in_pieces(s, lists, Deadline().expired) is None
    near_wide.seat_low(s, lists)
    near_seats.seat_listed(s, lists)
    return s, lists, bool(near_wide.level_free(s, lists, near_back.new_both(s, lists)))


@pytest.mark.parametrize("family", [uniform, plane, wide], ids=lambda family: family.__name__)
def test_free_columns_get_one_price_and_duals_stay_feasible(family: Any) -> None:
    rng = np.random.default_rng([42, FAMILIES.index(family)])
    helped = risen = 0
    for _ in range(12):
        n, m = int(rng.integers(70, 200)), int(rng.integers(201, 260))
        old = family(rng, n, m)
        v = answer(old, False)[0].arrays["v"].copy()
        cost = changed(rng, family, old, 4)
        before = v.copy()
        s, lists, done = levelled(cost, v)
        if not done:
            continue
        helped += 1
        top, rows = s.v.max(), np.flatnonzero(s.col_of >= 0)
        assert (s.v[s.row_of < 0] == top).all()
        assert (s.row_of[s.col_of[rows]] == rows).all()
        assert (np.sort(s.row_of[s.row_of >= 0]) == rows).all()
        exact = cost.dtype.kind == "i"
        within = 0 if exact else 1e-12 * np.abs(cost).max()
        left = cost[rows] - s.v
        own = left[np.arange(len(rows)), s.col_of[rows]]
        assert (left.min(axis=1) >= own - within).all()
        for i in range(n):  # what a row has not listed is beyond its bound
            listed = lists.cols[lists.start[i] : lists.start[i] + lists.held[i]]
            others = np.delete(cost[i] - s.v, listed) if lists.held[i] != near.CROWDED else cost[i] - s.v
            assert others.min() >= lists.bound[i] - within
        risen += bool((s.v > before).any())
    assert helped >= 6
    assert risen >= 3


def test_many_cheap_free_columns_are_a_cold_start() -> None:
    rng = np.random.default_rng(43)
    cost = rng.random((200, 400))
    *_, done = levelled(cost, -rng.random(400))
    assert not done
    solution, certificate = answer(cost, False, v0=-rng.random(400))
    assert solution.facts["row_reductions"] > 0
    assert certificate.objective == pytest.approx(scipy_optimum(cost, False), rel=1e-12)


def test_an_iteration_limit_is_kept() -> None:
    rng = np.random.default_rng(45)
    old = rng.random((260, 300))
    duals = answer(old, False)[0].arrays
    options = LAP.options(iteration_limit=1)
    problem = LAP.build({"cost": rng.random((260, 300)), "u0": duals["u"], "v0": duals["v"]}, options)
    solution = LAP.solve(problem, options, Deadline(), "cpu")
    assert solution.facts["paths"] <= 1
    assert LAP.certify(problem, solution).holds


@pytest.mark.parametrize("shape", [(400, 440), (440, 400)])
def test_a_bound_told_from_between_the_paths_is_one(shape: tuple[int, int]) -> None:
    """The price of all free columns rises meanwhile; the bound is that of prices which are 0 there."""
    rng = np.random.default_rng(46)
    cost = rng.random(shape)
    duals = answer(cost, False)[0].arrays
    cost = changed(rng, uniform, cost, 20)
    optimum, bounds = float(answer(cost, False)[1].objective or 0), []
    deadline = Deadline(on_progress=lambda progress: bounds.append(progress.bound))
    options = LAP.options()
    problem = LAP.build({"cost": cost, "u0": duals["u"], "v0": duals["v"]}, options)
    with patch.object(by_steps, "CHUNK", 1):
        solution = LAP.solve(problem, options, deadline, "cpu")
    assert solution.facts["row_reductions"] == 0
    told = [bound for bound in bounds if bound is not None]
    assert len(told) > 3
    assert max(told) <= optimum * (1 + 1e-12)
    assert max(told) >= optimum * 0.9


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (STRIP, 3), (STRIP + 1, 5), (3 * STRIP - 1, 2 * STRIP)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int64])
def test_a_matrix_is_transposed(shape: tuple[int, int], dtype: Any) -> None:
    matrix = np.arange(shape[0] * shape[1]).reshape(shape).astype(dtype)
    turned = transposed(matrix)
    assert turned.flags.c_contiguous
    assert turned.dtype == dtype
    assert (turned == matrix.T).all()
    assert (transposed(matrix[:, ::2]) == matrix[:, ::2].T).all()


def test_a_problem_that_is_stopped_has_prices_of_a_wide_one() -> None:
    """Of at most 0, and 0 where a column is free: they give a bound."""
    rng = np.random.default_rng(47)
    old = rng.random((300, 330))
    duals = answer(old, False)[0].arrays
    cost = changed(rng, uniform, old, 12)
    options = LAP.options()
    problem = LAP.build({"cost": cost, "u0": duals["u"], "v0": duals["v"]}, options)
    looks = iter([None] * 4)
    with (
        patch.object(by_steps, "CHUNK", 1),
        patch.object(Deadline, "expired", lambda _: next(looks, Termination.TIME_LIMIT)),
    ):
        solution = LAP.solve(problem, options, Deadline(), "cpu")
    assert solution.termination is Termination.TIME_LIMIT
    certificate = LAP.certify(problem, solution)
    assert certificate.holds
    assert solution.arrays["v"].max() <= 0
    assert certificate.bound is not None
    assert float(certificate.bound) <= float(answer(cost, False)[1].objective or 0)
