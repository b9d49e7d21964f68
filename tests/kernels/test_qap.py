import dataclasses
import os
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Claim, Deadline, InvalidProblem, Progress, Solution, Termination, recheck
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Amounts
from kernels.qap import QapOptions, qaplib
from kernels.qap.bounds import lower as bounds
from kernels.qap.bounds import rlt1
from kernels.qap.cpu import tabu
from kernels.qap.exact import branch, symmetry
from kernels.qap.exact.ascent import SWEEPS, ascend
from kernels.qap.exact.proof import Proof
from kernels.qap.form import search_form
from tests.instances import quadratic as instances
from tests.oracles import quadratic as oracle

CARD = SOLVERS["qap"]
INSTANCES = Path(os.environ.get("ALLOT_QAPLIB_DIR", Path(__file__).parents[3] / "shared" / "qaplib"))


def solve(inputs: Any, seconds: float | None = None, device: Any = "cpu", **options: Any) -> Any:
    chosen = CARD.options(**options)
    problem = CARD.build(inputs, chosen)
    solution = CARD.solve(problem, chosen, Deadline(seconds), device)
    return problem, solution, CARD.certify(problem, solution)


@pytest.mark.parametrize("label", [k for k in instances.SMALL if k != "grid-9"])
def test_small_instances_reach_the_optimum(label: str, device: str) -> None:
    if device not in CARD.modules:
        pytest.skip(f"qap has no {device} solver")
    inputs = instances.SMALL[label]()
    problem, solution, certificate = solve(inputs, device=device, rounds=8)
    linear = problem.linear
    if problem.forbidden is not None:
        linear = np.where(problem.forbidden, 10**9, problem.linear)
    best = oracle.optimum(problem.flow, problem.distance, linear)
    assert certificate.objective == pytest.approx(best, rel=1e-12)
    assert certificate.bound <= best + 1e-9 * abs(best)
    assert certificate.objective == pytest.approx(
        oracle.objective(problem.flow, problem.distance, solution.arrays["permutation"], problem.linear), rel=1e-12
    )


@pytest.mark.parametrize("label", ["one-sided-8", "asymmetric-7", "float-8", "wide-7"])
def test_partial_costs_and_deltas_stay_exact(label: str) -> None:
    form = search_form(CARD.build(instances.SMALL[label](), CARD.options()))
    n, integer = form.n, form.dtype.kind == "i"
    number = np.int64 if integer else np.float64
    p, best = np.arange(n), np.arange(n)
    cost = number(tabu.cost_of(form.flow, form.distance, form.linear, form.symmetric, p, number(0)))
    largest = form.dtype.type(np.iinfo(form.dtype).max if integer else np.inf)
    slot: Amounts = np.zeros(1, number)
    frequency = np.zeros((n, n), np.int32)
    done = tabu.search(
        form.flow, form.distance, form.linear, form.symmetric, p, best, cost, largest, np.array([5], np.uint64), 2000,
        (2, 5), 50, number(-(2**62)), slot, np.zeros(1, np.uint8), frequency,
    )  # fmt: skip
    assert done == 2000
    assert frequency.sum() == 2 * done
    exact = tabu.cost_of(form.flow, form.distance, form.linear, form.symmetric, best, number(0))
    assert slot[0] == exact if integer else slot[0] == pytest.approx(exact, rel=1e-9)


def test_the_same_seed_gives_the_same_answer() -> None:
    runs = [solve(instances.middling(), seed=4, rounds=4, deterministic=True)[1] for _ in range(2)]
    assert runs[0].arrays["permutation"].tolist() == runs[1].arrays["permutation"].tolist()
    assert runs[0].iterations == runs[1].iterations


