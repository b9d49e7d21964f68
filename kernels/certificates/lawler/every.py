"""Up to LARGEST free facilities: what the cheapest of all permutations costs, exactly."""

from fractions import Fraction
from itertools import permutations
from math import factorial

import numpy as np

from kernels.certificates.exact.statement import dyadic
from kernels.certificates.lawler.whole import pieces_of, whole_of
from kernels.problems.arrays import Array
from kernels.problems.lawler import LawlerAssignment

LARGEST = 8


def cheapest(problem: LawlerAssignment) -> Fraction:
    """The least objective of a problem to be minimised; a maximum is that of the negated costs.

    Integers rounded down single out the permutations that may be the best, and Python's decide among them.
    """
    whole = whole_of(problem)
    every = np.array(list(permutations(range(problem.free))), np.int64).reshape(factorial(problem.free), problem.free)
    costs = _priced(whole.quads, whole.singles, every)
    if not whole.hidden:
        return whole.worth(int(costs.min()) + whole.constant)
    near = every[costs < costs.min() + problem.facilities**2]
    pieces = pieces_of(-problem.cost if problem.maximize else problem.cost, problem)
    (quads, singles, constants), shift = dyadic(*pieces)
    exactly = np.array(singles, object).reshape(pieces.singles.shape).sum(axis=0)
    found = _priced(np.array(quads, object).reshape(pieces.quads.shape), exactly, near)
    constant = sum(sum(row) for row in constants)
    return Fraction(min(found.tolist()) + constant, 1 << shift)


def _priced(quads: Array, singles: Array, every: Array) -> Array:
    """The cost of each permutation, of int64 or of Python's integers."""
    k = every.shape[1]
    total = np.zeros(len(every), quads.dtype)
    for i in range(k):
        total = total + singles[i, every[:, i]]
        for j in range(k):
            if i != j:
                total = total + quads[i, every[:, i], j, every[:, j]]
    return total
