"""Dual ascent on the level-1 reformulation (Hahn and Grant 1998): the strongest bound here, O(n^4) bytes.

Each pair (i, j) carries a leader cost l_ij and a submatrix c_ijkl, the price of (k, l) beside (i, j). What any
permutation pays does not change when
    cost moves between complementary entries c_ijkl and c_klij (both or neither are paid),
    a row or column of a submatrix gives its constant to the leader, or takes it back,
    a row or column of the leaders gives its constant to the bound.
One sweep visits the pairs: the leader is spread over its submatrix, complements are pulled in, an assignment problem is
solved on the submatrix, its value becomes the leader and its reduced costs stay. Then the leaders are assigned.

Visits in random order converge best (docs/notes/qap.md). Integers are multiplied by a power of two first, so that
spreading loses little; all arithmetic is exact.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.compiling import njit
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import AnyIntegers, Indices, Integers
from kernels.problems.quadratic import objective_bound
from kernels.qap.bounds.lap import assign
from kernels.qap.bounds.lower import Bound, round_up

LARGEST_BYTES = 1 << 29
PIECE = 4_000_000
"""Work of a sweep between two looks at the clock, in entries of submatrices times n: about 5 ms."""


def fits(problem: QuadraticAssignment) -> bool:
    """True when the data are integer, small enough, and n^4 entries fit LARGEST_BYTES."""
    bound = objective_bound(problem.flow, problem.distance, problem.linear)
    return problem.integer and problem.n >= 3 and problem.n**4 * 8 <= LARGEST_BYTES and bound < 2**54


def scaled(problem: QuadraticAssignment) -> tuple[Integers, AnyIntegers, int]:
    """Leaders (n, n), submatrices (n, n, n, n) and the scale they are multiplied by; forbidden leaders are barred."""
    n = problem.n
    bound = int(objective_bound(problem.flow, problem.distance, problem.linear)) + 1
    narrow = bound < 2**26
    room = 2**29 if narrow else 2**56  # sums of 36 such costs, and their duals, stay in int64
    scale = 1
    while scale < 1024 and bound * scale * 2 < room:
        scale *= 2
    dtype = np.int32 if narrow else np.int64
    leaders = np.outer(np.diagonal(problem.flow), np.diagonal(problem.distance))
    if problem.linear is not None:
        leaders = leaders + problem.linear
    if problem.forbidden is not None:
        leaders = np.where(problem.forbidden, bound, leaders)
    submatrices = np.multiply.outer(problem.flow, problem.distance).transpose(0, 2, 1, 3) * scale
    index = np.arange(n)
    submatrices[index, :, index, :] = 0
    submatrices[:, index, :, index] = 0
    return (leaders * scale).astype(np.int64), np.ascontiguousarray(submatrices, dtype), scale


@njit(cache=True, nogil=True)
def visit(
    leaders: Integers, submatrices: AnyIntegers, rows: Indices, columns: Indices, pairs: Integers, pull: bool
) -> None:
    """Turn the submatrices of these pairs into leaders.

    Args:
        leaders: (m, m) int64, submatrices (m, m, m, m) int32 or int64; changed in place.
        rows, columns: (m, m, m) int64, what row k (column l) of submatrix (i, j) has given, summed up in place.
        pairs: each i m + j, in the order of their visit.
        pull: take in the complements; the first sweep goes without and is Gilmore and Lawler's bound.
    """
    size = leaders.shape[0]
    less = size - 1
    cost = np.empty((less, less), np.int64)
    u, v, row_of = np.empty(less, np.int64), np.empty(less, np.int64), np.empty(less, np.int64)
    largest = np.int64(2**30) if submatrices.itemsize == 4 else np.int64(2**60)
    for at in pairs:
        i, j = at // size, at % size
        for a in range(less):
            k = a + (a >= i)
            for b in range(less):
                m = b + (b >= j)
                cost[a, b] = submatrices[i, j, k, m]
                if pull:
                    cost[a, b] += submatrices[k, m, i, j]
                    submatrices[k, m, i, j] = 0
        leaders[i, j] = assign(cost, u, v, row_of)
        for a in range(less):
            k = a + (a >= i)
            for b in range(less):  # a price may be lowered, never wrapped
                submatrices[i, j, k, b + (b >= j)] = min(cost[a, b] - u[a] - v[b], largest)
            rows[i, j, k] += u[a]
            columns[i, j, a + (a >= j)] += v[a]


@njit(cache=True, nogil=True)
def gather(leaders: Integers) -> Any:
    """Assign the leaders and leave their reduced costs; returns what the bound gains."""
    size = leaders.shape[0]
    u, v, row_of = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    gain = assign(leaders, u, v, row_of)
    for i in range(size):
        for j in range(size):
            leaders[i, j] -= u[i] + v[j]
    return gain


@njit(cache=True, nogil=True)
def spread(leaders: Integers, submatrices: AnyIntegers, rows: Indices) -> None:
    """Give every leader to the rows of its submatrix, all before any is asked: so what one spares reaches others."""
    size = leaders.shape[0]
    less = size - 1
    for i in range(size):
        for j in range(size):
            share = leaders[i, j] // less
            extra = leaders[i, j] - share * less
            leaders[i, j] = 0
            for a in range(less):
                k = a + (a >= i)
                given = share + (1 if a < extra else 0)
                for b in range(less):
                    submatrices[i, j, k, b + (b >= j)] += given
                rows[i, j, k] -= given


class DualAscent:
    """A dual ascent under way, with the duals that prove its bound."""

    def __init__(self, problem: QuadraticAssignment) -> None:
        n = problem.n
        self.problem = problem
        self.leaders, self.submatrices, self.scale = scaled(problem)
        self.first = self.leaders.copy()
        self.rows, self.columns = np.zeros((n, n, n), np.int64), np.zeros((n, n, n), np.int64)
        self.total, self.sweeps = 0, 0
        self.gains: list[int] = []
        self.rng = np.random.default_rng(0)

    @property
    def value(self) -> int:
        """The bound so far, rounded up to what an objective can be."""
        return round_up(self.problem, -(-self.total // self.scale))

    def step(self, ended: Callable[[], object] = lambda: None) -> None:
        """One sweep, or as much of it as there is time for: pairs that were not visited have spread their leaders."""
        n = self.problem.n
        order = self.rng.permutation(n**2)
        spread(self.leaders, self.submatrices, self.rows)
        few = max(1, PIECE // n**3)
        for at in range(0, n**2, few):
            pairs = order[at : at + few]
            visit(self.leaders, self.submatrices, self.rows, self.columns, pairs, self.sweeps > 0)
            if ended():
                break
        gain = gather(self.leaders)
        self.total += int(gain)
        self.sweeps += 1
        self.gains.append(int(gain))

    def stalled(self) -> bool:
        """True when the last sweeps gained next to nothing."""
        return self.sweeps > 12 and sum(self.gains[-5:]) * 20_000 < max(abs(self.total), self.scale)

    def bound(self) -> Bound:
        """The bound with its evidence."""
        collected = self.first + self.rows.sum(axis=2) + self.columns.sum(axis=2)
        u, v = np.empty(self.problem.n, np.int64), np.empty(self.problem.n, np.int64)
        total = assign(collected, u, v, np.empty(self.problem.n, np.int64))
        evidence = {  # copies: the next sweep, or the tree, goes on with these arrays
            "rows": self.rows.copy(), "columns": self.columns.copy(), "v": v, "scale": np.array(self.scale),
        }  # fmt: skip
        value = round_up(self.problem, -(-int(total) // self.scale))
        return Bound("rlt1", value, int(total) / self.scale, evidence)
