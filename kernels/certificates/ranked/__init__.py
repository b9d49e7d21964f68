"""Proofs for a list of the best assignments: nothing outside the list is better than its last.

Every assignment of the list has an origin in it and a split s: its first s lines are paired as its origin's, and line s
is not paired with what its origin, and its origins by the same split, have there. So a pair (origin, split) names a
part of all assignments. The parts of an assignment q, for its own split and every later one, hold all assignments of
q's part but q itself, each once: an assignment that differs from q first at line s lies in part (q, s). With the root,
whose origin is nothing and whose split is 0, it follows by induction that the list and the parts that are nobody's hold
all assignments, provided no two of the list name the same part. This is all that is checked of the partition.

For a part that is nobody's, any v of the columns that its first lines leave give a bound:

    the cost of its first lines + sum over the other lines of min (c_ij - v_j) + sum of v_j

over the columns and entries that are left to it. Lines are those of the shorter side, with lines of zeros that make the
matrix square. Integers are exact; of floats every difference is rounded down, and sums are exact and rounded once.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from kernels.certificates.assignment_bound import LARGEST_PRICE, TOP, natural_scale
from kernels.certificates.assignment_groups import WORST
from kernels.certificates.assignment_hall import check
from kernels.certificates.rounded import share_up, sub_down, sum_down, sum_up
from kernels.problems import UNASSIGNED, Array
from kernels.problems.arrays import permitted
from kernels.problems.ranked import Ranked
from kernels.solution import Certificate, Number, Solution, Termination, unheard

OF_PAIRS, OF_DATA = Fraction(1, 2**50), Fraction(1, 10**9)


def certify(problem: Ranked, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute the objectives, the parts that are left and their bounds; `holds` is False where this is no answer."""
    if solution.termination not in WORST:
        return _refused(f"an assignment does not end with {solution.termination.value}")
    if solution.termination is Termination.INFEASIBLE:
        return _infeasible(problem, solution)
    turned = problem.weights.shape[0] > problem.weights.shape[1]
    lines = problem.weights.T if turned else problem.weights
    partner = _partners(problem, solution, turned)
    if isinstance(partner, str):
        return _refused(partner)
    taken = np.take_along_axis(lines[None], partner[:, :, None], axis=2)[:, :, 0]
    if not permitted(taken).all():
        return _refused("a forbidden entry is assigned")
    sign, exact = (-1 if problem.maximize else 1), lines.dtype.kind == "i"
    sums: list[Number] = [
        sum(one) if exact else sum_up(one)
        for one in (sign * taken.astype(np.float64 if not exact else np.int64)).tolist()
    ]
    if not _in_order(sums, sign, taken):
        return _refused("the list is not in the order of its objectives")
    parts = _Parts(lines, sign, partner, solution)
    if parts.wrong:
        return _refused(parts.wrong)
    rest = parts.least(progress)
    return _judged(problem, solution, sums, rest, taken, parts)


def _in_order(sums: list[Number], sign: int, taken: Array) -> bool:
    """Whether no assignment is better than the one before it; sums that were rounded to the same are told apart."""

    def exactly(q: int) -> Fraction:
        return sign * sum(map(Fraction, taken[q].tolist()), Fraction(0))

    return all(
        a < b or (a == b and (isinstance(a, int) or exactly(q) <= exactly(q + 1)))
        for q, (a, b) in enumerate(pairwise(sums))
    )


def _refused(why: str) -> Certificate:
    return Certificate(None, None, None, None, 0, False, why)


def _infeasible(problem: Ranked, solution: Solution) -> Certificate:
    sides = [solution.arrays.get(name) for name in ("hall_rows", "hall_cols")]
    if sides[0] is None or sides[1] is None:
        return _refused("the Hall violator is missing")
    violator = check(problem.weights, sides[0], sides[1])
    return Certificate(None, None, None, None, 0, violator.holds, violator.proved, {"unassigned": 0})


