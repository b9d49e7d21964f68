"""What marginals cost beside the plan, and the potentials that are best for it: vectors of numpy or cupy.

Phi(f) is the least of <f, p> + D(p) over the marginals p of a side with masses w and strength r. Where R_i is what row
i of the plan would sum to at f_i = 0, the f with the largest Phi(f) - reg sum R_i exp(f_i / reg) is (Chizat, Peyre,
Schmitzer, Vialard 2018, section 3.3, in logarithms):

    partial   min(reg log(w_i / R_i), s), and s such that sum min(w_i, R_i exp(s / reg)) is the mass to be moved
    tv        reg log(w_i / R_i), at least -r and at most r
    l2        r w_i - reg z_i with z_i + log z_i = log(R_i r / reg) + r w_i / reg
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.problems.marginal_transport import MarginalTransport
from kernels.solution import Solution
from kernels.uot.marginals import Marginals, SweepState, Vector

DEEP = -30.0
"""Below it z = exp(c) solves z + log z = c in float64."""
NEWTON = 6
"""Steps: each doubles the digits of z, which starts with one."""


class SideMarginals(Marginals):
    """The marginals of such a problem, as the iteration of outer.py uses them.

    After a sweep f is best for g, so that the rows cost just what Phi says, and the gap is that of the columns.
    """

    def __init__(self, xp: Any, problem: MarginalTransport, spread: float) -> None:
        super().__init__(xp, replace(problem.entropic, reg_m=(math.inf, math.inf)), spread)
        self.ceiling = math.inf  # there is a plan, as the solver knows before
        self.kind, self.held, self.mass = problem.kind, problem.strengths, float(problem.mass)
        self.masses = self.a, self.b
        self.log_masses = xp.log(self.a), xp.log(self.b)
        self.log_weights = xp.log(self.weight_a), xp.log(self.weight_b)
        self.kept = float(self.a.sum()) - self.mass, float(self.b.sum()) - self.mass

    def symmetric(self) -> bool:
        """False: its penalties are not those of `problem`."""
        return False

    def within(self, g: Vector) -> Vector:
        """g where Phi is finite."""
        return self.xp.maximum(g, -self.held[1]) if self.kind == "tv" else g

    def best(self, side: int, soft: Vector, reg: float) -> Vector:
        """The best potential of a side; `soft` is log sum_j weight_j exp((g_j - C_ij) / reg)."""
        xp, logs, r = self.xp, soft + self.log_weights[side], self.held[side]
        if self.kind == "l2":
            top = (r / reg) * self.masses[side]
            return reg * (top - _omega(xp, logs + _log_ratio(r, reg) + top))
        with np.errstate(invalid="ignore"):
            found = self.log_masses[side] - logs
        if self.kind == "tv":
            return xp.clip(reg * found, -r, r)
        return reg * xp.minimum(found, self._level(side, logs, found))

    def _level(self, side: int, logs: Vector, full: Vector) -> float:
        """s over reg: lines are full below it, and the others share what is left of the mass.

        What all carry grows with s, so that the first line that need not be full is found by halving.
        """
        xp, masses, log_masses = self.xp, self.masses[side], self.log_masses[side]
        ends = xp.sort(full)
        first, last = 0, int(ends.size) - 1
        while first < last:
            middle = (first + last) // 2
            enough = float(xp.exp(xp.minimum(log_masses, logs + ends[middle])).sum()) >= self.mass
            first, last = (first, middle) if enough else (middle + 1, last)
        highest = float(ends[first])
        filled = full < highest
        left, free = self.mass - float(masses[filled].sum()), logs[~filled]
        if left <= 0:  # by rounding: the lines that are full have it all
            return highest
        top = free.max()
        if float(top) == -math.inf:  # what lines would carry has underflowed
            return float(xp.where(xp.isfinite(full), full, -math.inf).max())
        return min(highest, math.log(left) - float(top + xp.log(xp.exp(free - top).sum())))

    def next_g(self, h: Vector, reg: float) -> Vector:
        """The g that is best for the f behind `h`."""
        return self.best(1, h / reg, reg)

    def shift(self, f: Vector, g: Vector) -> float:
        """The constant c for which (f + c, g - c) has the largest dual value."""
        if self.kind == "partial":
            return 0.0
        r1, r2 = self.held
        if self.kind == "l2":
            slope = float(self.a.sum() - self.b.sum() - f.sum() / r1 + g.sum() / r2)
            return slope / (f.size / r1 + g.size / r2)
        low, high = -r1 - float(f.min()), float(g.min()) + r2
        if low > high:
            return 0.0
        return min(max(self._balance(f, g), low), high)

    def _balance(self, f: Vector, g: Vector) -> float:
        """Where the mass of rows below r_1 is that of the columns below r_2, for total variation."""
        xp = self.xp
        ends = xp.concatenate([self.held[0] - f, g - self.held[1]])
        order = xp.argsort(ends)
        passed = xp.cumsum(xp.concatenate([self.a, self.b])[order])
        place = xp.minimum(xp.searchsorted(passed, self.a.sum()[None]), order.size - 1)
        return float(ends[order][place][0])

    def evaluate(self, f: Vector, g: Vector, h: Vector, reg: float) -> SweepState:
        """The value of (f, g) after a sweep took g to f and h, and the gap of their plan."""
        g = self.within(g)
        with np.errstate(over="ignore", invalid="ignore"):
            column_sums = self.weight_b * self.xp.exp((g + h) / reg)
            dual = float(self._phi(0, f) + self._phi(1, g) - reg * (column_sums.sum() - self.constant))
            return SweepState(f, g, dual, float(self._apart(f, g, column_sums, reg)), column_sums)

    def _phi(self, side: int, f: Vector) -> Vector:
        xp, w, r = self.xp, self.masses[side], self.held[side]
        if self.kind == "partial":
            return (w * f).sum() - self.kept[side] * f.max()
        if self.kind == "tv":
            return (w * xp.minimum(f, r)).sum()
        return xp.where(f <= r * w, f * w - f * f / (2 * r), r / 2 * w * w).sum()

    def _apart(self, f: Vector, g: Vector, q: Vector, reg: float) -> Vector:
        """Primal minus dual value: what the columns' sums q miss; once made feasible, of a part of the mass."""
        xp, b, r = self.xp, self.b, self.held[1]
        if self.kind == "l2":
            return (r / 2 * xp.where(g <= r * b, (q - b + g / r) ** 2, (q - b) ** 2 + 2 / r * g * q - b * b)).sum()
        over, under = xp.maximum(q - b, 0.0), xp.maximum(b - q, 0.0)
        if self.kind == "tv":
            return ((r + g) * over + (r - g) * under + b * xp.maximum(g - r, 0.0)).sum()
        moved = float(over.sum())
        gap = ((g.max() - g) * under).sum()
        if not 0 < moved < math.inf:
            return gap if moved == 0 else math.inf
        reach = self.spread + float(g.max() - g.min()) + float(f.max() - f.min())
        return gap + moved * (reach + reg * math.log1p(self.mass / moved))