def test_options_reach_the_search() -> None:
    start = np.arange(9)[::-1].copy()
    inputs = {**instances.small_grid(), "permutation0": start}
    _, solution, certificate = solve(inputs, target=1e9)
    assert solution.termination is Termination.GAP_REACHED
    assert solution.arrays["permutation"].tolist() == start.tolist()
    _, solution, certificate = solve(inputs, fixed={0: 4, 2: 8}, rounds=2, population=True, best_known=1)
    assert solution.arrays["permutation"][[0, 2]].tolist() == [4, 8]
    assert solution.arrays["population"].shape[1] == 9
    assert certificate.facts["above_best_known"] == certificate.objective - 1


@pytest.mark.parametrize("method", ["2opt", "tabu"])
def test_independent_searches_are_all_returned(method: Any) -> None:
    problem, solution, _ = solve(instances.middling(), method=method, starts=25, iterations=60, population=True)
    costs = [problem.objective(member) for member in solution.arrays["population"]]
    assert len(costs) == 25
    assert costs == sorted(costs)


def test_incumbents_are_reported_and_descend() -> None:
    seen: list[Progress] = []
    chosen = QapOptions(rounds=3)
    problem = CARD.build(instances.middling(), chosen)
    CARD.solve(problem, chosen, Deadline(on_progress=seen.append))
    objectives = [p.objective for p in seen if p.objective is not None]
    assert len(objectives) >= 2
    assert objectives == sorted(objectives, reverse=True)
    assert seen[-1].gap is not None


def test_cancelling_keeps_the_best() -> None:
    chosen = CARD.options()
    problem = CARD.build(instances.middling(), chosen)
    deadline = Deadline(20, cancelled=lambda: deadline.elapsed_s > 0.1)
    solution = CARD.solve(problem, chosen, deadline)
    assert solution.termination is Termination.STOPPED
    assert deadline.elapsed_s < 5
    assert CARD.certify(problem, solution).holds


def grid_flow(rows: int, columns: int, seed: int) -> QuadraticAssignment:
    n = rows * columns
    return QuadraticAssignment(instances.symmetric(n, 10, seed), instances.grid(rows, columns))


def small(label: str, grid_seed: int) -> tuple[QuadraticAssignment, Any]:
    """A small instance (of a grid where it is too large for brute force) and its optimum."""
    problem = CARD.build(instances.SMALL[label](), CARD.options())
    if problem.n > 8:
        problem = grid_flow(2, 4, grid_seed)
    linear = problem.linear
    if problem.forbidden is not None:
        linear = np.where(problem.forbidden, 10**9, linear)
    return problem, oracle.optimum(problem.flow, problem.distance, linear)


@pytest.mark.parametrize("label", list(instances.SMALL))
def test_bounds_are_below_the_optimum(label: str) -> None:
    problem, best = small(label, grid_seed=1)
    for found in (bounds.gilmore_lawler(problem), bounds.projection(problem)):
        if found is not None:
            assert found.value <= best + 1e-9 * abs(best)
            assert found.value > best - 1e-9 * abs(best) or problem.n > 2


@pytest.mark.parametrize("label", ["grid-9", "one-sided-8", "asymmetric-7", "forbidden-7", "wide-7", "negative-5"])
def test_dual_ascent_rises_below_the_optimum_and_is_certified(label: str) -> None:
    problem, best = small(label, grid_seed=3)
    ascent = rlt1.DualAscent(problem)
    values = []
    for _ in range(12):
        ascent.step()
        values.append(ascent.bound().value)
        assert values[-1] <= best
    assert values[-1] >= values[0]
    bound = ascent.bound()
    evidence = {f"rlt1:{key}": array for key, array in bound.evidence.items()}
    facts = {"bounds": {"rlt1": bound.value}}
    claim = Solution(Termination.ITERATION_LIMIT, "auto", {"permutation": np.arange(problem.n)}, facts=facts)
    if problem.allows(np.arange(problem.n)):
        certificate = CARD.certify(problem, dataclasses.replace(claim, evidence=evidence))
        assert bound.value <= certificate.facts["bounds_checked"]["rlt1"] <= best
        evidence["rlt1:rows"] = evidence["rlt1:rows"] + 1
        certificate = CARD.certify(problem, dataclasses.replace(claim, evidence=evidence))
        assert certificate.facts["bounds_checked"]["rlt1"] <= best


