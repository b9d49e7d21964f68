"""The proof of general costs: right whatever multipliers it is given, the same in whole numbers and in fractions."""

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Claim, Deadline, Solution, Termination, recheck
from kernels.certificates.lawler import certify, slow
from kernels.certificates.lawler.every import cheapest
from kernels.certificates.lawler.level import level_one
from kernels.certificates.lawler.whole import rounded, whole_of
from kernels.problems.lawler import LawlerAssignment, never_paid
from kernels.solution import unheard
from tests.instances.lawler import general

CARD = SOLVERS["lawler"]


def drawn(rng: np.random.Generator, most: int) -> LawlerAssignment:
    """A small problem of one of several kinds, with up to two fixed facilities."""
    n = int(rng.integers(2, most + 1))
    m = int(rng.integers(1, n + 1))
    shape = (m, n, m, n)
    kind = rng.integers(6)
    cost: Array = rng.integers(-9, 9, shape) * 10 ** int(rng.integers(0, 12))
    if kind == 1:
        cost = rng.integers(-(2**54), 2**54, shape)
    elif kind == 2:
        cost = rng.normal(size=shape) * 10.0 ** rng.integers(-320, 290)
    elif kind == 3:
        cost = rng.integers(-9, 9, shape) / 8
    elif kind == 4:
        cost = rng.normal(size=shape) * 10.0 ** rng.integers(-30, 1, shape)
    cost[never_paid(m, n)] = 0
    count = int(rng.integers(0, min(3, n - 1)))
    fixed = dict(zip(rng.permutation(n)[:count].tolist(), rng.permutation(n)[:count].tolist(), strict=True))
    return LawlerAssignment(cost, bool(rng.integers(2)), dict(sorted(fixed.items())))


def guessed(problem: LawlerAssignment, rng: np.random.Generator) -> dict[str, Array]:
    """Multipliers of no origin, at an exponent near our own."""
    k = problem.free
    own = whole_of(problem)
    size = int(rng.choice([0, 1, 10, max(1, int(np.abs(own.quads).max(initial=0)))]))
    shapes = {"rows": (k, k, k), "columns": (k, k, k), "prices": (k,)}
    found: dict[str, Array] = {name: rng.integers(-size, size + 1, shape) for name, shape in shapes.items()}
    return found | {"exponent": np.array([own.exponent + int(rng.integers(-3, 8))])}


def all_of(problem: LawlerAssignment) -> list[Fraction]:
    """What each permutation pays, to be minimised."""
    costs = slow.Costs(problem.cost, problem.maximize, problem.fixed)
    found = []
    for rest in itertools.permutations(costs.places):
        whole = dict(problem.fixed) | dict(zip(costs.facilities, rest, strict=True))
        found.append(costs.total([whole[i] for i in range(costs.n)]))
    return found


@pytest.mark.parametrize("part", range(8))
def test_bounds_of_any_multipliers_are_those_in_fractions_and_below_all_permutations(part: int) -> None:
    rng = np.random.default_rng(part)
    close = 0
    for _ in range(400):
        problem = drawn(rng, 4)
        given = guessed(problem, rng)
        whole = whole_of(problem, given["exponent"])
        if [whole.exponent] != given["exponent"].tolist():
            continue
        found = whole.worth(level_one(whole, given, unheard))
        claim = Claim("converged", None, None, None, None, 0, given)
        costs = slow.Costs(problem.cost, problem.maximize, problem.fixed)
        proved, hidden = slow._level_one(costs, claim)
        assert (found, whole.hidden) == (proved, hidden)
        every = all_of(problem)
        assert found <= min(every)
        assert cheapest(problem) == min(every)
        close += min(every) - found <= (max(every) - min(every)) / 100
    assert close > 40  # of many, the bound says something


def certified(cost: Array, **options: Any) -> tuple[LawlerAssignment, Solution, Certificate]:
    chosen = CARD.options(rounds=2, sweeps=8, **options)
    problem = CARD.build({"cost": cost}, chosen)
    solution = CARD.solve(problem, chosen, Deadline(60))
    return problem, solution, certify(problem, solution)


