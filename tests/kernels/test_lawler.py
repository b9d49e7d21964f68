"""Quadratic assignment with general costs: the optimum of small ones, agreement with qap, wrong inputs."""

import itertools
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, InvalidProblem, Progress, Solution, Termination
from kernels.lawler.ascent import RisingBound
from kernels.lawler.cpu import tabu
from kernels.lawler.form import form_of
from kernels.problems.lawler import LawlerAssignment, lawler_assignment, never_paid
from tests.instances.lawler import general, in_lawlers_form, products
from tests.instances.quadratic import asymmetric, symmetric

CARD = SOLVERS["lawler"]
QAP = SOLVERS["qap"]


def solved(
    cost: Any, start: Any = None, deadline: Deadline | None = None, **options: Any
) -> tuple[Solution, Certificate]:
    chosen = CARD.options(**options)
    inputs = {"cost": cost} | ({} if start is None else {"permutation0": np.array(start)})
    problem = CARD.build(inputs, chosen)
    solution = CARD.solve(problem, chosen, deadline or Deadline(60))
    certificate = CARD.certify(problem, solution)
    assert certificate.holds, certificate.proved
    return solution, certificate


def priced(cost: Array, p: Any) -> Any:
    m = len(cost)
    return sum(cost[i, p[i], k, p[k]].item() for i in range(m) for k in range(m))


def brute(cost: Array, fixed: dict[int, int] | None = None) -> list[Any]:
    n = cost.shape[1]
    every = itertools.permutations(range(n))
    return [priced(cost, p) for p in every if all(p[i] == q for i, q in (fixed or {}).items())]


@pytest.mark.parametrize("seed", range(40))
def test_small_ones_are_the_best_of_all_permutations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    m = int(rng.integers(1, n + 1))
    shape = (m, n, m, n)
    cost = rng.integers(-50, 50, shape) if seed % 2 else rng.normal(size=shape)
    fixed = {int(rng.integers(n)): int(rng.integers(n))} if seed % 3 == 0 else {}
    found = brute(cost, fixed)
    for maximize, best in ((False, min(found)), (True, max(found))):
        solution, certificate = solved(cost, maximize=maximize, fixed=fixed)
        assert certificate.objective == pytest.approx(best, rel=1e-14, abs=1e-14)
        assert certificate.termination is Termination.OPTIMAL
        assert certificate.bound == pytest.approx(best, rel=1e-14, abs=1e-14)
        assert certificate.bound is not None
        assert certificate.objective is not None
        assert (certificate.bound - certificate.objective) * (1 if maximize else -1) >= 0
        p = solution.arrays["permutation"]
        assert all(p[i] == q for i, q in fixed.items())


def test_seven_facilities_are_the_best_of_all_permutations() -> None:
    cost = general(7, 7)["cost"]
    assert solved(cost)[1].objective == min(brute(cost))


@pytest.mark.parametrize("n", [9, 10])
def test_the_search_finds_the_optimum_of_nine_and_ten(n: int) -> None:
    cost = general(n, n)["cost"]
    form = form_of(LawlerAssignment(zeroed(cost)))
    least, part = 2**62, np.array(list(itertools.permutations(range(n - 1))))
    for first in range(n):
        whole = np.concatenate((np.full((len(part), 1), first), part + (part >= first)), axis=1)
        total = form.singles[0, whole[:, 0]]
        for u in range(1, n):
            total = total + form.singles[u, whole[:, u]]
            for v in range(u):
                total = total + form.pairs[u * n + whole[:, u], v * n + whole[:, v]]
        least = min(least, int(total.min()))
    solution, certificate = solved(cost, rounds=40)
    assert certificate.objective == least
    assert certificate.bound is not None
    assert certificate.bound <= least
    assert solution.method == "tabu"


def zeroed(cost: Array) -> Array:
    copy = cost.copy()
    copy[never_paid(*cost.shape[:2])] = 0
    return copy


@pytest.mark.parametrize(("n", "sides"), [(9, "both"), (12, "both"), (12, "one"), (15, "none")])
def test_products_of_flow_and_distance_are_those_of_qap(n: int, sides: str) -> None:
    flow = symmetric(n, 10, 1) if sides != "none" else asymmetric(n, 0, 10, 1)
    distance = symmetric(n, 10, 2) if sides == "both" else asymmetric(n, 0, 10, 2)
    options = QAP.options(method="memetic", bounds=("gilmore-lawler",), rounds=40)
    problem = QAP.build({"flow": flow, "distance": distance}, options)
    theirs = QAP.certify(problem, QAP.solve(problem, options, Deadline(60)))
    _, ours = solved(in_lawlers_form(flow, distance), rounds=40)
    assert ours.objective == theirs.objective
    assert ours.bound is not None
    assert theirs.bound is not None
    assert ours.bound >= theirs.bound


