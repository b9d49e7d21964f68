"""The certificate of transport on the entries of a sparse cost, held against sixty digits."""

import copy
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import (
    SOLVERS,
    Certificate,
    Claim,
    Csr,
    Deadline,
    InvalidProblem,
    Solution,
    Statement,
    Termination,
    recheck,
)
from kernels.certificates.sparse import entries
from kernels.problems.sparse_transport import SparseTransport
from tests.instances import sparse_transport as instances
from tests.instances.sparse_transport import graph, stored
from tests.kernels.test_corrupted_answers import corrupted

CARD = SOLVERS["uot"]
STRENGTHS: tuple[Any, ...] = ("inf", 0.3, 1.0, 20.0)
SMALL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "relaxed": (graph(4, 5, 0.5), {"reg": 0.1, "reg_m": 1.0}),
    "uniform": (graph(4, 5, 0.5), {"reg": 0.1, "reg_m": (1.0, 3.0), "reference": "uniform"}),
    "rows": (graph(4, 5, 0.5), {"reg": 0.1, "reg_m": ("inf", 1.0)}),
    "columns": (graph(4, 5, 0.5), {"reg": 0.1, "reg_m": (2.0, "inf")}),
    "balanced": (graph(4, 5, 0.5), {"reg": 0.05, "reg_m": "inf"}),
    "left open": (instances.lonely(6, 7), {}),
    "no plan": (instances.neighbours(8, 2), {"reg": 0.05, "reg_m": "inf"}),
    "no way to a column": (
        {"cost": stored(np.ones((2, 3)), np.array([[1, 1, 0], [1, 0, 0]], bool))},
        {"reg": 0.1, "reg_m": (1.0, "inf")},
    ),
}


def answered(inputs: Any, **options: Any) -> tuple[SparseTransport, Solution]:
    asked = CARD.options(**options)
    problem = CARD.build(inputs, asked)
    return problem, CARD.solve(problem, asked, Deadline(20), "cpu")


def claim_of(solution: Solution, certificate: Certificate) -> Claim:
    return Claim(
        termination=str(certificate.termination or solution.termination),
        objective=certificate.objective,
        bound=certificate.bound,
        gap_abs=certificate.gap_abs,
        gap_rel=certificate.gap_rel,
        max_violation=certificate.max_violation,
        arrays=solution.arrays,
        facts={**solution.facts, **certificate.facts},
    )


def checked(inputs: Any, options: Any, problem: SparseTransport, solution: Solution) -> list[Statement]:
    """What sixty digits say of the certificate of an answer."""
    certificate = CARD.certify(problem, solution)
    assert certificate.holds, certificate
    return recheck("uot", inputs, options, claim_of(solution, certificate))


@pytest.mark.parametrize("name", SMALL)
def test_sixty_digits_agree(name: str) -> None:
    inputs, options = SMALL[name]
    problem, solution = answered(inputs, **options)
    said = checked(inputs, options, problem, solution)
    assert {one.name for one in said} >= {"strengths", "infeasible" if name.startswith("no ") else "objective"}
    assert all(one.holds for one in said), said


