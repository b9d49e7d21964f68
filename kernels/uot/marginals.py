"""The vectors of a transport problem and what can be said of potentials from vectors alone.

Written against the array API that numpy and cupy share, so that both devices run the same mathematics. Potentials
f (m,) and g (n,) are in the units of the cost; P = R exp((f + g - C) / reg) with R = a x b or 1. Every function
below costs O(m + n): the plan enters through its column sums only, because after a sweep the row sums are known.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.problems.transport import UnbalancedTransport

MET = 2e-6  # part of the mass that may be missing from balanced columns that cannot be repaired
FARTHEST = 600.0  # logarithm of a plan's mass over the best one's, up to which it is brought there
TRIED = 6  # directions in which costs are held to be like distances
TILE = 256  # lines of a matrix that are held against its columns at a time
Vector = Any  # numpy.ndarray or cupy.ndarray, float64


@dataclass(frozen=True)
class SweepState:
    """What one sweep told of f and g, each moved by its best constant, all from vectors.

    `dual` is a lower bound on the optimum, `gap` the primal value of the plan minus it (for balanced sides an upper
    bound on that of the plan once made feasible), `column_sums` those of the plan.
    """

    f: Vector
    g: Vector
    dual: float
    gap: float
    column_sums: Vector

    @property
    def relative_gap(self) -> float:
        """The gap over the larger of |primal| and |dual|, as certificates define it."""
        scale = max(abs(self.dual), abs(self.dual + self.gap))
        if not math.isfinite(scale):
            return math.inf
        return self.gap / scale if scale else 0.0


class Marginals:
    """a, b, their strengths and the reference, as the iteration uses them.

    A sweep at `reg` takes g to the f that is best for it, then gives h, the soft minimum over rows:
        f_i = phi_1 (reg log target_a_i - reg log sum_j weight_b_j exp((g_j - C_ij) / reg)), phi = reg_m / (reg_m + reg)
        h_j = reg log sum_i weight_a_i exp((f_i - C_ij) / reg),
    where weights are a, b and targets 1 for the product reference, and weights 1 and targets a, b for the uniform
    one. The next g is phi_2 (reg log target_b - h). Entries of a and b must be positive (see support.py).

    Args:
        xp: numpy or cupy.
        problem: one problem without batch axis.
        spread: an upper bound on max C - min C, used for the gap when both sides are balanced.
    """

    def __init__(self, xp: Any, problem: UnbalancedTransport, spread: float) -> None:
        self.xp = xp
        self.a, self.b = xp.asarray(problem.a), xp.asarray(problem.b)
        self.strengths = problem.reg_m
        self.spread = spread
        product = problem.reference == "product"
        self.weight_a, self.weight_b = (self.a, self.b) if product else (xp.ones_like(self.a), xp.ones_like(self.b))
        self.log_target_a = xp.zeros_like(self.a) if product else xp.log(self.a)
        self.log_target_b = xp.zeros_like(self.b) if product else xp.log(self.b)
        self.log_weight_b = xp.log(self.weight_b)
        # KL(P | a x b) keeps its constant, the negative entropy has none.
        self.constant = float(self.a.sum() * self.b.sum()) if product else 0.0
        self.ceiling = ceiling(problem, spread)
        self.problem = problem

    def symmetric(self) -> bool:
        """Whether rows and columns are the same: masses, strengths and costs, like distances. On the CPU alone."""
        problem = self.problem
        if self.xp is not np or problem.reg_m[0] != problem.reg_m[1] or not np.array_equal(problem.a, problem.b):
            return False
        if problem.cost is not None:
            return _like_distances(problem.cost)
        return problem.x is not None and problem.y is not None and np.array_equal(problem.x, problem.y)

    def damping(self, side: int, reg: float) -> float:
        """phi of a side (0 rows, 1 columns): 1 when it is balanced."""
        strength = self.strengths[side]
        return 1.0 if strength == float("inf") else strength / (strength + reg)

    def next_g(self, h: Vector, reg: float) -> Vector:
        """The g that is best for the f behind `h`."""
        return self.damping(1, reg) * (reg * self.log_target_b - h)

    def shift(self, f: Vector, g: Vector) -> float:
        """The constant c for which (f + c, g - c) has the largest dual value: translation invariance.

        The plan does not see c, the marginal penalties do: c = r1 r2 / (r1 + r2) log(<a, exp(-f / r1)> / <b, exp(-g /
        r2)>). Plain iterations find it at the rate (r / (r + reg))^2, which is nothing for reg_m >> reg.
        """
        r1, r2 = self.strengths
        inf = float("inf")
        if r1 == inf and r2 == inf:
            return 0.0
        if not (r1 and r2):  # one is so far below reg that it is 0 in these units
            return 0.0
        scale = r2 if r1 == inf else r1 if r2 == inf else r1 * r2 / (r1 + r2)
        return scale * float(self._log_mass(self.a, f, r1) - self._log_mass(self.b, g, r2))

    def constants(self, f: Vector, g: Vector, mass: float, reg: float) -> tuple[float, float, float]:
        """The s and c for which (f + s, g + c) has the largest dual value, and exp((s + c) / reg).

        Where both sides are relaxed, log <a, exp(-f / r1)> - s / r1, the same of the other side, and log `mass` +
        (s + c) / reg are one number then: the mean of the three logarithms, weighted by r1, r2 and reg. That makes the
        row sums of the plan what they should be at f + s, as they were at f. An exact side gives that number itself.
        """
        r1, r2 = self.strengths
        inf = float("inf")
        if r1 == inf or not 0 < mass < inf:  # f made the rows exact already, and with them the mass of the plan
            shift = self.shift(f, g)
            return shift, -shift, 1.0
        log_a, log_b = (float(self._log_mass(*side)) for side in ((self.a, f, r1), (self.b, g, r2)))
        log_plan = math.log(mass)
        if r2 == inf:
            s = r1 * (log_a - log_b)
            mean = log_b - log_plan
            return (s, reg * mean - s, math.exp(mean)) if abs(mean) < FARTHEST else (s, -s, 1.0)
        whole, to_a, to_b = reg + r1 + r2, log_a - log_plan, log_b - log_plan
        mean = (r1 * to_a + r2 * to_b) / whole
        if not abs(mean) < FARTHEST:  # a start from outside: no factor of float64 brings its plan near
            shift = self.shift(f, g)
            return shift, -shift, 1.0
        s = r1 / whole * (r2 * (log_a - log_b) + reg * to_a)  # r1 (to_a - mean) would cancel where r1 is far above reg
        return s, reg * mean - s, math.exp(mean)

    def _log_mass(self, mass: Vector, potential: Vector, strength: float) -> Vector:
        if strength == float("inf"):
            return self.xp.log(mass.sum())
        exponent = -potential / strength
        top = exponent.max()
        return top + self.xp.log((mass * self.xp.exp(exponent - top)).sum())

    def evaluate(self, f: Vector, g: Vector, h: Vector, reg: float) -> SweepState:
        """Certify (f, g) after a sweep took g to f and h, each moved by its best constant."""
        r1, r2 = self.strengths
        with np.errstate(over="ignore", invalid="ignore"):  # potentials from outside may be anything
            column_sums = self.weight_b * self.xp.exp((g + h) / reg)
            up, down, factor = self.constants(f, g, float(column_sums.sum()), reg)
            f_best, g_best, column_sums = f + up, g + down, column_sums * factor
            rewards = self._reward(self.a, f_best, r1) + self._reward(self.b, g_best, r2)
            dual = float(rewards - reg * (column_sums.sum() - self.constant))
            gap = self._gap(f, factor, f_best, g_best, column_sums, reg)
            return SweepState(f_best, g_best, dual, gap, column_sums)

    def _reward(self, mass: Vector, potential: Vector, strength: float) -> Vector:
        if strength == float("inf"):
            return (mass * potential).sum()
        return -strength * (mass * self.xp.expm1(-potential / strength)).sum()

    def _gap(self, f: Vector, factor: float, f_best: Vector, g_best: Vector, column_sums: Vector, reg: float) -> float:
        """Primal minus dual: r1 KL(P 1 | a exp(-f / r1)) + r2 KL(P' 1 | b exp(-g / r2)) where both are relaxed.

        P 1 is `factor` times what f, before it was moved, made of the rows.
        With balanced columns the plan must be made feasible first. Scaling its columns by b / column_sums costs at most
        (reg + r1) KL(b | column_sums). If rows are balanced too, a rank-one repair of mass e = |b - column_sums|_1 / 2
        follows, whose cost is at most e (spread + max g - min g + reg log(1 + mass / e)). Forbidden entries rule that
        out: e counts as the whole mass then, until the columns are met.
        """
        xp, inf = self.xp, float("inf")
        r1, r2 = self.strengths
        if r2 < inf:
            gap = r2 * _divergence(xp, column_sums, self.b * xp.exp(-g_best / r2))
            if r1 < inf:
                gap += r1 * _divergence(xp, factor * self.a * xp.exp(-f / r1), self.a * xp.exp(-f_best / r1))
            return float(gap)
        repair = _divergence(xp, self.b, column_sums)
        if r1 < inf:
            return float((reg + r1) * repair)
        moved = float(abs(self.b - column_sums).sum()) / 2
        mass = float(self.b.sum())
        if self.ceiling < inf and moved > MET * mass:
            moved = mass
        reach = self.spread + float(g_best.max() - g_best.min())
        return float(reg * repair) + (moved * (reach + reg * math.log1p(mass / moved)) if moved else 0.0)


def _like_distances(cost: Any) -> bool:
    """Whether a matrix is its own transpose and v' C v <= 0 for some v that sum to 0, as for all distances to a power.

    Then the plan of rows and columns alike has few eigenvalues below 0. A look at its edges is most often enough.
    """
    if cost.shape[0] != cost.shape[1] or not np.array_equal(cost[0], cost[:, 0]):
        return False
    tiles = range(0, cost.shape[0], TILE)
    if not all(np.array_equal(cost[k : k + TILE, k:], cost[k:, k : k + TILE].T) for k in tiles):
        return False
    tried = np.random.default_rng(0).standard_normal((cost.shape[0], TRIED))
    tried -= tried.mean(axis=0)
    with np.errstate(invalid="ignore"):  # forbidden entries
        return bool(((tried * (cost @ tried)).sum(axis=0) <= 0).all())


def ceiling(problem: UnbalancedTransport, spread: float) -> float:
    """More than any plan's objective, where there may be none at all: both sides balanced and entries forbidden.

    A dual value above it proves that no plan exists. P_ij <= min(a_i, b_j) bounds the entropic term.
    """
    if not np.isinf(problem.reg_m).all() or problem.cost is None or not np.isposinf(float(problem.cost.max())):
        return math.inf
    a, b, mass = problem.a, problem.b, float(problem.a.sum())
    if problem.reference == "product":
        entropy = mass * (mass - 1 - math.log(max(float(a.min()), float(b.min()))))
    else:
        entropy = mass * (math.log(min(float(a.max()), float(b.max()))) - 1)
    low = float(problem.cost.min())
    return mass * (low + 1.01 * spread) + problem.reg * (entropy + 0.01 * mass)


def _divergence(xp: Any, p: Vector, q: Vector) -> Any:
    """KL(p | q) of vectors, without cancellation where p is near q; inf where q is 0 and p is not."""
    ratio = xp.where(q > 0, p / xp.where(q > 0, q, 1.0), 1.0)
    delta = ratio - 1
    near = abs(delta) < 1e-4
    series = delta * delta * (0.5 - delta / 6)
    exact = ratio * xp.log(xp.where(ratio > 0, ratio, 1.0)) - delta
    lost = xp.where((p > 0) & ~(q > 0), math.inf, 0.0)  # a plan that underflowed is not a small gap
    return (q * xp.where(near, series, exact) + lost).sum()
