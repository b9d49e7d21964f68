"""What is tried when a claimed optimum is not proved: exact arithmetic, better prices, a cold solve.

A float search carries the rounding of every step in its duals, and a warm start's size with it. In this order, while
the time limit lasts: small problems are solved without rounding (`exact.py`); the prices of others are rebuilt from
their assignment (`refine.py`); what that does not settle is solved again without the warm start; and last, where the
bits that decide are beyond float64, without rounding up to a size that takes seconds. Integers need none of it, as
their search is exact; should one come out loose, it is solved again cold.
"""

import importlib
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.members import Members
from kernels.lap.mending import exact
from kernels.lap.mending.refine import refine
from kernels.problems import UNASSIGNED, Array, Assignment
from kernels.problems.arrays import Costs, Floats, Indices
from kernels.solution import Solution, Termination

SMALL, LARGEST = 1 << 18, 1 << 26
"""n^2 m up to which exact arithmetic comes first (some 10 ms), and up to which it is tried at all (seconds)."""
PASSES = 2
"""Prices that were far off are rebuilt once more: the first time leaves an error in proportion to how far."""

Found = tuple[Indices, Floats]
"""The column of each line of the shorter side, and the prices as sums of words (n_words, longer side), in min form."""


def mend(problem: Assignment, solution: Solution, loose: list[int], deadline: Deadline) -> Solution | None:
    """A better founded answer; None where nothing helped or no time is left.

    Args:
        solution: what a solver answered; it is not changed.
        loose: the problems of a batch that are called optimal and were not proved so; [0] of a single one.
    """
    assert isinstance(problem.weights, np.ndarray)
    arrays = {name: array.copy() for name, array in solution.arrays.items()}
    batch = problem.weights.ndim == 3
    members = Members(problem) if batch else None
    mended = 0
    for k in loose:
        place: tuple[int, ...] = () if members is None else (k,)
        weights = problem.weights if members is None else members[k][0]
        rows, cols = weights.shape
        old = {name: arrays[name][place][:n] for name, n in (("assignment", rows), ("u", rows), ("v", cols))}
        new = mend_one(weights, problem.maximize, old, deadline)
        if new is not None:
            mended += 1
            _write(arrays, new, place)
    if not mended:
        return None
    return replace(solution, arrays=arrays, facts=solution.facts | {"mended": mended}, timings_ms=solution.timings_ms)


def _write(arrays: dict[str, Array], new: dict[str, Array], place: tuple[int, ...]) -> None:
    """Put one problem's arrays in their place; further words of duals get an array when there are some."""
    for name, values in new.items():
        if not name.endswith("_finer"):
            arrays[name][place][: len(values)] = values
            continue
        whole = arrays[name.removesuffix("_finer")]
        words = arrays.get(name, np.zeros((0, *whole.shape)))
        if len(words) < len(values):
            words = np.concatenate([words, np.zeros((len(values) - len(words), *whole.shape))])
        index: Any = (slice(len(values)), *place, slice(values.shape[1]))
        words[index] = values
        arrays[name] = words


def mend_one(weights: Costs, maximize: bool, old: dict[str, Array], deadline: Deadline) -> dict[str, Array] | None:
    """`assignment`, `u`, `v` and further words of the longer side's duals, for one problem; None: nothing better."""
    if deadline.expired():
        return None
    if weights.dtype.kind == "i":
        return _cold(weights.astype(np.int64), maximize, deadline)
    sign = -1.0 if maximize else 1.0
    turned = weights.shape[0] > weights.shape[1]
    lines = weights.T if turned else weights
    cost = np.ascontiguousarray(np.multiply(lines, sign, dtype=np.float64))
    n, m = cost.shape
    found = _exactly(cost, deadline) if n * n * m <= SMALL else None
    price = sign * old["u" if turned else "v"]
    price = np.where(np.isfinite(price), price, 0.0)
    found = found or _rebuilt(cost, _partner_of(old["assignment"], n, turned), price, deadline)
    if found is None and (cold := _cold(weights.astype(np.float64, copy=False), maximize, deadline)):
        price = sign * cold["u" if turned else "v"]
        found = _rebuilt(cost, _partner_of(cold["assignment"], n, turned), price, deadline)
    if found is None and n * n * m <= LARGEST:
        found = _exactly(cost, deadline)
    return None if found is None else _arrays(cost, found, sign, turned)


def _partner_of(assignment: Indices, n: int, turned: bool) -> Indices:
    """The column of each line of the shorter side."""
    if not turned:
        return assignment
    partner_of = np.full(n, UNASSIGNED)
    rows = np.flatnonzero(assignment != UNASSIGNED)
    partner_of[assignment[rows]] = rows
    return partner_of


def _exactly(cost: Floats, deadline: Deadline) -> Found | None:
    found = exact.solve(cost, deadline)
    return None if found is None else (found.partner_of, found.words)


def _rebuilt(cost: Floats, partner_of: Indices, price: Floats, deadline: Deadline) -> Found | None:
    found = None
    for _ in range(PASSES):
        found = refine(cost, partner_of, price, deadline)
        if found is None:
            return None
        partner_of, price = found.partner_of, found.words.sum(axis=0)
    return None if found is None else (found.partner_of, found.words)


def _cold(weights: Costs, maximize: bool, deadline: Deadline) -> dict[str, Array] | None:
    """Solved by the CPU from nothing; None when that ended early."""
    cpu = importlib.import_module("kernels.lap.cpu.solver")
    cold: Solution = cpu.solve_one(weights, maximize, None, None, weights.size, deadline)
    return cold.arrays if cold.termination is Termination.OPTIMAL else None


def _arrays(cost: Floats, found: Found, sign: float, turned: bool) -> dict[str, Array]:
    """In the sense and the orientation of the problem."""
    partner_of, words = found
    n, m = cost.shape
    lines = np.arange(n)
    own = cost[lines, partner_of] - words[0, partner_of]
    own -= words[1:, partner_of].sum(axis=0)
    price, further = sign * words[0], sign * words[1:]
    if turned:
        assignment = np.full(m, UNASSIGNED)
        assignment[partner_of] = lines
        answer = {"assignment": assignment, "u": price, "v": sign * own}
    else:
        answer = {"assignment": partner_of, "u": sign * own, "v": price}
    return answer | ({("u_finer" if turned else "v_finer"): further} if further.any() else {})
