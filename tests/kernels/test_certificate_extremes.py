"""Problems at the ends of float64's range, and answers made for them: no certificate may say what is false."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Certificate, Claim, Csr, Deadline, Solution, Statement, Termination, recheck
from kernels.certificates.gpu.gpu_units import units_of
from kernels.certificates.rounded import sum_down, sum_up
from kernels.problems import UnbalancedTransport
from kernels.proving import solve_and_prove

Options = dict[str, Any]


def stated(solver: str, inputs: Options, options: Options, solution: Solution) -> Certificate:
    """What the certificate says of an answer."""
    card = SOLVERS[solver]
    return card.certify(card.build(inputs, card.options(**options)), solution)


def claimed(solution: Solution, found: Certificate) -> Claim:
    """What a document of both says."""
    word = str(found.termination or solution.termination)
    numbers = found.objective, found.bound, found.gap_abs, found.gap_rel, found.max_violation
    return Claim(word, *numbers, solution.arrays, {**solution.facts, **found.facts}, found.proved)


def false(solver: str, inputs: Options, options: Options, solution: Solution, found: Certificate) -> list[Statement]:
    """What `allot verify` finds wrong in that."""
    return [one for one in recheck(solver, inputs, options, claimed(solution, found)) if one.holds is False]


ONE: Options = {"cost": np.zeros((2, 1)), "a": np.array([1e12, 2e12]), "b": np.zeros(1)}
BOTH: Options = {"cost": np.array([[1.0], [2.0]]), "a": np.array([1e-12, 2e12]), "b": np.ones(1)}


@pytest.mark.parametrize("inputs", [ONE, BOTH])
@pytest.mark.parametrize("reg_m", [1e-300, 1.2e-20, 1.23456e-20, 1e-15, (1e-20, 1e-310)])
def test_strengths_far_below_reg_are_not_rounded_into_another_problem(inputs: Options, reg_m: Any) -> None:
    """In units in which reg is near 1 they are subnormal, or 0: the optimum of ONE is their sum over all mass."""
    card, asked = SOLVERS["uot"], {"reg": 1e300, "reg_m": reg_m}
    options = card.options(**asked)
    solution, found = solve_and_prove(card, card.build(inputs, options), options, Deadline(60), "cpu")
    assert found.holds
    assert not false("uot", inputs, asked, solution, found)


def test_potentials_below_nothing_bound_nothing_where_a_strength_is_next_to_nothing() -> None:
    arrays = {"f": np.array([-1e280, 0.0]), "g": np.zeros(1), "plan": np.zeros((2, 1))}
    asked = {"reg": 1e300, "reg_m": 1e-300}
    found = stated("uot", BOTH, asked, Solution(Termination.CONVERGED, "none", arrays))
    assert found.bound is None


@pytest.mark.parametrize(("cost", "reg_m"), [(3e8, 1e8), (3e8, 1.0), (1e10, 1e17), (1e10, "inf")])
@pytest.mark.parametrize("potential", [math.inf, 1.5e8, -1.5e8, math.nan])
def test_costs_far_above_reg_are_not_forbidden(cost: float, reg_m: Any, potential: float) -> None:
    """Where reg is near 1 they would be infinite. All mass left behind is then 2e8, which a plan of some mass beats."""
    inputs = {"cost": np.array([[cost]]), "a": np.ones(1), "b": np.ones(1)}
    asked = {"reg": 1e-300, "reg_m": reg_m}
    arrays = {"f": np.full(1, potential), "g": np.full(1, potential), "plan": np.zeros((1, 1))}
    solution = Solution(Termination.GAP_REACHED, "none", arrays, facts={"tolerance": 1e-6})
    found = stated("uot", inputs, asked, solution)
    assert found.bound is None
    assert found.termination is Termination.CONVERGED
    options = SOLVERS["uot"].options(**asked)
    problem = SOLVERS["uot"].build(inputs, options)
    assert isinstance(problem, UnbalancedTransport)
    units = units_of(problem)
    assert units is not None
    assert not units.fits(problem)
    assert solve_and_prove(SOLVERS["uot"], problem, options, Deadline(60), "cpu")[1].holds


@pytest.mark.parametrize("marginals", ["kl", "tv", "l2"])
def test_a_plan_at_such_costs_is_one(marginals: str) -> None:
    """Were they infinite in other units, it would have mass where none may be."""
    inputs = {"cost": np.array([[3e8]]), "a": np.ones(1), "b": np.ones(1)}
    asked = {"reg": 1e-300, "reg_m": 2e8, "marginals": marginals}
    arrays = {"f": np.full(1, 2e8), "g": np.full(1, 2e8), "plan": np.full((1, 1), 0.25)}
    found = stated("uot", inputs, asked, Solution(Termination.CONVERGED, "none", arrays))
    assert found.holds
    assert found.bound is None


@pytest.mark.parametrize("price", [2.8e306, -2.8e306])
def test_prices_of_a_list_whose_sums_leave_float64_are_none(price: float) -> None:
    """The list's parts were bounded by minus infinity, of which no gap could be worked out: a crash."""
    inputs, asked = {"cost": np.random.default_rng(0).random((130, 130))}, {"k_best": 2}
    card = SOLVERS["lap"]
    options = card.options(**asked)
    solution = card.solve(card.build(inputs, options), options, Deadline(60), "cpu")
    evidence = {name: solution.evidence[name] for name in ("origins", "splits")}
    prices = np.full((2, 130), price)
    prices[:, 1::2] *= -1
    found = stated("lap", inputs, asked, replace(solution, evidence={**evidence, "v": prices}))
    assert found.holds
    assert found.termination is Termination.CONVERGED
    assert found.bound is not None
    assert math.isfinite(found.bound)


