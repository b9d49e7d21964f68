"""The two values of a transport certificate from the sums over its entries: one rounded down, one rounded up.

    bound      -r1 <a, expm1(-f / r1)> - r2 <b, expm1(-g / r2)> - reg sum (Q - R), or <a, f>, <b, g> where r is inf
    objective  <f, P 1> + <g, P' 1> + reg sum phi(P, Q) - reg sum (Q - R) + r1 KL(P 1 | a) + r2 KL(P' 1 | b)

(transport_sums.py has Q, R and phi.) Weak duality makes the first a lower bound for any potentials. A marginal that is
to be exact never is to the last bit: its residual is priced by the potential, |f_i| |(P 1)_i - a_i|, so that the
objective is that of the plan plus, to first order, what it would cost to put the residual right, and is never below the
bound. Where the residual is more than rounding leaves there is no objective. u = 2^-53.
"""

import math

import numpy as np

from kernels.certificates.rounded import div_down, div_up, mul_down, mul_up, sub_up, sum_down, sum_up
from kernels.certificates.transport_answer import Answer
from kernels.certificates.transport_divergence import of_marginal
from kernels.certificates.transport_elementary import UNIT, expm1_up
from kernels.certificates.transport_sums import Sums
from kernels.problems.arrays import Array

ROUNDING = 2.0**-30
"""Of the mass: a residual that is the sum of roundings, as far as float64 can tell, and not of a plan's own making."""


def dual_value(answer: Answer, sums: Sums) -> float | None:
    """A lower bound on the optimum, None where the potentials bound nothing."""
    problem = answer.problem
    if not (answer.usable and sums.finite):
        return None
    parts = [-float(mul_up(problem.reg, sums.excess[1]))]
    sides = ((problem.a, answer.f, answer.unreached_a), (problem.b, answer.g, answer.unreached_b))
    for (masses, potential, unreached), strength in zip(sides, problem.reg_m, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isinf(strength):
                parts.append(sum_down(mul_down(masses, potential)))
                continue
            lost = expm1_up(-div_down(potential, strength))
            lost = np.where(unreached, -1.0, np.where((potential == 0) | (masses == 0), 0.0, lost))
            if not np.isfinite(lost).all():
                return None
            parts.append(-float(mul_up(strength, sum_up(mul_up(masses, lost)))))
    bound = sum_down(parts) if np.isfinite(parts).all() else -math.inf
    return bound if math.isfinite(bound) else None


def primal_value(answer: Answer, sums: Sums) -> float | None:
    """At least the objective of the plan, its residual priced; None where the plan breaks a balanced side."""
    problem = answer.problem
    if not (sums.valid and sums.finite) or not settled(answer, sums):
        return None
    parts = [float(mul_up(problem.reg, sums.divergence)), -float(mul_down(problem.reg, sums.excess[0]))]
    sides = ((problem.a, answer.f, sums.rows), (problem.b, answer.g, sums.columns))
    with np.errstate(over="ignore", invalid="ignore"):
        for (masses, potential, found), strength in zip(sides, problem.reg_m, strict=True):
            low, high = found
            parts.append(sum_up(mul_up(potential, np.where(potential > 0, high, low))))
            if np.isinf(strength):
                parts.append(sum_up(mul_up(abs(potential), _away(found, masses))))
            else:
                lost = of_marginal(found, masses)
                parts.append(float(mul_up(strength, sum_up(lost))) if np.isfinite(lost).all() else math.inf)
    value = sum_up(parts) if np.isfinite(parts).all() else math.inf
    return value if math.isfinite(value) else None


def residual(answer: Answer, sums: Sums) -> float:
    """At least the L1 distance of the plan's marginals from the balanced masses."""
    away = [_away(found, masses) for found, masses in _balanced(answer, sums)]
    if not all(np.isfinite(side).all() for side in away):
        return math.inf
    return sum_up(np.concatenate(away)) if away else 0.0


def settled(answer: Answer, sums: Sums) -> bool:
    """True where the plan meets its balanced sides but for rounding, as far as its sums are known."""
    rounding = ROUNDING
    if answer.implicit:  # potentials are rounded themselves, and exp makes more of it
        rounding += 8 * UNIT * (float(abs(answer.f).max()) + answer.reach) / answer.problem.reg
    for (low, high), masses in _balanced(answer, sums):
        apart = np.maximum(np.maximum(low - masses, masses - high), 0.0)
        if not apart.sum() <= rounding * masses.sum():
            return False
    return True


def _balanced(answer: Answer, sums: Sums) -> list[tuple[tuple[Array, Array], Array]]:
    """Bounds of the balanced marginals, and the masses that they are to meet."""
    problem = answer.problem
    sides = zip((sums.rows, sums.columns), (problem.a, problem.b), problem.reg_m, strict=True)
    return [(found, masses) for found, masses, strength in sides if np.isinf(strength)]


def gaps(objective: float | None, bound: float | None) -> tuple[float | None, float | None]:
    """The absolute and the relative gap, rounded up; 0 where both values are 0."""
    if objective is None or bound is None:
        return None, None
    gap = max(0.0, float(sub_up(objective, bound)))
    scale = max(abs(objective), abs(bound))
    with np.errstate(over="ignore", divide="ignore"):
        return gap, (float(div_up(gap, scale)) if gap else 0.0)


def _away(found: tuple[Array, Array], masses: Array) -> Array:
    return np.maximum(sub_up(masses, found[0]), sub_up(found[1], masses))
