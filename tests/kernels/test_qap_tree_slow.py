"""`allot verify` of answers with the log of a branch and bound: every leaf, by the second implementation."""

import dataclasses
from itertools import permutations

import numpy as np
import pytest

from kernels import SOLVERS, Array, Claim, Deadline, Statement, recheck, solve_and_prove
from kernels.certificates.exact.quadratic import Problem
from kernels.certificates.tree import cover, slow, slow_bound
from kernels.problems import QuadraticAssignment
from kernels.qap.exact import log
from kernels.qap.exact.log import LEAF, OPEN
from kernels.solution import Termination
from tests.kernels.test_qap_tree import best_of, corrupted, header, instance, logged


def claimed(problem: QuadraticAssignment, permutation: Array, tree: Array, verified: bool = True) -> Claim:
    value = problem.objective(permutation)
    arrays = {"permutation": permutation, "tree": tree}
    bound = value if verified else -(10**6)
    return Claim("optimal", value, bound, value - bound, None, 0, arrays, {"verified": verified})


def inputs_of(problem: QuadraticAssignment) -> dict[str, Array]:
    inputs = {"flow": problem.flow, "distance": problem.distance}
    if problem.linear is not None:
        linear = problem.linear.astype(float)
        inputs["linear"] = linear if problem.forbidden is None else np.where(problem.forbidden, np.inf, linear)
    return inputs


def told(problem: QuadraticAssignment, claim: Claim) -> dict[str, Statement]:
    return {one.name: one for one in recheck("qap", inputs_of(problem), {}, claim)}


@pytest.mark.parametrize("kind", ["random", "grid", "forbidden", "negative"])
def test_every_statement_of_a_proved_answer_holds(kind: str) -> None:
    problem = instance(1, 9, kind)
    best = best_of(problem)
    said = told(problem, claimed(problem, best, logged(problem, best)))
    assert said["tree"].holds is True
    assert all(one.holds for one in said.values()), said


def test_an_answer_that_was_only_sampled_is_proved_here() -> None:
    problem = instance(2, 9)
    best = best_of(problem)
    tree = logged(problem, best)
    said = told(problem, claimed(problem, best, tree, verified=False))
    assert said["optimal"].holds is True
    claim = claimed(problem, best, tree, verified=False)
    without = dataclasses.replace(claim, arrays={"permutation": best})
    assert told(problem, without)["optimal"].holds is None


def test_a_corrupted_log_is_told() -> None:
    problem = instance(5, 9, "grid")
    best = best_of(problem)
    tree = logged(problem, best)
    for name, made in corrupted(tree, problem).items():
        said = told(problem, claimed(problem, best, made))
        assert said["tree"].holds is False, name
        assert said["bound"].holds is not True, name
    for name, made in corrupted(tree, problem).items():
        if made.size < log.HEAD.size or name in ("a leaf removed", "a bound raised", "a bound lowered"):
            continue  # no header; or a tree that covers everything still; here nothing is read of the incumbent
        said = told(problem, claimed(problem, best, log.summed(made)))
        assert said["tree"].holds is (None if name == "a leaf left open" else False), name


def test_a_tree_of_a_poor_answer_is_refuted() -> None:
    problem = instance(4, 9)
    best = best_of(problem)
    poor = best[::-1].copy()
    assert problem.objective(poor) > problem.objective(best)
    said = told(problem, claimed(problem, poor, logged(problem, best)))
    assert said["tree"].holds is False
    assert "which is less" in said["tree"].words
    assert said["bound"].holds is not True


def test_the_log_of_another_problem_is_told() -> None:
    problem = instance(4, 9)
    best = best_of(problem)
    other = dataclasses.replace(problem, distance=problem.distance + 1)
    said = told(other, claimed(other, best, logged(problem, best)))
    assert said["tree"].holds is False
    assert "another problem" in said["tree"].words


def test_floats_that_are_cut_are_proved() -> None:
    rng = np.random.default_rng(8)
    flow, distance = rng.random((2, 9, 9)) * 1e5
    card = SOLVERS["qap"]
    options = card.options(seed=1)
    problem = card.build({"flow": flow, "distance": distance}, options)
    solution, certificate = solve_and_prove(card, problem, options, Deadline(30), "cpu")
    assert solution.termination is Termination.OPTIMAL
    exact = Problem({"flow": flow, "distance": distance}, {})
    assert slow_bound.cut(exact).bits > 0
    claim = Claim(
        "optimal", certificate.objective, certificate.bound, certificate.gap_abs, certificate.gap_rel, 0,
        solution.arrays, certificate.facts,
    )  # fmt: skip
    said = told(problem, claim)
    assert all(one.holds for one in said.values()), said
    assert said["tree"].holds is True


