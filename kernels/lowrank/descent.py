"""Mirror descent over factors, written once for NumPy and for CuPy: `xp` is either.

The derivatives of <C, Q diag(1/g) R'> are C R / g, C' Q / g and -(Q_k . C R_k) / g_k^2. A step multiplies Q, R and g by
exp(-gamma derivative) and projects the three onto their sums (Scetbon, Cuturi, Peyre 2021, algorithm 3). gamma is told
in units of the largest derivative (as in Scetbon, Cuturi 2022), so no exponent is larger than gamma.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernels.lowrank.costs import Costs

LEAST = 1e-12
"""Of the product of the weights, in all factors before a step."""
LOOK = 10
"""Projections between two looks at how far the sums are off."""
QUIET, SLOW = 5, 1e-3
"""Steps in a row that change next to nothing end a descent, and so does a gamma of this share of the first."""
Over = Callable[[], bool]


@dataclass(frozen=True)
class Factors:
    """Q (m, r), R (n, r) and g (r,)."""

    q: Any
    r: Any
    g: Any


@dataclass(frozen=True)
class Sums:
    """The weights a (m,) and b (n,), each of sum 1, on the device of `xp`."""

    a: Any
    b: Any
    xp: Any


@dataclass(frozen=True)
class Rounds:
    """Of a projection: it ends where column sums are apart by `tolerance` in all, after `most`, or as `over` says."""

    tolerance: float
    most: int
    over: Over


@dataclass(frozen=True)
class Course:
    """Of a descent: gamma, the relative change that ends it, rounds of each projection, and steps at most."""

    gamma: float
    tolerance: float
    rounds: int
    steps: int


def projected(at: Factors, sums: Sums, rounds: Rounds) -> Factors:
    """The factors with row sums a and b and common column sums, nearest to these (algorithm 2 there, in scalings)."""
    xp, q, r, g = sums.xp, at.q, at.r, at.g
    left, right = xp.ones_like(g), xp.ones_like(g)
    for count in range(1, rounds.most + 1):
        rows, columns = _over(sums.a, q @ left, xp), _over(sums.b, r @ right, xp)
        of_q, of_r = left * (q.T @ rows), right * (r.T @ columns)
        if count > 1 and count % LOOK == 0:
            apart = abs(of_q - g).sum() + abs(of_r - g).sum()
            if float(apart) <= rounds.tolerance or rounds.over():
                break
        g = (of_q * of_r * g) ** (1 / 3)
        left, right = left * g / of_q, right * g / of_r
    return Factors(rows[:, None] * q * left[None, :], columns[:, None] * r * right[None, :], g)


def _over(weights: Any, sums: Any, xp: Any) -> Any:
    """weights / sums, and 0 where there is no weight."""
    return xp.where((weights > 0) & (sums > 0), weights / xp.where(sums > 0, sums, 1.0), 0.0)


def blended(at: Factors, sums: Sums, share: float) -> Factors:
    """With a share of the product of the weights in equal components: the same sums, and nothing is 0."""
    each = share / len(at.g)
    q = (1 - share) * at.q + each * sums.a[:, None]
    r = (1 - share) * at.r + each * sums.b[:, None]
    return Factors(q, r, (1 - share) * at.g + each)


def descend(
    costs: Costs, at: Factors, sums: Sums, course: Course, note: Callable[[Factors, float], bool], over: Over
) -> tuple[Factors, bool]:
    """Steps from `at` until they change the objective by less than the tolerance, and whether they came to that.

    gamma falls by half after a step that went up, and rises slowly after others. `note` hears each step's factors and
    value, and answers True where there is no time for another; `over` ends a projection.
    """
    gamma, quiet, value = course.gamma, 0, costs.value(at.q, at.r, at.g)
    rounds = Rounds(max(1e-9, 0.1 * course.tolerance), course.rounds, over)
    for _ in range(course.steps):
        moved = _moved(costs, blended(at, sums, LEAST), gamma)
        if moved is None:
            return at, True
        at = projected(moved, sums, rounds)
        before, value = value, costs.value(at.q, at.r, at.g)
        if note(at, value):
            return at, False
        if value > before:
            gamma, quiet = gamma / 2, quiet + 1
        else:
            gamma = min(course.gamma, 1.2 * gamma)
            quiet = quiet + 1 if before - value <= course.tolerance * abs(value) else 0
        if quiet >= QUIET or gamma < SLOW * course.gamma:
            return at, True
    return at, False


def _moved(costs: Costs, at: Factors, gamma: float) -> Factors | None:
    """Factors times exp(-gamma derivative), None where nothing is cheaper than anything else."""
    xp = costs.xp
    by_q, by_r = costs.times(at.r / at.g), costs.transposed_times(at.q / at.g)
    by_g = costs.each(at.q, at.r) / (at.g * at.g)
    by_q, by_r = (by - by.min(axis=1, keepdims=True) for by in (by_q, by_r))  # a row's own term is scaled away
    by_g = by_g.max() - by_g
    largest = max(float(by.max()) for by in (by_q, by_r, by_g))
    if largest == 0:
        return None
    step = gamma / largest
    return Factors(at.q * xp.exp(-step * by_q), at.r * xp.exp(-step * by_r), at.g * xp.exp(-step * by_g))


def rounded(plan: Any, rows: Any, columns: Any, xp: Any) -> Any:
    """The matrix with these sums (Altschuler, Weed, Rigollet 2017, algorithm 2)."""
    for _ in range(2):  # the second takes what rounding left
        plan = plan * xp.minimum(1.0, _over(rows, plan.sum(axis=1), xp))[:, None]
        plan = plan * xp.minimum(1.0, _over(columns, plan.sum(axis=0), xp))[None, :]
        short, lacking = xp.maximum(0.0, rows - plan.sum(axis=1)), xp.maximum(0.0, columns - plan.sum(axis=0))
        total = float(lacking.sum())
        if total > 0:
            plan = plan + short[:, None] * (lacking / total)[None, :]
    return plan
