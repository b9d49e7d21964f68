import math
from fractions import Fraction
from itertools import permutations
from math import fsum

import numpy as np
from scipy.optimize import linear_sum_assignment

from kernels import FORBIDDEN, Array


def brute_force(cost: Array, maximize: bool = False) -> float | int | None:
    """The optimum over every pairing; None when there is none. For at most 8 lines on the shorter side."""
    if cost.shape[0] > cost.shape[1]:
        cost = cost.T
    rows = np.arange(cost.shape[0])
    every: list[float | int] = [
        cost[rows, list(p)].astype(float).sum().item() for p in permutations(range(cost.shape[1]), cost.shape[0])
    ]
    permitted = [value for value in every if np.isfinite(value)]
    if not permitted:
        return None
    return max(permitted) if maximize else min(permitted)


def scipy_optimum(cost: Array, maximize: bool = False) -> float | int | None:
    """SciPy's objective; None when infeasible. Right for integers whose sums float64 holds."""
    try:
        rows, cols = linear_sum_assignment(cost, maximize)
    except ValueError:
        return None
    taken = cost[rows, cols]
    return sum(taken.tolist()) if cost.dtype.kind == "i" else fsum(taken)


def exact_optimum(cost: Array, maximize: bool = False) -> Fraction | None:
    """The optimum in rational numbers, row by row over the sets of columns taken; None when infeasible.

    For at most a dozen lines on the longer side. Floats and integers are taken at their exact values.
    """
    entries = [
        [None if not math.isfinite(entry) or entry == FORBIDDEN else Fraction(entry) for entry in row]
        for row in (cost.T if cost.shape[0] > cost.shape[1] else cost).tolist()
    ]
    best = {0: Fraction(0)}
    for row in entries:
        reached: dict[int, Fraction] = {}
        for taken, value in best.items():
            for j, entry in enumerate(row):
                if entry is None or taken >> j & 1:
                    continue
                also, total = taken | 1 << j, value + entry
                if also not in reached or (total > reached[also] if maximize else total < reached[also]):
                    reached[also] = total
        best = reached
    return (max if maximize else min)(best.values(), default=None)
