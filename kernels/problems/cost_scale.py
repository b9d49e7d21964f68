"""The size of a problem's costs: one number, in whose units strengths can be given.

The mean is that of |C_ij| over the permitted entries, weighted by a_i b_j. Strengths in its units keep plans from being
empty. Let F be the objective with the product reference, S = reg + r1 + r2, and let a and b sum to 1. A plan that no
factor improves has the mass (F(0) - F(P)) / S. That holds for the best plan, and for the best multiple t a b' of the
product, cut down to its permitted share phi. So the best plan has at least the mass of that one, which is at least
phi exp(-mean / S). With reg = .05 and reg_m = 1 in units of the mean this is 61% of phi, whatever the costs are.
"""

import contextlib
import functools
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from kernels.pace import cores
from kernels.problems.arrays import Floats, Indices, Integers
from kernels.problems.derived import derived
from kernels.problems.made import make
from kernels.problems.seen import seen_of
from kernels.problems.transport import UnbalancedTransport

KINDS = ("mean", "median")
MOST = 1 << 22
"""Entries looked at where there are more; rows and columns are drawn with a fixed seed. The mean is then that of the
drawn ones, and the share of mass above holds as far as they are like all."""
BLOCK = 1 << 20
CACHED = 1 << 16
"""Entries worked on at a time: they and what becomes of them stay in a core's cache."""
MOST_THREADS = 4
LARGE = 1 << 16
"""From so many entries on the size is worth handing over to whoever builds the problem again."""


def cost_scale(problem: UnbalancedTransport, kind: str) -> float:
    """The mean or median size of the permitted costs between lines with mass; 1 where all are 0 or there are none."""
    low, high = problem.cost_bounds
    top = max(abs(low), abs(high))
    rows, columns = np.flatnonzero(problem.a), np.flatnonzero(problem.b)
    if not (0 < top < np.inf and rows.size and columns.size):
        return 1.0

    def found() -> float:
        if kind == "mean" and problem.cost is None and problem.metric == "sqeuclidean":
            size = _mean_square(problem)
        else:
            whole = kind == "mean" and problem.cost is not None and rows.size * columns.size <= MOST
            if not whole:
                make(min(MOST, rows.size * columns.size))
            i, j = (rows, columns) if whole else _drawn(rows, columns)
            size = top * (_mean(problem, i, j, top) if kind == "mean" else _median(problem, i, j, top))
        return size if 0 < size < np.inf else 1.0

    return derived(found, max(top, 1.0)) if rows.size * columns.size > LARGE else found()


def _mean_square(problem: UnbalancedTransport) -> float:
    """Of squared distances, by their moments: the spread of x, and the distance of y from the centre of x."""
    assert problem.x is not None
    assert problem.y is not None
    x, y = (points.astype(np.float64) for points in (problem.x, problem.y))
    a, b = (mass / mass.max() for mass in (problem.a, problem.b))
    a, b = a / a.sum(), b / b.sum()
    centre = (a[:, None] * x).sum(axis=0)
    return float((a * ((x - centre) ** 2).sum(axis=1)).sum() + (b * ((y - centre) ** 2).sum(axis=1)).sum())


