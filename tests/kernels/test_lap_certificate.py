"""What the certificate of an assignment says is true: against exact optima, spoiled answers, scales and garbage."""

from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kernels import (
    FORBIDDEN,
    SOLVERS,
    Array,
    Certificate,
    Deadline,
    Device,
    Progress,
    Solution,
    Termination,
    solve_and_prove,
)
from kernels.certificates import assignment_bound as dual
from kernels.lap import LapOptions
from kernels.lap.masks import solve_priced
from tests.instances import assignment
from tests.oracles.assignment import exact_optimum

LAP = SOLVERS["lap"]


def prove(
    cost: Array, maximize: bool = False, limit_s: float | None = None, device: Device = "cpu", **inputs: Any
) -> Any:
    """(problem, solution, certificate), as a job makes them."""
    options = LapOptions(maximize=maximize)
    problem = LAP.build({"cost": cost, **inputs}, options)
    return problem, *solve_and_prove(LAP, problem, options, Deadline(limit_s), device)


def taken(cost: Array, solution: Solution) -> Fraction:
    """The exact objective of an assignment."""
    rows = np.flatnonzero(solution.arrays["assignment"] >= 0)
    return sum(map(Fraction, cost[rows, solution.arrays["assignment"][rows]].tolist()), Fraction(0))


def is_true(certificate: Certificate, cost: Array, maximize: bool, solution: Solution) -> None:
    """Bound, objective and gap are on their weak sides of the exact ones."""
    sign = -1 if maximize else 1
    best = exact_optimum(cost, maximize)
    if best is None:
        assert certificate.bound is None or certificate.objective is None
        return
    if certificate.bound is not None:
        assert sign * Fraction(certificate.bound) <= sign * best
    if certificate.objective is not None:
        assert sign * Fraction(certificate.objective) >= sign * taken(cost, solution)
    if certificate.gap_abs is not None:
        assert Fraction(certificate.gap_abs) >= abs(taken(cost, solution) - best)


def by_scale(rng: np.random.Generator, shape: tuple[int, int], decades: int) -> Any:
    return rng.normal(size=shape) * 10.0 ** rng.integers(-decades, decades + 1, shape)


