"""An assignment and what stands beside it: masked integers, batches, mended and first answers, progress."""

from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

from kernels import (
    FORBIDDEN,
    Deadline,
    Device,
    Progress,
    Termination,
    solve_and_prove,
)
from kernels.lap import LapOptions
from kernels.lap.cpu import by_rows as cpu_by_rows
from kernels.lap.masks import solve_priced
from tests.instances import assignment
from tests.kernels.lap_cases import FAMILIES, LAP, prove
from tests.oracles.assignment import exact_optimum


@pytest.mark.parametrize("values", [[2**53 + 1, 2], [2**54 - 1, -5], [-(2**54) + 1, 1]])
def test_integers_beside_a_mask_are_exact(values: list[int], device: Device) -> None:
    cost = np.full((2, 2), FORBIDDEN)
    cost[[0, 1], [0, 1]] = values
    for given in (cost, np.ma.array(np.diag(values), mask=[[False, True], [True, False]])):
        for maximize in (False, True):
            _, solution, certificate = prove(given, maximize, None, device)
            assert solution.termination is Termination.OPTIMAL
            assert certificate.objective == certificate.bound == sum(values)


def test_a_batch_says_of_each_problem_what_it_is(device: Device) -> None:
    cost = np.array([[[1, 2], [3, 4]], [[np.inf, np.inf], [1, 2]], [[5, 1], [1, 5]]])
    _, solution, certificate = prove(cost, device=device)
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds
    assert certificate.facts["problems"] == {
        "terminations": ["optimal", "infeasible", "optimal"],
        "objectives": [5.0, None, 2.0],
        "bounds": [5.0, None, 2.0],
        "gaps": [0.0, None, 0.0],
    }
    assert (certificate.objective, certificate.bound, certificate.gap_abs) == (7.0, 7.0, 0.0)
    assert solution.arrays["assignment"].tolist() == [[0, 1], [-1, -1], [1, 0]]
    assert solution.facts["problem"] == 1


def test_a_ragged_batch_is_judged_problem_by_problem(device: Device) -> None:
    rng = np.random.default_rng(14)
    cost, sizes = rng.random((40, 6, 6)), rng.integers(1, 7, (40, 2))
    cost[3, : sizes[3, 0], : sizes[3, 1]] = -np.inf
    for limit in (None, 0.0):
        _, solution, certificate = prove(cost, True, limit, device, sizes=sizes)
        each = certificate.facts["problems"]
        for k, (n, m) in enumerate(sizes.tolist()):
            best = exact_optimum(cost[k, :n, :m], True)
            if best is None:
                assert each["terminations"][k] == "infeasible"
                assert (solution.arrays["assignment"][k] == -1).all()
                continue
            assert Fraction(each["bounds"][k]) >= best
            assert each["objectives"][k] == pytest.approx(float(best)) or limit == 0
            assert each["terminations"][k] == ("optimal" if limit is None else "time_limit")


def test_loose_problems_of_a_batch_are_mended_beside_an_infeasible_one() -> None:
    rng = np.random.default_rng(15)
    cost = rng.random((6, 5, 5))
    cost[4, :, 0] = np.inf
    problem, solution, certificate = prove(cost)
    solution.arrays["v"][:3] = 0
    spoiled = LAP.certify(problem, solution)
    assert spoiled.loose
    assert spoiled.termination is None  # the batch is infeasible all the same
    assert LAP.mend is not None
    mended = LAP.mend(problem, LapOptions(), solution, Deadline(), "cpu")
    assert mended is not None
    assert mended.facts["mended"] == spoiled.facts["problems"]["terminations"].count("converged") == 3
    assert LAP.certify(problem, mended).facts["problems"] == certificate.facts["problems"]


