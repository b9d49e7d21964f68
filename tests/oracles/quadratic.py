"""Brute force and textbook formulas; obvious, never optimised."""

from itertools import permutations
from typing import Any

import numpy as np

from kernels import Array


def objective(flow: Array, distance: Array, permutation: Any, linear: Array | None = None) -> Any:
    n = len(permutation)
    total = sum(flow[i, j].item() * distance[permutation[i], permutation[j]].item() for i in range(n) for j in range(n))
    return total + (0 if linear is None else sum(linear[i, permutation[i]].item() for i in range(n)))


def optimum(flow: Array, distance: Array, linear: Array | None = None) -> Any:
    n = flow.shape[0]
    every = np.array(list(permutations(range(n))))
    totals = np.zeros(len(every), flow.dtype)
    for i in range(n):
        for j in range(n):
            totals += flow[i, j] * distance[every[:, i], every[:, j]]
        if linear is not None:
            totals += linear[i, every[:, i]]
    return totals.min().item()