def claimed(solution: Solution, certificate: Certificate) -> Claim:
    word = str(certificate.termination or solution.termination)
    names = ("objective", "bound", "gap_abs", "gap_rel", "max_violation")
    told = {name: getattr(certificate, name) for name in names}
    return Claim(word, arrays=solution.arrays, facts=certificate.facts, **told)


CASES: list[tuple[Array, dict[str, Any]]] = [
    (general(9, 9)["cost"], {}),
    (general(9, 9)["cost"], {"maximize": True}),
    (general(7, 10)["cost"], {}),
    (general(9, 9, np.float64)["cost"], {}),
    (general(8, 9, np.float64)["cost"] * 1e-300, {"maximize": True}),
    (general(10, 11, np.float64)["cost"], {"fixed": {0: 4, 10: 5}}),
    (general(9, 9)["cost"] / 4, {}),
    (np.full((9, 9, 9, 9), 0.1), {}),
    (general(9, 9)["cost"] * 2**47 + 1, {}),
    (general(4, 4, np.float64)["cost"], {}),
    (general(5, 5)["cost"], {"maximize": True, "fixed": {2: 2}}),
]


@pytest.mark.parametrize("at", range(len(CASES)))
def test_verify_goes_through_an_answer_again(at: int) -> None:
    cost, options = CASES[at]
    problem, solution, certificate = certified(cost, duals=True, **options)
    claim = claimed(solution, certificate)
    said = recheck("lawler", {"cost": cost}, options, claim)
    assert [one.name for one in said if one.holds is not True] == []
    assert {"answer", "objective", "bound", "gap"} <= {one.name for one in said}
    assert claim.objective is not None
    assert claim.bound is not None
    sign = -1 if problem.maximize else 1
    step = max(abs(claim.objective), abs(claim.bound)) if not problem.integer else 1
    better = replace(claim, objective=claim.objective - sign * step)
    assert any(one.holds is False for one in recheck("lawler", {"cost": cost}, options, better))
    higher = replace(claim, bound=claim.bound + sign * step)
    assert any(one.name == "bound" and one.holds is False for one in recheck("lawler", {"cost": cost}, options, higher))
    p = solution.arrays["permutation"].copy()
    p[0] = p[1]
    twice = replace(claim, arrays={**claim.arrays, "permutation": p})
    assert [one.holds for one in recheck("lawler", {"cost": cost}, options, twice)] == [False]


def test_verify_says_what_an_answer_lacks() -> None:
    cost = general(9, 9)["cost"]
    _, solution, certificate = certified(cost)
    said = {one.name: one.holds for one in recheck("lawler", {"cost": cost}, {}, claimed(solution, certificate))}
    assert said["bound"] is None
    assert said["objective"] is True
    wrong = replace(claimed(solution, certificate), termination="optimal", bound=certificate.objective)
    _, full, _ = certified(cost, duals=True)
    wrong = replace(wrong, arrays=full.arrays)
    said = {one.name: one.holds for one in recheck("lawler", {"cost": cost}, {}, wrong)}
    assert said["bound"] is False
    assert said["optimal"] is False


def test_wrong_answers_do_not_hold() -> None:
    problem, solution, _ = certified(general(9, 9)["cost"], fixed={0: 1})
    p = solution.arrays["permutation"]
    swapped = p.copy()
    swapped[[0, 1]] = p[[1, 0]]
    twice = p.copy()
    twice[3] = p[4]
    for wrong in (None, p[:-1], p.astype(float), p + 1, twice, swapped, p.reshape(3, 3)):
        arrays = {} if wrong is None else {"permutation": wrong}
        found = certify(problem, replace(solution, arrays=arrays))
        assert found.holds is False
        assert found.objective is None


