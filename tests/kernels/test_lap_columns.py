"""Matrices solved on lists of few columns: the optimum, proofs, ties, forbidden entries, an end ahead of time."""

from itertools import count
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, Solution, Termination
from kernels.deadline import Progress
from kernels.lap.columns import dense, held, level, solver
from kernels.problems.arrays import Costs
from kernels.problems.assignment import Assignment
from tests.instances import assignment
from tests.oracles.assignment import scipy_optimum

LAP = SOLVERS["lap"]
FAMILIES = ["uniform", "few", "middle", "many", "ties", "constant", "offsets", "rank", "product", "places", "float32"]


def costs(family: str, m: int, n: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if family in ("few", "middle", "many"):
        return rng.integers(0, {"few": max(2, n // 10), "middle": n, "many": 10 * n}[family], (m, n))
    if family == "ties":
        return rng.integers(0, 3, (m, n))
    if family == "constant":
        return np.full((m, n), 7.5)
    if family == "offsets":
        return rng.random((m, n)) + 5 * rng.random((m, 1)) - 5 * rng.random((1, n))
    if family == "rank":
        return np.asarray(rng.random((m, 5)) @ rng.random((5, n)))
    if family == "product":
        return np.asarray(rng.random((m, 1)) * rng.random((1, n)))
    if family == "places":
        return assignment.spatial(m, n)
    return rng.random((m, n)).astype(np.float32 if family == "float32" else np.float64)


def solved(cost: Costs, maximize: bool = False, deadline: Deadline | None = None) -> tuple[Solution, Certificate]:
    """By columns, whatever the number of rows, and the certificate of the problem."""
    solution = solver.solve_on_host(cost, maximize, deadline or Deadline())
    return solution, LAP.certify(Assignment(cost, maximize), solution)


def is_exact(cost: Costs, solution: Solution, certificate: Certificate, maximize: bool = False) -> None:
    expected = scipy_optimum(cost, maximize)
    assert certificate.holds, certificate
    if expected is None:
        assert solution.termination is Termination.INFEASIBLE
        return
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(expected, rel=1e-12)
    assert certificate.gap_abs == pytest.approx(0, abs=0 if cost.dtype.kind == "i" else 1e-9 * max(1.0, abs(expected)))


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(300, 300), (300, 420), (1, 1), (2, 2), (3, 40), (13, 13)])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_optimum_of_every_family(family: str, shape: tuple[int, int], maximize: bool) -> None:
    cost = costs(family, *shape)
    is_exact(cost, *solved(cost, maximize), maximize)


@pytest.mark.parametrize("family", ["uniform", "few", "ties", "places"])
def test_larger_ones_read_the_matrix_a_few_times(family: str) -> None:
    cost = costs(family, 2000, 2000)
    solution, certificate = solved(cost)
    is_exact(cost, solution, certificate)
    assert solution.facts["rounds"] <= 12
    assert solution.facts["edges"] < 60 * 2000


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("shape", [(200, 200), (150, 200)])
@pytest.mark.parametrize("maximize", [False, True])
def test_forbidden_entries(share: float, shape: tuple[int, int], maximize: bool) -> None:
    rng = np.random.default_rng(5)
    cost = rng.random(shape)
    cost[rng.random(shape) < share] = -np.inf if maximize else np.inf
    is_exact(cost, *solved(cost, maximize), maximize)


def test_a_pairing_that_the_first_lists_do_not_hold() -> None:
    """All rows want the same columns, and a few may take no others but one that each lists last."""
    rng = np.random.default_rng(1)
    n = 120
    cost = rng.random((n, n)) + 10.0
    cost[:, :30] -= 10.0
    cost[np.ix_(np.arange(40), np.arange(30, n))] = np.inf
    cost[np.arange(40), np.arange(50, 90)] = 30.0
    is_exact(cost, *solved(cost))


@pytest.mark.parametrize("shape", [(60, 60), (50, 60)])
def test_rows_without_enough_columns_are_named(shape: tuple[int, int]) -> None:
    cost = np.random.default_rng(2).random(shape)
    cost[:20, 19:] = np.inf
    solution, certificate = solved(cost)
    is_exact(cost, solution, certificate)
    assert len(solution.arrays["hall_rows"]) > len(solution.arrays["hall_cols"])
    alone = np.full((5, 5), np.inf)
    is_exact(alone, *solved(alone))


def test_stopped_before_it_begins_it_claims_nothing() -> None:
    cost = costs("uniform", 100, 100)
    solution, certificate = solved(cost, deadline=Deadline(cancelled=lambda: True))
    assert solution.termination is Termination.STOPPED
    assert certificate.holds
    assert certificate.termination is None


@pytest.mark.parametrize("shape", [(400, 400), (400, 500)])
@pytest.mark.parametrize("looks", [5, 40, 90])
def test_stopped_on_the_way_its_duals_are_a_bound(looks: int, shape: tuple[int, int]) -> None:
    cost, ticks = costs("places", *shape), count()
    solution, certificate = solved(cost, deadline=Deadline(cancelled=lambda: next(ticks) > looks))
    expected = scipy_optimum(cost)
    assert certificate.holds
    assert expected is not None
    assert certificate.bound is None or certificate.bound <= expected * (1 + 1e-12)
    assert solution.termination in (Termination.STOPPED, Termination.OPTIMAL)


def test_rounds_may_be_limited() -> None:
    cost = costs("product", 300, 300)
    for limit in (0, 2):
        solution = solver.solve(dense.DenseSearch(cost, False), False, Deadline(), limit)
        assert solution.termination is Termination.ITERATION_LIMIT
        assert solution.facts["rounds"] == limit
        certificate = LAP.certify(Assignment(cost, False), solution)
        assert certificate.holds
        assert certificate.termination is None


def test_rounds_are_told_with_bounds_that_hold() -> None:
    cost, told = costs("rank", 300, 300), list[Progress]()
    solution, certificate = solved(cost, True, Deadline(on_progress=told.append))
    rounds = [each for each in told if each.objective is not None]
    assert len(rounds) == solution.facts["rounds"]
    for each in rounds:
        assert each.bound is not None
        assert each.bound >= certificate.objective - 1e-9  # type: ignore[operator]
    assert rounds[-1].objective == pytest.approx(certificate.objective)


def test_input_is_left_as_it_was() -> None:
    cost = costs("uniform", 90, 90)
    cost.flags.writeable = False
    before = cost.copy()
    solved(cost)
    assert (cost == before).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("maximize", [False, True])
def test_pricing_finds_what_sorting_does(dtype: Any, maximize: bool) -> None:
    rng = np.random.default_rng(3)
    cost = (rng.random((30, 77)) * 40).astype(dtype)
    search = dense.DenseSearch(cost, maximize)
    base, rise = (rng.random(77) * 9).astype(search.dtype), (rng.random(77) * 5).astype(search.dtype)
    rows = np.array([0, 3, 4, 29])
    reduced = (-1 if maximize else 1) * cost.astype(search.dtype)[rows] - (base - rise)
    limits = np.sort(reduced, axis=1)[:, 9]
    for most in (1, 8, 12):
        found = search.cheapest(base, rise, rows, limits, most, Deadline())
        assert found is not None
        for q, limit in enumerate(limits):
            best = np.sort(reduced[q][reduced[q] < limit])[:most]
            assert found.counts[q] == len(best)
            assert (found.values[q, : len(best)] == best).all()
            assert (reduced[q][found.columns[q, : len(best)]] == best).all()


@pytest.mark.parametrize("maximize", [False, True])
def test_soft_minima_are_those_of_the_formula(maximize: bool) -> None:
    rng = np.random.default_rng(4)
    cost = rng.random((150, 40))
    cost[:, 3] = cost[7] = -np.inf if maximize else np.inf
    search, v, u = dense.DenseSearch(cost, maximize), rng.random(40), rng.random(150)
    for x, axis, found in (
        (search.sign * cost - v, 1, search.soft_minima_of_rows(v, 0.1)),
        (search.sign * cost - u[:, None], 0, search.soft_minima_of_columns(u, 0.1)),
    ):
        none = np.isinf(x).all(axis=axis)
        assert (found.least == x.min(axis=axis)).all()
        expected = np.where(none, 0, -0.1 * np.log(np.where(none, 1, np.exp(-x / 0.1).sum(axis=axis))))
        assert found.values(0.1) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("family", ["offsets", "rank"])
def test_soft_minima_save_rounds_where_lines_differ_in_level(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = costs(family, 1000, 1000)
    soft, _ = solved(cost)
    monkeypatch.setattr(solver, "FEWEST_SOFT", 10**9)
    plain, _ = solved(cost)
    assert 3 * soft.facts["rounds"] <= plain.facts["rounds"]


def test_rows_that_are_alike_list_other_columns() -> None:
    search = dense.DenseSearch(np.zeros((400, 400)), False)
    zeros = np.zeros(400)
    found = search.cheapest(zeros, zeros, np.arange(400), level.unlimited(400, np.float64), 12, Deadline())
    assert found is not None
    assert len(np.unique(found.columns)) > 300


def test_lists_are_filled_until_they_hold_a_pairing() -> None:
    cost = costs("uniform", 50, 50)
    cost[:, 30] = cost[20] = np.inf
    cost[20, 30] = 1.0
    search = dense.DenseSearch(cost, False)
    first = np.delete(np.arange(50), 20) * 50  # all other rows list column 0 alone
    keys = held.hold_pairing(search, first, Deadline())
    assert isinstance(keys, np.ndarray)
    assert np.isin(first, keys).all()
    assert isinstance(held.hold_pairing(search, keys, Deadline()), np.ndarray)
    assert held.hold_pairing(search, first, Deadline(cancelled=lambda: True)) is None