@pytest.mark.parametrize("shape", [(90, 90), (80, 95), (95, 80), (5, 6), (6, 6)])
@pytest.mark.parametrize("family", ["uniform", "distances", "ties", "scales", "big-m", "float32"])
def test_answers_without_duals_are_mended(family: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(16)
    cost = FAMILIES[family](rng, shape)
    problem, solution, certificate = prove(cost, True)
    solution.arrays["u"][:], solution.arrays["v"][:] = np.nan, np.inf
    assert LAP.mend is not None
    mended = LAP.mend(problem, LapOptions(maximize=True), solution, Deadline(), "cpu")
    assert mended is not None
    again = LAP.certify(problem, mended)
    assert again.termination is None
    assert again.objective == pytest.approx(certificate.objective, rel=1e-15)


def test_a_worse_assignment_is_mended() -> None:
    cost = assignment.spatial(80, 80)
    problem, solution, certificate = prove(cost)
    swapped = solution.arrays["assignment"]
    swapped[[3, 30, 50]] = swapped[[30, 50, 3]]
    assert LAP.certify(problem, solution).termination is Termination.CONVERGED
    assert LAP.mend is not None
    mended = LAP.mend(problem, LapOptions(), solution, Deadline(), "cpu")
    assert mended is not None
    assert LAP.certify(problem, mended).objective == certificate.objective


@pytest.mark.parametrize("shape", [(6, 6), (4, 7), (7, 4)])
def test_a_solver_without_forbidden_integers_solves_them_at_a_price(shape: tuple[int, int]) -> None:
    """What the GPU does, with the CPU in its place."""
    rng, options = np.random.default_rng(17), LapOptions()
    for maximize in (False, True):
        options = LapOptions(maximize=maximize)
        cost = rng.integers(-50, 50, (60, *shape))
        cost[rng.random(cost.shape) < 0.45] = FORBIDDEN
        sizes = np.stack([rng.integers(1, extent + 1, 60) for extent in shape], axis=1)
        problem = LAP.build({"cost": cost, "sizes": sizes}, options)
        for limit in (None, 0.0):
            solution = solve_priced(problem, lambda priced: LAP.solve(priced, options, Deadline(limit)))  # noqa: B023
            assert solution is not None
            certificate = LAP.certify(problem, solution)
            assert certificate.holds, certificate
            for k, (n, m) in enumerate(sizes.tolist()):
                best = exact_optimum(cost[k, :n, :m], maximize)
                objective = certificate.facts["problems"]["objectives"][k]
                assert (objective is None) == (best is None)
                assert best is None or limit == 0 or objective == best


def test_prices_of_forbidden_integers_that_do_not_fit() -> None:
    cost = np.where(np.eye(4, dtype=bool), 2**53 - 1, FORBIDDEN)
    problem = LAP.build({"cost": cost}, LapOptions())
    assert solve_priced(problem, lambda priced: pytest.fail("there is no room in int64")) is None


def test_a_first_answer_is_found_along_permitted_entries(device: Device) -> None:
    cost = assignment.planted_permutation(60)
    for turned in (cost, cost[:40], np.ascontiguousarray(cost[:40].T)):
        _, solution, certificate = prove(turned, False, 0.0, device)
        assert solution.termination is Termination.TIME_LIMIT
        assert certificate.objective is not None


def test_row_reductions_have_a_budget() -> None:
    rng = np.random.default_rng(18)
    for _ in range(50):
        point = np.repeat(rng.random((3, 2)), 3, axis=0)[:8] + 1e-9 * rng.random((8, 2))
        cost = ((point[:, None] - point[rng.permutation(8)][None]) ** 2).sum(-1)
        assert prove(cost)[1].facts.get("row_reductions", 0) <= 2 * 20 * 8


@pytest.mark.parametrize("shape", [(700, 700), (690, 700), (700, 690)])
@pytest.mark.parametrize("longest", [cpu_by_rows.LONGEST, 0], ids=["whole rows", "shortlists"])
def test_a_running_search_says_what_it_has(longest: int, shape: tuple[int, int]) -> None:
    heard: list[Progress] = []
    cost = assignment.spatial(*shape)
    options = LapOptions()
    problem = LAP.build({"cost": cost}, options)
    with (
        patch("kernels.lap.cpu.solver.CHUNK", 1 << 14),
        patch("kernels.lap.cpu.by_steps.CHUNK", 1 << 14),
        patch("kernels.lap.cpu.by_rows.LONGEST", longest),
    ):
        _, certificate = solve_and_prove(LAP, problem, options, Deadline(on_progress=heard.append), "cpu")
    solving = [report for report in heard if report.phase == "solve" and report.objective is not None]
    assert len(solving) > 3
    fractions = [report.fraction for report in solving if report.fraction is not None]
    assert fractions == sorted(fractions)
    for report in solving:
        assert report.bound is not None
        assert report.objective is not None
        assert report.bound <= (certificate.objective or 0) <= report.objective * (1 + 1e-12)
    shown = [report for report in solving if report.permutation is not None]
    assert shown
    for report in shown:
        columns = np.array(report.permutation)
        rows = np.flatnonzero(columns >= 0)
        assert len(columns) == shape[0]
        assert len(set(columns[rows].tolist())) == len(rows) == min(shape)
        assert cost[rows, columns[rows]].sum() == pytest.approx(report.objective, rel=1e-12)


def test_progress_ends_at_one() -> None:
    heard: list[float] = []
    problem, solution, _ = prove(np.random.default_rng(0).random((60, 20, 20)))
    LAP.certify(problem, solution, heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
