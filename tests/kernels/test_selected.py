"""Exactly so many pairs, and the least largest cost."""

from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, Array, Certificate, Deadline, InvalidProblem, Solution, recheck, solve_and_prove
from kernels.certificates.selected import certify
from kernels.problems.selected import Selected
from tests.fuzz.judge import claim_of

CARD = SOLVERS["lap"]


def answered(cost: Array, **options: Any) -> tuple[Selected, Solution, Certificate]:
    chosen = CARD.options(**options)
    problem = CARD.build({"cost": cost}, chosen)
    solution, certificate = solve_and_prove(CARD, problem, chosen, Deadline(30), "cpu")
    assert certificate.holds, certificate.proved
    if cost.size < 5000:
        said = recheck("lap", {"cost": cost}, options, claim_of(solution, certificate))
        assert [statement for statement in said if statement.holds is not True] == []
    return problem, solution, certificate


def best_of(cost: Array, pairs: int, bottleneck: bool, sign: int) -> Fraction | None:
    """Every choice of so many pairs."""
    found = []
    for rows in combinations(range(cost.shape[0]), pairs):
        for cols in permutations(range(cost.shape[1]), pairs):
            taken = [cost[pair].item() for pair in zip(rows, cols, strict=True)]
            if all(np.isfinite(c) and c != FORBIDDEN for c in taken):
                values = [sign * Fraction(c) for c in taken]
                found.append(max(values) if bottleneck else sum(values, Fraction(0)))
    return min(found, default=None)


@pytest.mark.parametrize("objective", ["sum", "bottleneck"])
def test_against_every_choice(objective: str) -> None:
    rng = np.random.default_rng(1)
    words = set()
    for trial in range(200):
        shape = tuple(rng.integers(1, 5, 2))
        cost = rng.integers(-5, 9, shape) if trial % 2 else rng.normal(size=shape) * 10.0 ** rng.integers(-9, 9, shape)
        maximize = trial % 3 == 0
        if trial % 5 == 0:
            never = FORBIDDEN if trial % 2 else (-np.inf if maximize else np.inf)
            cost = np.where(rng.random(shape) < 0.5, never, cost)
        pairs = int(rng.integers(objective == "bottleneck", min(shape) + 1))
        _, solution, certificate = answered(cost, cardinality=pairs, objective=objective, maximize=maximize)
        sign = -1 if maximize else 1
        best = best_of(cost, pairs, objective == "bottleneck", sign)
        words.add(solution.termination.value)
        if best is None:
            assert solution.termination == "infeasible"
            continue
        assert solution.termination == "optimal"
        assert (solution.arrays["assignment"] >= 0).sum() == pairs
        assert certificate.objective == pytest.approx(float(sign * best), rel=1e-13, abs=1e-300)
        assert sign * Fraction(certificate.bound) <= best  # type: ignore[arg-type]
        if objective == "bottleneck" or cost.dtype.kind == "i":
            assert Fraction(certificate.objective) == Fraction(certificate.bound) == sign * best  # type: ignore[arg-type]
    assert words == {"optimal", "infeasible"}


def test_all_pairs_are_the_ordinary_assignment() -> None:
    cost = np.random.default_rng(2).random((70, 90))
    _, _, ordinary = answered(cost)
    _, _, all_pairs = answered(cost, cardinality=70)
    assert all_pairs.objective == pytest.approx(ordinary.objective, rel=1e-12)


@pytest.mark.parametrize(
    "options", [{"cardinality": 3}, {"objective": "bottleneck"}, {"objective": "bottleneck", "cardinality": 2}]
)
def test_corrupted_answers_are_refused_or_covered(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    refused = covered = 0
    for trial in range(300):
        cost = rng.integers(0, 30, (4, 5)) if trial % 2 else rng.random((4, 5))
        problem, solution, _ = answered(cost, **options)
        best = best_of(cost, problem.pairs, problem.objective == "bottleneck", 1)
        name = sorted(solution.arrays)[trial % len(solution.arrays)]
        array = solution.arrays[name].copy()
        if array.size == 0:
            continue
        at = rng.integers(array.size)
        if array.dtype.kind == "i":
            array[at] += rng.choice([-2, -1, 1, 3, 10**6, -(2**62)])
        else:
            array[at] = rng.choice([np.nextafter(array[at], 9), array[at] + 1, array[at] - 1, np.nan, -np.inf, 1e300])
        solution.arrays[name] = array
        proof = certify(problem, solution)
        if not proof.holds:
            refused += 1
            continue
        assert best is not None
        if proof.bound is not None:
            covered += 1
            assert Fraction(proof.bound) <= best
        if (proof.termination or solution.termination) == "optimal":
            assert abs(Fraction(proof.objective or 0) - best) <= Fraction(1, 10**12) * (cost.dtype.kind == "f")
    assert refused > 10
    assert covered > 50


@pytest.mark.parametrize("options", [{"cardinality": 200}, {"objective": "bottleneck"}])
def test_a_stopped_solve_has_an_answer_and_a_bound(options: dict[str, Any]) -> None:
    problem = CARD.build({"cost": np.random.default_rng(4).random((300, 300))}, chosen := CARD.options(**options))
    proof = certify(problem, CARD.solve(problem, chosen, Deadline(0)))
    assert proof.holds
    assert proof.objective is not None
    assert proof.bound is not None
    assert proof.bound <= proof.objective


@pytest.mark.parametrize(
    ("inputs", "options", "field"),
    [
        ({"cost": [[1, 2]]}, {"cardinality": 2}, "cardinality"),
        ({"cost": [[1, 2]]}, {"cardinality": 0, "objective": "bottleneck"}, "cardinality"),
        ({"cost": [[[1, 2]]]}, {"cardinality": 1}, "cardinality"),
        ({"cost": [[1, 2]]}, {"cardinality": 1, "cost_limit": 1.0}, "cost_limit"),
        ({"cost": [[1, 2]], "reject_rows": [1]}, {"objective": "bottleneck"}, "reject_rows"),
        ({"cost": [[1, 2]]}, {"cardinality": 1, "method": "tree"}, "method"),
    ],
)
def test_wrong_input_is_named(inputs: dict[str, Any], options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as error:
        CARD.build({name: np.array(value) for name, value in inputs.items()}, CARD.options(**options))
    assert error.value.field == field


def test_a_level_that_is_no_number_proves_the_same_in_both_checks() -> None:
    """0 is then the level. Its gap is between the limits with and without the sizes of the duals."""
    cost = np.array([[1.0, -np.inf], [-np.inf, -1.3e-15], [-np.inf, -1.3e-15]])
    options = {"cardinality": 2, "maximize": True}
    problem, solution, _ = answered(cost, **options)
    for level in (np.nan, np.inf):
        solution.arrays["level"] = np.array([level])
        certificate = certify(problem, solution)
        assert certificate.holds
        assert certificate.termination is None
        assert certificate.gap_abs == pytest.approx(1.3e-15, rel=0.1)
        said = recheck("lap", {"cost": cost}, options, claim_of(solution, certificate))
        assert [statement for statement in said if statement.holds is not True] == []
