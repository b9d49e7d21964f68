"""The semidefinite bound beside a search on the CPU: a thread that raises it for as long as it pays.

Where the flow is sparse, the level-1 ascent is given its share of the time first: it is cheap, and best there.
"""

import math
import threading
import time
from typing import TYPE_CHECKING

from kernels.deadline import Deadline
from kernels.problems import QuadraticAssignment
from kernels.qap.bounds import rlt1
from kernels.qap.bounds.lower import Bound
from kernels.qap.bounds.relaxed.ascent import Ascent, fits
from kernels.qap.bounds.relaxed.blas import one_thread
from kernels.qap.estimate import RELAXED_N, relaxed_s
from kernels.qap.whole import Rounded, in_integers

if TYPE_CHECKING:
    from kernels.qap import QapOptions

PROVED_N, LARGEST_N = RELAXED_N["cpu"]
"""Where nobody names the bound: up to the first a tree ends sooner, beyond the second nothing comes of minutes."""
STEP_S = 1e-10
"""Seconds of a step, divided by n^6, on one core."""
STEPS_AT_LEAST, BESIDE = 45, 1.5
"""Steps below which the bound is no better than the cheap ones; and how much longer they take beside a search."""
MOST_STEPS = 1500
FIRST_MEASURED, SHARE = 15, 0.25
"""Earlier steps prove less than the cheap bounds. Then measuring takes at most such a share of the time of steps."""
PATIENCE, LEAST_RISE = 60, 2.0**-13
"""It ends once so many steps have raised the bound by less than this share of itself."""
LEVEL_1_SHARE, SPARSE = 0.12, 0.2
"""Of the time for the level-1 ascent, where one bound is above the other by more than such a share of itself."""
WAIT_S = 20.0
"""For a bound that is named, where there is no time limit."""


class Floor:
    """The bound under way.

    Attributes:
        bounds: the best so far by name, on the problem as it was given.
        finished: no more is to be expected.
        steps: iterations so far.
    """

    def __init__(self, problem: QuadraticAssignment, near: Rounded | None = None, level_1_s: float = 0.0) -> None:
        self._problem, self._near, self._level_1_s = problem, near, level_1_s
        self.bounds: dict[str, Bound] = {}
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
                if self._level_1_s > 0 and rlt1.fits(self._problem):
                    self._sweep(rlt1.DualAscent(self._problem))
                self._ascend(Ascent(self._problem))
        except MemoryError:  # there are other bounds
            pass
        self.finished = True

    def _tell(self, bound: Bound) -> None:
        self.bounds = self.bounds | {bound.name: bound if self._near is None else self._near.bound(bound)}

    def _sweep(self, ascent: rlt1.DualAscent) -> None:
        until = time.perf_counter() + self._level_1_s

        def ended() -> bool:
            return self._stopped.is_set() or time.perf_counter() > until

        while not ascent.stalled() and not ended():
            ascent.step(ended)
        self._tell(ascent.bound())

    def _ascend(self, ascent: Ascent) -> None:
        stepping = measuring = 0.0
        kept, kept_at = -math.inf, 0
        while not self._stopped.is_set() and ascent.steps < MOST_STEPS:
            begun = time.perf_counter()
            ascent.step()
            self.steps = ascent.steps
            stepping += time.perf_counter() - begun
            if (
                ascent.steps < FIRST_MEASURED
                or ascent.steps % 5
                or measuring > SHARE * stepping
                or self._stopped.is_set()
            ):
                continue
            begun = time.perf_counter()
            ascent.measure()
            measuring += time.perf_counter() - begun
            best = ascent.best
            if best is None:
                continue
            self._tell(best)
            if best.raw > kept + LEAST_RISE * abs(best.raw):
                kept, kept_at = best.raw, ascent.steps
            elif ascent.steps - kept_at >= PATIENCE:
                return


def begin_floor(
    problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline, known: list[Bound]
) -> Floor | None:
    """A floor where it is asked for and can be had; without being named, where the time is enough for it."""
    if not options.wants("sdp"):
        return None
    seconds = deadline.remaining_s
    if options.bounds == "auto":
        searched_alone = options.method != "auto" or options.rounds is not None
        if searched_alone or not worthwhile(problem.n, seconds):
            return None
        deadline.reserve_more(relaxed_s(problem.n))
    whole, near = in_integers(problem)
    level_1_s = LEVEL_1_SHARE * min(seconds, WAIT_S * 10) if _sparse(known) and options.wants("rlt1") else 0.0
    return Floor(whole, near, level_1_s) if fits(whole) else None


def _sparse(known: list[Bound]) -> bool:
    """Whether the bound by rows is far above that of eigenvalues, as with sparse flows."""
    by_rows = max((bound.raw for bound in known if bound.name.startswith("gilmore")), default=-math.inf)
    by_values = max((bound.raw for bound in known if bound.name == "projection"), default=math.inf)
    return by_rows - by_values > SPARSE * abs(by_rows)


def worthwhile(n: int, seconds: float) -> bool:
    """Whether so many seconds on a core, shared with a search, give more than the cheap bounds do."""
    return PROVED_N < n <= LARGEST_N and BESIDE * STEPS_AT_LEAST * STEP_S * n**6 < seconds