def _partners(problem: Ranked, solution: Solution, turned: bool) -> Array | str:
    """The partner of each line of the shorter side in each assignment, (k, n_lines), or what is wrong with the list."""
    given = solution.arrays.get("assignments")
    n_rows, n_cols = problem.weights.shape
    if given is None or given.ndim != 2 or given.shape[1] != n_rows or given.dtype.kind != "i" or not len(given):
        return "assignments have the wrong shape or dtype"
    first = solution.arrays.get("assignment")
    if first is not None and not np.array_equal(first, given[0]):
        return "`assignment` is not the first of the list"
    if len(given) > problem.count:
        return f"{len(given)} assignments are listed; {problem.count} were asked for"
    if (given < UNASSIGNED).any() or (given >= n_cols).any():
        return "a column is out of range"
    if not turned:
        ordered = np.sort(given, axis=1)
        if (given == UNASSIGNED).any() or (ordered[:, 1:] == ordered[:, :-1]).any():
            return "a row is unassigned, or a column assigned twice"
        return given
    used = np.zeros((len(given), n_cols), np.int64)
    k, rows = np.nonzero(given != UNASSIGNED)
    np.add.at(used, (k, given[k, rows]), 1)
    if (used != 1).any():
        return "a column is unassigned, or assigned twice"
    partner = np.empty((len(given), n_cols), np.int64)
    partner[k, given[k, rows]] = rows
    return partner


class _Parts:
    """The parts that nobody of the list has, and what bounds them."""

    def __init__(self, lines: Array, sign: int, partner: Array, solution: Solution) -> None:
        self.partner, self.exact = partner, lines.dtype.kind == "i"
        kind = np.dtype(np.int64 if self.exact else np.float64)
        self.allowed = permitted(lines)
        self.cost = np.where(self.allowed, lines, 0).astype(kind) * sign
        self.wrong = ""
        count, (n, m) = len(partner), lines.shape
        found = solution.evidence
        origins, splits = (found.get(name, np.zeros(0)) for name in ("origins", "splits"))
        if any(side.shape != (count,) or side.dtype.kind != "i" for side in (origins, splits)):
            self.wrong = "it is not said how the list came about"
            return
        self.origins, self.splits = origins.tolist(), splits.tolist()
        self._check(count, n)
        self.v = self._usable(found.get("v"), count, m, kind)
        named, own = found.get("open_parts"), found.get("open_v")
        self.own: dict[tuple[int, int], Array] = {}
        if named is not None and own is not None and named.ndim == 2 and named.shape[1:] == (2,):
            prices = self._usable(own, len(named), m, kind)
            self.own = {(q, s): v for (q, s), v in zip(map(tuple, named.tolist()), prices, strict=True)}

    @staticmethod
    def _usable(v: Array | None, count: int, m: int, kind: np.dtype[np.generic]) -> Array:
        """Prices (count, m), 0 for what is none."""
        if v is None or v.shape != (count, m) or v.dtype.kind != kind.kind:
            return np.zeros((count, m), kind)
        if kind.kind == "i":
            kept = (np.abs(v) <= LARGEST_PRICE["i"]) & (v > -TOP)
        else:
            kept = np.abs(v) <= LARGEST_PRICE["f"] / (4 * m)  # so that no sum leaves float64
        return np.where(kept, v, np.zeros((), kind)).astype(kind)

    def _check(self, count: int, n: int) -> None:
        """Whether the list is a partition's: see the top of this file."""
        roots = [q for q in range(count) if self.origins[q] == -1]
        if len(roots) != 1 or self.splits[roots[0]] != 0:
            self.wrong = "the list has not one root"
            return
        if any(not -1 <= o < count for o in self.origins) or any(not 0 <= s < n for s in self.splits):
            self.wrong = "an origin or a split is out of range"
            return
        if len(set(zip(self.origins, self.splits, strict=True))) < count:
            self.wrong = "two of the list are of the same part"
            return
        self.barred: list[set[int] | None] = [None] * count
        self.barred[roots[0]] = set()
        for q in range(count):
            if not self._came(q):
                self.wrong = f"assignment {q} is not in the part that it is said to be of"
                return

    def _came(self, q: int) -> bool:
        """Whether q lies in its part; works out what its part bars at its split, and that of its origins."""
        chain: list[int] = []
        while self.barred[q] is None:
            if len(chain) > len(self.origins):
                return False
            chain.append(q)
            q = self.origins[q]
        for one in reversed(chain):
            origin, split = self.origins[one], self.splits[one]
            before = self.barred[origin]
            assert before is not None
            if split < self.splits[origin] or (self.partner[one, :split] != self.partner[origin, :split]).any():
                return False
            barred = {int(self.partner[origin, split])} | (before if split == self.splits[origin] else set())
            if int(self.partner[one, split]) in barred:
                return False
            self.barred[one] = barred
        return True

    def least(self, heard: Callable[[float], None]) -> Number | None:
        """The least bound of the parts that nobody has; None where there is no assignment outside the list."""
        taken = set(zip(self.origins, self.splits, strict=True))
        least: Number | None = None
        n = self.cost.shape[0]
        most = self._most()
        for q in range(len(self.partner)):
            nets = self._nets(self.v[q])
            for split in range(self.splits[q], n):
                if (q, split) in taken:
                    continue
                own = self.own.get((q, split))
                bound = self._bound(
                    q, split, self.v[q] if own is None else own, nets if own is None else self._nets(own)
                )
                if bound is not None and bound <= most and (least is None or bound < least):
                    least = bound
            heard((q + 1) / len(self.partner))
        return least

    def _most(self) -> Number:
        """What no assignment costs more than: a part with a larger bound is empty."""
        if self.exact:
            return int(sum(np.max(self.cost, axis=1, where=self.allowed, initial=-TOP).tolist()))
        return sum_up(np.max(self.cost, axis=1, where=self.allowed, initial=-LARGEST_PRICE["f"]))

    def _nets(self, v: Array) -> Array:
        """c - v, exact or rounded down; TOP or inf where it is forbidden."""
        if self.exact:
            return np.where(self.allowed, self.cost - v, TOP)
        return np.where(self.allowed, sub_down(self.cost, v), np.inf)

    def _bound(self, q: int, split: int, v: Array, nets: Array) -> Number | None:
        """The bound of part (q, split); None where it is empty."""
        n, m = self.cost.shape
        worst = TOP if self.exact else np.inf
        kept = self.partner[q, :split]
        free = np.ones(m, bool)
        free[kept] = False
        least = np.min(nets[split:], axis=1, where=free, initial=worst)
        barred = self.barred[q]
        assert barred is not None
        first = free.copy()
        first[int(self.partner[q, split])] = False
        if split == self.splits[q] and barred:
            first[list(barred)] = False
        least[0] = np.min(nets[split], where=first, initial=worst)
        if (least == worst).any():
            return None
        prices = v[free]
        fixed = self.cost[np.arange(split), kept]
        zeros = np.full(m - n, -prices.max()) if m > n else prices[:0]
        if self.exact:
            return int(sum(fixed.tolist()) + sum(least.tolist()) + sum(zeros.tolist()) + sum(prices.tolist()))
        return sum_down(np.concatenate([fixed, least, zeros, prices]))


