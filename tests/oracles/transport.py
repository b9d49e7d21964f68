"""Unbalanced transport by the textbook: alternate soft minima in the log domain until nothing moves."""

import numpy as np
from scipy.special import logsumexp

from kernels import Array


def solve(
    cost: Array,
    a: Array,
    b: Array,
    reg: float,
    reg_m: tuple[float, float],
    reference: str = "product",
    sweeps: int = 200_000,
) -> Array:
    """The plan in float64, to 1e-12 in the potentials. Masses may be zero; costs may be +inf.

    Between sweeps the two potentials trade the constant that the marginal penalties like best, without which strong
    marginals would take millions of sweeps.
    """
    keep_a, keep_b = (a > 0) & np.isfinite(cost).any(axis=1), (b > 0) & np.isfinite(cost).any(axis=0)
    plan = np.zeros(cost.shape)
    c, a, b = cost[np.ix_(keep_a, keep_b)].astype(float), a[keep_a].astype(float), b[keep_b].astype(float)
    log_a, log_b = np.log(a), np.log(b)
    reference_a, reference_b = (log_a, log_b) if reference == "product" else (0 * log_a, 0 * log_b)
    phi, psi = (1.0 if np.isinf(r) else r / (r + reg) for r in reg_m)
    f, g = np.zeros(len(a)), np.zeros(len(b))
    for _ in range(sweeps):
        before = f, g
        soft = logsumexp((g - c) / reg + reference_b, axis=1)
        f = phi * reg * (log_a - reference_a - soft)
        soft = logsumexp((f[:, None] - c) / reg + reference_a[:, None], axis=0)
        g = psi * reg * (log_b - reference_b - soft)
        constant = _constant(a, f, b, g, *reg_m)
        f, g = f + constant, g - constant
        if max(abs(f - before[0]).max(), abs(g - before[1]).max()) < 1e-12:
            break
    plan[np.ix_(keep_a, keep_b)] = np.exp((f[:, None] + g - c) / reg + reference_a[:, None] + reference_b)
    return plan


def _constant(a: Array, f: Array, b: Array, g: Array, r1: float, r2: float) -> float:
    if np.isinf(r1) and np.isinf(r2):
        return 0.0
    scale = 1 / ((0 if np.isinf(r1) else 1 / r1) + (0 if np.isinf(r2) else 1 / r2))
    return scale * float(logsumexp(-f / r1, b=a) - logsumexp(-g / r2, b=b))


def value(
    plan: Array, cost: Array, a: Array, b: Array, reg: float, reg_m: tuple[float, float], reference: str = "product"
) -> float:
    """The objective of a plan; balanced marginals are taken to hold."""
    if reference == "product":
        entropy = _kl(plan, np.outer(a, b))
    else:
        entropy = float(np.sum(plan[plan > 0] * (np.log(plan[plan > 0]) - 1)))
    total = float((plan * np.where(plan > 0, cost, 0)).sum()) + reg * entropy
    for found, wanted, strength in zip((plan.sum(axis=1), plan.sum(axis=0)), (a, b), reg_m, strict=True):
        total += 0.0 if np.isinf(strength) else strength * _kl(found, wanted)
    return total


def _kl(p: Array, q: Array) -> float:
    used = p > 0
    return float((p[used] * np.log(p[used] / q[used])).sum() - p.sum() + q.sum())