def test_dear_costs_that_cancel_do_not_hide_a_better_permutation() -> None:
    """1e-9 of what is paid was 2 here: an objective of 1.1 was called optimal beside a bound of 0.59985."""
    cost = np.zeros((9, 9, 9, 9))
    for place in range(9):
        cost[0, place, 0, place], cost[1, place, 1, place] = 1e9, -1e9
        cost[2, place, 2, place] = 0.6 if place == 0 else 1.1
    none: Options = {"rows": np.zeros((9, 9, 9), np.int64), "columns": np.zeros((9, 9, 9), np.int64)}
    none |= {"prices": np.zeros(9, np.int64), "exponent": np.array([12])}
    for permutation in ([0, 1, 2], [1, 2, 0]):
        arrays = {"permutation": np.array([*permutation, *range(3, 9)]), **none}
        solution = Solution(Termination.OPTIMAL, "none", arrays)
        found = stated("lawler", {"cost": cost}, {}, solution)
        assert found.termination is Termination.CONVERGED
        assert not false("lawler", {"cost": cost}, {}, solution, found)
        claim = replace(found, termination=None)
        assert {one.name for one in false("lawler", {"cost": cost}, {}, solution, claim)} == {"optimal"}


@pytest.mark.parametrize(("reg", "dim"), [(1e-9, 1), (1e-10, 3), (1e-11, 1)])
def test_second_words_of_exponents_are_squared(reg: float, dim: int) -> None:
    """Potentials of 1e9 reg and more leave second words of 1e-7, whose squares are more than all errors stated."""
    rng = np.random.default_rng(dim)
    inputs = {"x": rng.random((3, dim)), "y": np.tile(rng.random(dim), (2, 1)), "a": np.array([0.25, 0.25, 0.5])}
    asked = {"reg": reg, "reg_m": "inf", "output": "potentials"}
    distances = ((inputs["x"] - inputs["y"][0]) ** 2).sum(axis=1)
    for _ in range(8):  # each leaves another remainder
        arrays = {"f": distances + 3.0 * (1 + rng.random(3) * 1e-16), "g": np.full(2, -3.0) + reg * rng.random(2)}
        solution = Solution(Termination.CONVERGED, "none", arrays)
        found = stated("uot", inputs, asked, solution)
        assert not false("uot", inputs, asked, solution, found)


def test_distances_whose_squares_underflow_are_not_0() -> None:
    """Beyond 8 dimensions they are worked out from norms, which are 0 here."""
    rng = np.random.default_rng(0)
    inputs = {"x": rng.random((2, 12)) * 1e-299, "a": np.array([0.8, 0.3]), "b": np.array([0.2, 0.9])}
    inputs["y"] = np.tile(inputs["x"][0], (2, 1))
    asked = {"reg": 1e-302, "reg_m": "inf", "metric": "euclidean", "output": "potentials"}
    solution = Solution(Termination.CONVERGED, "none", {"f": np.zeros(2), "g": np.zeros(2)})
    found = stated("uot", inputs, asked, solution)
    assert found.max_violation > 0.5
    assert not false("uot", inputs, asked, solution, found)


