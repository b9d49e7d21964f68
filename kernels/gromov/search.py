"""The search for a plan: starts, steps of one kind from each of them, and the best coupling that was met."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.gromov.iteration import Objective, Scaling, rounded
from kernels.gromov.lower import LARGEST_SPECTRUM, Lower, projected, third
from kernels.problems.gromov import GromovWasserstein
from kernels.solution import Solution, Termination

if TYPE_CHECKING:
    from kernels.gromov import GromovOptions

LARGEST_EXACT = 1000
"""Rows and columns together up to which a descent is finished by exact steps, where nobody asked for them."""
INNER, INNER_TOLERANCE = 100, 1e-9
"""Scalings in a step at most, and how far row sums may be from the weights after it, in all."""
AUTO_REG = 0.05
"""Of the sizes of what the objective is a difference of."""
QUIET, COARSE = 3, 1e-3
"""Steps in a row that change next to nothing end a descent; what is next to nothing where exact steps follow."""
NOTHING = 1e-13
"""Of the sizes: no change that floats could tell."""
RANDOM_REG, BLEND = 0.1, 0.05
"""Of random starts; and how much of the product a start is given, since no such step leaves a plan's zeros."""
KEEP = 10
"""Steps between two couplings that are made of plans on their way, and told of."""
Polish = Callable[["GromovSearch", Any], Any]


