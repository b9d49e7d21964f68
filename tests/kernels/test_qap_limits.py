"""Quadratic assignments under short limits, odd options, hard numbers: always an answer, never a forbidden pair."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Certificate, Deadline, InvalidProblem, Progress, Solution, Termination, solve_and_prove
from kernels.problems import QuadraticAssignment
from kernels.qap import QapOptions
from kernels.qap.bounds import lower as bounds
from kernels.qap.bounds.rlt1 import DualAscent
from kernels.qap.cpu.population import Population
from kernels.qap.form import penalised
from tests.instances import quadratic as instances
from tests.oracles import quadratic as oracle
from tests.oracles import quadratic_exact as exactly
from tests.workers.service import allowed

CARD = SOLVERS["qap"]
SMALL = {"flow": [[4, 4, 6], [8, 0, 1], [7, 8, 2]], "distance": [[2, 7, 3], [2, 7, 2], [3, 5, 4]]}
TINY = {"flow": [[0, 0.5, 0.25], [0.5, 0, 0.1], [0.25, 0.1, 0]], "distance": np.zeros((3, 3))}


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    CARD.warm_up("cpu")


def prove(
    inputs: Any, seconds: float | None = None, **options: Any
) -> tuple[QuadraticAssignment, Solution, Certificate]:
    chosen = CARD.options(**options)
    problem = CARD.build({name: np.asarray(matrix) for name, matrix in inputs.items()}, chosen)
    return problem, *solve_and_prove(CARD, problem, chosen, Deadline(seconds), "cpu")


@pytest.mark.parametrize("method", ["auto", "tabu", "2opt", "memetic"])
@pytest.mark.parametrize("chosen", ["auto", (), ("gilmore-lawler",), ("projection",), ("rlt1",)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_up_to_eight_facilities_are_proved_at_once(method: str, chosen: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    integers = {"flow": rng.integers(-9, 99, (n, n)), "distance": rng.integers(0, 99, (n, n))}
    for inputs in (integers, {name: matrix * 0.1 for name, matrix in integers.items()}):
        problem, solution, certificate = prove(inputs, 30.0, method=method, bounds=chosen)
        assert solution.timings_ms["solve"] < allowed(5000)
        assert solution.termination is Termination.OPTIMAL
        assert certificate.facts["verified"]
        best = oracle.optimum(problem.flow, problem.distance)
        assert certificate.objective == pytest.approx(best, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("inputs", [SMALL, TINY], ids=["integers", "zero distances"])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e-300])
def test_small_and_tiny_problems_end_with_a_proof(inputs: Any, scale: float) -> None:
    flow = np.asarray(inputs["flow"]) * scale if scale < 1 else inputs["flow"]
    for options in ({}, {"bounds": ("gilmore-lawler", "projection")}):
        _, solution, certificate = prove({**inputs, "flow": flow}, 10.0, **options)
        assert solution.termination is Termination.OPTIMAL
        assert certificate.facts["verified"]


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e-140, 1e140])
@pytest.mark.parametrize("empty", ["flow", "distance", "both", "neither"])
def test_zero_and_tiny_matrices_beyond_enumeration(empty: str, scale: float) -> None:
    rng = np.random.default_rng(1)
    flow, distance = rng.random((2, 11, 11)) * scale
    flow, distance = flow + flow.T, distance * 1.0
    flow, distance = flow * (empty not in ("flow", "both")), distance * (empty not in ("distance", "both"))
    _, solution, certificate = prove({"flow": flow, "distance": distance}, 10.0, rounds=1)
    assert certificate.holds
    assert certificate.bound is not None
    if empty == "neither":
        assert 0 < certificate.bound <= (certificate.objective or 0)
        assert solution.facts["bounds"].keys() == certificate.facts["bounds_checked"].keys()
        claims, checked = solution.facts["bounds"], certificate.facts["bounds_checked"]
        assert checked["projection"] == pytest.approx(claims["projection"], rel=1e-9)
    else:
        assert solution.termination is Termination.OPTIMAL
        assert certificate.objective == certificate.bound == 0
        assert certificate.facts["verified"]


@pytest.mark.parametrize("method", ["auto", "tabu", "2opt", "memetic"])
@pytest.mark.parametrize("starts", [1, 2])
def test_a_population_of_one_is_bred(method: str, starts: int) -> None:
    _, solution, certificate = prove(instances.middling(), rounds=4, starts=starts, method=method, population=True)
    assert certificate.holds
    assert 1 <= len(solution.arrays["population"]) <= starts
    lone = Population(9, 1, np.random.default_rng(0), 5, 0)
    lone.insert([(1, np.arange(9))])
    assert sorted(lone.breed().tolist()) == list(range(9))


@pytest.mark.parametrize("seconds", [0.0, 0.15])
@pytest.mark.parametrize("exponent", [20, 52, 60, 61])
@pytest.mark.parametrize("seed", range(3))
def test_no_forbidden_pair_is_used_near_the_limit_of_int64(exponent: int, seconds: float, seed: int) -> None:
    n = 12
    rng = np.random.default_rng(seed)
    keep = rng.permutation(n)
    linear = rng.integers(-9, 9, (n, n)).astype(float)
    linear[rng.random((n, n)) < 0.7] = np.inf
    linear[np.arange(n), keep] = 5
    largest = 2**exponent // (2 * n * n)
    flow, distance = rng.integers(largest // 2, largest, (n, n)), rng.integers(0, 3, (n, n))
    for start in ({}, {"permutation0": rng.permutation(n)}):
        problem, solution, certificate = prove({"flow": flow, "distance": distance, "linear": linear, **start}, seconds)
        assert certificate.holds
        assert problem.allows(solution.arrays["permutation"])
        assert certificate.objective == problem.objective(solution.arrays["permutation"])
        assert certificate.bound is not None
        assert certificate.bound <= certificate.objective


@pytest.mark.parametrize("integer", [True, False])
def test_prices_of_forbidden_pairs_outweigh_everything_without_overflow(integer: bool) -> None:
    n = 6
    for size in (0, 1, 2**20, 2**27):
        flow = np.full((n, n), size, np.int64 if integer else np.float64)
        problem = QuadraticAssignment(flow, flow, None, forbidden=np.eye(n, dtype=bool))
        priced = penalised(problem)
        assert priced.linear is not None
        worst = priced.objective(np.arange(n))
        assert worst > 2 * abs(priced.objective(np.roll(np.arange(n), 1)))
        assert abs(worst) < 2**62 or not priced.integer


@pytest.mark.parametrize("method", ["auto", "tabu", "2opt", "memetic"])
@pytest.mark.parametrize("n", [9, 40, 120])
def test_limits_near_zero_are_kept_and_answered(n: int, method: Any) -> None:
    rng = np.random.default_rng(n)
    flow, distance = rng.random((2, n, n))
    for seconds in (0.0, 0.001, 0.05):
        chosen = QapOptions(method=method, iterations=10**7, starts=500, rounds=10**6)
        problem = CARD.build({"flow": flow, "distance": distance}, chosen)
        seen: list[Progress] = []
        deadline = Deadline(seconds, on_progress=seen.append)
        solution, certificate = solve_and_prove(CARD, problem, chosen, deadline, "cpu")
        assert solution.termination is Termination.TIME_LIMIT
        assert certificate.holds
        assert certificate.bound is not None
        assert solution.timings_ms["solve"] < allowed(
            1000 * seconds + 1500
        )  # a loaded machine; unbounded work takes minutes
        told = [progress.iteration for progress in seen]
        assert told == sorted(told)
        assert seen[-1].phase == "certify"


def test_bounds_that_time_does_not_allow_are_left_out() -> None:
    rng = np.random.default_rng(0)
    flow = rng.random((300, 300))
    _, solution, certificate = prove({"flow": flow, "distance": flow.T.copy()}, 0.01)
    assert solution.facts["bounds"] == {}
    assert certificate.bound is not None
    assert certificate.bound > 0


def test_an_ascent_stops_within_a_sweep_and_stays_a_bound() -> None:
    problem = CARD.build(instances.small_grid(), CARD.options())
    whole, cut = DualAscent(problem), DualAscent(problem)
    for _ in range(5):
        whole.step()
        cut.step(lambda: True)
        assert cut.bound().value <= whole.bound().value
        assert cut.bound().value >= 0


def test_objectives_below_the_smallest_float_are_not_called_optimal_unproved() -> None:
    rng = np.random.default_rng(0)
    for n, word in ((7, Termination.OPTIMAL), (10, Termination.CONVERGED)):
        flow, distance = 1e-200 * rng.random((2, n, n))
        _, solution, certificate = prove({"flow": flow, "distance": distance}, rounds=1)
        assert certificate.holds
        assert solution.termination is word
        assert certificate.bound is not None
        assert certificate.bound <= 0 < (certificate.objective or 0) < 1e-320


@pytest.mark.parametrize("target", [-1e300, -0.5, 0.0, 1e300])
def test_targets_of_any_size(target: float) -> None:
    for scale in (1, 0.1, 1e-140):
        grid: dict[str, Any] = dict(instances.small_grid())
        inputs = {name: matrix * scale for name, matrix in grid.items()}
        _, solution, certificate = prove(inputs, rounds=2, target=target)
        assert certificate.holds
        assert (solution.termination is Termination.GAP_REACHED) == (target == 1e300)


def test_floats_of_few_bits_are_proved_as_integers() -> None:
    inputs: dict[str, Any] = dict(instances.small_grid())
    _, plain, _ = prove(inputs, 60.0)
    for factor in (1.0, 0.125, 2.0**-300):
        scaled = {"flow": inputs["flow"] * factor, "distance": inputs["distance"].astype(float)}
        problem, solution, certificate = prove(scaled, 60.0)
        assert solution.termination is plain.termination is Termination.OPTIMAL
        assert certificate.holds
        assert problem.objective(plain.arrays["permutation"]) == certificate.objective
        assert certificate.facts["bounds_checked"]["rlt1"] > 0


@pytest.mark.parametrize("seed", range(5))
def test_costs_that_cancel_are_told_apart_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    flow, distance = np.diag(rng.random(5)) * 1e10, np.diag(rng.random(5)) * 1e10
    linear = -np.outer(flow.diagonal(), distance.diagonal()) + rng.random((5, 5)) * 1e-9
    flow = flow + rng.random((5, 5)) * 1e-8
    distance = distance + rng.random((5, 5)) * 1e-8
    problem, solution, certificate = prove({"flow": flow, "distance": distance, "linear": linear})
    assert certificate.facts["verified"]
    assert exactly.objective(problem, solution.arrays["permutation"]) == exactly.optimum(problem)


def test_integers_that_floats_would_round_are_refused() -> None:
    big = np.array([[0, 2**53 + 1], [1, 0]])
    for name in ("flow", "distance"):
        with pytest.raises(InvalidProblem, match=f"{name}: holds integers beyond"):
            prove({"flow": np.eye(2) * 0.5, "distance": np.eye(2) * 0.5, name: big})
    _, solution, _ = prove({"flow": big - 1, "distance": np.eye(2) * 0.5})
    assert solution.termination is Termination.OPTIMAL


def test_entries_near_the_largest_float_beside_zeros() -> None:
    for zeros, n in ((np.zeros((4, 4)), 4), (np.zeros((10, 10)), 10)):
        _, solution, certificate = prove({"flow": np.full((n, n), 1.7e308), "distance": zeros})
        assert certificate.objective == certificate.bound == 0
        assert solution.termination is Termination.OPTIMAL


def test_the_solvers_own_bounds_are_below_what_is_proved() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        flow, distance, linear = rng.normal(size=(3, 10, 10)) * 10.0 ** rng.integers(-30, 30, (3, 1, 1))
        problem = QuadraticAssignment(flow + flow.T, distance, linear)
        for bound in (bounds.gilmore_lawler(problem), bounds.projection(problem)):
            assert bound is not None
            evidence = {f"{bound.name}:{key}": array for key, array in bound.evidence.items()}
            facts, arrays = {"bounds": {bound.name: bound.value}}, {"permutation": np.arange(10)}
            claim = Solution(Termination.TIME_LIMIT, "auto", arrays, facts=facts, evidence=evidence)
            certificate = CARD.certify(problem, claim)
            assert certificate.bound is not None
            assert bound.value <= certificate.bound or bound.value == pytest.approx(certificate.bound, rel=1e-9)


def test_a_short_limit_is_the_searchs_where_the_semidefinite_bound_stays_out() -> None:
    """Its certificate takes as long as such a limit: the time is kept only once the bound has begun."""
    problem = QuadraticAssignment(np.eye(40, dtype=np.int64), np.eye(40, dtype=np.int64))
    alone, named = (CARD.estimate(problem, CARD.options(**chosen), "cpu") for chosen in ({}, {"bounds": ("sdp",)}))
    assert alone.certify_seconds < 0.3 * named.certify_seconds