def test_the_plan_of_zeros_is_one_where_there_is_no_mass() -> None:
    inputs = {"cost": np.zeros((1, 2)), "a": np.zeros(1), "b": np.zeros(2)}
    asked = {"reg": 1.0, "reg_m": "inf", "reference": "uniform"}
    arrays = {"f": np.zeros(1), "g": np.zeros(2), "plan": np.zeros((1, 2))}
    assert not stated("uot", inputs, asked, Solution(Termination.INFEASIBLE, "none", arrays)).holds


EXACT: Options = {"cost": np.array([[1.0, 2.0], [3.0, 1.0]]), "a": np.array([0.5, 0.5]), "b": np.array([0.5, 0.5])}


def test_a_plan_beyond_float64_misses_its_sides_by_more_than_nothing() -> None:
    """2e308 was stated as a violation of 0, and the mass as an infinity; the bound had 310 digits."""
    asked = {"method": "exact", "reg_m": "inf"}
    arrays = {"plan": np.array([[1e308, 0.0], [1e308, 0.0]]), "f": np.zeros(2), "g": np.array([0.0, 1.7e308])}
    found = stated("uot", {**EXACT, "b": np.array([1.0, 0.0]) * 8, "a": np.full(2, 4.0)}, asked,
                   Solution(Termination.OPTIMAL, "none", arrays))  # fmt: skip
    assert found.max_violation == math.inf
    assert found.facts["mass"] is None
    assert found.objective is None
    assert found.bound is None


@pytest.mark.parametrize("reg_m", ["inf", ["inf", "inf"], None])
def test_verify_reads_rows_that_show_that_there_is_no_plan(reg_m: Any) -> None:
    """A strength of "inf" was no number to it. Rows that are named twice, once from the end, show nothing."""
    inputs = {**EXACT, "cost": np.array([[1.0, 2.0], [np.inf, 1.0]]), "a": np.array([0.4, 0.6])}
    asked = {"method": "exact"} | ({} if reg_m is None else {"reg_m": reg_m})
    found = Solution(Termination.INFEASIBLE, "none", {"hall_rows": np.array([1])})
    certificate = stated("uot", inputs, asked, found)
    assert certificate.holds
    assert all(one.holds for one in recheck("uot", inputs, asked, claimed(found, certificate)))
    twice = replace(found, arrays={"hall_rows": np.array([-1, 1])})
    inputs["a"] = np.array([0.6, 0.4])  # there is a plan
    assert not stated("uot", inputs, asked, twice).holds
    said = recheck("uot", inputs, asked, claimed(twice, certificate))
    assert {one.name: one.holds for one in said}["infeasible"] is False


@pytest.mark.parametrize("asked", [{"method": "exact"}, {"method": "exact", "mass_share": 1.0}])
@pytest.mark.parametrize(("rows", "columns"), [([0, 0, 1], [0, 0, 1]), ([0, -1], [0, 1]), ([0, 1], [0, -1])])
def test_no_entry_of_a_plan_is_listed_twice_or_from_the_end(asked: Options, rows: Any, columns: Any) -> None:
    """Of two masses at one place `allot verify` took the last, and a place from the end for another."""
    values = np.full(len(rows), 0.5)
    arrays = {"entry_rows": np.array(rows), "entry_columns": np.array(columns), "entry_values": values}
    arrays |= {"f": np.zeros(2), "g": np.zeros(2)}
    solution = Solution(Termination.OPTIMAL, "none", arrays)
    assert not stated("uot", EXACT, asked, solution).holds
    claim = Claim("optimal", 1.0, 1.0, 0.0, 0.0, 0.0, arrays)
    assert any(one.name == "answer" and not one.holds for one in recheck("uot", EXACT, asked, claim))


