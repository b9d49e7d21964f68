"""The proof of transport among three measures, held against 50 digits, and against answers that are wrong."""

import copy
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import SOLVERS, Array, Claim, Deadline, Solution, Termination, recheck
from kernels.certificates.multimarginal import entropic, sums
from kernels.problems.multimarginal import Multimarginal
from tests.instances.multimarginal import clouds, tensor, weighed

CARD = SOLVERS["multimarginal"]
DIGITS = 50
FARTHEST = 30.0
"""Of potentials with reg .1: exponents of hundreds, some of which are refused."""


def answered(inputs: Any, **options: Any) -> tuple[Multimarginal, Solution]:
    chosen = CARD.options(**options)
    problem = CARD.build(inputs, chosen)
    return problem, CARD.solve(problem, chosen, Deadline(30))


def certified(problem: Multimarginal, solution: Solution) -> Any:
    """The certificate, whose numbers may be None."""
    return CARD.certify(problem, solution)


def decimals(array: Array) -> Any:
    return np.vectorize(Decimal, otypes=[object])(array)


def exponential(array: Any) -> Any:
    return np.vectorize(lambda one: one.exp(), otypes=[object])(array)


def costs_of(problem: Multimarginal) -> Any:
    """The costs without rounding."""
    if problem.tensor is not None:
        return decimals(problem.tensor)
    first, second, third = (decimals(part) for part in problem.pairs)
    return first[:, :, None] + second[:, None] + third


def value(problem: Multimarginal, given_masses: list[Any], runs: int = 300) -> Decimal:
    """The entropic optimum to some 30 digits: the dual value of Sinkhorn's iteration, which only rises."""
    a, b, c = given_masses
    kernel = exponential(-costs_of(problem) / Decimal(problem.reg))
    u, v, w = (np.array([Decimal(1)] * size) for size in problem.sizes)
    for _ in range(runs):
        of_third = (kernel * (c * w)).sum(axis=2)
        u = 1 / (of_third * (b * v)).sum(axis=1)
        v = 1 / (of_third * (a * u)[:, None]).sum(axis=0)
        w = 1 / (kernel * (a * u)[:, None, None] * (b * v)[:, None]).sum(axis=(0, 1))
    dual = [(side * np.vectorize(lambda x: x.ln(), otypes=[object])(one)).sum() for side, one in
            ((a, u), (b, v), (c, w))]  # fmt: skip
    return Decimal(problem.reg) * sum(dual, Decimal(0))


def exact_masses(inputs: Any, sizes: tuple[int, ...]) -> list[Any]:
    """What the masses are before a quotient is rounded."""
    sides = [decimals(inputs.get(name, np.ones(size))) for name, size in zip("abc", sizes, strict=True)]
    return [side / side.sum() for side in sides]


