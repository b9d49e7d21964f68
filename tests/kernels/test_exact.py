"""The third implementation agrees with the certificates where they are right, and refutes every claim that is not."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import Claim, Csr, recheck
from kernels.certificates.exact import transport
from kernels.certificates.exact.statement import dyadic
from tests.fuzz import oracles
from tests.oracles import quadratic as brute
from tests.oracles import transport as textbook
from tests.oracles.assignment import brute_force

COST = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
ARRAYS = {"assignment": np.array([1, 0, 2]), "u": np.array([1, 0, 1]), "v": np.array([2, 0, 1])}
NO_ROOM = {"hall_rows": np.array([0]), "hall_cols": np.array([0])}
LAP = Claim("optimal", 5, 5, 0, 0.0, 0, ARRAYS)


def refuted(solver: str, inputs: Mapping[str, Any], claim: Claim, options: Mapping[str, Any] | None = None) -> set[str]:
    return {one.name for one in recheck(solver, inputs, options or {}, claim) if one.holds is not True}


def test_a_right_answer_has_nothing_refuted() -> None:
    assert refuted("lap", {"cost": COST}, LAP) == set()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"objective": 4}, {"objective"}),
        ({"bound": 6}, {"bound"}),
        ({"bound": 4, "gap_abs": 1}, {"optimal", "relative gap"}),
        ({"bound": 4}, {"gap"}),
        ({"arrays": {**ARRAYS, "assignment": np.array([1, 1, 2])}}, {"answer"}),
        ({"arrays": {**ARRAYS, "assignment": np.array([1, 0, 3])}}, {"answer"}),
        ({"arrays": {**ARRAYS, "assignment": np.array([0, 1, 2])}}, {"objective", "gap"}),
        ({"arrays": {**ARRAYS, "v": np.array([2, 1, 1]), "u": np.array([1, 1, 1])}}, {"bound"}),
        ({"arrays": {**ARRAYS, "v": np.array([np.nan, 0, 1]), "u": np.full(3, np.inf)}}, {"bound"}),
        ({"termination": "infeasible", "arrays": NO_ROOM}, {"infeasible"}),
    ],
)  # fmt: skip
def test_a_wrong_claim_is_refuted(change: dict[str, Any], where: set[str]) -> None:
    assert refuted("lap", {"cost": COST}, replace(LAP, **change)) == where


def test_one_ulp_too_much_is_too_much() -> None:
    cost = np.array([[0.1, 0.7], [0.4, 0.2]])
    exact = Fraction(0.1) + Fraction(0.2)
    below = float(exact) if Fraction(float(exact)) <= exact else float(np.nextafter(float(exact), 0))
    above = float(np.nextafter(below, 1))
    gap = float(np.nextafter(float(exact - Fraction(below)), 1))
    arrays = {"assignment": np.array([0, 1]), "u": np.array([0.1, 0.2]), "v": np.zeros(2)}
    claim = Claim("optimal", above, below, gap, gap / above * 1.01, 0, arrays)
    assert refuted("lap", {"cost": cost}, claim) == set()
    assert refuted("lap", {"cost": cost}, replace(claim, bound=above)) == {"bound"}
    assert refuted("lap", {"cost": cost}, replace(claim, gap_abs=0.0)) >= {"gap"}


def test_a_batch_says_what_holds_of_each_problem() -> None:
    cost = np.stack([COST, COST + 1])
    arrays = {"assignment": np.stack([ARRAYS["assignment"]] * 2), "u": np.stack([ARRAYS["u"], ARRAYS["u"] + 1]),
              "v": np.stack([ARRAYS["v"]] * 2)}  # fmt: skip
    listed = {"terminations": ["optimal"] * 2, "objectives": [5, 8], "bounds": [5, 8], "gaps": [0, 0]}
    claim = Claim("optimal", 13, 13, 0, 0.0, 0, arrays, {"problems": listed})
    assert refuted("lap", {"cost": cost}, claim) == set()
    listed["bounds"] = [5, 9]
    assert "problem 1: bound" in refuted("lap", {"cost": cost}, claim)


def test_an_auction_on_a_graph_with_reject() -> None:
    graph = Csr(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([7, 4, 6]), (2, 2))
    inputs = {"benefit": graph, "reject": np.array([1, 9])}
    arrays = {"assignment": np.array([0, -1]), "prices": np.array([0, 0]), "profits": np.array([7, 9])}
    claim = Claim("optimal", 16, 16, 0, 0.0, 0, arrays)
    assert refuted("auction", inputs, claim) == set()
    assert refuted("auction", inputs, replace(claim, bound=15)) == {"bound"}
    assert refuted("auction", inputs, replace(claim, arrays={**arrays, "assignment": np.array([1, 1])})) == {"answer"}
    assert "gap reached" in refuted("auction", inputs, replace(claim, termination="gap_reached"))


def test_an_auction_of_points_allows_what_distances_lose() -> None:
    x, y = np.array([[0.1, 0.2], [0.7, 0.3]]), np.array([[0.3, 0.1], [0.2, 0.9]])
    pair = -float(np.hypot(0.2, 0.1)), -float(np.hypot(0.5, 0.6))
    bound = float(np.nextafter(sum(pair), 0))
    arrays = {"assignment": np.array([0, 1]), "prices": np.zeros(2), "profits": np.array(pair)}
    claim = Claim("time_limit", sum(pair), bound, 1e-9, 1e-8, 0, arrays)
    assert "objective" not in refuted("auction", {"x": x, "y": y}, claim, {"metric": "euclidean"})
    off = replace(claim, objective=sum(pair) + 1e-12)
    assert "objective" in refuted("auction", {"x": x, "y": y}, off, {"metric": "euclidean"})


def test_quadratic_optima_are_found_by_trying_all() -> None:
    rng = np.random.default_rng(1)
    flow, distance = rng.integers(0, 9, (2, 5, 5))
    best = int(brute.optimum(flow, distance))
    p = next(p for p in _permutations(5) if brute.objective(flow, distance, p) == best)
    claim = Claim("optimal", best, best, 0, 0.0, 0, {"permutation": np.array(p)})
    assert refuted("qap", {"flow": flow, "distance": distance}, claim) == set()
    assert refuted("qap", {"flow": flow, "distance": distance}, replace(claim, bound=best + 1)) >= {"bound"}
    fixed = {"fixed": {str(p.index(0)): 1}}
    assert "answer" not in refuted("qap", {"flow": flow, "distance": distance}, claim, fixed)
    assert "permitted" in refuted("qap", {"flow": flow, "distance": distance}, claim, fixed)


def test_a_large_quadratic_bound_is_gilmore_lawlers_or_not_told() -> None:
    rng = np.random.default_rng(2)
    flow, distance = rng.integers(0, 9, (2, 10, 10))
    value = int(brute.objective(flow, distance, range(10)))
    claim = Claim("time_limit", value, 0, value, 1.0, 0, {"permutation": np.arange(10)})
    assert refuted("qap", {"flow": flow, "distance": distance}, claim) == set()
    told = recheck("qap", {"flow": flow, "distance": distance}, {}, replace(claim, bound=value, gap_abs=0))
    assert [one.holds for one in told if one.name == "bound"] == [None]


def _permutations(n: int) -> Any:
    from itertools import permutations

    return permutations(range(n))


@pytest.mark.parametrize("reference", ["product", "uniform"])
@pytest.mark.parametrize("reg_m", [(1.0, 0.5), ("inf", 0.5), (2.0, "inf")])
def test_transport_agrees_with_the_textbook(reference: str, reg_m: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(3)
    cost, a, b = rng.random((4, 5)), rng.random(4), rng.random(5)
    strengths = (float(reg_m[0]), float(reg_m[1]))
    plan = textbook.solve(cost, a, b, 0.1, strengths, reference)
    value = textbook.value(plan, cost, a, b, 0.1, strengths, reference)
    options = {"reg": 0.1, "reg_m": reg_m, "reference": reference}
    with localcontext(transport.DIGITS):
        problem = transport.Problem({"cost": cost, "a": a, "b": b}, options)
        entries = {(i, j): Decimal(plan[i, j].item()) for i, j in np.ndindex(plan.shape)}
        total = transport.primal(problem, entries)
    assert float(total.low) == pytest.approx(value, rel=1e-13)
    assert total.low < total.high < total.low + Fraction(1, 10**35)


def test_transport_duals_bound_and_are_strict() -> None:
    cost, a, b = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5, 0.5]), np.array([0.4, 0.6])
    f, g = np.array([0.01, -0.02]), np.array([0.03, 0.0])
    options = {"reg": 0.5, "reg_m": 1.0}
    with localcontext(transport.DIGITS):
        found = transport.dual(transport.Problem({"cost": cost, "a": a, "b": b}, options), f, g)
    assert found is not None
    plan = np.outer(a, b)
    bound = float(found.low)
    bound = bound if Fraction(bound) <= found.low else float(np.nextafter(bound, -1))
    claim = Claim("time_limit", 0.5, bound, 1.0, 3.0, 0.0, {"plan": plan, "f": f, "g": g})
    assert refuted("uot", {"cost": cost, "a": a, "b": b}, claim, options) == set()
    less = replace(claim, gap_rel=1.0)  # of a gap of 1 and an objective of 0.5
    assert refuted("uot", {"cost": cost, "a": a, "b": b}, less, options) == {"relative gap"}
    for objective, name in ((0.501, "objective close"), (0.498, "objective")):
        off = replace(claim, objective=objective)
        assert refuted("uot", {"cost": cost, "a": a, "b": b}, off, options) == {name}
    raised = replace(claim, bound=float(np.nextafter(bound, 1)))
    assert "bound" in refuted("uot", {"cost": cost, "a": a, "b": b}, raised, options)
    heavy = replace(claim, arrays={**claim.arrays, "plan": 1.1 * plan})
    exact = refuted("uot", {"cost": cost, "a": a, "b": b}, heavy, {**options, "reg_m": (1.0, "inf")})
    assert "violation" in exact
    bad = replace(claim, arrays={"plan": -plan, "f": f, "g": g})
    assert refuted("uot", {"cost": cost, "a": a, "b": b}, bad, options) == {"answer"}


@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3), (5, 11), (11, 11)])
@pytest.mark.parametrize("forbidden", [0.0, 0.4, 0.9])
def test_both_assignment_oracles_agree(shape: tuple[int, int], forbidden: float) -> None:
    rng = np.random.default_rng([4, *shape, int(10 * forbidden)])
    cost = rng.integers(-9, 9, shape).astype(float)
    cost[rng.random(shape) < forbidden] = np.inf
    (table,), _ = dyadic(cost)
    turned = table if shape[0] <= shape[1] else [list(line) for line in zip(*table, strict=True)]
    assert oracles._by_sets(turned) == oracles._by_paths(turned) == oracles.least_assignment(table)
    if max(shape) < 8:
        assert oracles.least_assignment(table) == brute_force(cost)


def test_masses_are_carried_where_entries_allow() -> None:
    a, b = [Fraction(1), Fraction(2)], [Fraction(2), Fraction(1)]
    assert oracles.can_be_carried(a, b, [[True, True], [True, True]], True, True)
    assert oracles.can_be_carried(a, b, [[False, True], [True, False]], True, True)
    assert not oracles.can_be_carried(a, b, [[True, False], [False, True]], True, True)
    assert oracles.can_be_carried(a, b, [[True, False], [False, True]], True, False)
    assert not oracles.can_be_carried(a, b, [[True, False], [True, False]], False, True)


def test_a_tree_that_was_not_rechecked_is_not_told() -> None:
    rng = np.random.default_rng(5)
    flow, distance = rng.integers(0, 9, (2, 9, 9))
    value = int(brute.objective(flow, distance, range(9)))
    facts = {"verified": False, "claimed_bound": value}
    claim = Claim("optimal", value, 0, value, 1.0, 0, {"permutation": np.arange(9)}, facts)
    told = recheck("qap", {"flow": flow, "distance": distance}, {}, claim)
    assert [one.holds for one in told if one.name == "optimal"] == [None]
    verified = recheck("qap", {"flow": flow, "distance": distance}, {}, replace(claim, facts={"verified": True}))
    assert [one.holds for one in verified if one.name == "optimal"] == [False]


def test_sides_that_are_met_to_the_last_bit_are_not_off() -> None:
    """Masses of more than 60 decimal digits: what the digits lose is not the plan's."""
    masses = np.array([float.fromhex("0x1.f4471d4989b04p-30"), float.fromhex("0x1.b7cdfd9d7bdbbp-33")])
    problem = transport.Problem({"cost": np.ones((1, 2)), "a": np.ones(1), "b": masses}, {"reg_m": [1.0, "inf"]})
    with localcontext(transport.DIGITS):
        plan = transport.returned_plan(problem, {"plan": masses[None], "f": np.zeros(1), "g": np.zeros(2)})
        assert transport.residual(problem, plan) == 0
        plan[0, 1] += Decimal("5e-25")
        assert 4e-25 < transport.residual(problem, plan) < 6e-25