@st.composite
def problems(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, n = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    there = rng.random((m, n)) < draw(st.sampled_from([0.2, 0.5, 0.8, 1.0]))
    scale = 10.0 ** draw(st.integers(-6, 6))
    cost = (rng.random((m, n)) - draw(st.sampled_from([0, 0, 0.4]))) * scale
    masses = np.where(there, rng.random((m, n)) * 10.0 ** rng.integers(-4, 1, (m, n)), 0.0)
    a, b = masses.sum(axis=1), masses.sum(axis=0)
    if draw(st.booleans()):
        a, b = rng.random(m) + 0.01, rng.random(n) + 0.01
        a[rng.random(m) < draw(st.sampled_from([0, 0.4]))] = 0
    pair = [draw(st.sampled_from(STRENGTHS)) for _ in range(2)]
    options = {
        "reg": scale * 10.0 ** draw(st.integers(-3, 2)),
        "reg_m": tuple(one if isinstance(one, str) else one * scale for one in pair),
        "reference": draw(st.sampled_from(["product", "uniform"])),
        "tolerance": draw(st.sampled_from([1e-3, 1e-6, 1e-10])),
        "iterations": draw(st.sampled_from([1, 3, 2000])),
    }
    return {"cost": stored(cost, there), "a": a, "b": b}, options


@settings(max_examples=150, deadline=None)
@given(problems())
def test_random_answers_are_what_sixty_digits_say(drawn: tuple[dict[str, Any], dict[str, Any]]) -> None:
    inputs, options = drawn
    try:
        problem, solution = answered(inputs, **options)
    except InvalidProblem:  # masses of exact sides that differ, or costs that pay for creating mass
        return
    assert [one for one in checked(inputs, options, problem, solution) if one.holds is not True] == []


@settings(max_examples=150, deadline=None)
@given(problems(), st.integers(0, 2**32), st.floats(-12, 2))
def test_moved_potentials_and_plans_prove_nothing_false(
    drawn: tuple[dict[str, Any], dict[str, Any]], seed: int, size: float
) -> None:
    inputs, options = drawn
    try:
        problem, solution = answered(inputs, **options)
    except InvalidProblem:
        return
    if solution.termination is Termination.INFEASIBLE:
        return
    rng, away = np.random.default_rng(seed), problem.reg * 10.0**size
    for name in "fg":
        solution.arrays[name] = solution.arrays[name] + away * rng.standard_normal(solution.arrays[name].size)
    solution.arrays["entry_values"] *= 1 + rng.random(problem.nnz) * 10.0**size
    solution.termination = Termination.CONVERGED
    said = checked(inputs, options, problem, solution)
    wrong = [one for one in said if one.holds is False and one.name not in ("row_marginal", "column_marginal")]
    assert wrong == []


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.filterwarnings("ignore")
def test_no_corruption_fools_or_breaks_it(name: str) -> None:
    inputs, options = SMALL[name]
    problem, solution = answered(inputs, **options)
    fooled = {what: _fooled(inputs, options, problem, bad) for what, bad in corrupted(solution)}
    assert len(fooled) > 30
    assert {what: why for what, why in fooled.items() if why} == {}


def _fooled(inputs: Any, options: Any, problem: SparseTransport, bad: Solution) -> str:
    certificate = CARD.certify(problem, bad)
    none = certificate.objective is None and certificate.bound is None
    if not certificate.holds or (none and bad.termination is not Termination.INFEASIBLE):
        return ""
    said = recheck("uot", inputs, options, claim_of(bad, certificate))
    shown = ("row_marginal", "column_marginal")  # how far they are off is a fact of the certificate
    wrong = [one for one in said if one.holds is False and one.name not in shown]
    return f"{wrong[0].name}: {wrong[0].words}" if wrong else ""


def _less_cost(solution: Solution) -> None:
    solution.arrays["entry_values"] = solution.arrays["entry_values"].copy()
    solution.arrays["entry_values"][0] = -1e-9


def _not_a_number(solution: Solution) -> None:
    solution.arrays["entry_values"] = solution.arrays["entry_values"] * np.nan


def _other_reg(solution: Solution) -> None:
    solution.facts["reg"] = 0.2


def _no_plan(solution: Solution) -> None:
    solution.termination = Termination.INFEASIBLE
    solution.arrays["hall_rows"] = np.array([0, 1])


@pytest.mark.parametrize("change", [_less_cost, _not_a_number, _other_reg, _no_plan])
def test_what_is_no_answer_is_refused(change: Callable[[Solution], None]) -> None:
    inputs, options = SMALL["balanced"]
    problem, solution = answered(inputs, **options)
    bad = copy.deepcopy(solution)
    change(bad)
    assert not CARD.certify(problem, bad).holds


def test_mass_on_lines_without_any_is_refused() -> None:
    inputs, options = SMALL["left open"]
    problem, solution = answered(inputs, **options)
    at = int(np.flatnonzero(~problem.used)[0])
    solution.arrays["entry_values"][at] = 5e-324
    assert not CARD.certify(problem, solution).holds


def test_infinite_potentials_prove_something_on_lonely_lines_alone() -> None:
    inputs, options = SMALL["left open"]
    problem, solution = answered(inputs, **options)
    assert np.isposinf(solution.arrays["f"]).any()
    assert CARD.certify(problem, solution).bound is not None
    at = int(np.flatnonzero(np.isfinite(solution.arrays["f"]) & (problem.a > 0))[0])
    solution.arrays["f"][at] = np.inf
    assert CARD.certify(problem, solution).bound is None


def test_marginals_that_are_shown_are_held_against_the_plan() -> None:
    inputs, options = SMALL["relaxed"]
    problem, solution = answered(inputs, **options)
    assert CARD.certify(problem, solution).facts["row_marginal_within"] < 1e-14
    solution.arrays["row_marginal"][0] += 0.5
    assert CARD.certify(problem, solution).facts["row_marginal_within"] == pytest.approx(0.5)
    assert any(not one.holds for one in checked(inputs, options, problem, solution))


def test_rounding_is_counted_in_the_largest_sums() -> None:
    """What float64 loses in a million terms stays above the true sum, and near it."""
    rng = np.random.default_rng(0)
    terms = rng.random(1_000_003) * 10.0 ** rng.integers(-8, 8, 1_000_003) * rng.choice([-1, 1], 1_000_003)
    value, off = entries.at_least(terms)
    exact = sum(map(Fraction, terms.tolist()), Fraction(0))
    assert abs(Fraction(value) - exact) <= Fraction(off)
    assert off < 1e-13 * abs(terms).sum()


def test_an_overflow_leaves_no_bound() -> None:
    inputs, options = SMALL["relaxed"]
    problem, solution = answered(inputs, **options)
    solution.arrays["f"] = solution.arrays["f"] + 1e5
    certificate = CARD.certify(problem, solution)
    assert certificate.bound is None
    assert certificate.objective is not None


def test_the_certificate_says_how_far_it_has_come() -> None:
    problem, solution = answered(graph(300, 300, 0.5), reg=0.1, reg_m=1.0)
    told: list[float] = []
    CARD.certify(problem, solution, told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_slow_check_sees_strengths_that_were_not_asked() -> None:
    inputs, options = SMALL["left open"]
    problem, solution = answered(inputs, **options)
    claim = claim_of(solution, CARD.certify(problem, solution))
    other = replace(claim, facts={**claim.facts, "reg": claim.facts["reg"] * 1.01})
    assert [one.holds for one in recheck("uot", inputs, options, other) if one.name == "strengths"] == [False]
    none = recheck("uot", inputs, {**options, "certificate": "none"}, claim)
    assert [one.holds for one in none] == [None]
    assert isinstance(inputs["cost"], Csr)


def test_slow_check_holds_an_optimum_against_the_gap() -> None:
    """It asked this of `gap_reached` alone."""
    inputs, options = SMALL["left open"]
    problem, solution = answered(inputs, **options)
    moved = replace(solution, arrays={**solution.arrays, "f": solution.arrays["f"] - 1.0})
    claim = replace(claim_of(moved, CARD.certify(problem, moved)), termination="optimal")
    assert claim.gap_rel is not None
    assert claim.gap_rel > 1e-3
    assert [one.name for one in recheck("uot", inputs, options, claim) if one.holds is False] == ["gap reached"]
