"""The proofs of many small problems together: what proof.py does of each, in one compiled look at flat arrays.

A sum is kept with the sum of its rounding errors (TwoSum), and a bound on what that leaves out. Where these say on
which side of the sum the exact one lies, it is rounded once. Every other problem is done over by proof.py alone: where
they do not, where the gap is more than rounding leaves of the pairs, where the answer is none, where duals come in
several words, where whole numbers could leave int64.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.certificates.rejecting import bound as dual
from kernels.certificates.rejecting.between import pairs_of, written
from kernels.certificates.rejecting.proof import OF_DATA, OF_PAIRS, SHORT_OF, TOO_MUCH, Answer, judged
from kernels.certificates.rejecting.table import Table
from kernels.certificates.rounded import add_up, two_sum
from kernels.certificates.threads import cut, in_threads
from kernels.problems import UNASSIGNED, Array, Rejecting
from kernels.problems.arrays import FORBIDDEN, untouched
from kernels.problems.clouds import PointRejecting
from kernels.problems.points import Points
from kernels.solution import Termination, unheard

MANY = 16
"""Problems from which this is worth its loops."""
EXACT = 2.0**61
"""Whole numbers whose sizes add up to less are added in int64, and so is the difference of two such sums."""
MORE = 1 + 2.0**-20
"""A sum of fewer than 2^32 sizes in working precision, times this, is not below the exact one (Higham, section 4.2)."""
AT_ONCE = 1 << 17
"""Entries and lines from which a thread is worth its start: some 0.1 ms of work, and of costs to work out 0.2 ms."""


def judged_together(
    problem: Rejecting, answer: Answer, ended: list[Termination], heard: Callable[[float], None]
) -> Table:
    """The proof of each problem."""
    if len(ended) < MANY:
        return Table.of(judged(written(problem), answer, ended, heard))
    starts = problem.starts
    found = _found(problem, answer, starts)
    proofs, alone = _proofs(*found, -1 if problem.maximize else 1, ended)
    for words, side in ((answer.u_finer, 1), (answer.v_finer, 2)):
        if words is not None:
            alone |= _any(np.asarray((words != 0).any(axis=0)), starts[:, side])
    again = np.flatnonzero(alone).tolist()
    problem = written(problem) if again else problem
    if len(again) > len(ended) // 2:
        return Table.of(judged(problem, answer, ended, heard))
    for k in again:
        proofs[k] = judged(*_one(problem, answer, starts, k), [ended[k]], heard)[0]
    return proofs


def _found(problem: Rejecting, answer: Answer, starts: Array) -> tuple[Array, Array, Array]:
    """What `loops.prove` finds of each problem: its `sums`, `sizes` and `counts`."""
    from kernels.certificates.rejecting import loops

    count, kind = len(starts) - 1, problem.row_prices.dtype
    whole = kind.kind == "i"
    worst, most = kind.type(dual.TOP if whole else np.inf), kind.type(dual.LARGEST_PRICE[kind.kind])
    found = np.zeros((count, 7), kind), np.zeros(count), np.zeros((count, 5), np.int64)
    told: tuple[Any, ...] = (starts, problem.maximize, FORBIDDEN if whole else None, worst, most)
    lines = (
        (_read(problem.row_prices), _read(problem.col_prices)), (_read(answer.u), _read(answer.v)),
        _read(answer.assignment.astype(np.int64, copy=False)), *found,
    )  # fmt: skip
    work = starts.sum(axis=1)
    prove: Callable[..., None] = loops.prove
    if isinstance(problem, PointRejecting) and not whole:
        from kernels.certificates.rejecting.pair_loops import prove_pairs

        prove, given = prove_pairs, (*pairs_of(problem), *told, *lines)
    else:  # points have whole prices only where there is no pair
        costs = np.zeros(0, kind) if isinstance(problem, PointRejecting) else problem.costs
        given = (*told, _read(costs), *lines)
    ends = cut(int(work[-1]), int(work[-1]), AT_ONCE)
    in_threads(prove, [0, *np.searchsorted(work, ends[1:-1]).tolist(), count], given)
    return found


def _read(array: Array) -> Array:
    """In the one form that the loops are compiled for."""
    return untouched(np.ascontiguousarray(array))


def _any(marked: Array, starts: Array) -> Array:
    """Of each problem, whether one of its lines is marked."""
    before = np.concatenate([[0], np.cumsum(marked)])
    return np.asarray(before[starts[1:]] > before[starts[:-1]])


def _proofs(sums: Array, sizes: Array, counts: Array, sign: int, ended: list[Termination]) -> tuple[Table, Array]:
    """The proofs, and the problems that need another look."""
    from kernels.certificates.rejecting import loops

    whole = sums.dtype.kind == "i"
    rows, cols = counts[:, loops.MISSING_ROWS], counts[:, loops.MISSING_COLUMNS]
    most, least = np.maximum(rows, cols), np.minimum(rows, cols)
    missing, unbounded = np.where(least > 0, most, most + least), counts[:, loops.UNBOUNDED] > 0
    objective, bound, sure = sums[:, loops.OBJECTIVE], sums[:, loops.BOUND], sizes < EXACT
    if not whole:
        objective, one = _rounded(sums[:, loops.OBJECTIVE : loops.OBJECTIVE + 3], 1)
        bound, other = _rounded(sums[:, loops.BOUND : loops.BOUND + 3], -1)
        sure = (one | (missing > 0)) & (other | unbounded)
    gap = objective - bound if whole else add_up(objective, -bound)
    known = (missing == 0) & ~unbounded
    fine = known & (gap == 0)
    if not whole:
        fine |= known & _near(gap, objective, sizes)
    optimal = np.ones(len(ended), bool)
    if len(set(ended)) > 1 or ended[0] is not Termination.OPTIMAL:
        optimal = np.array([word is Termination.OPTIMAL for word in ended])
    alone = (counts[:, loops.ALONE] > 0) | ~sure | (optimal & (missing > 0)) | (optimal & known & ~fine)
    words = (
        ended[:]
        if fine[optimal].all()
        else [
            Termination.CONVERGED if word is Termination.OPTIMAL and not one else word
            for word, one in zip(ended, fine.tolist(), strict=True)
        ]
    )
    proofs = Table(
        words, (sign * objective + 0).tolist(), (sign * bound + 0).tolist(), gap.tolist(),
        sums[:, loops.VIOLATION].tolist(), missing.tolist(), counts[:, loops.LEFT].tolist(),
    )  # fmt: skip
    proofs.open.update(np.flatnonzero(~known).tolist())
    for k in proofs.open:
        proofs.gaps[k] = None
        proofs.objectives[k] = None if missing[k] else proofs.objectives[k]
        proofs.bounds[k] = None if unbounded[k] else proofs.bounds[k]
    return proofs, alone


def _rounded(sums: Array, side: int) -> tuple[Array, Array]:
    """(the sums rounded to a side, where that is sure), from what `loops.add_up` kept of each."""
    with np.errstate(invalid="ignore", over="ignore"):
        nearest, rest = two_sum(sums[:, 0], sums[:, 1])
        off = np.nextafter(sums[:, 2] * MORE, np.where(sums[:, 2] > 0, np.inf, 0.0))
        room = np.abs(nearest - np.nextafter(nearest, 0.0))
    exact = (rest == 0) & (off == 0)
    sure = np.isfinite(nearest) & (exact | ((np.abs(rest) > off) & (off <= room / 8)))
    on_the_strong_side = ~exact & (rest * side > 0)
    moved = np.where(on_the_strong_side, np.nextafter(nearest, side * np.inf), nearest)
    return moved, sure & np.isfinite(moved)


def _near(gap: Array, objective: Array, sizes: Array) -> Array:
    """Whether a gap is what rounding may leave of the pairs' sizes and of the objective."""
    few = gap <= TOO_MUCH
    of_pairs = np.ldexp(np.where(few, gap, 0.0), OF_PAIRS) <= sizes * SHORT_OF
    return np.asarray(few & of_pairs & (gap <= np.nextafter(OF_DATA * np.abs(objective), 0.0)))