def _judged(
    problem: Ranked, solution: Solution, sums: list[Number], rest: Number | None, taken: Array, parts: _Parts
) -> Certificate:
    """The word that the list earns, by its last and by what is left."""
    sign, exact = (-1 if problem.maximize else 1), parts.exact
    bound: Number = sums[0] if exact else min(map(sum_down, (sign * taken.astype(np.float64)).tolist()))
    bound = bound if rest is None else min(bound, rest)
    gap = sums[0] - bound if exact else sum_up([sums[0], -bound])
    behind: Number = 0
    if rest is not None:
        behind = max(0, sums[-1] - rest) if exact else max(0.0, sum_up([sums[-1], -rest]))
    complete = len(sums) == problem.count or rest is None
    word = solution.termination
    if word is Termination.OPTIMAL and not (complete and (behind == 0 or _is_rounding(problem, behind, taken, parts))):
        word = Termination.CONVERGED
    arithmetic = "in exact integers" if exact else "without rounding but of differences and last sums, outward"
    outside = "there is no other assignment" if rest is None else f"no other assignment is beyond {sign * rest}"
    facts = {
        "unassigned": 0,
        "objectives": [sign * value + 0 for value in sums],
        "others_bound": None if rest is None else sign * rest + 0,
        "list_gap": behind,
    }
    return Certificate(
        objective=sign * sums[0] + 0,
        bound=sign * bound + 0,
        gap_abs=gap,
        gap_rel=share_up(gap, sums[0], bound),
        max_violation=0,
        holds=True,
        proved=f"{len(sums)} different assignments in order; {outside}, by duals of the parts, recomputed {arithmetic}",
        facts=facts,
        termination=None if word is solution.termination else word,
    )


def _is_rounding(problem: Ranked, behind: Number, taken: Array, parts: _Parts) -> bool:
    """Whether the list's gap is what rounding alone may leave."""
    if parts.exact:
        return False
    last = taken[-1].astype(np.float64)
    price = parts.v[-1][parts.partner[-1]]
    own = np.maximum(np.abs(last), np.abs(price))
    size = Fraction(sum_down(np.concatenate([np.abs(last), own, np.abs(price)])))
    data = max(abs(Fraction(sum_up(last))), Fraction(natural_scale(problem.weights)))
    return Fraction(behind) <= OF_PAIRS * size and Fraction(behind) <= OF_DATA * data
