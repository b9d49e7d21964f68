"""Logs of branch and bound: what they prove, that a corrupted one proves nothing, and going on with one."""

import dataclasses
import os
import struct
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, InvalidProblem, solve_and_prove
from kernels.certificates.tree import SAMPLE, certify, recheck, rechecker
from kernels.certificates.tree.cover import Refused, read
from kernels.problems import Array, QuadraticAssignment
from kernels.qap import qaplib
from kernels.qap.exact import log
from kernels.qap.exact.log import HEAD, LEAF, OPEN, TWIN
from kernels.qap.exact.proof import Proof
from kernels.qap.whole import rounded
from kernels.solution import Certificate, Solution, Termination
from tests.kernels.test_qap_branch import uniform
from tests.oracles import quadratic as oracle
from tests.workers.service import allowed

CARD = SOLVERS["qap"]


def instance(seed: int, n: int = 9, kind: str = "random") -> QuadraticAssignment:
    rng = np.random.default_rng(seed)
    flow, distance = rng.integers(0, 20, (2, n, n))
    linear = forbidden = None
    if kind == "grid":
        places = np.array([(i, j) for i in range(3) for j in range(n // 3)])
        distance = np.abs(places[:, None] - places[None]).sum(axis=2)
        flow = np.triu(flow, 1) + np.triu(flow, 1).T
    if kind == "forbidden":
        forbidden = rng.random((n, n)) < 0.3
        forbidden[np.arange(n), rng.permutation(n)] = False
        linear = np.where(forbidden, 0, rng.integers(-20, 40, (n, n)))
    if kind == "negative":
        flow = flow - 10
    return QuadraticAssignment(flow, distance, linear, None, forbidden)


KINDS = ("random", "grid", "forbidden", "negative")


def best_of(problem: QuadraticAssignment) -> Array:
    """A tree from a poor incumbent finds the optimum."""
    start = np.arange(problem.n)
    if not problem.allows(start):
        start = CARD.solve(problem, CARD.options(rounds=1), Deadline(5)).arrays["permutation"]
    proof = Proof(problem, int(problem.objective(start)), 1, log_bytes=1 << 20)
    proof.wait(240)
    proof.stop()
    assert proof.finished
    return start if proof.best is None else proof.best[1]


def logged(problem: QuadraticAssignment, permutation: Array, **options: Any) -> Array:
    proof = Proof(problem, int(problem.objective(permutation)), 2, **{"log_bytes": 1 << 20, **options})
    proof.wait(60)
    proof.stop()
    assert proof.finished
    assert proof.log is not None
    return proof.log.sealed(problem)


def judged(problem: QuadraticAssignment, permutation: Array, tree: Array, **said: Any) -> Certificate:
    facts = {"proved": True, "tree": {"check_s": 120.0, **said}}
    return certify(
        problem, Solution(Termination.OPTIMAL, "auto", {"permutation": permutation, "tree": tree}, facts=facts)
    )


@pytest.fixture(scope="module")
def grid() -> tuple[QuadraticAssignment, Array, Array]:
    problem = instance(3, 12, "grid")
    best = CARD.solve(problem, CARD.options(seed=1), Deadline(60)).arrays["permutation"]
    return problem, best, logged(problem, best)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_tree_is_verified_and_its_answer_is_the_optimum(seed: int, kind: str) -> None:
    problem = instance(seed, 9, kind)
    best = best_of(problem)
    certificate = judged(problem, best, logged(problem, best))
    assert certificate.facts["verified"] is True
    assert certificate.facts["tree"]["whole"] is True
    linear = problem.linear
    if problem.forbidden is not None:
        assert linear is not None
        linear = np.where(problem.forbidden, 10**6, linear)
    assert certificate.bound == certificate.objective == oracle.optimum(problem.flow, problem.distance, linear)


def test_a_job_is_verified_and_keeps_its_log(grid: tuple[QuadraticAssignment, Array, Array]) -> None:
    problem, _, tree = grid
    inputs = {"flow": problem.flow, "distance": problem.distance}
    options = CARD.options(seed=1)
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, options), options, Deadline(40), "cpu")
    assert solution.termination is Termination.OPTIMAL
    assert certificate.facts["verified"] is True
    assert "claimed_bound" not in certificate.facts
    assert read(solution.arrays["tree"], problem).opened == 0
    assert len(tree) < 4000
    none = CARD.solve(problem, CARD.options(seed=1, log_bytes=0), Deadline(20))
    assert "tree" not in none.arrays


@pytest.mark.parametrize("seed", range(3))
def test_floats_are_proved_without_slack(seed: int) -> None:
    rng = np.random.default_rng(seed)
    flow, distance = rng.random((2, 9, 9)) * 10.0 ** rng.integers(-9, 9)
    options = CARD.options(seed=1)
    problem = CARD.build({"flow": flow, "distance": distance}, options)
    solution, certificate = solve_and_prove(CARD, problem, options, Deadline(30), "cpu")
    assert solution.termination is Termination.OPTIMAL
    assert certificate.facts["verified"] is True
    found = oracle.objective(flow, distance, solution.arrays["permutation"])
    assert found <= oracle.optimum(flow, distance) * (1 + 1e-14)
    other = solution.arrays["permutation"][::-1].copy()
    assert not judged(problem, other, solution.arrays["tree"]).facts["verified"]


def test_a_placement_that_leaves_locations_free_is_proved() -> None:
    rng = np.random.default_rng(3)
    flow, distance = rng.integers(0, 20, (6, 6)), rng.integers(0, 20, (9, 9))
    options = CARD.options(seed=1)
    problem = CARD.build({"flow": flow, "distance": distance}, options)
    solution, certificate = solve_and_prove(CARD, problem, options, Deadline(60), "cpu")
    assert solution.termination is Termination.OPTIMAL
    assert certificate.facts["verified"] is True
    places = np.array(list(permutations(range(9), 6)))
    costs = sum(flow[i, k] * distance[places[:, i], places[:, k]] for i in range(6) for k in range(6))
    assert certificate.bound == certificate.objective == np.asarray(costs).min()


def header(tree: Array, problem: QuadraticAssignment) -> int:
    """Bytes before the tree's codes."""
    count: int = HEAD.unpack(tree[: HEAD.size].tobytes())[-2]
    return HEAD.size + count * (problem.n + 1)


def corrupted(tree: Array, problem: QuadraticAssignment) -> dict[str, Array]:
    """Logs that say less or something else, by what was done to them."""
    at, codes = header(tree, problem), tree[header(tree, problem) :]
    assert codes[0] < 2 * problem.n
    leaves = np.flatnonzero(codes == LEAF) + at
    made = {
        "a leaf removed": np.delete(tree, leaves[len(leaves) // 2]),
        "a leaf added": np.insert(tree, leaves[0], LEAF),
        "the last child missing": tree[:-1],
        "a leaf left open": np.where(np.arange(tree.size) == leaves[0], OPEN, tree).astype(np.uint8),
        "nothing but a header": tree[:at],
        "cut in its header": tree[: HEAD.size - 3],
        "nothing": tree[:0],
        "bytes after it": np.r_[tree, LEAF].astype(np.uint8),
        "a branch on what is not left": tree.copy(),
        "a twin instead of the root": np.r_[tree[:at], TWIN, 0, 0].astype(np.uint8),
        "another magic": tree.copy(),
        "another n": tree.copy(),
    }
    made["a child missing"] = np.delete(tree, leaves[-1])
    made["a branch on what is not left"][at] = 2 * problem.n
    made["another magic"][0] ^= 1
    made["another n"][8] += 1
    for name, offset in (("a bound raised", 1), ("a bound lowered", -1)):
        made[name] = tree.copy()
        said = struct.unpack("<q", tree[25:33].tobytes())[0]
        made[name][25:33] = np.frombuffer(struct.pack("<q", said + offset), np.uint8)
    return made


STILL_COVERS = {"a leaf removed"}
"""What follows moves up a level, and may be a tree of everything again, which the checker then proves."""


@pytest.mark.parametrize("mended", ["as it is", "with a checksum of its own"])
def test_a_corrupted_log_never_verifies(grid: tuple[QuadraticAssignment, Array, Array], mended: str) -> None:
    problem, best, tree = grid
    assert judged(problem, best, tree).facts["verified"] is True
    for name, made in corrupted(tree, problem).items():
        forged = mended != "as it is" and made.size >= HEAD.size
        wrong = log.summed(made) if forged else made
        if forged and name in STILL_COVERS:
            continue
        certificate = judged(problem, best, wrong)
        assert certificate.holds, name
        assert certificate.facts["verified"] is False, name
        assert certificate.bound is not None
        assert certificate.bound < problem.objective(best), name
        assert "refused" in certificate.facts["tree"] or certificate.facts["tree"]["open"], name


def test_a_tree_of_leaves_that_hold_the_optimum_is_refuted(grid: tuple[QuadraticAssignment, Array, Array]) -> None:
    """Everything is claimed of a poor answer: the header agrees, but a leaf holds something better."""
    problem, best, tree = grid
    poor = np.arange(problem.n)
    assert problem.objective(poor) > problem.objective(best)
    wrong = tree.copy()
    wrong[25:33] = np.frombuffer(struct.pack("<q", int(problem.objective(poor))), np.uint8)
    certificate = judged(problem, poor, log.summed(wrong))
    assert certificate.facts["verified"] is False
    assert certificate.facts["tree"]["refused"] == "a better permutation was found"


def test_a_leaf_in_the_place_of_the_whole_tree_is_branched_on_here() -> None:
    problem = instance(1, 9)
    best = best_of(problem)
    tree = logged(problem, best)
    alone = log.summed(np.r_[tree[: header(tree, problem)], LEAF].astype(np.uint8))
    certificate = judged(problem, best, alone)
    assert certificate.facts["verified"] is True
    assert certificate.objective == oracle.optimum(problem.flow, problem.distance)


@pytest.mark.parametrize("log_bytes", [0, 1, 1 << 20])
def test_nobodys_word_makes_an_answer_optimal(log_bytes: int) -> None:
    """A log that says that nothing is left to search, of a problem whose leaf is far too large to be proved."""
    rng = np.random.default_rng(0)
    flow, distance = rng.integers(0, 50, (2, 20, 20))
    options = CARD.options(seed=1, log_bytes=log_bytes)
    said = log.Log(log.CLOSED, 10**9).sealed(QuadraticAssignment(flow, distance))
    problem = CARD.build({"flow": flow, "distance": distance, "tree0": said}, options)
    solution, certificate = solve_and_prove(CARD, problem, options, Deadline(2), "cpu")
    assert solution.termination is not Termination.OPTIMAL
    assert certificate.facts["verified"] is False


@pytest.mark.parametrize("divisor", [1, 7.0])
def test_nobodys_word_is_no_fact_of_the_solver(divisor: float) -> None:
    """Facts and words of an answer whose tree rests on a log from outside: `proved`, the bounds, the sentence."""
    rng = np.random.default_rng(0)
    flow, distance = rng.integers(0, 50, (2, 20, 20)) / divisor if divisor > 1 else rng.integers(0, 50, (2, 20, 20))
    options, of = CARD.options(seed=1), QuadraticAssignment(flow, distance)
    near = None if divisor == 1 else rounded(of)
    said = log.Log(log.CLOSED, 2**60, exponents=(0, 0) if near is None else near.exponents).sealed(of)
    problem = CARD.build({"flow": flow, "distance": distance, "tree0": said}, options)
    solution, certificate = solve_and_prove(CARD, problem, options, Deadline(2), "cpu")
    assert solution.termination is Termination.CONVERGED
    assert solution.facts["tree"]["resumed"] is True
    assert solution.facts["proved"] is False
    assert "branch and bound" not in solution.facts["bounds"]
    assert certificate.objective is not None
    assert certificate.facts.get("claimed_bound", 0) < certificate.objective / 1.05
    assert "says optimal" not in certificate.proved


def test_the_log_of_another_problem_is_refused(grid: tuple[QuadraticAssignment, Array, Array]) -> None:
    problem, best, tree = grid
    other = dataclasses.replace(problem, flow=problem.flow + np.eye(problem.n, dtype=np.int64))
    with pytest.raises(Refused, match="another problem"):
        read(tree, other)
    assert judged(other, best, tree).facts["verified"] is False
    forbidden = np.zeros((problem.n, problem.n), bool)
    forbidden[0, 0] = True
    with pytest.raises(Refused, match="another problem"):
        read(tree, dataclasses.replace(problem, forbidden=forbidden))


def test_a_symmetry_that_is_none_is_refused(grid: tuple[QuadraticAssignment, Array, Array]) -> None:
    problem, _, tree = grid
    assert read(tree, problem).twins > 0
    wrong = tree.copy()
    first = slice(HEAD.size + 1, HEAD.size + 1 + problem.n)
    wrong[first] = np.roll(wrong[first], 1)
    with pytest.raises(Refused, match="symmetry"):
        read(log.summed(wrong), problem)
    identity = tree.copy()
    identity[first] = np.arange(problem.n)
    with pytest.raises(Refused, match="twin"):
        read(log.summed(identity), problem)


def test_without_time_a_sample_is_drawn_and_nothing_is_verified(
    grid: tuple[QuadraticAssignment, Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, best, tree = grid
    monkeypatch.setattr("kernels.certificates.tree.SHARE_OF_ALL", 0.0)
    certificate = judged(problem, best, tree)
    told = certificate.facts["tree"]
    assert told["sampled"] == min(64, told["leaves"])
    assert told["whole"] is False
    assert certificate.facts["verified"] is False
    assert "sampled" in certificate.proved
    assert certificate.facts["claimed_bound"] == certificate.objective
    assert judged(problem, best, tree, resumed=True).termination is Termination.CONVERGED


def test_a_sample_is_proved_on_all_threads_until_the_clock(grid: tuple[QuadraticAssignment, Array, Array]) -> None:
    problem, best, logged_tree = grid
    tree = read(logged_tree, problem)
    for ends_at, proved in ((float("inf"), 20), (0.0, 0)):
        checks = [rechecker(problem, best, tree, ends_at) for _ in range(3)]
        assert recheck.prove_some(checks, tree, tree.leaves[:20]) == proved


def test_a_leaf_of_a_sample_that_holds_something_better_is_told(
    grid: tuple[QuadraticAssignment, Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, _, tree = grid
    poor, wrong = np.arange(problem.n), tree.copy()
    wrong[25:33] = np.frombuffer(struct.pack("<q", int(problem.objective(poor))), np.uint8)
    monkeypatch.setattr("kernels.certificates.tree.SHARE_OF_ALL", 0.0)
    monkeypatch.setattr("kernels.certificates.tree.SAMPLE", len(read(tree, problem).leaves))
    told = judged(problem, poor, log.summed(wrong)).facts["tree"]
    assert told["refused"] == "a better permutation was found"
    assert "sampled" not in told


def test_leaves_that_are_far_too_many_are_given_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for the answer gets it with a sample, long before the time is over."""
    problem = uniform(14, 5)
    best = best_of(problem)
    tree = logged(problem, best)
    for name in ("LEAST_S", "LEAST_SHARE", "HOPELESS"):  # any at all are too many
        monkeypatch.setattr(recheck, name, 1e-6)
    begun = time.monotonic()
    certificate = judged(problem, best, tree)
    assert time.monotonic() - begun < allowed(30)
    assert certificate.facts["verified"] is False
    assert certificate.facts["tree"]["sampled"] == min(SAMPLE, len(read(tree, problem).leaves))


def test_it_is_hopeless_where_the_rest_takes_four_times_the_time() -> None:
    assert not recheck.hopeless(0.9, 0.0, 5.0)  # it has just begun
    assert not recheck.hopeless(3.0, 0.01, 60.0)  # after half of what is looked at, twice as much is asked
    assert recheck.hopeless(3.0, 0.005, 60.0)
    assert recheck.hopeless(1.1, 0.0, 60.0)
    assert recheck.hopeless(7.0, 0.01, 60.0)
    assert not recheck.hopeless(7.0, 0.03, 60.0)
    assert not recheck.hopeless(float("-inf"), 0.0, 60.0)  # no leaf is proved yet


def test_a_check_of_a_large_problem_ends_in_its_time() -> None:
    """At n = 30 the root alone takes many seconds: the clock is looked at between its sweeps."""
    rng = np.random.default_rng(1)
    problem = QuadraticAssignment(*rng.integers(0, 100, (2, 30, 30)))
    p = np.arange(30)
    tree = log.Log(log.Record(LEAF), int(problem.objective(p))).sealed(problem)
    begun = time.monotonic()
    certificate = judged(problem, p, tree, check_s=0.5)
    assert certificate.facts["tree"]["whole"] is False
    assert certificate.facts["verified"] is False
    assert time.monotonic() - begun < allowed(15)


def test_bounds_below_a_node_are_at_most_what_its_permutations_cost() -> None:
    """The part of the checker that is believed, against every permutation, with prices that are nonsense."""
    from kernels.certificates.tree import loops

    rng = np.random.default_rng(5)
    for _ in range(60):
        m = int(rng.integers(2, 6))
        flow, distance, single = rng.integers(-9, 10, (3, m, m))
        np.fill_diagonal(flow, 0)
        rows, columns = rng.integers(-30, 30, (2, m, m, m))
        closed, reduced = rng.random((m, m)) < 0.2, np.empty((m, m), np.int64)
        scale = int(rng.integers(1, 5))
        found = loops.bound(flow, distance, single * scale, rows, columns, closed, scale, reduced)
        for p in permutations(range(m)):
            if closed[np.arange(m), p].any():
                continue
            cost = (flow * distance[np.ix_(p, p)]).sum() + single[np.arange(m), p].sum()
            assert found <= cost * scale
            assert all(found + reduced[i, p[i]] <= cost * scale for i in range(m))


def test_prices_beyond_what_int64_holds_are_cut() -> None:
    from kernels.certificates.tree import loops

    m, large = 4, np.iinfo(np.int64).max
    matrix = np.ones((m, m), np.int64)
    rows, columns = np.full((2, m, m, m), large)
    found = loops.bound(matrix, matrix, matrix, rows, columns, np.zeros((m, m), bool), 1, np.empty((m, m), np.int64))
    assert found <= m * m
    assert rows.max() == loops.MOST


def test_a_proof_is_stopped_stored_and_resumed(grid: tuple[QuadraticAssignment, Array, Array]) -> None:
    problem, best, tree = grid
    objective, legs, resumed = int(problem.objective(best)), 0, None
    nodes = []
    while legs < 40:
        proof = Proof(problem, objective, 1, log_bytes=1 << 20, resumed=resumed)
        while not proof.finished and proof.nodes < 25 and proof._thread.is_alive():
            proof.wait(0.002)
        proof.stop()
        assert proof.log is not None
        nodes.append(proof.nodes)
        stored = proof.log.sealed(problem)
        legs += 1
        if proof.finished:
            break
        assert not judged(problem, best, stored).facts["verified"]
        resumed = log.read(stored, problem)
        assert (resumed.sealed(problem) == stored).all()
    assert legs > 1
    assert proof.finished
    certificate = judged(problem, best, stored)
    assert certificate.facts["verified"] is True
    assert certificate.facts["tree"]["leaves"] <= 2 * len(read(tree, problem).leaves)


def test_a_job_goes_on_with_the_log_of_another(grid: tuple[QuadraticAssignment, Array, Array]) -> None:
    problem, best, tree = grid
    opened = np.where(np.arange(tree.size) == np.flatnonzero(tree == LEAF)[-1], OPEN, tree)
    opened = log.summed(opened.astype(np.uint8))
    inputs = {"flow": problem.flow, "distance": problem.distance, "permutation0": best, "tree0": opened}
    options = CARD.options(seed=1)
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, options), options, Deadline(40), "cpu")
    assert certificate.facts["verified"] is True
    assert solution.facts["tree"]["resumed"] is True
    assert read(solution.arrays["tree"], problem).opened == 0
    elsewhere = {**inputs, "flow": problem.flow * 2 + np.eye(problem.n, dtype=np.int64)}
    solution = CARD.solve(CARD.build(elsewhere, options), options, Deadline(20))
    assert solution.facts["tree"]["resumed"] is False
    for wrong in (np.array([256]), np.array([-1]), np.array([[1]]), np.array([0.5])):
        with pytest.raises(InvalidProblem, match="tree0"):
            CARD.build({**inputs, "tree0": wrong}, options)


def test_a_log_that_does_not_fit_is_left_open(
    grid: tuple[QuadraticAssignment, Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, best, tree = grid
    monkeypatch.setattr("kernels.qap.exact.proof.TASKS", 2)  # what lies higher is in every log
    short = logged(problem, best, log_bytes=1)
    assert len(short) < len(tree)
    assert read(short, problem).opened > 0
    assert not judged(problem, best, short).facts["verified"]


def test_numbers_beyond_the_checkers_range_are_not_verified() -> None:
    problem = instance(2, 9)
    best = best_of(problem)
    wide = dataclasses.replace(problem, flow=problem.flow * 2**40)
    tree = log.resealed(logged(problem, best), problem, wide)
    tree[25:33] = np.frombuffer(struct.pack("<q", int(wide.objective(best))), np.uint8)
    certificate = judged(wide, best, log.summed(tree))
    assert certificate.facts["verified"] is False
    assert "too large" in certificate.facts["tree"]["refused"]
    assert recheck.LARGEST == 2**51


QAPLIB = os.environ.get("ALLOT_QAPLIB_DIR")


@pytest.mark.skipif(QAPLIB is None, reason="ALLOT_QAPLIB_DIR names no folder")
@pytest.mark.parametrize(
    "name", ["nug12", "chr12a", "rou12", "had12", "scr12", "tai12a", "nug15", "chr15a", "tai15b", "els19"]
)
def test_qaplib_is_proved(name: str) -> None:
    folder = Path(QAPLIB or "")
    flow, distance = qaplib.parse_dat((folder / f"{name}.dat").read_text())
    best, value = qaplib.parse_sln((folder / f"{name}.sln").read_text(), flow, distance)
    problem = QuadraticAssignment(flow.astype(np.int64), distance.astype(np.int64))
    certificate = judged(problem, best, logged(problem, best))
    assert certificate.facts["verified"] is True
    assert certificate.bound == value
