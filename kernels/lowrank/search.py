"""The search for factors: starts, descents from each of them, and the best factors that were met."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.lowrank.costs import Costs
from kernels.lowrank.descent import Course, Factors, Sums, descend, rounded
from kernels.lowrank.lower import potentials
from kernels.lowrank.starts import components, draw, drawn, on_host, spread
from kernels.problems.lowrank import LowRankTransport
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.lowrank import LowRankOptions

COARSE, FEW = 1e-4, 10
"""Of a descent that exact steps follow: its tolerance, and the rounds of a projection."""
INNER = 100
"""Rounds of a projection, where nothing follows."""
BLEND = 0.01
"""How much of the product a start is given before it descends, since no step leaves a factor's zeros."""
KEEP = 20
"""Steps between two that are rounded and told of."""
NOTHING = 1e-13
"""Of the objective: no change that floats could tell."""
Polish = Callable[["LowRankSearch", Factors], Factors]


@dataclass
class LowRankSearch:
    """One solve, on the device of `xp`.

    `best` and `value` are the best factors so far and their objective; `polish` takes factors to where no exact step
    makes them better, None on a device that has none and for problems too large for it.
    """

    problem: LowRankTransport
    options: "LowRankOptions"
    deadline: Deadline
    xp: Any
    polish: Polish | None = None
    iterations: int = 0
    best: Factors | None = None
    value: float = float("inf")
    lower: float | None = None
    f: Any = None
    ended: Termination | None = None
    values: list[float] = field(default_factory=list)
    unsettled: int = 0

    def __post_init__(self) -> None:
        self.costs = Costs(self.problem, self.xp)
        a, b = (self.xp.asarray(one / one.sum()) for one in (self.problem.a, self.problem.b))
        self.sums = Sums(a, b, self.xp)

    def run(self) -> Solution:
        """Take all starts in turn."""
        self.keep(Factors(self.sums.a[:, None], self.sums.b[:, None], self.xp.ones(1)))
        for start in self._starts():
            if self.over() or self.closed():
                break
            value = self.keep(start)
            for end in self._ends(start):
                value = min(value, self.keep(end))
            self.values.append(value)
        return self._solution()

    def _starts(self) -> Iterator[Factors]:
        """Components of one sample from other seeds, or random factors."""
        if self.over():
            return
        sample = draw(self.problem, self.costs, self.options.seed, self.deadline)
        if self.problem.bounded:
            self.f, self.lower = potentials(self.costs, sample, self.deadline, self.sums)
        rng = np.random.default_rng(self.options.seed)
        for _ in range(self.options.starts):
            if self.options.init == "random":
                yield drawn(self.problem.rank, self.sums, rng, self.over)
            else:
                parts = components(sample, self.problem.rank, rng)
                yield spread(self.costs, sample, parts, self.sums, self.over)

    def _ends(self, start: Factors) -> Iterator[Factors]:
        """What a start leads to: by exact steps alone, and by a descent that they finish."""
        if self.polish is not None:
            yield self.polish(self, self.coupled(start))
        if self.over() or self.closed():
            return
        q, r = (
            (1 - BLEND) * factor + BLEND * weights[:, None] * start.g
            for factor, weights in ((start.q, self.sums.a), (start.r, self.sums.b))
        )
        tolerance, rounds = self.options.tolerance, INNER
        if self.polish is not None:
            tolerance, rounds = max(COARSE, tolerance), FEW
        course = Course(self.options.gamma, tolerance, rounds, self.options.max_iterations)
        end, settled = descend(self.costs, Factors(q, r, start.g), self.sums, course, self._note, self.over)
        self.unsettled += not settled
        yield end
        if self.polish is not None and not self.over():
            yield self.polish(self, self.coupled(end))

    def over(self) -> bool:
        """Whether somebody wants an end."""
        self.ended = self.ended or self.deadline.expired()
        return self.ended is not None

    def closed(self) -> bool:
        """Whether no coupling at all can be better by more than floats tell."""
        return self.lower is not None and self.value - self.lower <= NOTHING * abs(self.value)

    def coupled(self, at: Factors) -> Factors:
        """Factors whose sums are right but for the last bits, without components that hold nothing."""
        g = at.q.sum(axis=0)
        g = g / g.sum()
        q, r = rounded(at.q, self.sums.a, g, self.xp), rounded(at.r, self.sums.b, g, self.xp)
        held = on_host(g, self.xp) > 0
        if held.all():
            return Factors(q, r, g)
        kept = self.xp.asarray(np.flatnonzero(held))
        return Factors(q[:, kept], r[:, kept], g[kept])

    def keep(self, at: Factors) -> float:
        """Make a coupling of the factors, keep them if they are the best, and return their objective."""
        at = self.coupled(at)
        value = self.costs.value(at.q, at.r, at.g)
        if self.best is None or value < self.value:
            self.best, self.value = at, value
        self.tell()
        return value

    def _note(self, at: Factors, value: float) -> bool:
        self.iterations += 1
        if self.iterations % KEEP == 0:
            self.keep(at)
        else:
            self.tell()
        return self.over()

    def tell(self) -> None:
        """Report the best objective, and the bound."""
        self.deadline.report(self.iterations, self.value, None if self.lower is None else min(self.lower, self.value))

    def _solution(self) -> Solution:
        assert self.best is not None
        word = self.ended or (Termination.ITERATION_LIMIT if self.unsettled else Termination.CONVERGED)
        f = np.zeros(self.problem.shape[0]) if self.f is None else on_host(self.f, self.xp)
        factors = {name: on_host(getattr(self.best, name), self.xp) for name in ("q", "r", "g")}
        facts = {
            "rank": len(factors["g"]),
            "tolerance": self.options.tolerance,
            "starts": len(self.values),
            "objectives_of_starts": self.values,
            **self.problem.told,
        }
        method = "mirror descent" if self.polish is None else "exact steps + mirror descent"
        return Solution(word, method, {**factors, "f": f}, self.iterations, self.options.seed, facts=facts)
