"""The proofs of many small problems together: what proof.py does of each, in flat arrays and compiled loops.

A sum is kept with the sum of its rounding errors (TwoSum), and a bound on what that leaves out. Where these say on
which side of the sum the exact one lies, it is rounded once. Every other problem is done over by proof.py alone: where
they do not, where the gap is more than rounding leaves of the pairs, where the answer is none, where duals come in
several words.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.certificates.rejecting import bound as dual
from kernels.certificates.rejecting.proof import OF_DATA, OF_PAIRS, SHORT_OF, TOO_MUCH, Answer, Proof, judged, min_form
from kernels.certificates.rounded import add_up, two_sum
from kernels.problems import UNASSIGNED, Array, Rejecting
from kernels.problems.arrays import FORBIDDEN, permitted
from kernels.solution import Termination, unheard

MANY = 16
"""Problems from which this is worth its loops."""
EXACT = 1 << 62
"""Whole numbers whose sizes add up to less are added in int64."""
MORE = 1 + 2.0**-20
"""A sum of fewer than 2^32 sizes in working precision, times this, is not below the exact one (Higham, section 4.2)."""


@dataclass
class Flat:
    """What is known of all problems; pairs of arrays are those of all rows and of all columns, in min form.

    `tops`: prices of leaving a line. `prices`: duals, capped and finite. `highs`, `lows`: the least of each line of the
    shorter side. `chosen`: the column of each row, -1 for none. `alone`: problems that proof.py does over.
    """

    tops: tuple[Array, Array]
    prices: tuple[Array, Array]
    highs: tuple[Array, Array]
    lows: tuple[Array, Array]
    chosen: Array
    used: Array
    alone: Array


def judged_together(
    problem: Rejecting, answer: Answer, ended: list[Termination], heard: Callable[[float], None]
) -> list[Proof]:
    """The proof of each problem."""
    if len(ended) < MANY:
        return judged(problem, answer, ended, heard)
    sign, starts = -1 if problem.maximize else 1, problem.starts
    flat = _flat(problem, answer, starts, sign)
    proofs = _proofs(problem, answer, flat, starts, sign, ended) if _fits(flat, starts) else []
    again = np.flatnonzero(flat.alone).tolist()
    if not proofs or len(again) > len(ended) // 2:
        return judged(problem, answer, ended, heard)
    for k in again:
        proofs[k] = judged(*_one(problem, answer, starts, k), [ended[k]], heard)[0]
    return proofs


def _flat(problem: Rejecting, answer: Answer, starts: Array, sign: int) -> Flat:
    from kernels.certificates.rejecting import loops

    tops = min_form(problem.row_prices, sign), min_form(problem.col_prices, sign)
    prices = dual.usable(sign * answer.u, tops[0]), dual.usable(sign * answer.v, tops[1])
    kind = tops[0].dtype
    highs, lows = ((np.zeros(len(tops[0]), kind), np.zeros(len(tops[1]), kind)) for _ in range(2))
    chosen, used, alone = _pairing(problem, answer, starts)
    costs = np.ascontiguousarray(problem.costs, dtype=kind)
    worst = kind.type(dual.TOP if kind.kind == "i" else np.inf)
    barred = kind.type(FORBIDDEN) if kind.kind == "i" else None  # among floats that is an infinity
    loops.least_of_lines(costs, starts, kind.type(sign), barred, worst, tops, prices, highs, lows)
    for words, side in ((answer.u_finer, 0), (answer.v_finer, 1)):
        if words is not None:
            alone |= _any(np.asarray((words != 0).any(axis=0)), starts[:, side + 1])
    return Flat(tops, prices, highs, lows, chosen, used, alone)


def _pairing(problem: Rejecting, answer: Answer, starts: Array) -> tuple[Array, Array, Array]:
    """The column of each row, which columns are used, and the problems whose pairing is none."""
    count = len(problem.sizes)
    member = np.repeat(np.arange(count), problem.sizes[:, 0])
    chosen = answer.assignment.astype(np.int64)
    wrong = (chosen != UNASSIGNED) & ((chosen < 0) | (chosen >= problem.sizes[member, 1]))
    chosen[wrong] = UNASSIGNED
    rows = np.flatnonzero(chosen >= 0)
    owner, column = member[rows], chosen[rows]
    times = np.bincount(starts[owner, 2] + column, minlength=int(starts[-1, 2]))
    row = rows - starts[owner, 1]
    costs = problem.costs[starts[owner, 0] + row * problem.sizes[owner, 1] + column]
    alone = _any(wrong, starts[:, 1]) | _any(times > 1, starts[:, 2])
    alone[owner[~permitted(costs)]] = True
    return chosen, times > 0, alone


def _any(marked: Array, starts: Array) -> Array:
    """Of each problem, whether one of its lines is marked."""
    before = np.concatenate([[0], np.cumsum(marked)])
    return np.asarray(before[starts[1:]] > before[starts[:-1]])


def _fits(flat: Flat, starts: Array) -> bool:
    """Whether no sum of whole numbers can leave int64."""
    if flat.tops[0].dtype.kind == "f":
        return True
    lines = int(np.diff(starts[:, 1:], axis=0).sum(axis=1).max(initial=0))
    known = [array[array != dual.TOP] for array in (*flat.tops, *flat.prices, *flat.highs)]
    return 4 * lines * max(max(-int(one.min(initial=0)), int(one.max(initial=0))) for one in known) < EXACT


def _proofs(
    problem: Rejecting, answer: Answer, flat: Flat, starts: Array, sign: int, ended: list[Termination]
) -> list[Proof]:
    from kernels.certificates.rejecting import loops

    count, kind = len(ended), flat.tops[0].dtype
    sums, sizes = np.zeros((count, 2, 3), kind), np.zeros(count, kind)
    costs = np.ascontiguousarray(problem.costs, dtype=kind)
    loops.add_up(
        costs, starts, kind.type(sign), flat.tops, flat.prices, flat.highs, flat.lows, flat.chosen, flat.used, sums,
        sizes,
    )  # fmt: skip
    missing, left = _left(flat, starts)
    unbounded = _unbounded(problem, flat, starts)
    objective, bound, sure = sums[:, 0, 0], sums[:, 1, 0], np.ones(count, bool)
    if kind.kind == "f":
        objective, one = _rounded(sums[:, 0], 1)
        bound, other = _rounded(sums[:, 1], -1)
        sure = (one | (missing > 0)) & (other | unbounded)
    gap = objective - bound if kind.kind == "i" else add_up(objective, -bound)
    known = (missing == 0) & ~unbounded
    closed = known & (gap == 0)
    optimal = np.array([word is Termination.OPTIMAL for word in ended])
    near = _near(gap, objective, sizes) if kind.kind == "f" else closed
    flat.alone |= ~sure | (optimal & ((missing > 0) | (known & ~closed & ~near)))
    words = [
        Termination.CONVERGED if word is Termination.OPTIMAL and not fine else word
        for word, fine in zip(ended, (closed | (known & near)).tolist(), strict=True)
    ]
    parts = (
        words, (sign * objective + 0).tolist(), (sign * bound + 0).tolist(), gap.tolist(),
        _violations(problem, answer, flat, starts, sign), missing.tolist(), left.tolist(),
    )  # fmt: skip
    proofs = [Proof(*part) for part in zip(*parts, strict=True)]
    for k in np.flatnonzero(~known).tolist():
        proofs[k].gap = None
        proofs[k].objective = None if missing[k] else proofs[k].objective
        proofs[k].bound = None if unbounded[k] else proofs[k].bound
    return proofs


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


def _left(flat: Flat, starts: Array) -> tuple[Array, Array]:
    """Pairs that are missing in each problem, and lines that are left where none is."""
    counts = np.zeros((2, 2, len(starts) - 1), np.int64)
    for side, idle in enumerate((flat.chosen == UNASSIGNED, ~flat.used)):
        top = flat.tops[side]
        must = idle & (top == dual.TOP if top.dtype.kind == "i" else np.isinf(top))
        for kind, marked in enumerate((must, idle)):
            before = np.concatenate([[0], np.cumsum(marked)])
            counts[kind, side] = np.diff(before[starts[:, side + 1]])
    most, least = counts[0].max(axis=0), counts[0].min(axis=0)
    return np.where(least > 0, most, most + least), counts[1].sum(axis=0)


def _unbounded(problem: Rejecting, flat: Flat, starts: Array) -> Array:
    """Problems with a line that must be paired and has no permitted entry."""
    worst = dual.TOP if flat.tops[0].dtype.kind == "i" else np.inf
    by_rows = problem.sizes[:, 0] <= problem.sizes[:, 1]
    found = [_any(high == worst, starts[:, side + 1]) for side, high in enumerate(flat.highs)]
    return np.where(by_rows, found[0], found[1])


def _violations(problem: Rejecting, answer: Answer, flat: Flat, starts: Array, sign: int) -> list[float]:
    """By how much the duals given are above what the others, and the prices of leaving, allow: of each problem."""
    count, by_rows = len(problem.sizes), problem.sizes[:, 0] <= problem.sizes[:, 1]
    worst = np.zeros(count, flat.tops[0].dtype)
    top = dual.TOP if worst.dtype.kind == "i" else np.inf
    for side, given in enumerate((answer.u, answer.v)):
        member = np.repeat(np.arange(count), problem.sizes[:, side])
        most = np.where((by_rows if side == 0 else ~by_rows)[member], flat.highs[side], flat.tops[side])
        sane = dual.usable(sign * given, np.full(len(given), top, worst.dtype))
        over = np.where(most == top, 0, sane - np.where(most == top, 0, most))
        np.maximum.at(worst, member, np.where(sane == sign * given, over, top))
    return worst.tolist()


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
    """Compile the loops for float64 and int64, or load them from numba's cache."""
    for kind in (np.float64, np.int64):
        sizes = np.array([[1, 2], [2, 1]] * MANY)
        problem = Rejecting(
            np.ones(4 * MANY, kind), sizes, np.ones(3 * MANY, kind), np.ones(3 * MANY, kind), form="ragged"
        )
        nothing = np.zeros(3 * MANY, kind)
        answer = Answer(np.full(3 * MANY, UNASSIGNED), nothing, nothing, None, None)
        judged_together(problem, answer, [Termination.TIME_LIMIT] * len(sizes), unheard)
