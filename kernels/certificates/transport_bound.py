"""The two values of a transport certificate from the sums over its entries: one rounded down, one rounded up.

    bound      -r1 <a, expm1(-f / r1)> - r2 <b, expm1(-g / r2)> - reg sum (Q - R), or <a, f>, <b, g> where r is inf
    objective  <f, P 1> + <g, P' 1> + reg sum phi(P, Q) - reg sum (Q - R) + r1 KL(P 1 | a) + r2 KL(P' 1 | b)

(transport_sums.py has Q, R and phi.) Weak duality makes the first a lower bound for any potentials. The second is at
least the value of the plan for any potentials too, but loses digits where they are large or not the plan's: then it is
worked out again without them (transport_direct.py). Each line's f_i p + r1 KL(p | a_i) is convex in its sum p, so that
the larger of its values at two bounds of p bounds it.

A marginal that is to be exact never is to the last bit. What its residual may cost, |f_i| |(P 1)_i - a_i| to first
order, is part of the gap, which is then never negative; where the residual is more than rounding leaves there is no
objective. u = 2^-53.
"""

import math
from typing import Any

import numpy as np

from kernels.certificates.rounded import add_up, div_down, mul_down, mul_up, share_up, sub_up, sum_down, sum_up
from kernels.certificates.transport_answer import Answer
from kernels.certificates.transport_direct import LARGEST, entries_value
from kernels.certificates.transport_divergence import of_marginal
from kernels.certificates.transport_elementary import UNIT, expm1_up
from kernels.certificates.transport_sums import Sums
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport

LOST = 2.0**-43  # of its size: from there on a value by potentials is worked out without them as well


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
            if not strength:  # it was rounded down, and costs less than any potential below 0 pays
                if (potential < 0).any():
                    return None
                continue
            lost = expm1_up(-div_down(potential, strength))
            lost = np.where(unreached, -1.0, np.where((potential == 0) | (masses == 0), 0.0, lost))
            if not np.isfinite(lost).all():
                return None
            parts.append(-float(mul_up(strength, sum_up(mul_up(masses, lost)))))
    bound = sum_down(parts) if np.isfinite(parts).all() else -math.inf
    return bound if math.isfinite(bound) else None


def primal_value(answer: Answer, sums: Sums) -> float | None:
    """At least the objective of the plan; None where it is no plan, or breaks a balanced side."""
    if not sums.valid or not settled(answer, sums):
        return None
    value, loss = _by_potentials(answer, sums) if sums.finite else (math.inf, math.inf)
    m, n = answer.problem.shape
    if not answer.implicit and m * n <= LARGEST and not loss <= LOST * max(abs(value), _size(answer, sums)):
        value = min(value, _directly(answer, sums))
    return value if math.isfinite(value) else None


def _by_potentials(answer: Answer, sums: Sums) -> tuple[float, float]:
    """The value, and about what it may be above that of the plan."""
    reg, (low, high) = answer.problem.reg, sums.excess
    parts = [float(mul_up(reg, sums.divergence)), -float(mul_down(reg, low))]
    loss = [reg * (high - low), 2 * LOST * UNIT * reg * sums.divergence]
    with np.errstate(over="ignore", invalid="ignore"):
        for found, masses, potential, strength in _sides(answer, sums):
            ends = [mul_up(potential, end) for end in found]
            loss.append(float(sum(abs(end).sum() for end in ends)) * 4 * UNIT)
            if np.isfinite(strength):
                lost = [mul_up(strength, of_marginal(end, masses)) for end in found]
                ends = [add_up(end, more) for end, more in zip(ends, lost, strict=True)]
            total = np.maximum(*ends)
            loss.append(float(abs(ends[0] - ends[1]).sum()))
            parts.append(_total(total))
    if not np.isfinite(parts).all():
        return math.inf, math.inf
    return sum_up(parts), sum(loss)


def _directly(answer: Answer, sums: Sums) -> float:
    """The value without potentials."""
    parts = [entries_value(answer)]
    for found, masses, _, strength in _sides(answer, sums):
        if np.isfinite(strength):
            lost = np.maximum(*(of_marginal(end, masses) for end in found))
            parts.append(float(mul_up(strength, _total(lost))))
    return _total(parts)


