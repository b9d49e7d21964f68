"""Time limit, cancel flag and progress of one solve; the only way a solver hears from outside.

A solver polls `expired()` between batches of work (aim at every 10 to 50 ms) and, when it answers, returns its
best solution with that termination. It calls `report()` with every new incumbent or bound.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernels.solution import Number, Termination

Phase = Literal["load", "solve", "certify", "store", "wait"]
"""The parts of a job, in this order; a job that is mended solves and certifies a second time. The last is for one that
has its answer and finds the store full."""


@dataclass  # nobody changes one; frozen, it takes three times as long to make
class Progress:
    """How far a job has come; None means not known. `fraction` is in [0, 1] and counts within `phase`.

    `permutation` is the answer behind `objective`: the place of each facility, or the column of each row (-1: none). It
    stands only in the first report of it.
    """

    iteration: int = 0
    objective: Number | None = None
    bound: Number | None = None
    gap: float | None = None
    fraction: float | None = None
    elapsed_s: float = 0.0
    phase: Phase = "solve"
    permutation: tuple[int, ...] | None = None


_BEGUN = Progress()
LONGEST_SHOWN = 2000
"""Entries of an answer that a report carries: a longer one cannot be drawn anyway."""


Retell = Callable[[Number | None, Number | None], tuple[Number | None, Number | None]]
"""Makes what is told of a problem's objective and bound out of those of another form of it."""


class Deadline:
    """Polls a clock and a cancel flag; passes progress on.

    Args:
        time_limit_s: seconds from construction, None for no limit.
        cancelled: answers True once the caller wants the best found so far.
        on_progress: called with each report; must be quick.
        clock: seconds of any origin.
    """

    def __init__(
        self,
        time_limit_s: float | None = None,
        cancelled: Callable[[], bool] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._start = clock()
        self._limit_s = float("inf") if time_limit_s is None else time_limit_s
        self._cancelled = cancelled
        self._on_progress = on_progress
        self._reserved_s = 0.0
        self._last = _BEGUN
        self._shown: tuple[int, ...] | None = None

    def reserve(self, seconds: float) -> None:
        """Keep so many seconds of the limit for what comes after the solver: `expired` says so that much earlier."""
        self._reserved_s = max(0.0, seconds)

    def reserve_more(self, seconds: float) -> None:
        """Keep so many seconds besides, for a proof that nobody expected when the solver began."""
        self._reserved_s += seconds

    def enter(self, phase: Phase) -> None:
        """Begin another part of the job, and say so."""
        fraction = None if phase == "solve" else 0.0  # only the solver knows whether it can tell
        self._tell(self._now(fraction, phase))

    @property
    def phase(self) -> Phase:
        """The part of the job that was entered last."""
        return self._last.phase

    @property
    def elapsed_s(self) -> float:
        """Seconds since construction."""
        return self._clock() - self._start

    @property
    def remaining_s(self) -> float:
        """Seconds left to the solver, inf without a limit, never negative."""
        return max(0.0, self._limit_s - self._reserved_s - self.elapsed_s)

    @property
    def heard(self) -> bool:
        """Whether anybody listens to reports: what they would say need not be worked out else."""
        return self._on_progress is not None

    def expired(self) -> Termination | None:
        """STOPPED once cancelled, TIME_LIMIT once out of time, else None."""
        if self._cancelled is not None and self._cancelled():
            return Termination.STOPPED
        if self.elapsed_s >= self._limit_s - self._reserved_s:
            return Termination.TIME_LIMIT
        return None

    def allows(self, seconds: float) -> bool:
        """Whether so many seconds of further work end before the limit, and nobody wants it to stop.

        What is reserved counts as part of that work and not as gone.
        """
        stopped = self._cancelled is not None and self._cancelled()
        return not stopped and self.elapsed_s + seconds <= self._limit_s

    def report(
        self,
        iteration: int,
        objective: Number | None = None,
        bound: Number | None = None,
        fraction: float | None = None,
    ) -> None:
        """Tell whoever watches how far the solve has come; the gap is worked out here.

        The iteration that is told never falls: a solver that begins anew, in another form or from another start,
        counts from 1 again, and whoever watches would take that for lost work.
        """
        if self._on_progress is None:
            return
        gap = None
        if objective is not None and bound is not None:
            scale = max(abs(objective), abs(bound))
            gap = abs(objective - bound) / scale if scale else 0.0
        iteration = max(iteration, self._last.iteration)
        self._tell(Progress(iteration, objective, bound, gap, fraction, self.elapsed_s, self._last.phase))

    def show(self, permutation: Sequence[int]) -> None:
        """Let the next report carry the answer that it is about, if that is short enough to be drawn."""
        if self.heard and len(permutation) <= LONGEST_SHOWN:
            self._shown = tuple(permutation)

    def advance(self, fraction: float) -> None:
        """Report a fraction of the present phase alone, which never falls; all else stays as last reported."""
        fraction = min(1.0, max(fraction, self._last.fraction or 0.0))
        self._tell(self._now(fraction, self._last.phase))

    def _now(self, fraction: float | None, phase: Phase) -> Progress:
        """What was reported last, further on: written out, since a small job does it five times."""
        last = self._last
        return Progress(last.iteration, last.objective, last.bound, last.gap, fraction, self.elapsed_s, phase)

    def _tell(self, progress: Progress) -> None:
        self._last = progress
        shown, self._shown = self._shown, None
        if self._on_progress is not None:
            self._on_progress(progress if shown is None else replace(progress, permutation=shown))


class Retold(Deadline):
    """Another deadline, for a solver that works on another form of the problem: it hears what `retell` makes of it."""

    def __init__(self, deadline: Deadline, retell: Retell) -> None:
        super().__init__()
        self._deadline, self._retell = deadline, retell

    @property
    def elapsed_s(self) -> float:
        """Of the deadline behind."""
        return self._deadline.elapsed_s

    @property
    def remaining_s(self) -> float:
        """Of the deadline behind."""
        return self._deadline.remaining_s

    @property
    def heard(self) -> bool:
        """Of the deadline behind."""
        return self._deadline.heard

    def expired(self) -> Termination | None:
        """Of the deadline behind."""
        return self._deadline.expired()

    def allows(self, seconds: float) -> bool:
        """Of the deadline behind."""
        return self._deadline.allows(seconds)

    def report(
        self,
        iteration: int,
        objective: Number | None = None,
        bound: Number | None = None,
        fraction: float | None = None,
    ) -> None:
        """Pass on what is retold."""
        self._deadline.report(iteration, *self._retell(objective, bound), fraction)
