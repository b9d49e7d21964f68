"""The iteration around the sweep, the same on every device: few sweeps, and an end with a proof.

    for reg in schedule:                        # epsilon scaling, down to the reg asked for
        repeat
            f, h   <- sweep(g)                  # the only step that reads the kernel; see marginals.py
            state  <- evaluate(f, g, h)         # shift, dual value and gap, from vectors
            stop when the gap is small enough
            g'     <- next_g(h), shifted        # translation invariance
                      or (f + g) / 2            # where rows and columns are the same
            g      <- anderson(g, g')           # a step that loses dual value is taken back, for the last g'

Where rows and columns are the same, as in two of the three problems of a divergence, g has a fixed point f = g. A sweep
maps an error e of it to -P e, where P has eigenvalues from 0 to 1 and many near 1. Half-way between g and f the error
is (e - P e) / 2, so that it halves at least, however slowly sweeps would mix (Feydy et al. 2019).

Anderson acceleration is weighted by the masses, loses no dual value, and its steps are limited. docs/notes/uot.md has
the sweeps of each choice, with its figures.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kernels.deadline import Deadline
from kernels.solution import Termination
from kernels.uot.marginals import Marginals, SweepState, Vector

REMEMBERED = 10  # differences that Anderson keeps
STAGE_GAP = 0.1  # of reg times the plan's mass, at which a stage of epsilon scaling hands over to the next
STAGE_FACTOR = 2.5
LOSS = 8  # roundings of the dual value: a step that lowers it by more is taken back
STALLED = 50  # sweeps without a smaller gap or a larger dual value, after which something else must happen
POOR = 0.5  # relative gap above which a start is held against zeros
SMALLEST_GAP = 2.0**-53  # relative: no smaller one can be told from 0 in float64
RIDGE = 1e-10  # of the mean diagonal of the normal equations: keeps dependent differences from blowing up


class Sweeps(Protocol):
    """What a device brings: the kernel of one problem and one pass over it."""

    def start(self, reg: float) -> None:
        """Begin a stage at `reg`; the next sweep may rebuild whatever depends on it."""

    def sweep(self, g: Vector) -> tuple[Vector, Vector]:
        """Return f and h for g, as `Marginals` defines them, in one read of the kernel."""


@dataclass(frozen=True)
class Outcome:
    """Where the iteration ended: the best state, why, and after how many sweeps (`rejected` steps among them)."""

    state: SweepState
    termination: Termination
    iterations: int
    rejected: int
    stages: tuple[float, ...] = ()  # the regs gone through


class Anderson:
    """Anderson acceleration of a fixed-point map on g, by weighted least squares over the last differences.

    The Jacobian of a Sinkhorn sweep is self-adjoint in the inner product weighted by the plan's column sums, so those
    are the weights: on a quadratic this is then GMRES with a short memory. Where the map is not linear a step can go
    too far: after one that lost dual value, steps are at most a quarter as long, and then twice as long each time.
    """

    def __init__(self, xp: Any, size: int, memory: int, reg: float) -> None:
        self.xp, self.memory = xp, memory
        self.unit = 2.0 ** math.frexp(reg)[1]  # of residuals, whose squares stay in range whatever the costs' scale
        self.shortest, self.most, self.length = reg, math.inf, 0.0
        self.steps = xp.empty((memory, size))
        self.residuals = xp.empty((memory, size))
        self.reset()

    def reset(self) -> None:
        """Forget every difference."""
        self.count = 0
        self.last: tuple[Vector, Vector] | None = None

    def propose(self, g: Vector, mapped: Vector, weights: Vector) -> Vector:
        """The next g, after `g` was mapped to `mapped`."""
        residual = mapped - g
        if self.last is not None and self.memory:
            slot = self.count % self.memory
            self.steps[slot] = mapped - self.last[0]
            self.residuals[slot] = (residual - self.last[1]) / self.unit
            self.count += 1
        self.last = mapped, residual
        kept = min(self.count, self.memory)
        if not kept:
            return mapped
        shares = self._shares(self.residuals[:kept], residual / self.unit, weights)
        return mapped if shares is None else mapped - self._limited(shares @ self.steps[:kept])

    def _shares(self, differences: Vector, residual: Vector, weights: Vector) -> Vector | None:
        """What each difference takes part in the residual with; None where the numbers left float64.

        The equations are few, and one copy brings them: the host solves them, wherever the vectors are.
        """
        kept, weighted = len(differences), differences * weights
        both = self.xp.empty((kept, kept + 1))
        both[:, :kept], both[:, kept] = weighted @ differences.T, weighted @ residual
        here = both if isinstance(both, np.ndarray) else both.get()
        normal, size = here[:, :kept], float(here[:, :kept].trace()) / kept
        if not (0 < size < math.inf):
            return None
        try:
            return self.xp.asarray(np.linalg.solve(normal + RIDGE * size * np.eye(kept), here[:, kept]))
        except np.linalg.LinAlgError:  # a ridge that underflows keeps nothing apart
            return None

    def refuse(self) -> None:
        """Take back the last step: forget every difference, and step less far."""
        if self.length:
            self.most = max(self.length / 4, self.shortest)
        self.reset()

    def _limited(self, step: Vector) -> Vector:
        self.length = float(abs(step).max())
        if not math.isfinite(self.length):
            self.length = 0.0
            return self.xp.zeros_like(step)
        if self.length > self.most:
            step = step * (self.most / self.length)
            self.length, self.most = self.most, 2 * self.most
        return step


def schedule(reg: float, spread: float, warm: bool) -> list[float]:
    """The values of reg to go through: none but `reg` when it is large, or when potentials are given."""
    stages = [reg]
    while not warm and reg < spread / 250 and stages[0] * STAGE_FACTOR < spread / 4:
        stages.insert(0, stages[0] * STAGE_FACTOR)
    return stages


@dataclass(frozen=True)
class Rules:
    """What ends the sweeps, and what is done between two of them.

    Attributes:
        tolerance: the relative gap to reach.
        noise: the relative gap that the rounding of the sweeps may hide: at a gap below it they end ("converged").
        memory: how many differences Anderson acceleration keeps; 0: none is made.
        before: sweeps made earlier, for reports.
    """

    tolerance: float
    deadline: Deadline
    noise: Callable[[SweepState], float] = lambda state: SMALLEST_GAP
    memory: int = REMEMBERED
    translate: bool = True
    before: int = 0


def iterate(
    marginals: Marginals,
    sweeps: Sweeps,
    g: Vector,
    rules: Rules,
    *,
    stages: Sequence[float],
    limit: int,
    doubted: bool = False,
) -> Outcome:
    """Sweep until the relative gap at the last reg of `stages` is at most the tolerance, or something stops it.

    At least one sweep is made at the last reg, so that there is always an answer for the problem asked. A `doubted` g
    is held against zeros first, by a sweep or two that do not count; where it is a poor start its digits are worth no
    shortcut, and all stages are gone through.
    """
    if doubted:
        sweeps.start(stages[-1])
        given = _Stage(marginals, sweeps, stages[-1], rules, False)
        g, poor = given.better_start(g)
        stages = schedule(stages[-1], marginals.spread, warm=not (poor and rules.memory))
    done = rejected = 0
    for reg in stages:
        final = reg == stages[-1]
        if not final and (done >= limit - 1 or rules.deadline.expired()):
            continue
        sweeps.start(reg)
        last = max(done + 1, limit if final else limit - 1)
        stage = _Stage(marginals, sweeps, reg, rules, final).run(g, range(done + 1, last + 1))
        done, rejected, g = stage.iterations, rejected + stage.rejected, stage.state.g
    return Outcome(stage.state, stage.termination, done, rejected, tuple(stages))


class _Stage:
    """The sweeps at one reg."""

    def __init__(self, marginals: Marginals, sweeps: Sweeps, reg: float, rules: Rules, final: bool) -> None:
        self.marginals, self.sweeps, self.reg, self.rules, self.final = marginals, sweeps, reg, rules, final
        self.best: SweepState | None = None
        self.highest, self.improved, self.plain = -math.inf, 0, rules.memory == 0
        self.peak: Vector = None

    def run(self, g: Vector, numbers: range) -> Outcome:
        """Sweep from g; `numbers` are those of the sweeps, the last the limit."""
        rules, zeros = self.rules, self.marginals.xp.zeros_like
        anderson = Anderson(self.marginals.xp, g.shape[0], rules.memory, self.reg)
        halfway = rules.memory > 0 and self.marginals.symmetric()
        before = fallback = None
        rejected = 0
        self.improved = numbers[0]
        for number in numbers:
            f, h = self.sweeps.sweep(g)
            state = self.marginals.evaluate(f, g, h, self.reg)
            self._note(state, number)
            end = self._end(state)
            if end is None and number - self.improved >= STALLED:
                if self.plain:
                    end = Termination.CONVERGED
                else:  # from the highest point on by plain steps, which never lose dual value
                    anderson, g = Anderson(self.marginals.xp, g.shape[0], 0, self.reg), self.peak
                    self.plain, self.improved, before, fallback = True, number, None, None
                    continue
            if end or number == numbers[-1]:
                break
            if not self._acceptable(state, before):
                rejected += 1
                g, before, fallback = zeros(g) if fallback is None else fallback, None, None
                anderson.refuse()
                continue
            mapped = (f + g) / 2 if halfway and not self.plain else self.marginals.next_g(h, self.reg)
            if rules.translate:
                mapped = mapped - self.marginals.shift(f, mapped)
            before, fallback = state, mapped
            g = anderson.propose(g, mapped, state.column_sums)
        kept = state if end is Termination.INFEASIBLE else self._best()
        return Outcome(kept, end or Termination.ITERATION_LIMIT, number, rejected)

    def better_start(self, g: Vector) -> tuple[Vector, bool]:
        """g, or zeros where g is a poor start and they are a better one; and whether it is poor."""
        cold = self.marginals.xp.zeros_like(g)
        if not bool((g != 0).any()):
            return g, True
        given = self._seen(g)
        if given.relative_gap <= POOR:
            return g, False
        if not self._seen(cold).dual > given.dual and math.isfinite(given.dual):
            return g, True
        return cold, True

    def _seen(self, g: Vector) -> SweepState:
        f, h = self.sweeps.sweep(g)
        return self.marginals.evaluate(f, g, h, self.reg)

    def _best(self) -> SweepState:
        assert self.best is not None
        return self.best

    def _note(self, state: SweepState, number: int) -> None:
        """Keep the smallest gap, and remember when anything got better."""
        if self.best is None or state.relative_gap < self.best.relative_gap:
            self.best, self.improved = state, number
        if self.peak is None or state.dual > self.highest or math.isnan(self.highest):
            self.highest, self.peak, self.improved = state.dual, state.g, number
        if self.final:
            best = self._best()
            self.rules.deadline.report(self.rules.before + number, best.dual + best.gap, best.dual)

    def _end(self, state: SweepState) -> Termination | None:
        """Why to stop at `state`, None to go on."""
        if self.final and state.dual > self.marginals.ceiling:
            return Termination.INFEASIBLE
        enough_for_now = not self.final and state.gap <= STAGE_GAP * self.reg * float(state.column_sums.sum())
        if enough_for_now or state.relative_gap <= self.rules.tolerance:
            return Termination.GAP_REACHED
        if state.relative_gap <= self.rules.noise(state):
            return Termination.CONVERGED
        return self.rules.deadline.expired()

    def _acceptable(self, state: SweepState, before: SweepState | None) -> bool:
        """False for a step that lost dual value, and for potentials from outside that overflow."""
        if not math.isfinite(state.dual) or math.isnan(state.gap):
            return False
        if before is None or not math.isfinite(before.gap):
            return True
        rounding = max(SMALLEST_GAP, self.rules.noise(before))
        return state.dual >= before.dual - LOSS * rounding * abs(before.dual)
