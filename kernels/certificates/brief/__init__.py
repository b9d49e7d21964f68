"""The certificate of one dense assignment in one compiled call: what `certify_dense` says, word for word.

A proof of 16 x 16 takes less time than the calls from Python around it, so there is one such call. From MANY entries on
there are three, and threads share the rows in the second. It is for the common answer: an optimum of one matrix, all
rows paired, duals that are numbers, and a gap that the sizes of the pairs alone allow. Whatever else comes, and
whatever the compiled loops are not sure of, goes to `swept`, and from there on.

Sums of floats are exact, as they are there: three words take up what rounding leaves, and a sum that needs a fourth is
not made here (loops.py). Integers are added up in halves of 32 bits, which become one Python integer.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kernels.certificates import assignment as dense
from kernels.certificates import swept
from kernels.certificates.assignment_bound import LARGEST_PRICE
from kernels.certificates.rounded import share_up
from kernels.problems import Array, Assignment
from kernels.problems.arrays import untouched
from kernels.solution import Certificate, Solution, Termination, unheard

SURE = 1.0 - 2.0**-30
"""Of a sum of 2^23 numbers that are not negative, rounded at each addition, this share is there at the least."""
LARGEST = 1 << 21
"""Rows: each adds three numbers to such a sum."""
MANY = 1 << 23
"""Entries from which rows go to threads."""
CLAIMS = {kind: dense._claim([dense._Proof(Termination.OPTIMAL)], kind == "i", False) for kind in "if"}
WIDE = {"i": np.dtype(np.int64), "f": np.dtype(np.float64)}
SEATS = np.dtype(np.int64)
NONE = np.zeros(0)
Heard = Callable[[float], None]


def certify(problem: Assignment, solution: Solution, progress: Heard = unheard) -> Certificate:
    """As `certify_dense`."""
    if isinstance(problem.weights, np.ndarray) and problem.weights.ndim == 3:
        from kernels.certificates.brief import together

        return together.certify(problem, solution, progress)
    told = _told(problem, solution, progress)
    if told is None:
        return swept.certify(problem, solution, progress)
    progress(1.0)
    return told


def _told(problem: Assignment, solution: Solution, progress: Heard = unheard) -> Certificate | None:
    """The certificate of an optimum of the common form; None for any other answer."""
    weights, arrays = problem.weights, solution.arrays
    if not isinstance(weights, np.ndarray) or weights.ndim != 2 or len(weights) > LARGEST:
        return None
    (n_rows, n_cols), form = weights.shape, weights.flags
    if n_rows > n_cols or solution.termination is not Termination.OPTIMAL or "v_finer" in arrays:
        return None
    if not (form.c_contiguous and form.aligned) or "ended" in solution.evidence:
        return None
    kind = weights.dtype.kind
    assignment, u, v = arrays.get("assignment", NONE), arrays.get("u", NONE), arrays.get("v", NONE)
    if not (_is(assignment, n_rows, SEATS) and _is(u, n_rows, WIDE[kind]) and _is(v, n_cols, WIDE[kind])):
        return None
    given = (untouched(weights), problem.maximize, untouched(assignment), untouched(u), untouched(v))
    proved = _proved(kind, *given, progress)
    if proved is None:
        return None
    objective, bound, gap, violation = proved
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=share_up(gap, objective, bound),
        max_violation=violation,
        holds=True,
        proved=CLAIMS[kind],
        facts={"unassigned": 0},
    )


def _is(array: Array, extent: int, dtype: Any) -> bool:
    """Whether it is there, and of the one type that the loops are compiled for."""
    return bool(array.shape == (extent,) and array.dtype == dtype and array.flags.c_contiguous)


def _proved(
    kind: str, weights: Array, maximize: bool, assignment: Array, u: Array, v: Array, progress: Heard = unheard
) -> Any:
    """(objective, bound, gap, violation) in the sense of the problem; None where it is not sure that it is closed."""
    from kernels.certificates.brief import loops  # numba, which a process that only takes jobs must not load

    sign: int = -1 if maximize else 1
    prove: Any = loops.prove_integers if kind == "i" else loops.prove_floats
    if weights.size >= MANY:
        prove = partial(_in_threads, loops, progress)
    if kind == "i":
        known, pairs, rest, dual, more, over = prove(weights, maximize, assignment, u, v, LARGEST_PRICE["i"])
        objective, bound = (pairs << 32) + rest, sign * ((dual << 32) + more)
        return (objective, bound, 0, over) if known and objective == bound else None
    known, upper, lower, gap, violation, size = prove(weights, maximize, assignment, u, v, LARGEST_PRICE["f"])
    if not known or not _is_closed(gap, upper, size):
        return None
    return sign * upper + 0, sign * lower + 0, gap, violation


def _in_threads(
    loops: Any, progress: Heard, weights: Array, maximize: bool, assignment: Array, u: Array, v: Array, most: Any
) -> Any:
    """What `prove_integers` or `prove_floats` returns, of many entries."""
    price = np.empty(len(v), v.dtype)
    if not loops.priced(maximize, u, v, most, price):
        return False, 0, 0, 0, 0, 0
    high, low = swept.sweep(weights, maximize, price, progress)
    if v.dtype.kind == "i":
        return loops.sum_integers(weights, maximize, assignment, u, price, high)
    return loops.sum_floats(weights, maximize, assignment, u, price, high, low)


def _is_closed(gap: float, objective: float, size: float) -> bool:
    """Whether `assignment._is_closed` would say so for what is certain of it."""
    if gap <= 0:
        return gap == 0
    if gap > dense.TOO_MUCH or math.ldexp(gap, dense.OF_PAIRS) > SURE * size:
        return False
    return gap <= dense._share(abs(objective))


def warm_up() -> None:
    """Compile the sum and the proof of each type of weights, or load it from numba's cache."""
    from kernels.certificates.brief import loops

    loops.total(untouched(np.zeros(1)), 1.0)
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        kind = np.dtype(dtype).kind
        duals, seats = untouched(np.zeros(1, WIDE[kind])), untouched(np.zeros(1, SEATS))
        given = (untouched(np.zeros((1, 1), dtype)), False, seats, duals, duals)
        _proved(kind, *given)
        _in_threads(loops, unheard, *given, LARGEST_PRICE[kind])
        lines = np.zeros((1, 1), WIDE[kind])
        arrays = {"assignment": np.zeros((1, 1), SEATS), "u": lines, "v": lines}
        certify(Assignment(np.zeros((1, 1, 1), dtype)), Solution(Termination.OPTIMAL, "none", arrays))
