"""Warm starts of problems with more columns than rows, or fewer: columns that become free get their price back."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, Termination
from kernels.lap.cpu import by_steps, near, near_back, near_early, near_rows, near_seats, near_wide, spare, whole
from kernels.lap.cpu import whole_path as steps
from kernels.problems import ranges
from kernels.problems.arrays import STRIP, transposed
from tests.kernels.patience import Patience
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
    return s, lists, near_wide.level_free(s, lists, near_back.new_both(s, lists)) == 0


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


@pytest.mark.parametrize("levels", [1, 3, 1000])
@pytest.mark.parametrize("family", [uniform, plane, wide], ids=lambda family: family.__name__)
def test_spare_rows_lead_from_any_prices_to_the_optimum(family: Any, levels: int) -> None:
    """Nobody has a column, and free columns are at so many prices: spare rows without one search as well."""
    rng = np.random.default_rng([48, levels])
    for trial in range(12):
        n = int(rng.integers(64, 90))
        m = n + int(rng.integers(1, 30))
        cost = family(rng, n, m)
        cost = cost // 2**45 if trial % 2 and cost.dtype.kind == "i" else cost
        size = cost.max() if levels > 1 else 0
        s, top = searched(cost, -(rng.integers(0, levels, m) * (size / levels))), np.empty(1, cost.dtype)
        n_spare = spare.seat_spare(s, top)
        assert n_spare == m - n - min(m - n, int((s.v == s.v.max()).sum()))
        last = n_spare + steps.list_free(s)
        at = 0
        while at < last:
            before = at
            at = spare.augment_spare(s, top, n_spare, at, last, 1)
            assert at > before
        assert (s.row_of >= 0).all()
        spare.leave_spare(s)
        assert (s.v[s.row_of < 0] == top[0]).all()
        assert s.v.max() == top[0]
        rows = np.arange(n)
        assert (s.row_of[s.col_of] == rows).all()
        left = s.cost - s.v
        within = 0 if cost.dtype.kind == "i" else 1e-12 * np.abs(cost).max()
        assert (left.min(axis=1) >= left[rows, s.col_of] - within).all()
        assert cost[rows, s.col_of].sum() == pytest.approx(scipy_optimum(cost, False), rel=1e-12)


def far_apart(rng: Rng, n: int, m: int) -> tuple[Array, Array, Array]:
    """Distances whose changed rows leave columns far below the price of the free ones; and old duals."""
    cost = plane(rng, n, m)
    duals = answer(cost, False)[0].arrays
    return changed(rng, plane, cost, 6), duals["u"], duals["v"]


@pytest.mark.parametrize("tall", [False, True])
def test_columns_whose_price_would_rise_by_much_are_left_to_spare_rows(tall: bool) -> None:
    rng, used = np.random.default_rng(49), 0
    for _ in range(4):
        cost, u, v = far_apart(rng, 600, 630)
        cost, u, v = (cost.T.copy(), v, u) if tall else (cost, u, v)
        with patch.object(spare, "augment_spare", wraps=spare.augment_spare) as asked:
            solution, certificate = answer(cost, False, u0=u, v0=v)
        used += asked.call_count > 0
        assert solution.facts["row_reductions"] == 0
        assert certificate.termination is None
        assert certificate.objective == pytest.approx(scipy_optimum(cost, False), rel=1e-12)
    assert used >= 2


def test_a_search_with_spare_rows_that_is_stopped_has_a_bound() -> None:
    cost, u, v = far_apart(np.random.default_rng(49), 600, 630)
    optimum, options, ends = float(scipy_optimum(cost, False) or 0), LAP.options(), set()
    problem = LAP.build({"cost": cost, "u0": u, "v0": v}, options)
    for looks in range(9):
        with patch.object(by_steps, "CHUNK", 1):
            solution = LAP.solve(problem, options, Patience(looks), "cpu")
        certificate = LAP.certify(problem, solution)
        assert certificate.holds
        assert certificate.bound is not None
        assert certificate.bound <= optimum * (1 + 1e-12)
        ends.add(solution.termination)
    assert Termination.TIME_LIMIT in ends
