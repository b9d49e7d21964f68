"""The semidefinite bound on the device, between two searches: it has the device for its share of the time."""

import os
import time
from typing import TYPE_CHECKING

import cupy

from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.qap.bounds.lower import Bound
from kernels.qap.bounds.relaxed.ascent import Ascent, fits
from kernels.qap.bounds.relaxed.cone import ByProducts

if TYPE_CHECKING:
    from kernels.qap import QapOptions

ARRAYS = 24
"""Of n^4 float32 entries that lie on the device at once; those of float64 count twice."""
SHARE = 0.2
"""Of the time that steps take, at most so much goes into measuring what they have come to."""
PATIENCE, LEAST_RISE = 60, 2.0**-13
"""It ends once so many steps have raised the bound by less than this share of itself."""
WITHOUT_LIMIT_S, MOST_STEPS = 20.0, 1500


def wanted(problem: QuadraticAssignment, options: "QapOptions") -> bool:
    """Whether it is named, and the device's memory holds it.

    `auto` leaves it out: its certificate is the CPU's, n^6 operations, and what its steps take here is not measured.
    """
    if options.bounds == "auto" or not options.wants("sdp") or not fits(problem):
        return False
    free: int = cupy.cuda.Device().mem_info[0] + cupy.get_default_memory_pool().free_bytes()
    return 4 * ARRAYS * problem.n**4 < free


def raise_floor(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, objective: int, known: int | None
) -> Bound | None:
    """The best bound of as many steps as `bound_share` of the time allows, each told as it rises.

    Args:
        objective: of the incumbent, which the reports repeat; the bound that meets it ends the ascent.
        known: the best of the other bounds.
    """
    remaining = deadline.remaining_s
    until_s = deadline.elapsed_s + (WITHOUT_LIMIT_S if remaining == float("inf") else options.bound_share * remaining)
    ascent = Ascent(problem, xp=cupy, project=ByProducts(cupy))
    threads = len(os.sched_getaffinity(0))
    stepping = measuring = 0.0
    kept, kept_at = -float("inf"), 0

    def ended() -> bool:
        return deadline.expired() is not None or deadline.elapsed_s + _last_s(measuring, ascent) > until_s

    while ascent.steps < MOST_STEPS and not ended():
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
        floor = int(best.value) if known is None else max(int(best.value), known)
        deadline.report(0, objective, floor)
        if best.value >= objective:
            break
        if best.raw > kept + LEAST_RISE * abs(best.raw):
            kept, kept_at = best.raw, ascent.steps
        elif ascent.steps - kept_at >= PATIENCE:
            break
    else:
        if ascent.steps and deadline.expired() is None:
            _measured(ascent, threads)
    return ascent.best


def _measured(ascent: Ascent, threads: int) -> float:
    """Measure; the seconds that it took."""
    began = time.perf_counter()
    ascent.measure(threads)
    return time.perf_counter() - began


def _last_s(measuring: float, ascent: Ascent) -> float:
    """What the last measurement will take, as far as those before it tell."""
    return measuring / max(1, ascent.measured)