@pytest.mark.parametrize(("rows", "columns"), [([0, 0], [0, 0]), ([0, 1], [0, -1]), ([-1, 1], [0, 1]), ([2], [0])])
def test_nor_beside_potentials(rows: Any, columns: Any) -> None:
    asked = {"reg": 1.0, "reg_m": 1.0, "output": "potentials"}
    arrays = {"entry_rows": np.array(rows), "entry_columns": np.array(columns)}
    arrays |= {"entry_values": np.full(len(rows), 0.25), "f": np.zeros(2), "g": np.zeros(2)}
    solution = Solution(Termination.CONVERGED, "none", arrays)
    assert not stated("uot", EXACT, asked, solution).holds
    claim = Claim("converged", 1.0, 0.0, 1.0, 1.0, 0.0, arrays)
    said = recheck("uot", EXACT, asked, replace(claim, facts={"reg": 1.0, "reg_m": [1.0, 1.0]}))
    assert any(one.name == "answer" and not one.holds for one in said)
    none = {"entry_rows": np.array([0, -1]), "entry_columns": np.array([1, -1]), "entry_values": np.array([0.1, 0.0])}
    assert stated("uot", EXACT, asked, replace(solution, arrays=arrays | none)).holds


@pytest.mark.parametrize("told", [10**400, "x", True, math.nan, math.inf, None, [1]])
def test_a_tolerance_that_is_no_number_is_reached_by_nothing(told: Any) -> None:
    """An integer beyond float64 raised OverflowError, a text TypeError."""
    benefit = np.array([[1.0, 2.0], [3.0, 5.0]])
    arrays = {"assignment": np.array([1, 0]), "prices": np.zeros(2), "profits": np.zeros(2)}
    found = stated("auction", {"benefit": benefit}, {},
                   Solution(Termination.GAP_REACHED, "none", arrays, facts={"epsilon": told}))  # fmt: skip
    assert found.termination is Termination.CONVERGED
    for asked in ({"mass": 0.5}, {"mass": 0.5, "method": "exact"}, {"reg_m": 1.0}, {"reg_m": 1.0, "marginals": "tv"}):
        plan = {"plan": np.full((2, 2), 0.125), "f": np.full(2, -50.0), "g": np.full(2, -50.0)}
        solution = Solution(Termination.GAP_REACHED, "none", plan, facts={"tolerance": told})
        assert stated("uot", EXACT, asked, solution).termination is Termination.CONVERGED, asked


def test_masses_whose_product_underflows_hold_exponentials_that_do_not() -> None:
    """P(f, g) is 1e-300 here, a b 1e-600: with a P of 0 the dual value was a part in 700 too large."""
    graph = Csr(np.array([0, 1]), np.array([0]), np.array([0.0]), (1, 1))
    inputs = {"cost": graph, "a": np.array([1e-300]), "b": np.array([1e-300])}
    asked = {"reg": 1.0, "reg_m": "inf"}
    for potential in (690.7755279, 690.8, 700.0, 600.0):
        arrays = {"f": np.array([potential]), "g": np.zeros(1), "entry_values": np.array([1e-300])}
        arrays |= {"row_marginal": np.array([1e-300]), "column_marginal": np.array([1e-300])}
        solution = Solution(Termination.CONVERGED, "none", arrays, facts={"reg": 1.0, "reg_m": ["inf", "inf"]})
        found = stated("uot", inputs, asked, solution)
        assert found.holds
        assert found.bound is not None
        said = {one.name: one.words for one in false("uot", inputs, asked, solution, found)}
        assert "bound" not in said, said


def test_a_dual_value_beyond_float64_is_none() -> None:
    """exp(612) of a mass of 1e100: infinite, and ValueError came of the sum."""
    inputs = {"cost": np.array([[3.8]]), "a": np.array([1e100]), "b": np.array([0.5])}
    arrays = {"f": np.array([-0.612]), "g": np.array([0.38]), "plan": np.array([[1e-166]])}
    asked = {"reg": 0.01, "reg_m": 1e-3}
    found = stated("uot", inputs, asked, Solution(Termination.GAP_REACHED, "none", arrays))
    assert found.holds
    assert found.bound is None


@pytest.mark.parametrize("add", [sum_down, sum_up])
def test_infinite_terms_are_added_as_ieee_754_does(add: Any) -> None:
    assert add([math.inf, 1.0]) == math.inf
    assert add([1e308, 1e308, -math.inf]) == -math.inf
    assert add([math.inf, 1e308, -math.inf, 1e308]) == (math.inf if add is sum_up else -math.inf)
    assert math.isnan(add([math.nan, 1.0]))
    assert add([1e308, 1e308, -1e308]) == 1e308