def tiny(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Below the smallest normal float64."""
    return rng.integers(-4000, 4000, shape) * 5e-324


def big_m(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.where(rng.random(shape) < 0.3, 10.0 ** rng.choice([9, 12, 15]), rng.random(shape))


def cancelling(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Entries of 1e300 that cancel, beside others that then decide."""
    large = np.where(rng.random(shape) < 0.5, 1e300, -1e300) * rng.choice([1, 1e-7, 1e-300], shape)
    return np.asarray(large + rng.random(shape))


def near_ties(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """One value, up to a few units in the last place."""
    return 0.1 + rng.integers(0, 4, shape) * 2.0**-56


FAMILIES: dict[str, Any] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "ties": lambda rng, shape: rng.integers(-2, 3, shape).astype(float),
    "near-ties": near_ties,
    "constant": lambda rng, shape: np.full(shape, rng.normal()),
    "zero-lines": lambda rng, shape: rng.normal(size=shape) * (rng.random((shape[0], 1)) < 0.5),
    "scales": lambda rng, shape: by_scale(rng, shape, 9),
    "all-scales": lambda rng, shape: by_scale(rng, shape, 290),
    "tiny": tiny,
    "huge": lambda rng, shape: rng.normal(size=shape) * 1e302,
    "big-m": big_m,
    "cancelling": cancelling,
    "distances": lambda rng, shape: ((rng.random((shape[0], 1, 2)) - rng.random((1, shape[1], 2))) ** 2).sum(-1),
    "float32": lambda rng, shape: by_scale(rng, shape, 6).astype(np.float32),
    "int": lambda rng, shape: rng.integers(-9, 10, shape),
    "int-large": lambda rng, shape: rng.integers(-(2**51), 2**51, shape),
    "int32": lambda rng, shape: rng.integers(-(2**31), 2**31, shape).astype(np.int32),
}


def draw(family: str, rng: np.random.Generator) -> tuple[Array, bool, dict[str, Any]]:
    """Costs, the sense, and at times forbidden entries and garbage to start from."""
    n_rows, n_cols = rng.integers(1, 7, 2).tolist()
    shape = (n_rows, n_rows if rng.random() < 0.4 else n_cols)
    maximize = bool(rng.integers(2))
    cost = FAMILIES[family](rng, shape)
    barred = rng.random(shape) < 0.3
    if rng.random() < 0.3 and not barred.all() and cost.dtype != np.int32:
        cost[barred] = FORBIDDEN if cost.dtype.kind == "i" else (-np.inf if maximize else np.inf)
    start: dict[str, Any] = {}
    if rng.random() < 0.4:
        start["v0"] = rng.normal(size=shape[1]) * 10.0 ** rng.integers(-20, 30)
    if rng.random() < 0.2:
        start["u0"] = rng.normal(size=shape[0]) * 10.0 ** rng.integers(-20, 300)
    return cost, maximize, start


@pytest.mark.parametrize("family", FAMILIES)
def test_every_word_is_true(family: str, device: Device) -> None:
    rng = np.random.default_rng(list(family.encode()))
    for _ in range(120):
        cost, maximize, start = draw(family, rng)
        _, solution, certificate = prove(cost, maximize, None, device, **start)
        assert certificate.holds, certificate
        is_true(certificate, cost, maximize, solution)
        infeasible = exact_optimum(cost, maximize) is None
        assert solution.termination is (Termination.INFEASIBLE if infeasible else Termination.OPTIMAL)
        if cost.dtype.kind == "i" and not infeasible:
            assert certificate.gap_abs == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_no_time_gives_a_true_answer(family: str, device: Device) -> None:
    rng = np.random.default_rng(list(family.encode()))
    for _ in range(30):
        cost, maximize, start = draw(family, rng)
        _, solution, certificate = prove(cost, maximize, 0.0, device, **start)
        assert certificate.holds, certificate
        is_true(certificate, cost, maximize, solution)
        assert (certificate.objective is None) == (exact_optimum(cost, maximize) is None)
        assert certificate.objective is None or certificate.bound is not None


GARBAGE = np.array(
    [[0.484585504, 1e15, 0.0735810579], [0.735563935, 0.67018682, 1e15], [0.524678466, 0.395431957, 0.406447254]]
)


def test_a_price_of_1e15_does_not_hide_a_wrong_optimum(device: Device) -> None:
    _, solution, certificate = prove(
        GARBAGE, device=device, v0=np.array([-1.88332234e15, -1.42817004e15, 3.45313405e14])
    )
    assert solution.termination is Termination.OPTIMAL
    best = exact_optimum(GARBAGE) or Fraction(0)
    assert Fraction(certificate.objective or 0) >= best
    assert taken(GARBAGE, solution) == best
    assert certificate.objective == pytest.approx(1.20458, abs=1e-5)
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 1e-15


@pytest.mark.parametrize("big", [1e9, 1e12, 1e15])
def test_garbage_starts_give_the_optimum(big: float, device: Device) -> None:
    rng = np.random.default_rng(int(np.log10(big)))
    for _ in range(300):
        n, m = rng.integers(2, 6, 2).tolist()
        cost = np.where(rng.random((n, m)) < 0.25, big, rng.random((n, m)))
        _, solution, certificate = prove(cost, device=device, v0=rng.normal(size=m) * big)
        assert solution.termination is Termination.OPTIMAL
        is_true(certificate, cost, False, solution)
        assert taken(cost, solution) == exact_optimum(cost)


def test_a_large_garbage_start_gives_the_optimum(device: Device) -> None:
    cost = assignment.spatial(150, 150)
    cost[np.random.default_rng(3).random(cost.shape) < 0.6] = 1e15  # the middle entry is one of them
    _, _, cold = prove(cost)
    for v0 in (np.random.default_rng(4).normal(size=150) * 1e15, np.random.default_rng(5).normal(size=150) * 1e19):
        _, solution, warm = prove(cost, device=device, v0=v0)
        assert solution.termination is Termination.OPTIMAL
        assert warm.objective == pytest.approx(cold.objective, rel=1e-14)


class TestSpoiled:
    """An answer that is changed afterwards: `holds` is False, or the gap covers what it lost."""

    STEPS = (0.0, 1e-300, 1e-18, 1e-12, 1e-6, 1.0, 1e6, 1e18, 1e300, np.inf, -np.inf, np.nan)

    @pytest.mark.parametrize("family", ["uniform", "ties", "scales", "big-m", "distances", "float32", "tiny", "huge"])
    @pytest.mark.parametrize("side", ["u", "v"])
    def test_float_duals(self, family: str, side: str) -> None:
        rng = np.random.default_rng([7, *family.encode()])
        for _ in range(12):
            cost, maximize, _ = draw(family, rng)
            problem, solution, _ = prove(cost, maximize)
            if solution.termination is Termination.INFEASIBLE:
                continue
            right = solution.arrays[side]
            for step in self.STEPS:
                wrong = right.copy()
                k = int(rng.integers(len(wrong)))
                wrong[k] = np.nextafter(wrong[k], np.inf) if step == 0 else wrong[k] + step * rng.choice([-1, 1])
                solution.arrays[side] = wrong
                certificate = LAP.certify(problem, solution)
                assert certificate.holds
                is_true(certificate, cost, maximize, solution)
            solution.arrays[side] = right

    @pytest.mark.parametrize("step", [1, -1, 2**40, -(2**40), 2**62, -(2**62), 2**63 - 1, -(2**63)])
    @pytest.mark.parametrize("side", ["u", "v"])
    def test_integer_duals(self, step: int, side: str) -> None:
        rng = np.random.default_rng(8)
        for _ in range(40):
            cost, maximize, _ = draw("int", rng)
            problem, solution, _ = prove(cost, maximize)
            if solution.termination is Termination.INFEASIBLE:
                continue
            wrong = solution.arrays[side].copy()
            k = int(rng.integers(len(wrong)))
            wrong[k] = wrong[k] + step if abs(step) < 2**62 else step
            solution.arrays[side] = wrong
            certificate = LAP.certify(problem, solution)
            assert certificate.holds
            is_true(certificate, cost, maximize, solution)
            assert (certificate.termination is None) == (certificate.gap_abs == 0)

    @pytest.mark.parametrize("family", ["uniform", "ties", "big-m", "int", "near-ties"])
    def test_assignments(self, family: str) -> None:
        rng = np.random.default_rng([9, *family.encode()])
        for _ in range(80):
            cost, maximize, _ = draw(family, rng)
            problem, solution, _ = prove(cost, maximize)
            if solution.termination is Termination.INFEASIBLE:
                continue
            answer = solution.arrays["assignment"]
            k = int(rng.integers(len(answer)))
            kind = int(rng.integers(4))
            if kind == 0:
                rng.shuffle(answer)
            else:
                answer[k] = (-1, cost.shape[1], int(rng.integers(cost.shape[1])))[kind - 1]
            certificate = LAP.certify(problem, solution)
            if certificate.holds:
                is_true(certificate, cost, maximize, solution)

    def test_further_words_of_a_price(self) -> None:
        rng = np.random.default_rng(10)
        for shape in ((5, 5), (4, 6), (6, 4)):
            cost = cancelling(rng, shape)
            problem, solution, _ = prove(cost)
            name = "u_finer" if shape[0] > shape[1] else "v_finer"
            for step in (1e-300, 1.0, 1e299, np.nan, np.inf):
                extent = max(shape)
                solution.arrays[name] = rng.normal(size=(2, extent)) * step
                is_true(LAP.certify(problem, solution), cost, False, solution)

    def test_a_violator_of_a_batch(self) -> None:
        cost = np.random.default_rng(0).random((4, 5, 5))
        cost[2, :, 1] = np.inf
        problem, solution, certificate = prove(cost)
        assert certificate.holds
        solution.arrays["hall_rows"][2, 0] = False
        assert not LAP.certify(problem, solution).holds


class TestScales:
    """Times a power of two: the same assignment and word, and the objective and the gap times it."""

    @pytest.mark.parametrize("power", [-900, -60, -1, 1, 60, 900])
    @pytest.mark.parametrize("shape", [(40, 40), (30, 45), (45, 30), (3, 3)])
    @pytest.mark.parametrize("warm", [False, True])
    def test_same_answer(self, power: int, shape: tuple[int, int], warm: bool, device: Device) -> None:
        rng = np.random.default_rng(power + 1000)
        factor = 2.0**power
        for family in ("uniform", "distances", "zero-lines", "big-m"):
            cost = FAMILIES[family](rng, shape)
            start: dict[str, Any] = {"v0": rng.normal(size=shape[1])} if warm else {}
            _, one, plain = prove(cost, device=device, **start)
            larger: dict[str, Any] = {name: given * factor for name, given in start.items()}
            _, other, scaled = prove(cost * factor, device=device, **larger)
            assert one.termination is other.termination
            np.testing.assert_array_equal(one.arrays["assignment"], other.arrays["assignment"])
            assert [plain.objective * factor, plain.bound * factor] == [scaled.objective, scaled.bound]

    def test_transposed(self) -> None:
        rng = np.random.default_rng(11)
        for _ in range(60):
            cost, maximize, _ = draw("scales", rng)
            words = [prove(turned, maximize)[1].termination for turned in (cost, np.ascontiguousarray(cost.T))]
            assert words[0] is words[1]
            assert dual.natural_scale(cost) == dual.natural_scale(cost.T)

    def test_the_natural_scale_is_the_datas(self) -> None:
        cost = np.array([[0.0, -3.0, np.inf], [5.0, 4.0, 1e15], [0.0, 0.0, 0.0]])
        assert dual.natural_scale(cost) == 7.0  # 3 + 4 by rows; 5 + 3 + 1e15 by columns


class TestBound:
    def test_it_is_exact_for_its_prices(self) -> None:
        rng = np.random.default_rng(12)
        for _ in range(200):
            cost, maximize, _ = draw("scales", rng)
            if not np.isfinite(cost).all():
                continue
            sign, turned = -1 if maximize else 1, cost.shape[0] > cost.shape[1]
            price = dual.usable(rng.normal(size=max(cost.shape)), cost.shape[0] != cost.shape[1])
            lines = dual.smallest(cost[None], sign, price[None], lambda fraction: None)
            entries = sign * (cost.T if turned else cost)
            exact: Any = sum(min(Fraction(c) - Fraction(v) for c, v in zip(row, price, strict=True)) for row in entries)
            exact += sum(map(Fraction, price))
            bound = dual.bound(lines, price[None], 0)
            assert bound is not None
            assert Fraction(bound) <= exact < Fraction(np.nextafter(bound, np.inf))

    @pytest.mark.parametrize("shape", [(300, 300), (200, 300), (300, 200)])
    def test_two_words_by_blocks_and_in_rational_numbers(self, shape: tuple[int, int], monkeypatch: Any) -> None:
        monkeypatch.setattr(dual, "BLOCK_BYTES", 1 << 16)
        rng = np.random.default_rng(13)
        cost = rng.random(shape)
        words = np.stack([-rng.random(300), 1e-17 * rng.normal(size=300)])
        free = shape[0] != shape[1]
        quick = dual.finer_bound(cost, 1, words, free, lambda fraction: None)
        monkeypatch.setattr(dual, "EXACT_ENTRIES", 1 << 20)
        slow = dual.finer_bound(cost, 1, words, free, lambda fraction: None)
        assert quick is not None
        assert slow is not None
        assert 0 <= slow - quick <= 2 * np.spacing(abs(slow))

    def test_a_line_without_entries_has_none(self) -> None:
        cost = np.array([[np.inf, np.inf], [1.0, 2.0]])
        lines = dual.smallest(cost[None], 1, np.zeros((1, 2)), lambda fraction: None)
        assert dual.bound(lines, np.zeros((1, 2)), 0) is None
        assert dual.finer_bound(cost, 1, np.zeros((2, 2)), False, lambda fraction: None) is None


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


def test_a_running_search_says_what_it_has() -> None:
    heard: list[Progress] = []
    cost = assignment.spatial(700, 700)
    options = LapOptions()
    problem = LAP.build({"cost": cost}, options)
    with patch("kernels.lap.cpu.CHUNK", 1 << 14):
        _, certificate = solve_and_prove(LAP, problem, options, Deadline(on_progress=heard.append), "cpu")
    solving = [report for report in heard if report.phase == "solve" and report.objective is not None]
    assert len(solving) > 3
    fractions = [report.fraction for report in solving if report.fraction is not None]
    assert fractions == sorted(fractions)
    for report in solving:
        assert report.bound is not None
        assert report.objective is not None
        assert report.bound <= (certificate.objective or 0) <= report.objective * (1 + 1e-12)


def test_progress_ends_at_one() -> None:
    heard: list[float] = []
    problem, solution, _ = prove(np.random.default_rng(0).random((60, 20, 20)))
    LAP.certify(problem, solution, heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
