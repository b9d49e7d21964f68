"""What is proved of each problem: its pairing, its objective, its bound, and the word that these earn."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kernels.certificates.rejecting import bound as dual
from kernels.certificates.rounded import sum_down, sum_up
from kernels.problems import UNASSIGNED, Array, Rejecting
from kernels.problems.arrays import FORBIDDEN, permitted
from kernels.solution import Number, Termination

OF_PAIRS, OF_DATA = 50, 1e-9
"""The gap of an optimum in floats is at most 2^-OF_PAIRS of its pairs' sizes, and OF_DATA of the data's."""
SHORT_OF = 1 - 2.0**-20
"""A sum of fewer than 2^32 sizes in working precision, times this, is not above the exact one (Higham, section 4.2)."""
TOO_MUCH = 2.0**970
"""2^50 times this is beyond float64, and so beyond what any pairs' sizes add up to."""


@dataclass(frozen=True)
class Answer:
    """Flat arrays of all problems: the column of each row within its problem, and the duals as given.

    `u_finer`, `v_finer`: further words (n_words, lines), whose sum with the first is meant; None without.
    """

    assignment: Array
    u: Array
    v: Array
    u_finer: Array | None
    v_finer: Array | None


@dataclass(slots=True)
class Proof:
    """One problem's part of the certificate; `why` says what is wrong where the answer is none."""

    ended: Termination
    objective: Number | None = None
    bound: Number | None = None
    gap: Number | None = None
    violation: Number = 0
    unassigned: int = 0
    left: int = 0
    why: str = ""
    claim: str = ""


def judged(problem: Rejecting, answer: Answer, ended: list[Termination], heard: Callable[[float], None]) -> list[Proof]:
    """The proof of each problem."""
    sign, starts = -1 if problem.maximize else 1, problem.starts
    prices = [min_form(array, sign) for array in (problem.row_prices, problem.col_prices)]
    usable = [dual.usable(sign * given, cap) for given, cap in zip((answer.u, answer.v), prices, strict=True)]
    sides = _sides(problem, starts, prices, usable)
    high, low = dual.smallest(sides, sign)
    heard(0.5)
    lines = np.concatenate([[0], np.cumsum([len(side.top) for side in sides])]).astype(np.int64).tolist()
    chosen = _Chosen(problem, answer, starts, sign, prices)
    violations = _violations(problem, answer, prices, sign, high, lines)
    proofs = []
    for k, word in enumerate(ended):
        own = slice(lines[k], lines[k + 1])
        proof = chosen.proof(k, word)
        if not proof.why:
            _bounded(proof, sides[k], high[own], low[own], sign, _finer(problem, answer, starts, k))
            proof.violation = violations[k]
            _judge(proof, problem, chosen, k, sides[k], high[own], sign)
        proofs.append(proof)
    return proofs


def min_form(prices: Array, sign: int) -> Array:
    """Prices in min form; TOP or inf where a line must be paired."""
    if prices.dtype.kind == "i":
        return np.where(prices == FORBIDDEN, dual.TOP, sign * prices)
    return sign * prices


def _sides(problem: Rejecting, starts: Array, prices: list[Array], usable: list[Array]) -> list[dual.Side]:
    """The problems, each turned so that its lines are those of the shorter side."""
    (r, s), (u, v) = prices, usable
    found = []
    at = starts.tolist()
    for (e, i, j), (_, i_end, j_end) in pairwise(at):
        rows, cols = slice(i, i_end), slice(j, j_end)
        n, m = i_end - i, j_end - j
        matrix = problem.costs[e : e + n * m].reshape(n, m)
        if n > m:
            found.append(dual.Side(matrix.T, s[cols], r[rows], u[rows]))
        else:
            found.append(dual.Side(matrix, r[rows], s[cols], v[cols]))
    return found


def _finer(problem: Rejecting, answer: Answer, starts: Array, k: int) -> Array | None:
    """All words of the longer side's duals of problem k; None where the first says all."""
    by_rows = problem.sizes[k, 0] > problem.sizes[k, 1]
    words, first, side = (answer.u_finer, answer.u, 1) if by_rows else (answer.v_finer, answer.v, 2)
    own = slice(starts[k, side], starts[k + 1, side])
    if words is None or not words[:, own].any():
        return None
    return np.concatenate([first[None, own], words[:, own]])