def test_fewer_facilities_and_fixed_ones_are_those_of_qap() -> None:
    flow, distance = symmetric(9, 10, 3), symmetric(12, 10, 4)
    fixed = {0: 5, 10: 2}
    options = QAP.options(method="memetic", rounds=40, fixed=fixed)
    problem = QAP.build({"flow": flow, "distance": distance}, options)
    theirs = QAP.certify(problem, QAP.solve(problem, options, Deadline(60)))
    solution, ours = solved(in_lawlers_form(flow, distance), fixed=fixed, rounds=40)
    assert ours.objective == theirs.objective
    assert [solution.arrays["permutation"][i] for i in fixed] == list(fixed.values())


def test_a_maximum_is_the_minimum_of_the_negated_costs() -> None:
    for dtype in (np.int64, np.float64):
        cost = general(10, 11, dtype)["cost"]
        least, most = (solved(c, maximize=m, rounds=5)[1] for c, m in ((cost, False), (-cost, True)))
        for one, other in ((least.objective, most.objective), (least.bound, most.bound)):
            assert one is not None
            assert other is not None
            assert one == -other


def test_a_seed_gives_the_same_answer_again() -> None:
    cost = general(14, 14)["cost"]
    first, second = (solved(cost, seed=3, rounds=4, sweeps=3) for _ in range(2))
    np.testing.assert_array_equal(first[0].arrays["permutation"], second[0].arrays["permutation"])
    assert first[0].iterations == second[0].iterations
    assert first[1].bound == second[1].bound


