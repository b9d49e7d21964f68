"""Lists of the best assignments."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, Array, Certificate, Deadline, InvalidProblem, Solution, recheck, solve_and_prove
from kernels.certificates.ranked import certify
from kernels.problems.ranked import Ranked
from tests.fuzz.judge import claim_of

CARD = SOLVERS["lap"]


def answered(cost: Array, k_best: int, **options: Any) -> tuple[Ranked, Solution, Certificate]:
    chosen = CARD.options(k_best=k_best, **options)
    problem = CARD.build({"cost": cost}, chosen)
    solution, certificate = solve_and_prove(CARD, problem, chosen, Deadline(60), "cpu")
    assert certificate.holds, certificate.proved
    said = recheck("lap", {"cost": cost}, {"k_best": k_best, **options}, claim_of(solution, certificate))
    assert [statement for statement in said if statement.holds is False] == []
    return problem, solution, certificate


def every_sum(cost: Array, sign: int = 1) -> list[Fraction]:
    """The sums of all assignments, from the best on, in min form."""
    lines = cost.T if cost.shape[0] > cost.shape[1] else cost
    found = []
    for columns in permutations(range(lines.shape[1]), lines.shape[0]):
        taken = [lines[i, j].item() for i, j in enumerate(columns)]
        if all(np.isfinite(c) and c != FORBIDDEN for c in taken):
            found.append(sum((sign * Fraction(c) for c in taken), Fraction(0)))
    return sorted(found)


def test_against_every_assignment() -> None:
    rng = np.random.default_rng(1)
    words = set()
    for trial in range(200):
        shape = tuple(rng.integers(1, 6, 2))
        cost = rng.integers(-4, 6, shape) if trial % 2 else rng.normal(size=shape)
        maximize = trial % 3 == 0
        if trial % 5 == 0:
            never = FORBIDDEN if trial % 2 else (-np.inf if maximize else np.inf)
            cost = np.where(rng.random(shape) < 0.5, never, cost)
        asked = int(rng.integers(1, 80))
        sign = -1 if maximize else 1
        best = [sign * value for value in every_sum(cost, sign)[:asked]]
        _, solution, certificate = answered(cost, asked, maximize=maximize)
        words.add(solution.termination.value)
        if not best:
            assert solution.termination == "infeasible"
            continue
        assert solution.termination == "optimal"
        if cost.dtype.kind == "i":
            assert certificate.facts["objectives"] == best
            assert certificate.facts["list_gap"] == 0
        else:
            assert certificate.facts["objectives"] == pytest.approx([float(value) for value in best], abs=1e-12)
    assert words == {"optimal", "infeasible"}


def test_a_thousand_of_thirty_lines() -> None:
    cost = np.random.default_rng(2).integers(0, 100, (30, 34))
    _, solution, certificate = answered(cost, 1000)
    assert solution.termination == "optimal"
    assert solution.arrays["assignments"].shape == (1000, 30)
    assert len({tuple(one) for one in solution.arrays["assignments"].tolist()}) == 1000
    _, plain = solve_and_prove(CARD, CARD.build({"cost": cost}, o := CARD.options()), o, Deadline(), "cpu")
    assert certificate.objective == plain.objective


def test_corrupted_lists_are_refused_or_covered() -> None:
    rng = np.random.default_rng(3)
    refused = covered = 0
    for trial in range(500):
        cost = rng.integers(0, 30, (4, 5)) if trial % 2 else rng.random((4, 5))
        problem, solution, _ = answered(cost, 6)
        best = every_sum(cost)
        holder = solution.evidence if trial % 3 else solution.arrays
        name = sorted(holder)[trial % len(holder)]
        array = holder[name].copy()
        if array.size == 0:
            continue
        flat, at = array.reshape(-1), rng.integers(array.size)
        if array.dtype.kind == "i":
            flat[at] += rng.choice([-2, -1, 1, 3, 10**6, -(2**62)])
        else:
            flat[at] = rng.choice([np.nextafter(flat[at], 9), flat[at] + 1, flat[at] - 1, np.nan, -np.inf, 1e300])
        holder[name] = array
        proof = certify(problem, solution)
        if not proof.holds:
            refused += 1
            continue
        covered += 1
        assert Fraction(proof.bound or 0) <= best[0]
        slack = Fraction(1, 10**12) * (cost.dtype.kind == "f")
        if (proof.termination or solution.termination) == "optimal":
            assert all(abs(Fraction(a) - b) <= slack for a, b in zip(proof.facts["objectives"], best, strict=False))
        worst = max(Fraction(a) - b for a, b in zip(proof.facts["objectives"], best, strict=False))
        assert worst <= Fraction(proof.facts["list_gap"]) + slack
    assert refused > 100
    assert covered > 100


def test_the_assignment_of_an_answer_is_the_first_of_its_list() -> None:
    problem, solution, proof = answered(np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]), 3)
    assert proof.holds
    solution.arrays["assignment"] = solution.arrays["assignments"][1]
    assert certify(problem, solution).holds is False


def test_a_list_that_leaves_out_a_better_one_is_no_optimum() -> None:
    """The second best is dropped, and the parts that came from it: what is left claims to be the first four."""
    cost = np.array([[1, 5, 9], [6, 2, 8], [9, 7, 3]])
    problem, solution, _ = answered(cost, 5)
    shorter = CARD.build({"cost": cost}, CARD.options(k_best=4))
    keep = [q for q in range(5) if q != 1 and solution.evidence["origins"][q] != 1]
    place = {q: at for at, q in enumerate(keep)}
    solution.arrays["assignments"] = solution.arrays["assignments"][keep]
    for name in ("origins", "splits", "v"):
        solution.evidence[name] = solution.evidence[name][keep]
    solution.evidence["origins"] = np.array([place.get(q, -1) for q in solution.evidence["origins"].tolist()])
    solution.evidence["open_parts"] = solution.evidence["open_parts"][:0]
    solution.evidence["open_v"] = solution.evidence["open_v"][:0]
    proof = certify(shorter, solution)
    assert proof.termination == "converged" or not proof.holds
    assert problem.count == 5


def test_a_stopped_list_says_what_is_open() -> None:
    cost = np.random.default_rng(4).random((40, 40))
    problem = CARD.build({"cost": cost}, options := CARD.options(k_best=500))
    solution = CARD.solve(problem, options, Deadline(0))
    proof = certify(problem, solution)
    assert (proof.holds, solution.termination, len(solution.arrays["assignments"])) == (True, "time_limit", 1)


@pytest.mark.parametrize(
    ("inputs", "options", "field"),
    [
        ({"cost": [[[1, 2]]]}, {}, "k_best"),
        ({"cost": [[1, 2]]}, {"cost_limit": 1.0}, "cost_limit"),
        ({"cost": [[1, 2]]}, {"cardinality": 1}, "cardinality"),
        ({"cost": [[1, 2]], "reject_rows": [1]}, {}, "reject_rows"),
        ({"cost": [[1, 2]]}, {"method": "tree"}, "method"),
    ],
)
def test_wrong_input_is_named(inputs: dict[str, Any], options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as error:
        CARD.build({name: np.array(value) for name, value in inputs.items()}, CARD.options(k_best=2, **options))
    assert error.value.field == field


@pytest.mark.parametrize("maximize", [False, True])
def test_sums_that_round_to_the_same_are_in_their_exact_order(maximize: bool) -> None:
    above = np.nextafter(1.0, 2.0)
    cost = np.array([[above, 1.0], [above, above]]) * (-1 if maximize else 1)  # 2 above and 1 + above, both rounded up
    problem, solution, certificate = answered(cost, 2, maximize=maximize)
    assert certificate.facts["objectives"][0] == certificate.facts["objectives"][1]
    solution.arrays["assignments"] = solution.arrays["assignments"][::-1].copy()
    solution.arrays["assignment"] = solution.arrays["assignments"][0]
    found = certify(problem, solution)
    assert not found.holds
    assert "order" in found.proved
