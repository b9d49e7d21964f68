"""What the search and the bound work on: integers, both halves of a pair added up, fixed facilities folded away."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernels.problems.arrays import Amounts, Indices, Integers
from kernels.problems.lawler import LawlerAssignment
from kernels.solution import Number

BITS = 49
"""Objectives stay below 2^BITS: sums of a few of them, and their scale in the bound, fit int64."""


@dataclass(frozen=True, eq=False)
class FoldedForm:
    """The free facilities and places, counted from 0, with integer costs to be minimised.

    An objective here is floor(cost 2^exponent) summed up, `constant` included: of integers that fit, and of floats of
    few bits, it is the objective itself times 2^exponent. Else it is below that by less than m^2.

    `costs` (k, k, k, k) int64: facility, place, facility, place; 0 where one of these is the other.
    `singles` (k, k) int64: what facility i pays at place p alone.
    `facilities`, `places`: (k,) int64, which ones they are in the problem.
    `reach`: no objective is beyond it; m^2 times the largest cost.
    """

    costs: Integers
    singles: Integers
    constant: int
    exponent: int
    facilities: Indices
    places: Indices
    reach: int
    problem: LawlerAssignment

    @property
    def k(self) -> int:
        """Free facilities."""
        return int(self.singles.shape[0])

    @cached_property
    def pairs(self) -> Integers:
        """(k^2, k^2) int64: what (i, p) and (j, q) cost together, both ways; row i k + p."""
        both = self.costs + self.costs.transpose(2, 3, 0, 1)
        return np.ascontiguousarray(both.reshape(self.k**2, self.k**2))

    @cached_property
    def grain(self) -> int:
        """A divisor of every objective less `constant`; 0 where all of them are 0."""
        found = int(np.gcd.reduce(self.singles, axis=None)) if self.k else 0
        for row in self.pairs:
            if found == 1:
                break
            if not found or (row % found).any():  # a remainder is several times as fast as a gcd
                found = math.gcd(found, int(np.gcd.reduce(row)))
        return found

    def permutation(self, p: Indices) -> Indices:
        """The whole problem's permutation; p is that of the free facilities."""
        whole = np.empty(self.problem.n, np.int64)
        for facility, place in self.problem.fixed.items():
            whole[facility] = place
        whole[self.facilities] = self.places[p]
        return whole

    def within(self, permutation: Indices) -> Indices:
        """The permutation of the free facilities in one of the whole problem."""
        found: Indices = np.searchsorted(self.places, permutation[self.facilities]).astype(np.int64)
        return found

    def number(self, value: int) -> Number:
        """An objective or bound of here, in the problem's units and its sense."""
        value = -value if self.problem.maximize else value
        if self.problem.integer:
            return value << -self.exponent
        return math.ldexp(value, -self.exponent)


def form_of(problem: LawlerAssignment) -> FoldedForm:
    """The form of a problem."""
    m, n = problem.facilities, problem.n
    whole = np.zeros((n, n, n, n), np.int64)
    whole[:m, :, :m, :], exponent = _integers(-problem.cost if problem.maximize else problem.cost)
    taken, used = list(problem.fixed), list(problem.fixed.values())
    facilities, places = (np.setdiff1d(np.arange(n), gone) for gone in (taken, used))
    index = np.ix_(facilities, places)
    singles = whole[facilities[:, None], places, facilities[:, None], places]
    constant = 0
    for facility, place in problem.fixed.items():
        singles = singles + whole[facility, place][index] + whole[:, :, facility, place][index]
        constant += int(whole[facility, place, taken, used].sum())
    costs = np.ascontiguousarray(whole[np.ix_(facilities, places, facilities, places)])
    every = np.arange(len(facilities))
    costs[every, :, every, :] = 0
    reach = m * m * max(int(whole.max()), -int(whole.min()))
    return FoldedForm(costs, np.ascontiguousarray(singles), constant, exponent, facilities, places, reach, problem)


def _integers(cost: Amounts) -> tuple[Integers, int]:
    """(integers, exponent): cost 2^exponent, rounded down, with no common factor of 2."""
    m = cost.shape[0]
    largest = max(abs(cost.max().item()), abs(cost.min().item()))
    if not largest:
        return np.zeros(cost.shape, np.int64), 0
    whole: Integers
    if cost.dtype.kind == "i":
        exponent = min(0, BITS - (m * m * largest).bit_length())
        whole = cost >> -exponent
    else:
        exponent = BITS - math.frexp(largest)[1] - (m * m).bit_length()
        scaled = np.floor(np.ldexp(cost, exponent))
        scaled[(scaled == 0) & (cost < 0)] = -1  # what underflowed was rounded towards 0
        whole = scaled.astype(np.int64)
    bits = int(np.bitwise_or.reduce(whole, axis=None))
    spare = (bits & -bits).bit_length() - 1
    return whole >> spare, exponent - spare
