"""Time limit, cancel flag and progress of one solve; the only way a solver hears from outside.

A solver polls `expired()` between batches of work (aim at every 10 to 50 ms) and, when it answers, returns its
best solution with that termination. It calls `report()` with every new incumbent or bound.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernels.solution import Number, Termination


@dataclass(frozen=True)
class Progress:
    """How far a job has come; None means not known. `fraction` is in [0, 1] and counts within `phase`."""

    iteration: int = 0
    objective: Number | None = None
    bound: Number | None = None
    gap: float | None = None
    fraction: float | None = None
    elapsed_s: float = 0.0
    phase: str = "solve"


class Deadline:
    """Polls a clock and a cancel flag; passes progress on.

    Args:
        time_limit_s: seconds from construction, None for no limit.
        cancelled: answers True once the caller wants the best found so far.
        on_progress: called with each report; must be quick.
    """

    def __init__(
        self,
        time_limit_s: float | None = None,
        cancelled: Callable[[], bool] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._start = time.perf_counter()
        self._limit_s = float("inf") if time_limit_s is None else time_limit_s
        self._cancelled = cancelled
        self._on_progress = on_progress
        self._reserved_s = 0.0
        self._phase = "solve"
        self._last = Progress()

    def reserve(self, seconds: float) -> None:
        """Keep so many seconds of the limit for what comes after the solver: `expired` says so that much earlier."""
        self._reserved_s = max(0.0, seconds)

    def enter(self, phase: str) -> None:
        """Name what the next reports are about: "solve" at first, "certify" afterwards."""
        self._phase = phase

    @property
    def elapsed_s(self) -> float:
        """Seconds since construction."""
        return time.perf_counter() - self._start

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

    def report(
        self,
        iteration: int,
        objective: Number | None = None,
        bound: Number | None = None,
        fraction: float | None = None,
    ) -> None:
        """Tell whoever watches how far the solve has come; the gap is worked out here."""
        if self._on_progress is None:
            return
        gap = None
        if objective is not None and bound is not None:
            scale = max(abs(objective), abs(bound))
            gap = abs(objective - bound) / scale if scale else 0.0
        self._last = Progress(iteration, objective, bound, gap, fraction, self.elapsed_s, self._phase)
        self._on_progress(self._last)

    def advance(self, fraction: float) -> None:
        """Report a fraction of the present phase alone; iteration, objective and bound stay as last reported."""
        if self._on_progress is not None:
            self._last = replace(self._last, fraction=fraction, elapsed_s=self.elapsed_s, phase=self._phase)
            self._on_progress(self._last)
