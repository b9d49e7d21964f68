"""The three kinds of sweep on the CPU: kernel stored, worked out from costs, worked out from points.

Each takes and gives potentials in the units of the cost and calls the compiled ones of loops.py, which work in
base-2 units with the column weights inside G.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.problems.arrays import Floats, Mask, Reals
from kernels.problems.transport import METRICS, UnbalancedTransport
from kernels.uot.cpu.loops import farthest, scalings, soft_columns, soft_minima, sweep_cost, sweep_kernel, sweep_points
from kernels.uot.cpu.threads import in_threads, read_only, summed
from kernels.uot.marginals import Marginals
from kernels.uot.outer import Sweeps
from kernels.uot.support import costs

LOG2E = float(np.log2(np.e))
DRIFT = 15.0 * LOG2E  # base-2 units that F or G may move before a stored kernel is built anew; float32 holds 2^126
LOST = 1e-28  # a column sum below it may have lost terms and is worked out again in float64


def make_sweeps(problem: UnbalancedTransport, method: str, dtype: str) -> Sweeps:
    """The sweeps of a method ("fused", "log" or "points") in float32 or float64."""
    kinds = {"fused": FusedSweeps, "log": LogSweeps, "points": PointSweeps}
    return kinds[method](problem, np.dtype(dtype))


class LogSweeps:
    """Exponentials worked out from the cost in every sweep, around the row potentials of the sweep before."""

    def __init__(self, problem: UnbalancedTransport, dtype: Any) -> None:
        self.problem, self.dtype = problem, dtype
        self.marginals = Marginals(np, problem, 0.0)
        self.cost = None if problem.cost is None else read_only(problem.cost)
        self.f = np.zeros_like(problem.a)
        self.kernel = np.empty((0, 0), dtype)

    def start(self, reg: float) -> None:
        """Take the units of `reg`."""
        self.reg, self.scale = reg, LOG2E / reg
        self.phi = self.marginals.damping(0, reg)
        self.target = self.marginals.log_target_a * LOG2E
        self.log_weight_b = self.marginals.log_weight_b * LOG2E

    def sweep(self, g: Floats) -> tuple[Floats, Floats]:
        """One pass; see `Sweeps`."""
        rounded = (g * self.scale + self.log_weight_b).astype(self.dtype)
        f, sums = self._pass(rounded)
        return self._finish(f, rounded.astype(np.float64), sums)

    def _pass(self, g: Reals) -> tuple[Floats, Floats]:
        cost, f, weight = self.cost, self.f * self.scale, self.marginals.weight_a
        assert cost is not None

        def sweep(first: int, last: int, best: Floats, total: Floats) -> None:
            sweep_cost(first, last, cost, self.scale, f, g, weight, self.target, self.phi, self.kernel, best, total)

        return summed(f.size, g.size, sweep)

    def _finish(self, f: Floats, g: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """f and h in the units of the cost, after working out again the columns whose sums were lost.

        `g` is what the loop really used, rounding included: h then depends on f alone.
        """
        self.f = f / self.scale
        h = np.empty_like(g)
        if soft_minima(sums, g, self.scale, LOST, h):
            lost = np.isnan(h)
            h[lost] = self._soft(f + np.log2(self.marginals.weight_a), lost) / self.scale
        return self.f, h

    def _soft(self, f: Floats, lost: Mask) -> Floats:
        assert self.problem.cost is not None
        return _soft_columns(self.problem.cost[:, lost].astype(np.float64), self.scale, f)


class FusedSweeps(LogSweeps):
    """A stored kernel: the plan, less its row weights, at some recent F and G, so that scalings stay near one.

    It is built by a pass over the cost, at the start of a stage and whenever F or G have moved by more than DRIFT.
    docs/notes/uot.md: what was tried, with its figures.
    """

    def __init__(self, problem: UnbalancedTransport, dtype: Any) -> None:
        super().__init__(problem, dtype)
        self.kernel = np.empty(problem.shape, dtype)
        self.at: tuple[Floats, Floats] | None = None  # F and G behind the kernel

    def start(self, reg: float) -> None:
        """Take the units of `reg`; the next sweep builds the kernel."""
        super().start(reg)
        self.at = None

    def sweep(self, g: Floats) -> tuple[Floats, Floats]:
        """One read of the kernel, or the pass over the cost that builds it."""
        if self.at is not None:
            at_f, at_g = self.at
            v = np.empty(g.size, self.dtype)
            if scalings(g, self.scale, self.log_weight_b, at_g, v) <= DRIFT:
                f, sums = self._read(at_f, v)
                if farthest(f, at_f) <= DRIFT:
                    # The sums lack v: with G behind the kernel they give h all the same.
                    return self._finish(f, at_g, sums)
        rounded = (g * self.scale + self.log_weight_b).astype(self.dtype)
        f, sums = self._pass(rounded)
        self.at = f, rounded.astype(np.float64)
        return self._finish(f, self.at[1], sums)

    def _read(self, f: Floats, v: Reals) -> tuple[Floats, Floats]:
        weight = self.marginals.weight_a

        def sweep(first: int, last: int, best: Floats, total: Floats) -> None:
            sweep_kernel(first, last, self.kernel, f, v, weight, self.target, self.phi, best, total)

        return summed(f.size, v.size, sweep)


class PointSweeps(LogSweeps):
    """Costs worked out from points in every sweep: memory O((m + n) d)."""

    def __init__(self, problem: UnbalancedTransport, dtype: Any) -> None:
        super().__init__(problem, dtype)
        assert problem.x is not None
        assert problem.y is not None
        # Distances do not see a common shift, and small coordinates lose fewer digits in float32.
        middle = problem.y.mean(axis=0, dtype=np.float64) if problem.metric != "inner" else 0.0
        self.x = (problem.x - middle).astype(dtype)
        self.y_turned = np.ascontiguousarray((problem.y - middle).T.astype(dtype))
        self.metric = METRICS.index(problem.metric)

    def _pass(self, g: Reals) -> tuple[Floats, Floats]:
        x, y, metric, f, weight = self.x, self.y_turned, self.metric, self.f * self.scale, self.marginals.weight_a

        def sweep(first: int, last: int, best: Floats, total: Floats) -> None:
            sweep_points(first, last, x, y, metric, self.scale, f, g, weight, self.target, self.phi, best, total)

        return summed(f.size, g.size, sweep)

    def _soft(self, f: Floats, lost: Mask) -> Floats:
        assert self.problem.y is not None
        few = replace(self.problem, y=self.problem.y[lost], b=self.problem.b[lost], g0=None)
        return _soft_columns(costs(few, slice(None)), self.scale, f)


def _soft_columns(cost: Floats, scale: float, f: Floats) -> Floats:
    out = np.empty(cost.shape[1])
    in_threads(out.size, f.size, lambda number, first, last: soft_columns(first, last, cost, scale, f, out))
    return out