def _drawn(rows: Indices, columns: Indices) -> tuple[Integers, Integers]:
    """At most MOST entries."""
    rng = np.random.default_rng(0)
    most = max(int(MOST**0.5), MOST // max(1, min(rows.size, columns.size)))
    rows = rows if rows.size <= most else np.sort(rng.choice(rows, most, replace=False))
    most = max(1, MOST // rows.size)
    return rows, columns if columns.size <= most else np.sort(rng.choice(columns, most, replace=False))


def _mean(problem: UnbalancedTransport, rows: Indices, columns: Indices, top: float) -> float:
    """In units of `top`."""
    a, b = problem.a[rows] / problem.a.max(), problem.b[columns] / problem.b.max()
    total, weight = 0.0, 0.0
    step = max(1, BLOCK // columns.size)
    swift = problem.cost is not None and problem.cost.flags.c_contiguous
    lines = _Lines(problem, rows, columns, top).summed(b) if swift else None
    for start in range(0, rows.size, step):
        of_rows = None if lines is None else lines[start : start + step]
        if of_rows is None or not np.isfinite(of_rows).all():
            sizes = _sizes(problem, rows[start : start + step], columns, top)
            held = np.isfinite(sizes)
            of_rows = np.einsum("ij,j->i", sizes, b) if held.all() else None  # a BLAS would take all cores for it
        if of_rows is not None:
            some = a[start : start + step]
            total += float((some * of_rows).sum())
            weight += float(some.sum() * b.sum())
            continue
        weights = np.where(held, a[start : start + step, None] * b, 0.0)
        total += float((np.where(held, sizes, 0.0) * weights).sum())
        weight += float(weights.sum())
    return total / weight if weight else 0.0


class _Lines:
    """Some rows and columns of a matrix in C order, a few rows at a time, in memory that is used again.

    A sum over a row does not depend on the rows beside it, so it is the same to the last bit as that of `_sizes`.
    """

    def __init__(self, problem: UnbalancedTransport, rows: Indices, columns: Indices, top: float) -> None:
        assert problem.cost is not None
        self._cost, self._rows, self._columns, self._top = np.asarray(problem.cost), rows, columns, top
        self._some = columns.size < self._cost.shape[1]
        self._step = max(1, CACHED // columns.size)
        # Who reads what strangers sent has not seen it before, and no memory for threads.
        self._threads = min(MOST_THREADS, cores()) if seen_of(problem.cost) is not None else 1

    def summed(self, b: Floats) -> Floats:
        """Of each row, |C_ij| in units of `top` times b_j; not finite where an entry is forbidden."""
        found = np.empty(self._rows.size)
        starts = iter(range(0, found.size, self._step))
        beside: list[Future[None]] = []
        if found.size > self._threads * self._step:
            with contextlib.suppress(RuntimeError):  # no more threads: then there are fewer
                for _ in range(self._threads - 1):
                    beside.append(_threads().submit(self._sum, starts, b, found))
        self._sum(starts, b, found)
        for one in beside:
            one.result()
        return found

    def _sum(self, starts: Iterator[int], b: Floats, found: Floats) -> None:
        wide = np.empty((self._step, self._columns.size))
        part = np.empty(wide.shape, self._cost.dtype)
        whole = np.empty((self._step, self._cost.shape[1]), self._cost.dtype) if self._some else part
        for start in starts:
            rows = self._rows[start : start + self._step]
            np.take(self._cost, rows, axis=0, out=whole[: rows.size], mode="clip")  # "raise" would copy first
            if self._some:
                np.take(whole[: rows.size], self._columns, axis=1, out=part[: rows.size], mode="clip")
            sizes = wide[: rows.size]
            sizes[...] = part[: rows.size]
            np.abs(sizes, out=sizes)
            np.divide(sizes, self._top, out=sizes)
            np.einsum("ij,j->i", sizes, b, out=found[start : start + rows.size])


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_THREADS - 1, "scale")


def _median(problem: UnbalancedTransport, rows: Indices, columns: Indices, top: float) -> float:
    sizes = _sizes(problem, rows, columns, top)
    sizes = sizes[np.isfinite(sizes)]
    return float(np.median(sizes)) if sizes.size else 0.0


def _sizes(problem: UnbalancedTransport, rows: Indices, columns: Indices, top: float) -> Floats:
    """|C_ij| of some rows and columns, in units of `top`."""
    if problem.cost is not None:
        every = columns.size == problem.cost.shape[1]
        block = problem.cost[rows] if every else problem.cost[np.ix_(rows, columns)]
        return np.asarray(abs(block.astype(np.float64)) / top)
    assert problem.x is not None
    assert problem.y is not None
    x, y = problem.x[rows].astype(np.float64), problem.y[columns].astype(np.float64)
    if problem.metric == "inner":
        return np.asarray(abs(x @ y.T) / top)
    centre = x.mean(axis=0)
    x, y = x - centre, y - centre
    squares = np.maximum((x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1) - 2 * (x @ y.T), 0)
    return np.asarray((np.sqrt(squares) if problem.metric == "euclidean" else squares) / top)