def _violations(
    problem: Rejecting, answer: Answer, prices: list[Array], sign: int, high: Array, lines: list[int]
) -> list[Number]:
    """By how much the duals given are above what the others, and the prices of leaving, allow: of each problem."""
    count = len(problem.sizes)
    turned = problem.sizes[:, 0] > problem.sizes[:, 1]
    worst = np.zeros(count, high.dtype)
    top = dual.TOP if high.dtype.kind == "i" else np.inf
    for side, given in enumerate((answer.u, answer.v)):
        member = np.repeat(np.arange(count), problem.sizes[:, side])
        shorter = (turned if side else ~turned)[member]
        most = prices[side].copy()
        most[shorter] = np.concatenate(
            [high[lines[k] : lines[k + 1]] for k in range(count) if turned[k] == bool(side)] or [high[:0]]
        )
        sane = dual.usable(sign * given, np.full(len(given), top, high.dtype))
        over = np.where(most == top, 0, sane - np.where(most == top, 0, most))
        np.maximum.at(worst, member, np.where(sane == sign * given, over, top))
    return worst.tolist()


class _Chosen:
    """The pairs and the lines left of all problems."""

    def __init__(self, problem: Rejecting, answer: Answer, starts: Array, sign: int, prices: list[Array]) -> None:
        count, self.problem, self.starts, self.sign = len(problem.sizes), problem, starts, sign
        member = np.repeat(np.arange(count), problem.sizes[:, 0])
        row = np.arange(len(member)) - starts[member, 1]
        given = answer.assignment.astype(np.int64)
        paired = np.flatnonzero(given != UNASSIGNED)
        owner, column = member[paired], given[paired]
        outside = (column < 0) | (column >= problem.sizes[owner, 1])
        self.bad = np.zeros(count, bool)
        self.bad[owner[outside]] = True
        paired, owner, column = paired[~outside], owner[~outside], column[~outside]
        times = np.bincount(starts[owner, 2] + column, minlength=int(starts[-1, 2]))
        self.bad[np.repeat(np.arange(count), problem.sizes[:, 1])[times > 1]] = True
        costs = problem.costs[starts[owner, 0] + row[paired] * problem.sizes[owner, 1] + column]
        self.barred = np.zeros(count, bool)
        self.barred[owner[~permitted(costs)]] = True
        self.begins = np.searchsorted(owner, np.arange(count + 1)).tolist()
        self.costs = sign * costs.astype(prices[0].dtype) if len(costs) else np.zeros(0, prices[0].dtype)
        self.rows, self.columns, self.prices = row[paired], column, prices
        self.exact = prices[0].dtype.kind == "i"
        left = [np.flatnonzero(given == UNASSIGNED), np.flatnonzero(times == 0)]
        self._first = [np.searchsorted(left[side], starts[:, side + 1]).tolist() for side in (0, 1)]
        self._left = left
        self._left_prices = [prices[side][left[side]] for side in (0, 1)]
        self.must = []
        for side, own in enumerate(self._left_prices):
            of = np.repeat(np.arange(count), problem.sizes[:, side])[left[side]]
            must = own == dual.TOP if self.exact else np.isinf(own)
            self.must.append(np.bincount(of[must], minlength=count).tolist())

    def pairs(self, k: int) -> slice:
        """Where the pairs of problem k are."""
        return slice(self.begins[k], self.begins[k + 1])

    def left(self, k: int, side: int) -> Array:
        """The prices of the lines of problem k that are left, rows (0) or columns (1)."""
        return self._left_prices[side][self._first[side][k] : self._first[side][k + 1]]

    def places(self, k: int, side: int) -> Array:
        """Which lines these are, within the problem."""
        found = self._left[side][self._first[side][k] : self._first[side][k + 1]]
        return np.asarray(found - self.starts[k, side + 1])

    def proof(self, k: int, ended: Termination) -> Proof:
        """The pairing of problem k, and its objective in min form, rounded up."""
        proof = Proof(ended)
        if self.bad[k] or self.barred[k]:
            kind = "a column is out of range or assigned twice" if self.bad[k] else "a forbidden entry is assigned"
            proof.why = kind
            return proof
        must = self.must[0][k], self.must[1][k]
        proof.unassigned = max(must) if min(must) else sum(must)
        prices = [self.left(k, 0), self.left(k, 1)]
        proof.left = len(prices[0]) + len(prices[1])
        if proof.unassigned:
            if ended is Termination.OPTIMAL:
                proof.why = f"called optimal with {proof.unassigned} pairs missing"
            return proof
        terms = np.concatenate([self.costs[self.pairs(k)], *prices])
        proof.objective = sum(terms.tolist()) if self.exact else finite(sum_up(terms))
        return proof