def _size(answer: Answer, sums: Sums) -> float:
    """Below the sizes of the terms that the value is a sum of."""
    size = answer.problem.reg * float(sums.rows[0].sum())
    for found, masses, _, strength in _sides(answer, sums):
        size += strength * float(found[0].sum() + masses.sum()) if np.isfinite(strength) else 0.0
    return size


def price(answer: Answer, sums: Sums) -> float:
    """At least what the residual of the balanced sides costs at the potentials, to first order."""
    parts = [0.0]
    with np.errstate(over="ignore"):
        for found, masses, potential, strength in _sides(answer, sums):
            if np.isinf(strength):
                parts.append(_total(mul_up(abs(potential), _away(found, masses))))
    return _total(parts)


def _sides(answer: Answer, sums: Sums) -> list[tuple[tuple[Array, Array], Array, Array, float]]:
    """Bounds of the marginals, masses, potentials and strength, not rounded down, of both sides."""
    problem = answer.problem
    return [
        (sums.rows, problem.a, answer.f, answer.above[0]),
        (sums.columns, problem.b, answer.g, answer.above[1]),
    ]


def residual(answer: Answer, sums: Sums) -> float:
    """At least the L1 distance of the plan's marginals from the balanced masses."""
    away = [_away(found, masses) for found, masses in _balanced(answer, sums)]
    return _total(np.concatenate(away)) if away else 0.0


def settled(answer: Answer, sums: Sums) -> bool:
    """True where the plan meets its balanced sides but for rounding, as far as its sums are known.

    That is one of each entry and of the masses: 8 u of the mass for each line. Potentials are rounded themselves, and
    so are the logarithms of masses that they are made of; exp makes more of both.
    """
    rounding = 8 * UNIT * sum(answer.problem.shape)
    if answer.implicit:
        size = min(float(abs(answer.f).max()) + answer.reach, _needed(answer))
        rounding += 8 * UNIT * (size / answer.problem.reg + _logs(answer.problem))
    for (low, high), masses in _balanced(answer, sums):
        apart = np.maximum(np.maximum(low - masses, masses - high), 0.0)
        if not apart.sum() <= rounding * masses.sum():
            return False
    return True


def _needed(answer: Answer) -> float:
    """How large potentials can have to be, from the data alone: where there is no plan they grow without end.

    With every entry permitted f_i + g_j = C_ij + reg log(P_ij / w_i v_j) fixes them but for a constant. With forbidden
    ones each is reached over at most m + n permitted entries. A relaxed side of strength r has r log(marginal / mass).
    """
    problem = answer.problem
    cost = max(map(abs, problem.cost_bounds))
    cost = cost if math.isfinite(cost) else 0.0
    logs = 50 + _logs(problem)
    steps = sum(problem.shape) if answer.forbids else 4
    relaxed = sum(strength for strength in problem.reg_m if math.isfinite(strength))
    return steps * (cost + problem.reg * logs) + relaxed * logs


def _logs(problem: UnbalancedTransport) -> float:
    """The largest logarithms of masses, one of each side."""
    return sum(float(abs(np.log(masses[masses > 0])).max(initial=0.0)) for masses in (problem.a, problem.b))


def _balanced(answer: Answer, sums: Sums) -> list[tuple[tuple[Array, Array], Array]]:
    """Bounds of the balanced marginals, and the masses that they are to meet."""
    return [(found, masses) for found, masses, _, strength in _sides(answer, sums) if np.isinf(strength)]


def gaps(objective: float | None, bound: float | None, price: float) -> tuple[float | None, float | None]:
    """The absolute and the relative gap, rounded up; 0 where both values are 0.

    An objective below the bound is that of a plan that breaks a balanced side: the gap covers what it lacks.
    """
    if objective is None or bound is None or not math.isfinite(price):
        return None, None
    gap = max(0.0, sum_up([objective, -bound, price]), sum_up([bound, -objective]))
    return gap, share_up(gap, objective, bound)


def _total(values: Any) -> float:
    """The sum rounded up; inf where a term is not finite."""
    return sum_up(values) if np.isfinite(values).all() else math.inf


def _away(found: tuple[Array, Array], masses: Array) -> Array:
    return np.maximum(sub_up(masses, found[0]), sub_up(found[1], masses))