def test_wrong_evidence_makes_a_bound_worse_and_never_false() -> None:
    cost = general(9, 9)["cost"]
    problem, solution, good = certified(cost)
    least = good.objective
    assert least is not None
    assert good.bound is not None
    rng = np.random.default_rng(0)
    evidence = solution.evidence
    wrong: list[dict[str, Any]] = [{}]
    for name, array in evidence.items():
        wrong += [{**evidence, name: one} for one in (
            array.astype(float), array[:-1], array * 0, -array, array + 2**40, np.full_like(array, -(2**63)),
            np.full_like(array, 2**63 - 1), rng.permutation(array), array.astype(object), np.full(array.shape, np.nan),
        )]  # fmt: skip
        wrong.append({key: value for key, value in evidence.items() if key != name})
    bounds = []
    for one in wrong:
        found = certify(problem, replace(solution, evidence=one))
        assert found.holds
        assert found.bound is not None
        assert found.bound <= least
        bounds.append(found.bound)
    assert max(bounds) <= good.bound + 20
    assert min(bounds) < good.bound


def test_no_solver_is_believed() -> None:
    problem, solution, good = certified(general(9, 9)["cost"])
    assert good.gap_abs
    lied = certify(problem, replace(solution, termination=Termination.OPTIMAL))
    assert lied.termination is Termination.CONVERGED
    assert lied.facts["verified"] is False
    small, found, _ = certified(general(5, 5)["cost"])
    worse = replace(found, arrays={"permutation": np.roll(found.arrays["permutation"], 1)})
    said = certify(small, worse)
    assert said.termination is Termination.CONVERGED
    assert said.gap_abs
    stopped = certify(small, replace(found, termination=Termination.STOPPED))
    assert stopped.termination is None


def test_even_costs_have_even_bounds() -> None:
    cost = 6 * general(9, 9)["cost"]
    _, _, certificate = certified(cost)
    assert certificate.bound is not None
    assert certificate.bound % 6 == 0


def test_directions_of_rounding() -> None:
    tenth = Fraction(1, 10)
    assert rounded(tenth, 1) == 0.1
    assert Fraction(rounded(tenth, -1)) < tenth < Fraction(rounded(tenth, 1))
    assert rounded(Fraction(3, 4), -1) == rounded(Fraction(3, 4), 1) == 0.75
    assert rounded(Fraction(-1, 2**1080), -1) == -5e-324
    assert rounded(Fraction(-1, 2**1080), 1) == 0


def test_multipliers_in_units_beyond_float64_are_left_out() -> None:
    """A bound of -2^4000 was no float: OverflowError, where the answer was one."""
    cost = np.zeros((9, 9, 9, 9))
    every = np.arange(9)
    cost[every[:, None], every, every[:, None], every] = 0.6
    taken = np.random.default_rng(0).integers(-(2**40), 2**40, (9, 9, 9))
    arrays = {"permutation": every, "rows": taken, "columns": taken, "prices": every, "exponent": np.array([-4000])}
    for maximize in (False, True):  # a cost below 0 is rounded down to -1 of these units
        problem = CARD.build({"cost": cost if maximize else -cost}, CARD.options(maximize=maximize))
        found = CARD.certify(problem, Solution(Termination.OPTIMAL, "none", arrays))
        assert found.holds
        assert found.bound is not None
        assert found.bound == pytest.approx(found.objective, rel=1e-9)
        assert abs(Fraction(found.bound)) >= 9 * Fraction(0.6)


def test_places_between_places_are_no_permutation() -> None:
    """`allot verify` took 1.5 for 1."""
    cost = np.zeros((2, 2, 2, 2))
    for places, is_one in (([0, 1], True), ([0, 1.5], False), ([0.0, 1.0], False)):
        said = recheck("lawler", {"cost": cost}, {}, Claim("optimal", 0.0, 0.0, 0.0, 0.0, 0.0, {
            "permutation": np.array(places),
        }))  # fmt: skip
        assert all(one.holds for one in said) is is_one
