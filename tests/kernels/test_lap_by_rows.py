"""The two searches of the CPU beside each other: whole rows, and shortlists."""

from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, Array, Certificate, Deadline, Solution, Termination
from kernels.lap.cpu import by_rows as cpu_by_rows
from kernels.lap.cpu import by_steps
from kernels.lap.cpu import whole as cpu_whole
from tests.instances import Case, assignment
from tests.oracles.assignment import scipy_optimum

LAP = SOLVERS["lap"]
LISTED = "lists_rebuilt"
"""A fact of answers that shortlists found."""
CASES = [case for case in assignment.LAP_CASES if "batch" not in case.label and "ragged" not in case.label]


def solve(cost: Array, maximize: bool = False, deadline: Deadline | None = None, **duals: Any) -> Solution:
    options = LAP.options(maximize=maximize)
    return LAP.solve(LAP.build({"cost": cost, **duals}, options), options, deadline or Deadline(), "cpu")


def certified(cost: Array, solution: Solution, maximize: bool = False) -> Certificate:
    return LAP.certify(LAP.build({"cost": cost}, LAP.options(maximize=maximize)), solution)


@pytest.fixture
def shortlists_alone() -> Iterator[None]:
    with (
        patch.object(cpu_by_rows, "LONGEST", 0),
        patch.object(cpu_by_rows, "AT_ONCE", 0),
        patch.object(cpu_whole, "NARROW", -1),
    ):
        yield


@pytest.mark.usefixtures("shortlists_alone")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_shortlists_find_the_optimum_of_every_family(case: Case) -> None:
    cost, maximize = np.asarray(case.inputs()["cost"]), case.options.get("maximize", False)
    solution = solve(cost, maximize)
    expected = scipy_optimum(cost, maximize)
    if expected is None:
        assert solution.termination is Termination.INFEASIBLE
        return
    assert LISTED in solution.facts or solution.method == "monge"
    certificate = certified(cost, solution, maximize)
    assert certificate.termination is None
    assert certificate.objective == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("at_once", [cpu_by_rows.AT_ONCE, 0], ids=["at once", "in chunks"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("high", [3, 1000, 2**25, 2**30])
@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (63, 64), (64, 64), (65, 65), (130, 130), (129, 90)])
def test_whole_rows_find_the_optimum(shape: tuple[int, int], high: int, dtype: Any, at_once: int) -> None:
    rng = np.random.default_rng([high, *shape])
    for maximize in (False, True):
        cost = rng.integers(-high, high + 1, shape).astype(dtype)
        with patch.object(cpu_by_rows, "AT_ONCE", at_once), patch.object(by_steps, "CHUNK", 1 << 10):
            solution = solve(cost, maximize)
        assert LISTED not in solution.facts
        certificate = certified(cost, solution, maximize)
        assert certificate.termination is None
        assert certificate.objective == pytest.approx(scipy_optimum(cost.astype(np.float64), maximize), rel=1e-12)


def test_signs_of_zero_order_nothing() -> None:
    rng = np.random.default_rng(3)
    cost = rng.choice(np.array([-0.0, 0.0, -1.0, 1.0, 5e-324, -5e-324]), (80, 80))
    solution = solve(cost)
    assert certified(cost, solution).objective == pytest.approx(scipy_optimum(cost), abs=1e-300)


