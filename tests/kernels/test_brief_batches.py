"""Batches of small assignments proved in one loop, beside the same proofs by `assignment.py` and by fractions."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, Solution, Termination, recheck
from kernels.certificates import assignment as dense
from kernels.certificates.brief import certify
from kernels.problems import FORBIDDEN, Assignment
from tests.fuzz.judge import claim_of

CARD = SOLVERS["lap"]


def batch(rng: np.random.Generator, dtype: type) -> Array:
    """Costs of one kind, in some shape of at most 7 lines."""
    count, n = int(rng.integers(1, 30)), int(rng.integers(1, 7))
    shape = count, n, n + int(rng.integers(0, 3)) * int(rng.integers(0, 2))
    kind = rng.choice(["unit", "ties", "near", "wide", "forbidden"])
    if np.dtype(dtype).kind == "i":
        most = {"ties": 2, "wide": 2**28}.get(str(kind), 300)
        cost: Array = rng.integers(-most, most + 1, shape).astype(dtype)
        if kind == "forbidden" and dtype is np.int64:
            cost[rng.random(shape) < 0.2] = FORBIDDEN
        return cost
    cost = rng.random(shape)
    if kind == "ties":
        cost = rng.choice([0.1, 0.3, 0.0, -0.0], shape)
    elif kind == "near":
        cost = 1 + rng.integers(-3, 4, shape) * 2.0**-22
    elif kind == "wide":
        cost = np.ldexp(cost, rng.integers(-60, 60, shape))
    found: Array = cost.astype(dtype)
    if kind == "forbidden":
        found[rng.random(shape) < 0.2] = np.inf
    return found


def corrupted(solution: Solution, rng: np.random.Generator) -> None:
    """Here and there another column, a dual that is too large, too small or no number, another word."""
    for name in ("assignment", "u", "v"):
        array = solution.arrays[name] = solution.arrays[name].copy()
        wrong = rng.random(array.shape) < rng.choice([0.0, 0.01, 0.1])
        if array.dtype.kind == "i":
            moved = rng.choice(np.array([-(2**62), -2, -1, 0, 1, 2, 2**40]), array.shape)
        else:
            moved = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e-9, -1.0, 5e-324], array.shape)
        with np.errstate(invalid="ignore"):
            array[wrong] += moved[wrong].astype(array.dtype)


def same(problem: Assignment, solution: Solution) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        here, there = asdict(certify(problem, solution)), asdict(dense.certify_dense(problem, solution))
    assert repr(here) == repr(there)  # to the last bit, and the types


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("maximize", [False, True])
def test_batches_have_the_proofs_of_each_problem(dtype: type, maximize: bool) -> None:
    for seed in range(60):
        rng = np.random.default_rng([seed, maximize])
        cost = batch(rng, dtype)
        if maximize and cost.dtype.kind == "f":
            cost = -cost
        options = CARD.options(maximize=maximize)
        problem = CARD.build({"cost": cost}, options)
        solution = CARD.solve(problem, options, Deadline(30), "cpu")
        assert isinstance(problem, Assignment)
        same(problem, solution)
        if seed < 12 and solution.termination is Termination.OPTIMAL:
            claim = claim_of(solution, certify(problem, solution))
            said = recheck("lap", {"cost": cost}, {"maximize": maximize}, claim)
            assert [one for one in said if one.holds is not True] == []
        if {"assignment", "u", "v"} <= solution.arrays.keys():
            for _ in range(4):
                corrupted(solution, rng)
                same(problem, solution)


def test_most_problems_need_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = dense.proofs_of

    def counted(problem: Assignment, *given: Any) -> Any:
        asked.append(len(problem.weights))  # type: ignore[arg-type]
        return original(problem, *given)

    monkeypatch.setattr(dense, "proofs_of", counted)
    cost = np.random.default_rng(3).random((300, 20, 20)).astype(np.float32)
    problem = CARD.build({"cost": cost}, CARD.options())
    solution = CARD.solve(problem, CARD.options(), Deadline(30), "cpu")
    assert certify(problem, solution).termination is None
    assert sum(asked) < 10
