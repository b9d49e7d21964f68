"""Derivatives of the value of an entropic transport problem, in closed form.

The value is W = min over plans P of <C, P> + reg KL(P | a b') + r1 KL(P 1 | a) + r2 KL(P' 1 | b). At the best plan the
derivative with respect to P vanishes (the envelope theorem), so the others are those of the formula at that plan.
"""

from __future__ import annotations

import math

import numpy as np

from allot_client.arrays import Array


def by_cost(plan: Array) -> Array:
    """dW / dC, which is the plan itself."""
    return plan


def by_mass(
    potential: Array, mass: Array, marginal: Array, strength: float, reg: float, other_mass: float | Array
) -> Array:
    """dW / da for one side.

    Args:
        potential: f of that side.
        mass: a of that side.
        marginal: the plan's marginal on that side.
        strength: reg_m of that side, inf where the marginal is exact; the value is then only defined for equal
            masses, and the derivative up to a constant.
        reg: strength of the entropic term.
        other_mass: the sum of the other side's masses; of a batch (batch, 1), beside (batch, n) for each side.
    """
    ratio = np.divide(marginal, mass, out=np.zeros_like(marginal), where=mass > 0)
    constraint = potential if math.isinf(strength) else -strength * np.expm1(-potential / strength)
    return np.asarray(constraint + reg * (other_mass - ratio))


def by_points(x: Array, y: Array, plan: Array) -> Array:
    """dW / dx for squared euclidean costs between the rows of x and y."""
    return np.asarray(2 * (plan.sum(axis=1)[:, None] * x - plan @ y))