def _one(problem: Rejecting, answer: Answer, starts: Array, k: int) -> tuple[Rejecting, Answer]:
    """Problem k and its answer as if there were no other."""
    entries, rows, cols = (slice(starts[k, side], starts[k + 1, side]) for side in range(3))
    alone = Rejecting(
        problem.costs[entries], problem.sizes[k : k + 1], problem.row_prices[rows], problem.col_prices[cols],
        problem.maximize, "ragged", (0, 0), problem.strict,
    )  # fmt: skip
    words = (
        None if words is None else words[:, own]
        for words, own in ((answer.u_finer, rows), (answer.v_finer, cols))
    )  # fmt: skip
    return alone, Answer(answer.assignment[rows], answer.u[rows], answer.v[cols], *words)


def warm_up() -> None:
    """Compile the loops for each type of costs and for points, or load them from numba's cache."""
    sizes = np.array([[1, 2], [2, 1]] * MANY)
    for dtype in (np.float64, np.float32, np.int64, None):
        kind = np.int64 if dtype is np.int64 else np.float64
        lines: Array = np.zeros(3 * MANY, kind)
        if dtype is None:
            boxes = np.tile([0.0, 0.0, 1.0, 1.0], (3 * MANY, 1))
            points = Points(boxes, boxes, "iou")
            problem: Rejecting = PointRejecting(np.zeros(0), sizes, lines + 1, lines + 1, form="ragged", points=points)
        else:
            problem = Rejecting(np.ones(4 * MANY, dtype), sizes, lines + 1, lines + 1, form="ragged")
        answer = Answer(np.full(3 * MANY, UNASSIGNED), lines, lines, None, None)
        judged_together(problem, answer, [Termination.TIME_LIMIT] * len(sizes), unheard)
