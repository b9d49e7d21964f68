"""The semidefinite bound beside a search on the CPU: a thread that raises it for as long as it pays."""

import math
import threading
import time
from typing import TYPE_CHECKING

from kernels.problems import QuadraticAssignment
from kernels.qap.bounds import Bound
from kernels.qap.relaxed.ascent import Ascent, fits
from kernels.qap.relaxed.blas import one_thread
from kernels.qap.whole import Rounded, rounded

if TYPE_CHECKING:
    from kernels.qap import QapOptions

PROVED_N, LARGEST_N = 16, 48
"""Where nobody names the bound: up to the first a tree ends sooner, beyond the second nothing comes of minutes."""
STEP_S = 1.5e-10
"""Seconds of a step, divided by n^6, on one core."""
STEPS_AT_LEAST = 25
"""Steps below which the bound is no better than the cheap ones."""
MOST_STEPS = 1500
SHARE = 0.15
"""Of the time that steps take, at most so much goes into measuring what they have come to."""
PATIENCE, LEAST_RISE = 60, 2.0**-13
"""It ends once so many steps have raised the bound by less than this share of itself."""
WAIT_S = 20.0
"""For a bound that is named, where there is no time limit."""


class Floor:
    """The bound under way.

    Attributes:
        bound: the best so far, on the problem as it was given; None while there is none.
        finished: no more is to be expected.
        steps: iterations so far.
    """

    def __init__(self, problem: QuadraticAssignment, near: Rounded | None = None) -> None:
        self._problem, self._near = problem, near
        self.bound: Bound | None = None
        self.finished, self.steps = False, 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No further step. One that has begun ends alone, unheard: nothing interrupts eigenvalues."""
        self._stopped.set()

    def wait(self, seconds: float) -> None:
        """Until it has finished, but no longer than `seconds`."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            with one_thread():
                self._ascend(Ascent(self._problem))
        except MemoryError:  # there are other bounds
            pass
        self.finished = True

    def _ascend(self, ascent: Ascent) -> None:
        stepping = measuring = 0.0
        kept, kept_at = -math.inf, 0
        while not self._stopped.is_set() and ascent.steps < MOST_STEPS:
            begun = time.perf_counter()
            ascent.step()
            self.steps = ascent.steps
            stepping += time.perf_counter() - begun
            if ascent.steps % 5 or measuring > SHARE * stepping or self._stopped.is_set():
                continue
            begun = time.perf_counter()
            ascent.measure()
            measuring += time.perf_counter() - begun
            best = ascent.best
            if best is None:
                continue
            self.bound = best if self._near is None else self._near.bound(best)
            if best.raw > kept + LEAST_RISE * abs(best.raw):
                kept, kept_at = best.raw, ascent.steps
            elif ascent.steps - kept_at >= PATIENCE:
                return


def begin_floor(problem: QuadraticAssignment, options: "QapOptions", seconds: float) -> Floor | None:
    """A floor where it is asked for and can be had; without being named, where `seconds` are enough for it."""
    if not options.wants("sdp"):
        return None
    if options.bounds == "auto":
        searched_alone = options.method != "auto" or options.rounds is not None
        if searched_alone or not worthwhile(problem.n, seconds):
            return None
    near = None if problem.integer else rounded(problem)
    whole = problem if near is None else near.problem
    return Floor(whole, near) if fits(whole) else None


def worthwhile(n: int, seconds: float) -> bool:
    """Whether so many seconds on a core, shared with a search, give more than the cheap bounds do."""
    return PROVED_N < n <= LARGEST_N and 2 * STEPS_AT_LEAST * STEP_S * n**6 < seconds
