"""Quadratic assignment, checked in whole numbers: every permutation where there are few, else a Gilmore-Lawler bound.

The problem: min over permutations p of sum_ij flow[i, j] distance[p(i), p(j)] + sum_i linear[i, p(i)]. Floats are
integers over one power of two, so every product and sum below is exact.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, dyadic, gap_statements, near, plain, rational
from kernels.problems.arrays import Csr

Ints = list[list[int]]
ENUMERATED = 8
"""Facilities up to which every permutation is tried."""
EARNED = Fraction(1, 2**50)
"""Of the sum of the magnitudes of the answer's products: how far apart objective and bound of an optimum are."""


def check(inputs: Inputs, fixed: dict[int, int], claim: Claim) -> list[Statement]:
    """Every statement of an answer. `inputs`: flow, distance, linear; `fixed`: facility -> location."""
    problem = Problem(inputs, fixed)
    if claim.termination == "infeasible":
        return [problem.no_room()]
    p = claim.arrays["permutation"].tolist()
    if sorted(p) != list(range(problem.n)):
        return [Statement("answer", False, "it is not a permutation")]
    unmet = sum(problem.forbidden(i, k) for i, k in enumerate(p))
    said = [Statement("answer", True, f"a permutation with {unmet} forbidden pairs")]
    if claim.optimal or unmet:
        said.append(Statement("permitted", unmet == 0, f"{unmet} forbidden pairs are used"))
    value, magnitude = problem.value(p), problem.value(p, magnitudes=True)
    slack = magnitude * (problem.n**2 + problem.n) / 2**53 + Fraction(1, 2**1074)
    right = claim.objective is None if unmet else claim.objective is not None and near(claim.objective, value, slack)
    found = "a forbidden pair has none" if unmet else f"{plain(value)} found"
    said.append(Statement("objective", right, f"{claim.objective} is stated, {found}"))
    said.append(_bound(problem, claim))
    if unmet == 0:
        said += gap_statements(claim, value)
    if claim.optimal and claim.facts.get("verified") is False:
        said.append(Statement("optimal", None, "a branch and bound says so (verified: false), and nothing here tells"))
    elif claim.optimal:
        most = Fraction(0) if problem.integer else EARNED * magnitude
        gap = None if claim.gap_abs is None else rational(claim.gap_abs)
        words = f"the gap may be {plain(most)} and is {claim.gap_abs}"
        said.append(Statement("optimal", gap is not None and gap <= most, words))
    return said


def _bound(problem: "Problem", claim: Claim) -> Statement:
    if claim.bound is None:
        return Statement("bound", True, "none is stated")
    if problem.n <= ENUMERATED:
        least = problem.optimum()
        holds = least is None or rational(claim.bound) <= least
        found = "no permutation is permitted" if least is None else f"the optimum is {plain(least)}"
        return Statement("bound", holds, f"{claim.bound} is stated, {found} (every permutation was tried)")
    lawler = problem.gilmore_lawler()
    if rational(claim.bound) <= lawler:
        return Statement("bound", True, f"{claim.bound} is stated, the Gilmore-Lawler bound is {plain(lawler)}")
    words = (
        f"{claim.bound} is stated; the Gilmore-Lawler bound is {plain(lawler)}, and the answer carries no proof of more"
    )
    return Statement("bound", None, words)