def test_a_bound_on_its_way_changes_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when it ends, nor on how many threads: it only says when to stop."""
    cost = general(13, 13)["cost"]
    first = solved(cost, seed=5, rounds=8, starts=4, sweeps=150)[0]
    for threads, sweeps in ((1, 2), (1, 150), (3, 0)):
        monkeypatch.setattr("numba.get_num_threads", lambda n=threads: n)
        other = solved(cost, seed=5, rounds=8, starts=4, sweeps=sweeps)[0]
        np.testing.assert_array_equal(first.arrays["permutation"], other.arrays["permutation"])
        assert first.iterations == other.iterations


def test_it_ends_where_bound_and_objective_meet() -> None:
    solution, certificate = solved(products(6)["cost"])
    assert solution.termination is Termination.OPTIMAL
    flat = np.full((12, 12, 12, 12), 3)
    solution, certificate = solved(flat)
    assert (solution.termination, certificate.objective, certificate.bound) == (Termination.OPTIMAL, 432, 432)
    assert certificate.facts["verified"] is True


def test_a_start_a_target_and_no_time() -> None:
    cost = general(12, 12)["cost"]
    start = np.random.default_rng(0).permutation(12)
    solution, certificate = solved(cost, start, Deadline(0.0))
    np.testing.assert_array_equal(solution.arrays["permutation"], start)
    assert certificate.objective == priced(cost, start)
    assert solution.termination is Termination.TIME_LIMIT
    assert certificate.objective is not None
    target = certificate.objective - 1
    solution, certificate = solved(cost, start, target=target)
    assert solution.termination is Termination.GAP_REACHED
    assert certificate.objective is not None
    assert certificate.objective <= target
    solution, _ = solved(cost, start, Deadline(0.0), fixed={0: int(start[4]), 5: int(start[5])})
    moved = start.copy()
    moved[[0, 4]] = start[[4, 0]]
    np.testing.assert_array_equal(solution.arrays["permutation"], moved)


def test_a_start_of_fewer_facilities_is_filled_up() -> None:
    cost = general(9, 12)["cost"]
    solution, certificate = solved(cost, np.arange(3, 12), Deadline(0.0))
    assert solution.arrays["permutation"].tolist() == [*range(3, 12), 0, 1, 2]
    assert certificate.objective == priced(cost, range(3, 12))


def test_cancelling_ends_it_and_progress_never_worsens() -> None:
    heard: list[Progress] = []
    deadline = Deadline(60, cancelled=lambda: len(heard) > 3, on_progress=heard.append)
    solution, _ = solved(general(20, 20)["cost"], None, deadline)
    assert solution.termination is Termination.STOPPED
    costs = [one.objective for one in heard if one.objective is not None]
    assert costs == sorted(costs, reverse=True)
    shown = [one for one in heard if one.permutation is not None]
    assert shown
    for one in shown:
        assert one.objective == priced(general(20, 20)["cost"], one.permutation)


def test_every_exchange_is_priced_right() -> None:
    rng = np.random.default_rng(5)
    n = 9
    form = form_of(LawlerAssignment(zeroed(rng.integers(-99, 99, (n, n, n, n)))))
    for seed in range(20):
        p, best = rng.permutation(n), np.empty(n, np.int64)
        last = p.copy()
        state = np.array([seed + 1], np.uint64)
        done, cost = tabu.search(form.pairs, form.singles, last, best, state, 25, (1, 3), np.zeros(1, np.uint8))
        assert done == 25
        assert cost == tabu.cost_of(form.pairs, form.singles, best) == priced(form.problem.cost, best)
        # a descent ends where no exchange is better
        state = np.array([seed + 1], np.uint64)
        tabu.search(form.pairs, form.singles, p, best, state, 1000, (0, 0), np.zeros(1, np.uint8))
        found = priced(form.problem.cost, best)
        for u, v in itertools.combinations(range(n), 2):
            other = best.copy()
            other[[u, v]] = other[[v, u]]
            assert priced(form.problem.cost, other) >= found


def test_the_bound_rises_and_stays_below_every_permutation() -> None:
    cost = zeroed(general(7, 7)["cost"])
    ascent, least = RisingBound(form_of(LawlerAssignment(cost))), min(brute(cost))
    values = []
    for _ in range(30):
        ascent.step()
        assert ascent.value is not None
        values.append(ascent.value)
    assert values == sorted(values)
    assert values[-1] <= least
    assert values[-1] > least - 60


def test_what_is_never_paid_may_be_anything_but_no_number() -> None:
    cost = general(9, 9, np.float64)["cost"]
    never = never_paid(9, 9)
    plain = solved(np.where(never, 0, cost), rounds=3)[1].objective
    for value in (np.inf, -np.inf, 1e300, -7.0):
        assert solved(np.where(never, value, cost), rounds=3)[1].objective == plain
    with pytest.raises(InvalidProblem, match="nan at"):
        solved(np.where(never, np.nan, cost))


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "cost: is missing"),
    ({"flow": np.ones((2, 2))}, {}, "inputs of solver qap"),
    ({"cost": np.ones((3, 3))}, {}, "expected a 4-dimensional array"),
    ({"cost": np.ones((0, 2, 0, 2))}, {}, "empty"),
    ({"cost": np.ones((2, 3, 3, 2))}, {}, "m at most n"),
    ({"cost": np.ones((3, 2, 3, 2))}, {}, "m at most n"),
    ({"cost": np.ones((1, 41, 1, 41))}, {}, "at most 40"),
    ({"cost": np.full((2, 2, 2, 2), np.nan)}, {}, "nan"),
    ({"cost": np.full((2, 2, 2, 2), np.inf)}, {}, "inf"),
    ({"cost": np.full((2, 2, 2, 2), 2**60)}, {}, "2\\^61"),
    ({"cost": np.full((2, 2, 2, 2), -(2**63))}, {}, "2\\^61"),
    ({"cost": np.full((2, 2, 2, 2), 1e300)}, {}, "1e\\+300"),
    ({"cost": np.full((2, 2, 2, 2), 1e308)}, {}, "1e\\+300"),
    ({"cost": np.full((2, 2, 2, 2), 1j)}, {}, "complex"),
    ({"cost": np.ones((2, 2, 2, 2), bool)}, {}, "bool"),
    ({"cost": np.ones((2, 2, 2, 2))}, {"fixed": {0: 2}}, "fixed: sends 0 to 2"),
    ({"cost": np.ones((2, 2, 2, 2))}, {"fixed": {0: 1, 1: 1}}, "two facilities"),
    ({"cost": np.ones((2, 2, 2, 2)), "permutation0": np.array([0, 0])}, {}, "each of 0 to 1 once"),
    ({"cost": np.ones((2, 2, 2, 2)), "permutation0": np.array([0.0, 1.0])}, {}, "each of 0 to 1 once"),
    ({"cost": np.ones((2, 2, 2, 2)), "permutation0": np.array([0, 1, 2])}, {}, "each of 0 to 1 once"),
]


@pytest.mark.parametrize(("inputs", "options", "said"), WRONG)
def test_wrong_inputs_are_refused(inputs: dict[str, Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidProblem, match=said):
        CARD.build(inputs, CARD.options(**options))


def test_integers_beyond_what_the_bound_counts_in_stay_exact() -> None:
    rng = np.random.default_rng(9)
    small = rng.integers(-(2**54), 2**54, (5, 5, 5, 5))
    solution, certificate = solved(small)
    assert certificate.objective == min(brute(small))
    assert isinstance(certificate.objective, int)
    large = rng.integers(-(2**54), 2**54, (10, 10, 10, 10))
    solution, certificate = solved(large, rounds=3, sweeps=5)
    assert certificate.objective == priced(large, solution.arrays["permutation"])
    assert isinstance(certificate.bound, int)
    assert certificate.objective is not None
    assert certificate.bound <= certificate.objective


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e296])
def test_floats_of_any_size(scale: float) -> None:
    rng = np.random.default_rng(4)
    cost = rng.normal(size=(5, 5, 5, 5)) * scale
    cost[0, 0, 1, 1] = -5e-324
    certificate = solved(cost)[1]
    assert certificate.objective == pytest.approx(min(brute(cost)), rel=1e-12, abs=1e-322)
    cost = rng.normal(size=(9, 9, 9, 9)) * scale
    certificate = solved(cost, rounds=3, sweeps=5)[1]
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert certificate.bound <= certificate.objective


def test_the_problem_leaves_its_input_alone() -> None:
    cost = np.ones((3, 3, 3, 3))
    problem = lawler_assignment({"cost": cost}, maximize=False, fixed={})
    assert (cost == 1).all()
    assert (problem.cost[never_paid(3, 3)] == 0).all()
