"""Small problems: every permutation is looked at, and the best of them told apart in exact arithmetic."""

import functools
from fractions import Fraction
from itertools import permutations
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Amounts, Flags, Floats, Indices, Integers, Wholes
from kernels.qap import outcome
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.qap import QapOptions

LARGEST_N = 8
"""40,320 permutations, in about 10 ms."""
MEMBERS = 8


def solve(problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline) -> Solution:
    """Find the optimum of a feasible problem by enumeration, whatever the method asked for.

    Floats: costs in float64 single out the permutations that may be the best, and integers decide among them.
    Returns arrays `permutation` and, on request, `population`: the best ones by cost. Bounds are worked out where they
    are named.
    """
    proofs = [] if options.bounds == "auto" else outcome.first_bounds(problem, options, deadline)
    every = _everyone(problem.n)
    if problem.forbidden is not None:
        every = every[~problem.forbidden[np.arange(problem.n), every].any(axis=1)]
    costs, error = _costs(problem, every)
    best = int(costs.argmin())
    if not problem.integer:
        best = _least(problem, every, np.flatnonzero(costs <= costs[best] + 2 * error))
    members: list[Indices] = []
    if options.population:
        order = np.argsort(costs, kind="stable")[: options.starts or MEMBERS]
        order = np.r_[best, order[order != best]][: len(order)]
        members = list(every[order].astype(np.int64))
    facts: dict[str, Any] = {"rounds": 0, "restarts": 0, "moves": 0, "nodes": 0, "enumerated": len(every)}
    found = every[best].astype(np.int64)
    objective = problem.objective(found)
    deadline.report(len(every), objective, objective, 1.0)
    searched = outcome.Searched(found, Termination.OPTIMAL, len(every), facts, members)
    return outcome.solution(options, searched, proofs, 0.0, method="enumeration")


@functools.cache
def _everyone(n: int) -> Flags:
    found = np.fromiter((x for p in permutations(range(n)) for x in p), np.int8, n * factorial(n))
    return found.reshape(-1, n)


def _costs(problem: QuadraticAssignment, every: Flags) -> tuple[Amounts, float]:
    """The cost of each permutation, int64 or float64, and how far off any may be."""
    n, flow, distance = problem.n, problem.flow, problem.distance
    single = np.outer(flow.diagonal(), distance.diagonal())
    linear = np.zeros_like(flow) if problem.linear is None else problem.linear
    size = float((np.abs(single).max(axis=1) + np.abs(linear).max(axis=1)).sum())  # they may cancel
    single = single + linear
    costs = np.zeros(len(every), flow.dtype)
    for i in range(n):
        costs += single[i, every[:, i]]
        for k in range(i):
            if flow[i, k] or flow[k, i]:
                pair = flow[i, k] * distance + flow[k, i] * distance.T
                costs += pair.ravel()[every[:, i].astype(np.int64) * n + every[:, k]]
                size += float((np.abs(flow[i, k]) + np.abs(flow[k, i])) * np.abs(distance).max())
    # n (n + 1) / 2 additions, three roundings in each term; and what underflows
    return costs, 0.0 if problem.integer else 2.0**-46 * size + n * n * 2.0**-1073


def _least(problem: QuadraticAssignment, every: Flags, candidates: Integers) -> int:
    """The candidate of the least cost, told apart in integers: all data are multiples of powers of two."""
    if len(candidates) == 1:
        return int(candidates[0])
    n, every = problem.n, every[candidates].astype(np.int64)
    flow, of_flow = _integers(problem.flow)
    distance, of_distance = _integers(problem.distance)
    linear, of_linear = _integers(np.zeros((n, n)) if problem.linear is None else problem.linear)
    unit = min(of_flow + of_distance, of_linear)
    up, more = 1 << (of_flow + of_distance - unit), 1 << (of_linear - unit)
    costs = np.zeros(len(candidates), object)
    for i in range(n):
        costs += (flow[i, i] * distance.diagonal() * up + linear[i] * more)[every[:, i]]
        for k in range(i):
            if flow[i, k] or flow[k, i]:
                pair = (flow[i, k] * distance + flow[k, i] * distance.T) * up
                costs += pair[every[:, i], every[:, k]]
    return int(candidates[costs.argmin()])


def _integers(matrix: Floats) -> tuple[Wholes, int]:
    """Python integers, and the power of two that they are multiplied by."""
    entries = [[Fraction(x) for x in row] for row in matrix.tolist()]
    deepest = max(x.denominator for row in entries for x in row)
    return np.array([[int(x * deepest) for x in row] for row in entries], object), 1 - deepest.bit_length()