class Problem:
    """The three matrices as whole numbers: flow / 2^f, distance / 2^d, linear / 2^(f + d)."""

    def __init__(self, inputs: Inputs, fixed: dict[int, int]) -> None:
        flow, distance, linear = (inputs.get(name) for name in ("flow", "distance", "linear"))
        assert isinstance(flow, np.ndarray)
        assert isinstance(distance, np.ndarray)
        assert not isinstance(linear, Csr)
        self.n = len(flow)
        (self.flow,), f = dyadic(flow)
        (self.distance,), d = dyadic(distance)
        self.shift = f + d
        self.linear: list[list[int | None]] = [[0] * self.n for _ in range(self.n)]
        extra = 0
        if linear is not None:
            (self.linear,), extra = dyadic(linear)
        more = max(0, extra - self.shift)  # bring the products and the linear costs to one denominator
        self.flow = [[x << more for x in row] for row in self.flow]
        self.shift += more
        self.linear = [[None if x is None else x << (self.shift - extra) for x in row] for row in self.linear]
        for facility, location in fixed.items():
            for k in range(self.n):
                if k != location:
                    self.linear[facility][k] = None
                if k != facility:
                    self.linear[k][location] = None
        matrices = [flow, distance] + ([] if linear is None else [linear])
        self.integer = all(m.dtype.kind in "iu" or self._whole(m) for m in matrices)

    @staticmethod
    def _whole(matrix: np.ndarray) -> bool:
        """Integers beside an infinity, which only floats can write, where float64 tells them apart."""
        finite = matrix[np.isfinite(matrix)].tolist()
        return len(finite) < matrix.size and all(x.is_integer() and abs(x) < 2**53 for x in finite)

    def forbidden(self, i: int, k: int) -> bool:
        """Whether facility i must not go to location k."""
        return self.linear[i][k] is None

    def value(self, p: list[int], magnitudes: bool = False) -> Fraction:
        """The objective of a permutation, or the sum of the magnitudes of its terms; forbidden pairs cost 0."""
        size = abs if magnitudes else int
        products = sum(size(self.flow[i][j] * self.distance[p[i]][p[j]]) for i in range(self.n) for j in range(self.n))
        return Fraction(products + sum(size(self.linear[i][k] or 0) for i, k in enumerate(p)), 2**self.shift)

    def permitted(self, taken: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
        """Every permutation without a forbidden pair."""
        if len(taken) == self.n:
            yield taken
            return
        for k in range(self.n):
            if k not in taken and not self.forbidden(len(taken), k):
                yield from self.permitted((*taken, k))

    def optimum(self) -> Fraction | None:
        """The least objective of them all; None when none is permitted."""
        return min((self.value(list(p)) for p in self.permitted()), default=None)

    def no_room(self) -> Statement:
        """Whether really no permutation is permitted."""
        if self.n <= ENUMERATED:
            none = next(self.permitted(), None) is None
            return Statement(
                "infeasible", none, "every permutation was tried" if none else "a permutation is permitted"
            )
        matched = _matched([[k for k in range(self.n) if not self.forbidden(i, k)] for i in range(self.n)])
        return Statement("infeasible", matched < self.n, f"at most {matched} facilities find a permitted location")

    def gilmore_lawler(self) -> Fraction:
        """Pair (i, k) pays at least l_ik; the cheapest assignment of those is a bound (Gilmore 1962, Lawler 1963)."""
        n = self.n
        low = [[0] * n for _ in range(n)]
        for i in range(n):
            busy = sorted((self.flow[i][j] for j in range(n) if j != i), reverse=True)
            for k in range(n):
                near = sorted(self.distance[k][m] for m in range(n) if m != k)
                pairs = sum(x * y for x, y in zip(busy, near, strict=True))
                low[i][k] = pairs + self.flow[i][i] * self.distance[k][k] + (self.linear[i][k] or 0)
        return Fraction(_least_assignment(low), 2**self.shift)


def _least_assignment(cost: Ints) -> int:
    """The least sum of one entry a row and a column: shortest augmenting paths in integers."""
    n = len(cost)
    u, v, row_of = [0] * (n + 1), [0] * (n + 1), [0] * (n + 1)
    for i in range(1, n + 1):
        row_of[0], j = i, 0
        least: list[int | None] = [None] * (n + 1)
        came, done = [0] * (n + 1), [False] * (n + 1)
        while row_of[j]:
            done[j] = True
            step, to = None, 0
            for k in range(1, n + 1):
                if done[k]:
                    continue
                reach = cost[row_of[j] - 1][k - 1] - u[row_of[j]] - v[k]
                best = least[k]
                if best is None or reach < best:
                    least[k], came[k], best = reach, j, reach
                if step is None or best < step:
                    step, to = best, k
            assert step is not None
            for k in range(n + 1):
                rest = least[k]
                if done[k]:
                    u[row_of[k]] += step
                    v[k] -= step
                elif rest is not None:
                    least[k] = rest - step
            j = to
        while j:
            row_of[j], j = row_of[came[j]], came[j]
    return sum(cost[row_of[j] - 1][j - 1] for j in range(1, n + 1))


def _matched(places: list[list[int]]) -> int:
    """How many rows can have a place of their own."""
    taken: dict[int, int] = {}

    def settle(i: int, seen: set[int]) -> bool:
        for k in places[i]:
            if k not in seen:
                seen.add(k)
                if k not in taken or settle(taken[k], seen):
                    taken[k] = i
                    return True
        return False

    return sum(settle(i, set()) for i in range(len(places)))
