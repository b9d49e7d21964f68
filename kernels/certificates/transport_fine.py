"""Exponents of P(f, g) in two words, for answers whose potentials are large beside reg: errors of order u^2, not u.

A sum's error is found by TwoSum, a product's by TwoProduct (T. J. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18, 1971; T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product",
SIAM J. Sci. Comput. 26, 2005). With u = 2^-53, sums of two words here are off by less than 4 u^2 of the sizes of their
parts each, products and quotients likewise, d of them by less than 4 (d + 8) u^2; below, u^2 = 2^-106 times that is
rounded up to UNIT_2 times d + 8.

exp of two words z + x is exp(z) (1 + x + x^2 / 2), but for less than x^3 / 4 of itself while x is below SMALL: x grows
with the potentials over reg, and what is left out may be more than all other errors.
"""

import math

import numpy as np

from kernels.certificates.rounded import two_sum
from kernels.certificates.transport_elementary import UNIT
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport

UNIT_2 = 2.0**-102
SMALLEST = 2.0**-1060  # of a square or product: more than what underflow loses of it
REGS = (2.0**-400, 2.0**400)  # between which nothing under- or overflows that counts, of points
SPLITTER = 134217729.0  # 2^27 + 1
SMALL = 2.0**-4
DEEP = -750.0  # exp of less is 0


def exponents(problem: UnbalancedTransport, f: Array, g: Array, rows: slice) -> tuple[Array, Array, float]:
    """(f_i + g_j - C_ij) / reg of some rows as two words, -inf where forbidden, and a bound on their errors.

    That bound holds what `correction` leaves out, and is infinite where that is not little.
    """
    cost, rest, error = _costs(problem, rows)
    reg = problem.reg
    if problem.cost is not None:  # by a power of two, exactly: no product leaves the range of float64
        shift = -math.frexp(reg)[1]
        f, g, cost, reg = np.ldexp(f, shift), np.ldexp(g, shift), np.ldexp(cost, shift), math.ldexp(reg, shift)
    forbidden = np.isposinf(cost)
    if forbidden.any():
        cost = np.where(forbidden, 0.0, cost)
    s, lost = two_sum(f[rows][:, None], g)
    t, away = two_sum(s, -cost)
    rest = (lost + away) - rest
    z = t / reg
    p, under = two_product(z, np.full((1, 1), reg))
    low = (((t - p) - under) + rest) / reg
    sizes = (abs(f[rows]).max() + abs(g).max()) * 2 + abs(cost).max()
    error = (error + 8 * UNIT_2 * sizes + SMALLEST) / reg + 4 * UNIT * float(abs(low).max())
    z[forbidden], low[forbidden] = -np.inf, 0.0
    second = float(abs(low).max(where=z > DEEP, initial=0.0))
    error = error + second**3 / 4 if second <= SMALL else np.inf  # NaN compares false
    return z, low, float(error)


def correction(low: Array) -> Array:
    """What exp of the second word is above 1, but for what `exponents` counts among its errors."""
    return np.asarray(low * (1 + low / 2))


def two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """(p, e) with p = x * y rounded to nearest and p + e = x * y, but for what underflows."""
    p = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    return p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl


def _halves(x: Array) -> tuple[Array, Array]:
    c = x * SPLITTER
    high = c - (c - x)
    return high, x - high


def _costs(problem: UnbalancedTransport, rows: slice) -> tuple[Array, Array, float]:
    """Costs of some rows as two words, and a bound on their errors."""
    if problem.cost is not None:
        cost = problem.cost[rows].astype(np.float64)
        return cost, np.zeros_like(cost), 0.0
    assert problem.x is not None
    assert problem.y is not None
    x, y = problem.x[rows].astype(np.float64), problem.y.astype(np.float64)
    d = x.shape[1]
    total, rest, size = np.zeros((len(x), len(y))), np.zeros((len(x), len(y))), 0.0
    for k in range(d):
        if problem.metric == "inner":
            p, low = two_product(x[:, k, None], -y[None, :, k])
        else:
            away, lost = two_sum(x[:, k, None], -y[None, :, k])
            p, low = two_product(away, away)
            low = low + 2 * away * lost
        total, carried = two_sum(total, p)
        rest += low + carried
        size += float(abs(p).max())
    error = (d + 8) * (UNIT_2 * size + SMALLEST)
    if problem.metric != "euclidean":
        return total, rest, error
    root = np.sqrt(total)
    p, low = two_product(root, root)
    rest = np.divide(((total - p) - low) + rest, 2 * root, out=np.zeros_like(root), where=root > 0)
    least = float(root.min(where=root > 0, initial=np.inf))
    within = (d + 8) * (UNIT_2 * float(root.max()) + UNIT_2 * size / least + (2 * SMALLEST) ** 0.5)
    return root, rest, within
