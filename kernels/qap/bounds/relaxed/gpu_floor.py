"""The semidefinite bound on the device, between two searches: it has the device for its share of the time."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cupy
from cupyx import errstate

from kernels.deadline import Deadline
from kernels.gpu_room import bytes_free
from kernels.problems import QuadraticAssignment
from kernels.qap.bounds.lower import Bound
from kernels.qap.bounds.relaxed.ascent import Ascent, fits
from kernels.qap.bounds.relaxed.cone import ByProducts
from kernels.qap.bounds.relaxed.gpu_arithmetic import DeviceArithmetic
from kernels.qap.bounds.relaxed.gpu_signs import Signs
from kernels.qap.estimate import DEVICE_BYTES, LARGE_N, may_relax, relaxed_s
from kernels.qap.whole import in_integers
from kernels.solution import Number

if TYPE_CHECKING:
    from kernels.qap import QapOptions

CERTIFICATES = 3
"""Without being named it is worked out where the time left is so many times that of its certificate."""
LARGE_S = 100.0
"""Without being named it leaves fewer seconds to the search, where there are more than `LARGE_N` facilities."""
SMALLEST = 1e-4
"""See `ByProducts`. A tenth of it takes some more products a step; ten times as much costs some of the bound."""
SHARE = 0.2
"""Of the time that steps take, at most so much goes into measuring what they have come to."""
PATIENCE, LEAST_RISE = 60, 2.0**-15
"""It ends once so many steps have raised the bound by less than this share of itself."""
SHARE_OF_ALL = 0.6
"""Of the time that is left, where nobody says: at these sizes the search is at its end within a second or two."""
ORDER = 2048
"""Of a matrix whose sign brings up the products."""
NAMED_S, UNNAMED_S = 20.0, 2.0
"""Where there is no time limit."""
MOST_STEPS = 6000


def wanted(problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline) -> bool:
    """Whether it is named, or the time is enough for it, and the device's memory holds it."""
    if not may_relax(problem.n, options, "gpu"):
        return False
    least_s = max(CERTIFICATES * relaxed_s(problem.n), LARGE_S if problem.n > LARGE_N else 0.0)
    if options.bounds == "auto" and deadline.remaining_s < least_s:
        return False
    return DEVICE_BYTES * problem.n**4 < bytes_free()


def raise_floor(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, objective: Number, known: Number | None
) -> Bound | None:
    """The best bound of as many steps as `bound_share` of the time allows, each told as it rises.

    Args:
        objective: of the incumbent, which the reports repeat; the bound that meets it ends the ascent.
        known: the best of the other bounds.

    Returns:
        None where the problem's numbers are too large for it as well.
    """
    whole, near = in_integers(problem)
    if not fits(whole):
        return None
    if options.bounds == "auto":
        deadline.reserve_more(relaxed_s(problem.n))
    ascent = _ascent(whole)

    def told(best: Bound) -> bool:
        floor = best.value if near is None else near.bound(best).value
        deadline.report(0, objective, floor if known is None else max(floor, known))
        return floor >= objective

    _ascend(ascent, deadline, _until_s(options, deadline), told)
    return ascent.best if ascent.best is None or near is None else near.bound(ascent.best)


def _ascend(ascent: Ascent, deadline: Deadline, until_s: float, told: Callable[[Bound], bool]) -> None:
    """Steps until that time, until the bound rises no more, or until `told` finds a bound to be enough."""
    threads = len(os.sched_getaffinity(0))
    stepping = measuring = 0.0
    kept, kept_at = -float("inf"), 0
    while ascent.steps < MOST_STEPS:
        if deadline.expired() is not None:
            return
        if deadline.elapsed_s + measuring / max(1, ascent.measured) > until_s:  # the last measurement takes as long
            break
        began = time.perf_counter()
        ascent.step()
        cupy.cuda.get_current_stream().synchronize()
        stepping += time.perf_counter() - began
        if ascent.steps % 5 or measuring > SHARE * stepping:
            continue
        measuring += _measured(ascent, threads)
        best = ascent.best
        if best is None:
            continue
        if told(best):
            return
        if best.raw > kept + LEAST_RISE * abs(best.raw):
            kept, kept_at = best.raw, ascent.steps
        elif ascent.steps - kept_at >= PATIENCE:
            return
    if ascent.steps:
        _measured(ascent, threads)


def _ascent(problem: QuadraticAssignment) -> Ascent:
    by = DeviceArithmetic()
    return Ascent(problem, xp=cupy, project=ByProducts(cupy, SMALLEST, by), factorise=_factorised, arithmetic=by)


def _factorised(matrix: Any) -> Any:
    """Cholesky. Raises: numpy's LinAlgError where there is none, which CuPy keeps to itself by default."""
    with errstate(linalg="raise"):
        return cupy.linalg.cholesky(matrix)


def warm_up(problem: QuadraticAssignment) -> None:
    """Load what the steps and a measurement need, and the products of halves."""
    ascent = _ascent(problem)
    ascent.step()
    ascent.measure()
    Signs(ORDER)(cupy.eye(ORDER, dtype=cupy.float32), SMALLEST)
    cupy.get_default_memory_pool().free_all_blocks()


def _until_s(options: "QapOptions", deadline: Deadline) -> float:
    """When the steps end, in seconds of the deadline's clock."""
    if deadline.remaining_s == float("inf"):
        return deadline.elapsed_s + (UNNAMED_S if options.bounds == "auto" else NAMED_S)
    left_to_us = options.bounds == "auto" and "bound_share" not in options.model_fields_set
    return deadline.elapsed_s + (SHARE_OF_ALL if left_to_us else options.bound_share) * deadline.remaining_s


def _measured(ascent: Ascent, threads: int) -> float:
    """Measure; the seconds that it took."""
    began = time.perf_counter()
    ascent.measure(threads)
    return time.perf_counter() - began