@pytest.mark.parametrize("label", ["one-sided-8", "asymmetric-7", "forbidden-7"])
def test_the_tree_finds_the_optimum_by_itself(label: str) -> None:
    problem, best = small(label, grid_seed=1)
    proof = Proof(problem, best + 5000, 2)
    while not proof.finished:
        time.sleep(0.01)
    proof.stop()
    assert proof.best is not None
    assert proof.best[0] == best == problem.objective(proof.best[1])


def test_a_tree_that_is_stopped_ends_within_a_sweep_and_loses_nothing() -> None:
    problem = CARD.build(instances.SMALL["one-sided-8"](), CARD.options())
    ascent = rlt1.DualAscent(problem)
    ascent.step()
    root, stop, room = branch.root(ascent), np.ones(1, np.uint8), 1 << 40
    alike = symmetry.automorphisms(problem)
    assert branch.split(root, root.bound + room, alike, stop) == [root]
    once, stopped = ((root.leaders.copy(), root.prices.copy()) for _ in range(2))
    left = ascend(*once, room, 1, np.zeros(1, np.uint8))
    assert ascend(*stopped, room, SWEEPS, stop) == left
    np.testing.assert_array_equal(stopped[1], once[1])


def test_a_named_dual_ascent_is_the_bound_of_any_method() -> None:
    _, solution, certificate = solve(instances.small_grid(), 20, method="2opt", rounds=1, bounds=("rlt1",))
    assert solution.facts["bound"] == "rlt1"
    assert certificate.bound == solution.facts["bounds"]["rlt1"]
    assert certificate.holds


def test_a_tree_that_ended_is_a_claim_beside_the_checked_bound() -> None:
    _, solution, certificate = solve(instances.small_grid(), 60)
    assert solution.termination is Termination.OPTIMAL
    assert certificate.holds
    assert certificate.termination is None
    if not certificate.facts["verified"]:
        assert certificate.facts["claimed_bound"] == certificate.objective
        assert certificate.gap_abs == certificate.objective - certificate.bound > 0


def test_a_forged_bound_is_not_believed_and_a_forged_permutation_does_not_hold() -> None:
    problem, solution, certificate = solve(instances.small_grid(), rounds=1, bounds=("gilmore-lawler",))
    assert certificate.holds
    name, value = solution.facts["bound"], certificate.bound

    def certify(**changes: Any) -> Any:
        return CARD.certify(problem, Solution(**(vars(solution) | changes)))

    claimed = certify(facts={**solution.facts, "bounds": {name: solution.facts["bounds"][name] + 2}})
    assert claimed.bound == value
    assert claimed.facts["claimed_bound"] == solution.facts["bounds"][name] + 2
    assert certify(evidence={f"{name}:v": solution.evidence[f"{name}:v"] * 3}).bound < value
    assert not certify(arrays={"permutation": np.zeros(9, np.int64)}).holds
    optimal = certify(termination=Termination.OPTIMAL, facts={**solution.facts, "proved": False})
    assert optimal.termination is Termination.CONVERGED
    assert not optimal.facts["verified"]


