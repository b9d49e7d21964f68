"""Quadratic assignment in fractions, every permutation of it; obvious, never optimised."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from kernels.problems import QuadraticAssignment


def objective(problem: QuadraticAssignment, permutation: Any) -> Fraction:
    n, p = problem.n, [int(x) for x in permutation]
    flow, distance = ([[Fraction(x) for x in row] for row in m.tolist()] for m in (problem.flow, problem.distance))
    total = sum((flow[i][j] * distance[p[i]][p[j]] for i in range(n) for j in range(n)), Fraction(0))
    if problem.linear is not None:
        total += sum(Fraction(problem.linear[i, p[i]].item()) for i in range(n))
    return total


def optimum(problem: QuadraticAssignment) -> Fraction | None:
    """None where every permutation uses a forbidden pair."""
    allowed = [p for p in permutations(range(problem.n)) if problem.allows(np.array(p))]
    return min((objective(problem, p) for p in allowed), default=None)