@dataclass
class GromovSearch:
    """One solve, on the device of `xp`.

    `best` and `value` are the best coupling so far and its objective; `polish` takes a plan to a local optimum by
    exact linear steps, None on a device that has none.
    """

    problem: GromovWasserstein
    options: "GromovOptions"
    deadline: Deadline
    xp: Any
    polish: Polish | None = None
    iterations: int = 0
    best: Any = None
    value: float = float("inf")
    lower: list[Lower] = field(default_factory=list)
    ended: Termination | None = None
    values: list[float] = field(default_factory=list)
    unsettled: int = 0

    def __post_init__(self) -> None:
        self.objective = Objective(self.problem, self.xp)
        linear = self.objective.linear
        spread = 0.0 if linear is None else float(linear.max() - linear.min())
        self.size = self.objective.constant + spread
        reg = self.options.reg
        self.smooth = self.options.method == "entropic"  # an end of a descent is asked for, not what is met on the way
        self.reg = AUTO_REG * self.size if reg == "auto" else float(reg)

    def run(self) -> Solution:
        """Take all starts in turn."""
        self.keep(self.objective.a[:, None] * self.objective.b[None, :])
        self._bound()
        for start in self._starts():
            if self._over():
                break
            if not self.smooth:
                self.keep(start)  # a plan of a bound may be the best there is
                if self.closed():
                    break
            ends = [self.keep(plan) for plan in self._ends(start)]
            self.values += [min(ends)] if ends else []
            self._over()
        return self._solution()

    def _ends(self, start: Any) -> Iterator[Any]:
        """What a start leads to: by exact steps alone, and by a descent that they finish."""
        if self._finishes():
            assert self.polish is not None
            yield self.polish(self, start)
        if self.reg > 0 and not self._over():
            plan = self._descend(start)
            if self._finishes() and self.ended is None:
                assert self.polish is not None
                plan = self.polish(self, plan)
            if self.smooth and not self.values:
                self.best = None  # what was kept until now is no fixed point
            yield plan

    def _finishes(self) -> bool:
        """Whether exact steps follow the descent."""
        return self.polish is not None and (self.reg == 0 or sum(self.problem.shape) <= LARGEST_EXACT)

    def keep(self, plan: Any) -> float:
        """Make a coupling of the plan, keep it if it is the best, and return its objective."""
        coupling = rounded(plan, self.objective.a, self.objective.b, self.xp)
        value = self.objective.value(coupling, self.objective.quadratic(coupling))
        if self.best is None or value < self.value:
            self.best, self.value = coupling, value
        self.tell()
        return value

    def note(self, plan: Any) -> None:
        """Count a step; now and then make a coupling of its plan, so that the best so far is never old."""
        self.iterations += 1
        if self.iterations % KEEP == 0 and not self.smooth:
            self.keep(plan)
        else:
            self.tell()

    def tell(self) -> None:
        """Report the best coupling's objective, and the bound."""
        bound = max((one.value for one in self.lower), default=None)
        self.deadline.report(self.iterations, self.value, None if bound is None else min(bound, self.value))

    def closed(self) -> bool:
        """Whether no coupling can be better by more than floats tell."""
        return any(self.value - one.value <= NOTHING * self.size for one in self.lower)

    def _over(self) -> bool:
        self.ended = self.ended or self.deadline.expired()
        return self.ended is not None or self.closed()

    def _bound(self) -> None:
        for lines in ("rows",) if self.objective.symmetric else ("rows", "columns"):
            if self.deadline.expired() is None:
                self.lower.append(third(self.problem, lines, self.xp, self.deadline))
        small = max(self.problem.shape) <= LARGEST_SPECTRUM
        if self.objective.symmetric and small and self.deadline.expired() is None:
            self.lower.append(projected(self.problem, self.xp, self.deadline))
        self.tell()

    def _starts(self) -> Iterator[Any]:
        """The caller's, the product, the plans of the bounds, and random ones: `starts` of them in all."""
        xp, a, b = self.xp, self.objective.a, self.objective.b
        count = self.options.starts
        if self.problem.start is not None:
            yield rounded(xp.asarray(self.problem.start), a, b, xp)
            count -= 1
        if count > 0:
            yield a[:, None] * b[None, :]
        for lower in self.lower[: max(0, count - 1)]:
            yield xp.asarray(lower.plan)
            count -= 1
        draws = np.random.default_rng(self.options.seed)
        for _ in range(count - 1):
            yield Scaling(a, b, xp).plan(xp.asarray(draws.random(self.problem.shape)), RANDOM_REG, 1e-6, INNER)

    def _descend(self, plan: Any) -> Any:
        """Mirror descent: each step is entropic transport with the derivative as its costs.

        "entropic" compares each plan with the product of the weights, which ends in a stationary point of the objective
        plus reg KL(P | a b'). "proximal" compares it with the plan before, so that the costs of all steps add up and
        the entropic term fades.
        """
        objective, scaling = self.objective, Scaling(self.objective.a, self.objective.b, self.xp)
        proximal = not self.smooth
        total, quiet, before = None, 0, float("inf")
        tolerance = max(self.options.tolerance, COARSE if self._finishes() else 0.0)
        if proximal:  # the start is the first plan to be compared with
            product = objective.a[:, None] * objective.b[None, :]
            started = self.xp.where(product > 0, (1 - BLEND) * plan + BLEND * product, 1.0)
            total = -self.reg * self.xp.log(started)
        for step in range(self.options.max_iterations + 1):
            quadratic = objective.quadratic(plan)
            value = objective.value(plan, quadratic)
            change = abs(before - value)
            quiet = quiet + 1 if change <= max(tolerance * abs(value), NOTHING * self.size) else 0
            before = value
            self.ended = self.deadline.expired()
            if quiet >= QUIET or self.ended is not None or step == self.options.max_iterations:
                self.unsettled += quiet < QUIET
                break
            costs = objective.derivative(quadratic)
            total = total + costs if proximal else costs
            plan = scaling.plan(total, self.reg, max(INNER_TOLERANCE, 1e-3 * tolerance), INNER)
            self.note(plan)
        return plan

    def _solution(self) -> Solution:
        plan = self.best if self.xp is np else self.best.get()
        word = self.ended or (Termination.ITERATION_LIMIT if self.unsettled else Termination.CONVERGED)
        facts = {
            "reg": self.reg,
            "tolerance": self.options.tolerance,
            "starts": len(self.values),
            "objectives_of_starts": [float(value) for value in self.values],
            **self.problem.told,
        }
        best = max(self.lower, key=lambda one: one.value, default=None)
        f = np.zeros(self.problem.shape[0]) if best is None else best.f
        return Solution(word, self._method(), {"plan": plan, "f": f}, self.iterations, self.options.seed, facts=facts)

    def _method(self) -> str:
        if self.smooth:
            return "entropic"
        steps = [] if self.reg == 0 else ["proximal"]
        return " + ".join([*steps, *(["conditional gradient"] if self._finishes() else [])])