def test_both_implementations_read_one_log_alike() -> None:
    problem = instance(7, 9, "grid")
    best = best_of(problem)
    tree = logged(problem, best)
    one = cover.read(tree, problem)
    words = slow.prove(inputs_of(problem), Problem(inputs_of(problem), {}), best.tolist(), tree.tobytes())
    assert words.startswith(f"{len(one.leaves)} leaves and {one.twins} twins")
    leaves = np.flatnonzero(tree[header(tree, problem) :] == LEAF) + header(tree, problem)
    opened = tree.copy()
    opened[leaves[-1]] = OPEN
    with pytest.raises(slow.Unfinished, match="1 nodes"):
        slow.prove(
            inputs_of(problem), Problem(inputs_of(problem), {}), best.tolist(), log.summed(opened).tobytes()
        )  # fmt: skip


def test_its_bounds_are_at_most_what_permutations_cost() -> None:
    """The part that is believed, against every permutation, with prices that are nonsense."""
    rng = np.random.default_rng(6)
    for _ in range(40):
        m = int(rng.integers(2, 6))
        flow, distance, linear = rng.integers(-9, 10, (3, m, m))
        exact = Problem({"flow": flow, "distance": distance, "linear": linear}, {})
        data = slow_bound.cut(exact)
        assert data.bits == 0
        rows, columns = rng.integers(-30000, 30000, (2, m, m, m))
        part = slow_bound.Part(list(range(m)), list(range(m)), {}, rows, columns, rng.random((m, m)) < 0.2)
        total, beyond = slow_bound.Left(data, part).value(part)
        for p in permutations(range(m)):
            if part.closed[np.arange(m), p].any():
                continue
            cost = int(exact.value(list(p))) * data.scale
            assert total <= cost
            assert all(total + beyond[i, p[i]] <= cost for i in range(m))


def test_what_is_left_below_a_node_costs_what_its_permutations_do() -> None:
    rng = np.random.default_rng(9)
    flow, distance, linear = rng.integers(-9, 10, (3, 6, 6))
    exact = Problem({"flow": flow, "distance": distance, "linear": linear}, {})
    data = slow_bound.cut(exact)
    rows, columns = np.zeros((2, 6, 6, 6), np.int64)
    part = slow_bound.Part(list(range(6)), list(range(6)), {}, rows, columns, np.zeros((6, 6), bool))
    below = part.below(2, 4).below(0, 1)
    left = slow_bound.Left(data, below)
    for order in permutations(range(4)):
        places = {**below.placed, **{below.facilities[a]: below.locations[b] for a, b in enumerate(order)}}
        cost = left.placed + left.single[np.arange(4), order].sum()
        pairs = left.pays(below.rows, below.columns)
        cost += sum(pairs[i, k, order[i], order[k]] for i in range(4) for k in range(i))
        assert cost == exact.value([places[i] for i in range(6)]) * data.scale


def test_numbers_that_never_count_are_not_cut() -> None:
    """Flows of 2^80 between locations that are all in one place do not fit int64, and need not."""
    flow, linear = np.full((9, 9), 2.0**80), np.add.outer(np.arange(9.0), np.arange(9.0)) % 9
    flow[0, 1] += 2.0**30
    best = (9 - np.arange(9)) % 9
    problem = QuadraticAssignment(flow, np.zeros((9, 9)), linear)
    head = log.HEAD.pack(log.MAGIC, 9, log.fingerprint(problem), 0, 0, 0, 0, bytes(8))
    tree = log.summed(np.frombuffer(head + bytes([LEAF]), np.uint8))
    given = {"flow": flow, "distance": np.zeros((9, 9)), "linear": linear}
    assert slow.prove(given, Problem(given, {}), best.tolist(), tree.tobytes()).startswith("1 leaves")
    with pytest.raises(slow.NotProved, match="which is less"):
        slow.prove(given, Problem(given, {}), list(range(9)), tree.tobytes())


def test_no_objective_is_right_where_a_forbidden_pair_is_used() -> None:
    problem = instance(1, 5, "forbidden")
    assert problem.forbidden is not None
    unmet = next(np.array(p) for p in permutations(range(5)) if problem.forbidden[np.arange(5), p].any())
    for objective in (999, problem.objective(unmet), None):
        claim = Claim("time_limit", objective, None, None, None, 1, {"permutation": unmet}, {})
        assert told(problem, claim)["objective"].holds is (objective is None)
