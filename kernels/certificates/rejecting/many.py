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
from kernels.certificates.rejecting.between import points_of, written
from kernels.certificates.rejecting.proof import Answer, judged
from kernels.certificates.rejecting.table import Sums, Table
from kernels.certificates.threads import threads_for, together
from kernels.problems import UNASSIGNED, Array, Rejecting
from kernels.problems.arrays import FORBIDDEN, untouched
from kernels.problems.clouds import PointRejecting
from kernels.problems.points import Points
from kernels.solution import Termination, unheard

MANY = 16
"""Problems from which this is worth its loops."""
A_WAKE, PIECE = 1 << 15, 1 << 13
"""Entries and lines that are looked at in the time that it takes to wake a thread, and that one takes at once: 0.02 ms.
Costs that are worked out first take as long again."""


def judged_together(
    problem: Rejecting, answer: Answer, ended: list[Termination], heard: Callable[[float], None]
) -> Table:
    """The proof of each problem."""
    if len(ended) < MANY:
        return Table.of(judged(written(problem), answer, ended, heard))
    from kernels.certificates.rejecting import sums

    optimal = b"\1" * len(ended)
    if ended.count(Termination.OPTIMAL) < len(ended):
        optimal = bytes(word is Termination.OPTIMAL for word in ended)
    told, counts = _found(problem, answer, np.frombuffer(optimal, bool))
    barred = FORBIDDEN if told.dtype.kind == "i" else None
    unsure, *of_all = sums.over_all(problem.maximize, barred, told, counts)
    again: list[int] = []
    if unsure or answer.u_finer is not None or answer.v_finer is not None:
        again = _again(problem, answer, counts[:, sums.SURE] == 0)
    problem = written(problem) if again else problem
    if len(again) > len(ended) // 2:
        return Table.of(judged(problem, answer, ended, heard))
    proofs = _proofs(told, counts, of_all, ended)
    for k in again:
        proofs[k] = judged(*_one(problem, answer, problem.starts, k), [ended[k]], heard)[0]
    return proofs


def _found(problem: Rejecting, answer: Answer, optimal: Array) -> tuple[Array, Array]:
    """What `loops.prove` finds of each problem: `told` and `counts`.

    Before the threads begin nothing here lets go of Python's lock, as NumPy does for a few hundred entries: whoever
    keeps the answer meanwhile would have it until the arrays are hashed and written, and no thread would prove.
    """
    from kernels.certificates.rejecting import loops
    from kernels.certificates.rejecting.sums import most_threads
    from kernels.counter import new_counter

    starts, count, kind = untouched(problem.starts), len(problem.sizes), problem.row_prices.dtype
    whole = kind.kind == "i"
    worst, most = kind.type(dual.TOP if whole else np.inf), kind.type(dual.LARGEST_PRICE[kind.kind])
    found = np.empty((count, 4), kind), np.zeros((count, 6), np.int64)
    given: tuple[Any, ...] = (
        starts, problem.maximize, FORBIDDEN if whole else None, worst, most,
        (_read(problem.row_prices), _read(problem.col_prices)), (_read(answer.u), _read(answer.v)),
        _read(answer.assignment.astype(np.int64, copy=False)), optimal, *found,
    )  # fmt: skip
    prove: Callable[..., None] = loops.prove
    if isinstance(problem, PointRejecting) and not whole:
        from kernels.certificates.rejecting.pair_loops import prove_pairs

        metric, x, y, _ = points_of(problem)
        prove, given = prove_pairs, (metric, x, y, *given)
    else:  # points have whole prices only where there is no pair
        costs = np.zeros(0, kind) if isinstance(problem, PointRejecting) else problem.costs
        given = (_read(costs), *given)
    work = int(starts[-1].sum()) << int(prove is not loops.prove)
    given = (new_counter(), untouched(loops.pieces_of(starts, PIECE)), *given)
    together(lambda: prove(*given), threads_for(work, A_WAKE, most_threads()))
    return found


def _read(array: Array) -> Array:
    """In the one form that the loops are compiled for."""
    return untouched(np.ascontiguousarray(array))


def _again(problem: Rejecting, answer: Answer, unsure: Array) -> list[int]:
    """The problems that need another look: those that are marked, and those whose duals have further words."""
    for words, side in ((answer.u_finer, 1), (answer.v_finer, 2)):
        if words is not None:
            before = np.concatenate([[0], np.cumsum((words != 0).any(axis=0))])
            starts = problem.starts[:, side]
            unsure = unsure | (before[starts[1:]] > before[starts[:-1]])
    return [int(k) for k in np.flatnonzero(unsure)]


def _proofs(told: Array, counts: Array, of_all: list[Any], ended: list[Termination]) -> Table:
    """The proofs, as far as the loops are sure of them. `of_all`: what `sums.over_all` says of these."""
    from kernels.certificates.rejecting import sums

    unknown, loose, missing, left, violation, objective, bound, sure = of_all
    words = ended[:]
    if loose:
        words = [
            Termination.CONVERGED if word is Termination.OPTIMAL and one else word
            for word, one in zip(ended, counts[:, sums.LOOSE].tolist(), strict=True)
        ]
    proofs = Table(
        words, told[:, sums.OBJECTIVE].tolist(), told[:, sums.BOUND].tolist(), told[:, sums.GAP].tolist(),
        told[:, sums.VIOLATION], counts[:, sums.MISSING], counts[:, sums.LEFT],
    )  # fmt: skip
    if unknown:
        for k, (pairs, lines) in enumerate(counts[:, [sums.MISSING, sums.UNBOUNDED]].tolist()):
            if pairs or lines:
                proofs.open.add(k)
                proofs.gaps[k] = None
                proofs.objectives[k] = None if pairs else proofs.objectives[k]
                proofs.bounds[k] = None if lines else proofs.bounds[k]
    proofs.sums = Sums(violation, missing, left, (objective, bound) if sure else None)
    return proofs


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
