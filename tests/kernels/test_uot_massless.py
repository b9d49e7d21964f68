"""Transport where a side has no mass: the plan is zero, unless the other side has mass and must be met."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Device, Termination
from kernels.certificates.exact.every import recheck
from kernels.certificates.transport import certify
from kernels.problems import InvalidProblem
from kernels.solution import Solution
from kernels.uot import TransportOptions
from tests.fuzz import oracles
from tests.fuzz.case import Case
from tests.fuzz.judge import claim_of, judge
from tests.fuzz.outcome import run as run_case
from tests.kernels.test_uot import run

COST = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0]])
FORMS: dict[str, dict[str, Array]] = {
    "cost": {"cost": COST},
    "forbidden": {"cost": np.where(COST > 1, np.inf, COST)},
    "points": {"x": np.array([[0.0], [1.0]]), "y": np.array([[0.0], [1.0], [2.0]])},
}
SOME_A, SOME_B = np.array([0.5, 0.375]), np.array([0.25, 0.5, 1.0])
MASSES = {"a": (0 * SOME_A, SOME_B), "b": (SOME_A, 0 * SOME_B), "both": (0 * SOME_A, 0 * SOME_B)}
STRENGTHS = (2.0, (2.0, "inf"), ("inf", 3.0), "inf")


def _pair(reg_m: Any) -> list[float]:
    return [float(strength) for strength in (reg_m if isinstance(reg_m, tuple) else (reg_m, reg_m))]


def _cases() -> Iterator[Any]:
    for bare, reg_m, form in itertools.product(MASSES, STRENGTHS, FORMS):
        yield pytest.param(bare, reg_m, form, id=f"{bare}-{reg_m}-{form}")


@pytest.mark.parametrize(("bare", "reg_m", "form"), list(_cases()))
@pytest.mark.parametrize("output", ["plan", "potentials"])
@pytest.mark.parametrize("reference", ["product", "uniform"])
def test_a_side_without_mass_is_answered(
    bare: str, reg_m: Any, form: str, output: str, reference: str, device: Device
) -> None:
    """Of the formula every term but the penalties is 0 at P = 0, and KL(0 | q) is the sum of q."""
    a, b = MASSES[bare]
    given = {**FORMS[form], "a": a, "b": b}
    options = {"reg": 0.1, "reg_m": reg_m, "reference": reference, "output": output, "top_k": 1}
    _, solution, certificate = run(given, device, **options)
    pair = _pair(reg_m)
    owed = [bool(mass.any()) and np.isinf(strength) for mass, strength in zip((a, b), pair, strict=True)]
    assert certificate.holds
    if any(owed):
        assert solution.termination is Termination.INFEASIBLE
        assert certificate.objective is None
    else:
        value = sum(strength * mass.sum() for mass, strength in zip((a, b), pair, strict=True) if mass.any())
        assert solution.termination is Termination.GAP_REACHED
        assert (certificate.objective, certificate.bound, certificate.gap_abs) == (value, value, 0.0)
        assert certificate.max_violation == 0
        assert not solution.arrays.get("plan", np.zeros(1)).any()
    statements = recheck("uot", given, options, claim_of(solution, certificate))
    assert [statement.words for statement in statements if statement.holds is not True] == []


@pytest.mark.parametrize("method", ["fused", "log", "map-uot"])
def test_each_problem_of_a_batch_may_lack_mass(method: str, device: Device) -> None:
    a, b = np.stack([SOME_A, 0 * SOME_A, SOME_A, 0 * SOME_A]), np.stack([SOME_B, SOME_B, 0 * SOME_B, 0 * SOME_B])
    given = {"cost": np.stack([COST] * 4), "a": a, "b": b}
    case = Case("uot", "a side without mass", given, {"reg": 0.1, "reg_m": (2.0, "inf"), "method": method}, None)
    outcome = run_case(case, device, 5.0)
    assert judge(case, outcome) == []
    assert outcome.certificate is not None
    problems = outcome.certificate.facts["problems"]
    assert problems["terminations"] == ["gap_reached", "infeasible", "gap_reached", "gap_reached"]
    assert problems["objectives"][1:] == [None, 2 * SOME_A.sum(), 0.0]


def test_two_balanced_sides_in_a_batch_name_the_problem_whose_masses_differ() -> None:
    given = {"cost": np.stack([COST] * 2), "a": np.stack([0 * SOME_A, SOME_A]), "b": np.stack([SOME_B, SOME_B])}
    with pytest.raises(InvalidProblem, match=r"mass 1\.75 and a has 0\.875"):
        run(given, reg_m="inf")


@pytest.mark.parametrize("bare", ["a", "b"])
@pytest.mark.parametrize("corruption", ["plan", "subnormal", "nan", "infeasible"])
def test_what_a_massless_side_does_not_allow_is_refused(bare: str, corruption: str) -> None:
    a, b = MASSES[bare]
    problem, solution, _ = run({"cost": COST, "a": a, "b": b}, reg_m=2.0)
    if corruption == "infeasible":
        claim = Solution(Termination.INFEASIBLE, "support", {})
    else:
        plan = solution.arrays["plan"].copy()
        plan[1, 1] = {"plan": 0.25, "subnormal": 5e-324, "nan": np.nan}[corruption]
        claim = Solution(solution.termination, solution.method, {**solution.arrays, "plan": plan})
    assert not certify(problem, claim).holds


def test_infinite_potentials_bound_nothing_where_a_side_is_exact() -> None:
    options = TransportOptions.model_validate({"reg": 0.1, "reg_m": "inf"})
    problem = SOLVERS["uot"].build({"cost": COST, "a": 0 * SOME_A, "b": SOME_B}, options)
    arrays = {"f": np.full(2, np.inf), "g": np.full(3, np.inf), "plan": np.zeros(COST.shape)}
    certificate = certify(problem, Solution(Termination.GAP_REACHED, "support", arrays))
    assert certificate.bound is None
    assert certificate.objective is None


@pytest.mark.parametrize(("a", "b", "carried"), [([0], [1], False), ([1], [0], False), ([0], [0], True)])
def test_the_oracle_of_flows_knows_sides_without_mass(a: list[Any], b: list[Any], carried: bool) -> None:
    assert oracles.can_be_carried(a, b, [[True]], True, True) is carried