@pytest.mark.parametrize("reg", [3.0, 0.3, 0.05])
@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_in_fifty_digits_is_between_bound_and_objective(seed: int, reg: float) -> None:
    rng = np.random.default_rng(seed)
    sides = {name: rng.random(size) + 0.01 for name, size in zip("abc", (2, 3, 2), strict=True)}
    costs: dict[str, Any] = {"cost": rng.random((2, 3, 2)) - 0.5} if seed % 2 else clouds(2, 3, 2)
    if not seed % 2:
        costs = {name: array + 0.1 * rng.random(array.shape) for name, array in costs.items()}
    inputs = {**costs, **sides}
    problem, solution = answered(inputs, reg=reg, tolerance=0)
    certificate = certified(problem, solution)
    with localcontext() as context:
        context.prec = DIGITS
        best = value(problem, exact_masses(inputs, problem.sizes))
        assert Decimal(certificate.bound) <= best <= Decimal(certificate.objective)
        assert certificate.gap_abs < 1e-10


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-12, 1e-6, 1e-2, 1.0, FARTHEST]), st.booleans())
def test_moved_potentials_never_prove_what_is_false(seed: int, size: float, as_tensor: bool) -> None:
    rng = np.random.default_rng(seed)
    problem, solution, best = KNOWN[as_tensor]
    moved = copy.deepcopy(solution)
    for name in "fgh":
        moved.arrays[name] = moved.arrays[name] + size * rng.normal(size=moved.arrays[name].shape)
    certificate = certified(problem, moved)
    if size == FARTHEST and not certificate.holds:
        return
    assert certificate.holds
    assert certificate.bound <= best <= certificate.objective
    if size >= 1e-2:
        assert certificate.termination is Termination.CONVERGED
        assert certificate.gap_rel > 1e-6


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 10.0]), st.booleans())
def test_moved_potentials_never_prove_what_is_false_without_entropy(seed: int, size: float, as_tensor: bool) -> None:
    rng = np.random.default_rng(seed)
    problem, solution, best = EXACT[as_tensor]
    moved = copy.deepcopy(solution)
    for name in "fgh":
        moved.arrays[name] = moved.arrays[name] + size * rng.normal(size=moved.arrays[name].shape)
    certificate = certified(problem, moved)
    assert certificate.holds
    assert certificate.bound <= best <= certificate.objective + 1e-15
    assert certificate.termination is Termination.CONVERGED


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-7, 1.0), st.sampled_from(["plan", "plan_xy", "plan_xz", "plan_yz"]))
def test_plans_that_are_wrong_are_refused(seed: int, size: float, name: str) -> None:
    rng = np.random.default_rng(seed)
    for problem, solution in RETURNED:
        if name not in solution.arrays:
            continue
        moved = copy.deepcopy(solution)
        array = moved.arrays[name]
        at, other = (tuple(rng.integers(0, extent) for extent in array.shape) for _ in range(2))
        if at == other:
            continue
        array[at] += size
        array[other] -= min(size, array[other])
        assert not certified(problem, moved).holds
        del moved.arrays[name]
        if name != "plan":
            assert not certified(problem, moved).holds or "plan" in moved.arrays


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_plans_of_the_same_marginals_cost_what_they_cost(seed: int) -> None:
    """Mass moved round a cycle, so that no marginal changes: never optimal, never below the optimum."""
    rng = np.random.default_rng(seed)
    for problem, solution, best in EXACT.values():
        moved = copy.deepcopy(solution)
        plan = moved.arrays["plan"]
        i, j, k = (int(one) for one in np.unravel_index(int(plan.argmax()), plan.shape))
        i2, j2, k2 = (int(rng.integers(0, extent)) for extent in plan.shape)
        step = min(plan[i, j, k], plan[i2, j2, k2]) / 2
        if not step or i == i2:
            continue
        plan[i, j, k] -= step
        plan[i2, j2, k2] -= step
        plan[i2, j, k] += step
        plan[i, j2, k2] += step
        certificate = certified(problem, moved)
        assert certificate.holds
        assert certificate.objective >= best
        assert certificate.bound <= best


NONSENSE: dict[str, Any] = {
    "nan": lambda f: f * np.nan,
    "infinite": lambda f: f + np.inf,
    "huge": lambda f: f + 1e200,
    "large": lambda f: f + 1e40 * np.arange(len(f)),
    "short": lambda f: f[:-1],
    "deep": lambda f: f[None],
    "words": lambda f: f.astype("U8"),
    "complex": lambda f: f * 1j,
    "missing": None,
}


@pytest.mark.parametrize("name", "fgh")
@pytest.mark.parametrize("how", NONSENSE)
def test_what_is_no_potential_is_refused(how: str, name: str) -> None:
    for problem, solution in [(one[0], one[1]) for one in (*KNOWN.values(), *EXACT.values())]:
        moved = copy.deepcopy(solution)
        if NONSENSE[how] is None:
            del moved.arrays[name]
        else:
            moved.arrays[name] = NONSENSE[how](moved.arrays[name])
        certificate = certified(problem, moved)
        if how == "large" and problem.reg == 0:
            assert certificate.bound < -1e30
        else:
            assert certificate.holds is False


def test_a_plan_is_always_there() -> None:
    for problem, solution, _ in (*KNOWN.values(), *EXACT.values()):
        moved = copy.deepcopy(solution)
        moved.termination = Termination.INFEASIBLE
        assert not certified(problem, moved).holds


def test_a_word_is_earned() -> None:
    problem, solution, _ = KNOWN[True]
    few = CARD.solve(problem, CARD.options(reg=problem.reg, iterations=2), Deadline())
    for word in (Termination.OPTIMAL, Termination.GAP_REACHED):
        few.termination = word
        assert certified(problem, few).termination is Termination.CONVERGED
    problem, solution = answered(tensor(4, 5, 3), reg=0.1, tolerance=1e-9)
    assert solution.termination is Termination.GAP_REACHED
    assert certified(problem, solution).termination is None


SLOW: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clouds": (weighed(4, 5, 3), {"reg": 0.1, "metric": "euclidean"}),
    "unfinished": (tensor(4, 5, 3), {"reg": 0.02, "iterations": 1}),
    "small reg": (clouds(4, 5, 3), {"reg": 1e-3, "tolerance": 1e-4}),
    "exact": (weighed(4, 5, 3), {"reg": 0}),
    "exact, by its name": (tensor(4, 5, 3), {"method": "exact"}),
}


