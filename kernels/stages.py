"""How an entropic iteration goes on and when it ends, for every device: the values of reg on the way, and the stop."""

from collections.abc import Iterator

from kernels.deadline import Deadline
from kernels.solution import Termination

FIRST, FACTOR = 0.05, 4.0
"""Of the spread of the costs: the first reg; and how much smaller each next one is."""
STAGE_GAP = 0.05
"""Relative gap at which a stage on the way ends."""
STAGE_ITERATIONS = 100
"""After which it ends anyway."""
AT_BEST = 1e-14
"""Mass that is apart by rounding alone: nothing is gained below it."""


class Schedule:
    """The values of reg: large ones converge fast and begin the small ones."""

    def __init__(self, reg: float, spread: float) -> None:
        self._reg, self._first = reg, max(reg, FIRST * spread)

    def __iter__(self) -> Iterator[float]:
        reg = self._first
        while reg > self._reg:
            yield reg
            reg = self.after(reg, self._reg)
        yield self._reg

    @staticmethod
    def after(reg: float, last: float) -> float:
        """The next value on the way to `last`."""
        return max(last, reg / FACTOR)


class Stopping:
    """Counts iterations, hears the deadline, and says when a stage is enough."""

    def __init__(self, most: int, tolerance: float, deadline: Deadline) -> None:
        self.most, self.done, self.word = most, 0, Termination.CONVERGED
        self._tolerance, self.deadline, self._begun = tolerance, deadline, 0
        self.ended = False

    def enough(self, value: float, gap: float, apart: float, scale: float, last: bool) -> bool:
        """Whether to stop here: at the gap asked for, at rounding, at the limit of time or iterations.

        Args:
            value: of the dual problem, in the unit of the cost.
            gap: about what the primal value is above it at most.
            apart: the mass that has to move for it.
            scale: what the gap is compared with.
            last: whether this is the reg that was asked for.
        """
        if last:
            self.deadline.report(self.done, value + gap, value)
        if gap <= (self._tolerance if last else STAGE_GAP) * scale:
            return self._end(Termination.GAP_REACHED) if last else self._next()
        if apart <= AT_BEST and last:
            return self._end(Termination.CONVERGED)
        if self.done >= self.most:
            return self._end(Termination.ITERATION_LIMIT)
        stopped = self.deadline.expired()
        if stopped:
            return self._end(stopped)
        return not last and self.done - self._begun >= STAGE_ITERATIONS and self._next()

    def _next(self) -> bool:
        self._begun = self.done
        return True

    def _end(self, word: Termination) -> bool:
        self.word, self.ended = word, True
        return True