def _log_ratio(x: float, y: float) -> float:
    """log(x / y), where x / y may be 0 in floats; the same bits for both in other units."""
    (a, i), (b, j) = math.frexp(x), math.frexp(y)
    return math.log(a / b) + (i - j) * math.log(2)


def _omega(xp: Any, c: Vector) -> Vector:
    """z with z + log z = c (Wright's omega), by Newton's method."""
    with np.errstate(divide="ignore"):
        held = xp.maximum(c, DEEP)
        z = xp.where(held > 1, held - xp.log(xp.maximum(held, 1.0)), xp.exp(xp.minimum(held, 1.0)) / 2)
        for _ in range(NEWTON):
            z = z * (1 + held - xp.log(z)) / (1 + z)
        return xp.where(c < DEEP, xp.exp(xp.minimum(c, DEEP)), z)


def value_of(problem: MarginalTransport, solution: Solution) -> float | None:
    """The primal value of the returned plan, where no certificate was asked for; None where there is none."""
    arrays = solution.arrays
    if "plan" in arrays:
        rows, columns = np.nonzero(arrays["plan"])
        masses = arrays["plan"][rows, columns].astype(np.float64)
    elif "entry_values" in arrays:
        rows, columns, masses = (arrays[name] for name in ("entry_rows", "entry_columns", "entry_values"))
    else:
        return None
    value = float((masses * problem.cost[rows, columns].astype(np.float64)).sum())
    for at, given, strength in ((rows, problem.a, problem.strengths[0]), (columns, problem.b, problem.strengths[1])):
        away = np.bincount(at, masses, given.size) - given
        if problem.kind == "tv":
            value += strength * float(abs(away).sum())
        elif problem.kind == "l2":
            value += strength / 2 * float((away * away).sum())
    return value + problem.reg * _entropy(problem, rows, columns, masses) if problem.reg else value


def _entropy(problem: MarginalTransport, rows: Any, columns: Any, masses: Any) -> float:
    """Omega of a plan's entries."""
    if problem.reference == "uniform":
        return float((masses * (np.log(masses) - 1)).sum())
    logs = np.log(masses) - np.log(problem.a[rows]) - np.log(problem.b[columns])
    return float((masses * (logs - 1)).sum() + problem.a.sum() * problem.b.sum())