BIG = np.full((3, 3), 2**40)
BAD: dict[str, tuple[dict[str, Array], str]] = {
    "not square": ({"flow": np.ones((2, 3)), "distance": np.ones((2, 2))}, "square"),
    "fewer locations": ({"flow": np.ones((3, 3)), "distance": np.ones((2, 2))}, "shape of flow"),
    "too short a start": (
        {"flow": np.ones((2, 2)), "distance": np.ones((4, 4)), "permutation0": np.array([0])},
        "once",
    ),
    "NaN": ({"flow": np.array([[0, np.nan], [1, 0]]), "distance": np.ones((2, 2))}, "nan"),
    "infinite distance": ({"flow": np.ones((2, 2)), "distance": np.array([[0, np.inf], [1, 0]])}, "inf"),
    "minus infinity": ({"flow": np.ones((1, 1)), "distance": np.ones((1, 1)), "linear": np.array([[-np.inf]])}, "-inf"),
    "overflow": ({"flow": BIG, "distance": BIG}, "could reach"),
    "overflow by linear": ({"flow": BIG * 0, "distance": BIG, "linear": np.full((3, 3), 2**62)}, "could reach"),
    "float overflow": ({"flow": np.full((2, 2), 1e200), "distance": np.full((2, 2), 1e200)}, "could reach"),
    "empty": ({"flow": np.ones((0, 0)), "distance": np.ones((0, 0))}, "empty"),
    "linear of another n": ({"flow": np.ones((2, 2)), "distance": np.ones((2, 2)), "linear": np.ones((3, 3))}, "shape"),
    "no permutation": ({"flow": BIG * 0, "distance": BIG, "permutation0": np.array([0, 0, 1])}, "once"),
    "no distance": ({"flow": np.ones((2, 2))}, "missing"),
}


@pytest.mark.parametrize("seed", range(4))
def test_fewer_facilities_than_locations(seed: int) -> None:
    """The best of all ways to place five on seven locations, two of which stay free; verified twice."""
    rng = np.random.default_rng(seed)
    flow, distance = rng.integers(-3, 9, (5, 5)), rng.integers(0, 9, (7, 7))
    inputs: dict[str, Array] = {"flow": flow, "distance": distance, "permutation0": np.array([6, 2, 0, 1, 3])}
    if seed % 2:
        inputs["linear"] = rng.integers(-9, 9, (5, 7)).astype(float)
        inputs["linear"][0, :3] = np.inf
        inputs["permutation0"] = np.array([6, 2, 0, 1, 3, 4, 5])
    linear = inputs.get("linear", np.zeros((5, 7)))
    _, solution, certificate = solve(inputs, rounds=1)
    places = [p[:5] for p in permutations(range(7), 5)]
    least = min(
        (flow * distance[np.ix_(p, p)]).sum() + linear[np.arange(5), p].sum() for p in map(list, places)
    )  # fmt: skip
    found = solution.arrays["permutation"]
    assert sorted(found.tolist()) == list(range(7))
    assert certificate.objective == certificate.bound == least
    assert (flow * distance[np.ix_(found[:5], found[:5])]).sum() + linear[np.arange(5), found[:5]].sum() == least
    claim = Claim("optimal", certificate.objective, certificate.bound, 0, 0.0, 0, solution.arrays, {"verified": True})
    assert all(one.holds for one in recheck("qap", inputs, {}, claim))


@pytest.mark.parametrize("label", BAD)
def test_wrong_input_is_refused(label: str) -> None:
    inputs, says = BAD[label]
    with pytest.raises(InvalidProblem, match=says):
        CARD.build(inputs, CARD.options())


def test_entries_near_the_limit_are_taken() -> None:
    flow = np.array([[0, 2**30], [2**30, 0]])
    _, _, certificate = solve({"flow": flow, "distance": flow // 2}, rounds=1)
    assert certificate.objective == 2**60
    assert certificate.holds


def test_fixing_beyond_n_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="fixed"):
        solve(instances.small_grid(), fixed={0: 9})


@pytest.mark.parametrize("name", ["nug12", "chr12a", "scr12", "tai10b", "esc16f", "had12"])
def test_qaplib_instances_are_solved_and_bounded(name: str) -> None:
    if not INSTANCES.is_dir():
        pytest.skip(f"no QAPLIB instances in {INSTANCES}: set ALLOT_QAPLIB_DIR")
    flow, distance = qaplib.parse_dat((INSTANCES / f"{name}.dat").read_text())
    _, best = qaplib.parse_sln((INSTANCES / f"{name}.sln").read_text(), flow, distance)
    _, _, certificate = solve({"flow": flow, "distance": distance}, 4.0, best_known=best)
    assert certificate.holds
    assert certificate.objective == best
    assert certificate.bound <= best