@pytest.mark.parametrize("name", SLOW)
def test_sixty_digits_say_the_same(name: str) -> None:
    inputs, options = SLOW[name]
    problem, solution = answered(inputs, **options)
    found = certified(problem, solution)
    numbers = found.objective, found.bound, found.gap_abs, found.gap_rel, found.max_violation
    claim = Claim("converged", *numbers, solution.arrays)
    said = recheck("multimarginal", inputs, options, claim)
    names = {"violation", "objective", "objective close", "bound", "gap", "relative gap"}
    assert {one.name for one in said} == names | ({"answer", "plan"} if "plan" in solution.arrays else set())
    assert all(one.holds for one in said), said
    size = abs(found.objective) + 1e-3
    for wrong in (replace(claim, objective=found.bound - size), replace(claim, bound=found.objective + size)):
        assert not all(one.holds for one in recheck("multimarginal", inputs, options, wrong))
    large = recheck("multimarginal", clouds(30, 30, 30), {}, claim)
    assert [one.holds for one in large] == [None]


@pytest.mark.parametrize("inputs", [weighed(4, 3, 1), weighed(4, 5, 3), tensor(4, 5, 3)])
def test_sixty_digits_repair_a_plan_as_it_is_priced(inputs: Any) -> None:
    """Sides that have too much are scaled down one after the other: in another order, to another plan."""
    problem, solution = answered(inputs, reg=0)
    plan = solution.arrays["plan"]
    for place in np.argwhere(plan > 0).tolist():
        for off in (3e-10, -3e-10):
            moved = copy.deepcopy(solution)
            moved.arrays["plan"][tuple(place)] = max(0.0, plan[tuple(place)] + off)
            found = certified(problem, moved)
            assert found.holds
            numbers = found.objective, found.bound, found.gap_abs, found.gap_rel, found.max_violation
            said = recheck("multimarginal", inputs, {"reg": 0}, Claim("converged", *numbers, moved.arrays))
            assert all(one.holds for one in said), (place, off, said)


@pytest.mark.parametrize("reg", [1.0, 0.05, 0.01])
def test_both_ways_to_sum_prove_the_same(reg: float, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solution = answered(weighed(8, 9, 7), reg=reg, tolerance=1e-9, output="marginals")
    one = certified(problem, solution)
    monkeypatch.setattr(sums, "ROOM", -1.0)
    for held in (1 << 24, 0):
        monkeypatch.setattr(sums, "HELD", held)
        monkeypatch.setattr(sums, "BLOCK", 100)
        other = certified(problem, solution)
        assert other.holds
        assert other.objective == pytest.approx(one.objective, rel=1e-10)
        assert other.bound == pytest.approx(one.bound, rel=1e-10)


def test_what_a_repair_adds_and_what_z_takes_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them an unfinished answer would prove what is false."""
    problem, _, best = KNOWN[False]
    few = CARD.solve(problem, CARD.options(reg=problem.reg, iterations=1), Deadline())
    certificate = certified(problem, few)
    assert certificate.max_violation > 1e-3
    assert certificate.bound < best < certificate.objective
    monkeypatch.setattr(entropic, "price", lambda *_: 0.0)
    assert certified(problem, few).objective < best
    few.arrays["f"] = few.arrays["f"] + 1.0
    assert certified(problem, few).bound < best
    monkeypatch.setattr(entropic, "log_up", lambda total: 0 * total)
    assert certified(problem, few).bound > best


def _known(inputs: Any, reg: float) -> tuple[Multimarginal, Solution, float]:
    problem, solution = answered(inputs, reg=reg, tolerance=1e-12)
    certificate = certified(problem, solution)
    assert certificate.objective - certificate.bound < 1e-9
    return problem, solution, (certificate.objective + certificate.bound) / 2


KNOWN = {True: _known(tensor(4, 5, 3), 0.1), False: _known(clouds(4, 5, 3), 0.1)}
EXACT = {True: _known(tensor(4, 5, 3), 0), False: _known(clouds(4, 5, 3), 0)}
RETURNED = [
    answered(clouds(4, 5, 3), reg=0.1, output="marginals"),
    answered(weighed(4, 5, 3), reg=0.1, output="plan"),
    answered(tensor(4, 5, 3), reg=0.1, output="marginals"),
    answered(tensor(4, 5, 3), reg=0, output="marginals"),
]