def finite(value: float) -> float | None:
    """The number, None beyond float64."""
    return value if math.isfinite(value) else None


def _bounded(proof: Proof, side: dual.Side, high: Array, low: Array, sign: int, words: Array | None) -> None:
    """The bound in min form, and by how much the prices had to be cut."""
    exact = side.price.dtype.kind == "i"
    if not (high == dual.TOP if exact else np.isinf(high)).any():
        if exact:
            proof.bound = sum(high.tolist()) + sum(side.price.tolist())
        else:
            proof.bound = finite(sum_down(np.concatenate([high, low, side.price])))
    if words is not None and not exact:
        other = dual.finer(side, sign, sign * words)
        proof.bound = max((b for b in (proof.bound, other) if b is not None), default=None)


def _judge(proof: Proof, problem: Rejecting, chosen: _Chosen, k: int, side: dual.Side, high: Array, sign: int) -> None:
    """The gap and the word it earns; then objective and bound in the sense of the problem."""
    objective, bound = proof.objective, proof.bound
    if objective is not None and bound is not None:
        proof.gap = objective - bound if isinstance(bound, int) else sum_up([objective, -bound])
    if proof.ended is Termination.OPTIMAL and not _is_closed(proof, problem, chosen, k, side, high):
        proof.ended = Termination.CONVERGED
    proof.objective = None if objective is None else sign * objective + 0  # a sum of zeros is 0, never -0
    proof.bound = None if bound is None else sign * bound + 0


def _is_closed(proof: Proof, problem: Rejecting, chosen: _Chosen, k: int, side: dual.Side, high: Array) -> bool:
    """Whether the gap is what rounding alone may leave."""
    if proof.gap is None or side.price.dtype.kind == "i" or not proof.gap:
        return proof.gap == 0
    pairs = chosen.pairs(k)
    turned = problem.sizes[k, 0] > problem.sizes[k, 1]
    line, other = (chosen.columns, chosen.rows) if turned else (chosen.rows, chosen.columns)
    first, second = (1, 0) if turned else (0, 1)
    terms = [chosen.costs[pairs], high[line[pairs]], side.price[other[pairs]]]
    terms += [chosen.left(k, first), high[chosen.places(k, first)]]
    terms += [chosen.left(k, second), side.price[chosen.places(k, second)]]
    if proof.gap > TOO_MUCH or math.ldexp(proof.gap, OF_PAIRS) > _below(np.abs(np.concatenate(terms))):
        return False
    size = abs(proof.objective or 0.0)
    return proof.gap <= _share(size) or proof.gap <= _share(_natural_scale(side))


def _below(sizes: Array) -> float:
    """A number that the sum of fewer than 2^32 sizes is not below, of about that sum.

    A sum of k numbers that are not negative is off by (k - 1) 2^-53 of itself in any order (Higham, section 4.2).
    """
    return float(sizes.sum()) * SHORT_OF


def _share(size: float) -> float:
    """OF_DATA of a size, not rounded up."""
    return math.nextafter(OF_DATA * size, 0.0)


def _natural_scale(side: dual.Side) -> float:
    """S, rounded down; a line without a number that is not 0 counts 0."""
    sizes = np.abs(side.matrix.astype(np.float64))
    sizes[~(np.isfinite(sizes) & (sizes > 0))] = np.inf
    found = []
    for axis, prices in ((1, side.top), (0, side.cap)):
        own = np.abs(prices)
        own = np.where(own > 0, own, np.inf)
        least = np.minimum(own, sizes.min(axis=axis, initial=np.inf))
        found.append(sum_down(least[np.isfinite(least)]))
    return min(found)
