"""What the sums of a problem come to, rounded once, and the sums over all problems; compiled.

A sum is kept with the sum of its rounding errors (TwoSum), and a bound on what that leaves out. Where these say on
which side of the sum the exact one lies, it is rounded once, as rounded.py does. Where they do not, nothing is said.
"""

from typing import Any

import numba
import numpy as np

from kernels.certificates.compiled import held, inlined, two_sum
from kernels.certificates.rejecting.proof import OF_DATA, OF_PAIRS, SHORT_OF, TOO_MUCH
from kernels.problems.arrays import Array

OBJECTIVE, BOUND, GAP, VIOLATION = range(4)
"""Places in `told`, what is found of each problem."""
MISSING, MISSING_COLUMNS, LEFT, UNBOUNDED, SURE, LOOSE = range(6)
"""Places in `counts`: rows that must be paired and are not, which become the pairs that are missing; such columns;
lines that are left; lines that nothing bounds from below; whether proof.py need not look; whether it is no optimum."""
EXACT = 2.0**61
"""Whole numbers whose sizes add up to less are added in int64, and so is the difference of two such sums."""
MORE = 1 + 2.0**-20
"""A sum of fewer than 2^32 sizes in working precision, times this, is not below the exact one (Higham, section 4.2)."""
PAIRS = 2.0**OF_PAIRS
"""Times this a gap is compared with the sizes of its pairs."""


def most_threads() -> int:
    """How many threads this process was given for compiled loops; numba lets go of the GIL where it is asked."""
    return int(numba.config.NUMBA_NUM_THREADS)


@inlined
def added(total: Any, term: Any) -> Any:
    """A sum with one more term."""
    first, error = two_sum(total[0], term)
    second, beyond = two_sum(total[1], error)
    return first, second, total[2] + abs(beyond)


@inlined
def turned(value: Any, maximize: bool) -> Any:
    """In min form."""
    return -value if maximize else value


@inlined
def rounded(total: Any, side: int) -> Any:
    """(a sum of floats rounded to a side, whether that is sure), from what `added` kept of it."""
    nearest, rest = two_sum(total[0], total[1])
    off = np.nextafter(total[2] * MORE, np.inf if total[2] > 0 else 0.0)
    room = abs(nearest - np.nextafter(nearest, 0.0))
    exact = rest == 0 and off == 0
    sure = np.isfinite(nearest) and (exact or (abs(rest) > off and off <= room / 8))
    if not exact and rest * side > 0:
        nearest = np.nextafter(nearest, side * np.inf)
    return nearest, sure and np.isfinite(nearest)


@inlined
def less_up(x: float, y: float) -> Any:
    """x - y rounded towards +inf, as `rounded.sub_up`."""
    nearest, error = two_sum(x, -y)
    if not (np.isfinite(x) and np.isfinite(y)):
        return nearest
    if np.isfinite(nearest):
        return np.nextafter(nearest, np.inf) if error > 0 else nearest
    return np.nextafter(nearest, np.inf) if nearest < 0 else nearest


@inlined
def is_near(gap: float, objective: float, size: float) -> Any:
    """Whether a gap is what rounding may leave of the pairs' sizes and of the objective: see proof.py."""
    if not gap <= TOO_MUCH or not gap * PAIRS <= size * SHORT_OF:
        return False
    return gap <= np.nextafter(OF_DATA * abs(objective), 0.0)


@inlined
def conclude(
    objective: Any, bound: Any, size: float, maximize: bool, barred: Any, optimal: bool, told: Array, counts: Array
) -> None:
    """What the two sums of a problem come to, in its own sense, and whether that is enough.

    `objective` and `bound` in min form, as `added` keeps them; `size`: about the sum of all terms' sizes. `optimal`:
    the answer is called so. No number is of one type in one branch and of the other in the other: numba would take
    both for floats.
    """
    rows, columns, unbounded = counts[MISSING], counts[MISSING_COLUMNS], counts[UNBOUNDED] > 0
    missing = max(rows, columns) if min(rows, columns) > 0 else rows + columns
    known = missing == 0 and not unbounded
    if barred is None:
        high, one = rounded(objective, 1)
        low, other = rounded(bound, -1)
        gap = less_up(high, low)
        sure = (one or missing > 0) and (other or unbounded)
        fine = known and (gap == 0 or is_near(gap, high, size))
        told[OBJECTIVE], told[BOUND], told[GAP] = turned(high, maximize) + 0.0, turned(low, maximize) + 0.0, gap
    else:
        sure, fine = size < EXACT, known and objective[0] == bound[0]
        told[OBJECTIVE], told[BOUND] = turned(objective[0], maximize), turned(bound[0], maximize)
        told[GAP] = objective[0] - bound[0]
    counts[MISSING], counts[LOOSE] = missing, not fine
    counts[SURE] = sure and not (optimal and (missing > 0 or (known and not fine)))


@held
def over_all(maximize: bool, barred: Any, told: Array, counts: Array) -> Any:
    """How many problems nobody is sure of, are open, or are no optimum; pairs missing, lines left, largest violation.

    Then objective and bound of floats, added up and rounded to their weak sides, and whether that is sure: of
    problems of which none is open.
    """
    unsure = unknown = loose = missing = left = 0
    worst, objective, bound = told.dtype.type(0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(len(told)):
        if counts[k, SURE] == 0:
            unsure += 1
            continue
        missing, left, loose = missing + counts[k, MISSING], left + counts[k, LEFT], loose + counts[k, LOOSE]
        worst = max(worst, told[k, VIOLATION])
        if counts[k, MISSING] > 0 or counts[k, UNBOUNDED] > 0:
            unknown += 1
        elif barred is None:
            objective = added(objective, turned(told[k, OBJECTIVE], maximize))
            bound = added(bound, turned(told[k, BOUND], maximize))
    high, one = rounded(objective, 1)
    low, other = rounded(bound, -1)
    sure = barred is None and unsure + unknown == 0 and one and other
    return unsure, unknown, loose, missing, left, worst, turned(high, maximize) + 0.0, turned(low, maximize) + 0.0, sure