def test_prices_that_leave_int32_begin_anew_in_int64() -> None:
    lines = np.arange(1, 61)
    cost = np.outer(lines, lines) * (cpu_whole.NARROW // 3600)
    low = np.full(60, -4 * cpu_whole.NARROW)
    prepared = cpu_by_rows.prepared_costs(cost, False, False, True)
    assert prepared is not None
    assert prepared.cost.dtype == np.int32
    assert cpu_by_rows.solve(cost, prepared, False, cpu_by_rows.Old(low), cost.size, Deadline()) is None
    assert certified(cost, solve(cost, v0=low)).gap_abs == 0


def test_int32_holds_what_its_bounds_allow() -> None:
    """Costs at both ends of the range, where a sum that wraps round would make a wrong pair look cheap."""
    rng = np.random.default_rng(5)
    for n in (5, 40, 200):
        cost = rng.choice([-cpu_whole.NARROW, cpu_whole.NARROW, cpu_whole.NARROW - 1], (n, n))
        solution = solve(cost)
        assert certified(cost, solution).gap_abs == 0
    lines = np.arange(1, 61)
    steep = np.outer(lines, lines) * (cpu_whole.NARROW // 3600)
    assert certified(steep, solve(steep)).gap_abs == 0


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_stopped_anywhere_it_has_an_answer_and_a_bound(dtype: Any) -> None:
    cost = (assignment.spatial(150, 150) % 1e6).astype(dtype)
    best = scipy_optimum(cost.astype(np.float64))
    for looks in range(0, 200, 7):
        left = partial(next, iter([False] * looks), True)
        with patch.object(cpu_by_rows, "AT_ONCE", 0), patch.object(by_steps, "CHUNK", 1 << 11):
            solution = solve(cost, deadline=Deadline(cancelled=left))
        certificate = certified(cost, solution)
        assert certificate.holds, certificate.proved
        assert certificate.bound is not None
        assert certificate.objective is not None
        assert certificate.bound - 1e-6 <= (best or 0) <= certificate.objective + 1e-6
        if solution.termination is Termination.OPTIMAL:
            return
        assert solution.termination is Termination.STOPPED
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("maximize", [False, True])
def test_stopped_at_once_it_pairs_no_forbidden_integers(maximize: bool) -> None:
    rng = np.random.default_rng(6)
    cost = rng.integers(-9, 9, (40, 50))
    barred = rng.random(cost.shape) < 0.6
    barred[np.arange(40), rng.permutation(50)[:40]] = False
    cost[barred] = FORBIDDEN
    solution = solve(cost, maximize, Deadline(0.0))
    assert solution.termination is Termination.TIME_LIMIT
    certificate = certified(cost, solution, maximize)
    assert certificate.holds, certificate.proved
    assert certificate.objective is not None


@pytest.mark.parametrize("at_once", [cpu_by_rows.AT_ONCE, 0], ids=["at once", "in chunks"])
@pytest.mark.parametrize("given", [("u0", "v0"), ("v0",), ("u0",)], ids="+".join)
def test_old_duals_lead_to_the_optimum_of_what_changed(given: tuple[str, ...], at_once: int) -> None:
    """Ties, forbidden entries, garbage for rows and costs of all sizes: old duals may cost time, never the answer."""
    rng = np.random.default_rng(8)
    for trial in range(60):
        n, maximize = (
            int(rng.choice([1, 2, 3, 5, 6, 9, 70, 130], p=[0.1, 0.2, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])),
            trial % 2 == 1,
        )
        old, cost = rng.random((2, n, n)) if trial % 3 == 0 else rng.integers(0, 4, (2, n, n))
        if trial % 3 == 1:
            old, cost = 10.0 ** rng.normal(0, 5, (2, n, n))
        kept = rng.random(n) < 0.7
        cost[kept] = old[kept]
        if cost.dtype.kind == "f" and trial % 5 == 0:
            cost[rng.random((n, n)) < 0.2] = -np.inf if maximize else np.inf
            cost[np.arange(n), np.arange(n)] = 1.0
        duals: dict[str, Any] = {
            f"{name}0": array for name, array in solve(old, maximize).arrays.items() if f"{name}0" in given
        }
        if trial % 7 == 0 and "u0" in duals:
            duals["u0"] = duals["u0"][::-1].copy()
        with patch.object(cpu_by_rows, "AT_ONCE", at_once), patch.object(by_steps, "CHUNK", 1 << 10):
            certificate = certified(cost, solve(cost, maximize, **duals), maximize)
        assert certificate.termination is None
        assert certificate.objective == pytest.approx(scipy_optimum(cost.astype(np.float64), maximize), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_rows_that_did_not_change_keep_their_pairs(dtype: Any) -> None:
    """Distances in the plane, whose duals leave many ties: only what changed is paired anew."""
    rng = np.random.default_rng(9)
    x, y = rng.random((2, 300, 1, 2)) * 1e4
    cost = np.hypot(*np.moveaxis(x - y[:, 0], -1, 0)).astype(dtype)
    duals = solve(cost).arrays
    again = solve(cost, u0=duals["u"], v0=duals["v"])
    assert again.facts["paths"] == 0
    assert again.facts["row_reductions"] == 0
    cost[:3] = cost[rng.permutation(300)[:3]]
    changed = solve(cost, u0=duals["u"], v0=duals["v"])
    assert changed.facts["paths"] <= 12
    assert certified(cost, changed).objective == pytest.approx(scipy_optimum(cost.astype(np.float64)), rel=1e-12)


@pytest.mark.parametrize("family", ["floats", "integers", "plane", "ties"])
def test_changed_rows_find_their_columns_over_lists(family: str) -> None:
    """Rows near their columns need the lists alone; rows that moved across the plane, and ties, need whole rows too."""
    rng = np.random.default_rng(10)
    for maximize in (False, True):
        x, y = rng.random((2, 400, 2)) * 1e3
        made: dict[str, Any] = {
            "floats": rng.random((400, 400)),
            "integers": rng.integers(0, 10**10, (400, 400)),
            "plane": np.hypot(*np.moveaxis(x[:, None] - y, -1, 0)),
            "ties": rng.integers(0, 5, (400, 400), dtype=np.int32),
        }
        cost = made[family]
        duals = solve(cost, maximize).arrays
        cost[:4] = cost[rng.permutation(400)[:4]][:, rng.permutation(400)]
        changed = solve(cost, maximize, u0=duals["u"], v0=duals["v"])
        certificate = certified(cost, changed, maximize)
        assert certificate.termination is None
        assert certificate.objective == pytest.approx(scipy_optimum(cost.astype(np.float64), maximize), rel=1e-12)
        if family in ("floats", "integers"):
            assert changed.facts["paths"] <= 8
            assert changed.facts["rows_read_whole"] <= 40


def test_old_duals_of_a_rectangle_cost_no_time() -> None:
    """Columns that become free would have to rise to price 0; that took three to five times as long as a cold start."""
    cost = np.random.default_rng(11).random((150, 170))
    cold = solve(cost)
    warm = solve(cost, u0=cold.arrays["u"], v0=cold.arrays["v"])
    assert warm.facts == cold.facts
    assert certified(cost, warm).termination is None
