"""exp, expm1 and log with proved error bounds, from additions, products and quotients of float64 alone.

NumPy documents no accuracy for its own, and a bound may not rest on one. Here u = 2^-53, the largest relative error of
one rounding to nearest, and every bound below is a-priori: it is counted from the operations.

exp and expm1. z = k ln 2 + r with k an integer and |r| <= 0.34658 (W. J. Cody and W. Waite, "Software Manual for the
Elementary Functions", 1980, chapter 6). ln 2 is split into LN2_HIGH, of 42 bits, and LN2_LOW: k LN2_HIGH is exact for
|k| < 2^11, so is its difference from z (P. H. Sterbenz, "Floating-Point Computation", 1974, theorem 4.3.1), and r is
off by at most u 0.347 + 2^-84 where k != 0, by nothing where k = 0. Then expm1(r) = r T(r), T of degree 12 from Taylor:
    truncation       |r|^13 / 14! (1 + |r|) <= 1.3e-17, below 0.14 u of T >= 0.845
    Horner           error_k <= |r| error_(k+1) + u (|r t_(k+1)| + |t_k| + |c_k|) sums up to 1.75 u of T
                     (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 5.1)
    the product      u
so p = expm1(r) has a relative error below 3 u. With q = 2^k p, which is exact, exp(z) = q + 2^k and expm1(z) = q + (2^k
- 1). Relative to exp(z), p's error is 3 u |p| / (1 + p) <= 1.25 u, that of r 0.35 u, and the last sum's u: below 3 u.
Relative to expm1(z) the worst case is k = 1, r = -0.3466: 2 (3 |p| + 0.35 (1 + p)) u / 0.414 + u < 6.6 u.

log. x = 2^e m with m in [0.707, 1.415), s = (m - 1) / (m + 1), |s| <= 0.1717, log m = 2 s (1 + s^2 / 3 + ... + s^20 /
21). m - 1 is exact, s is off by 2 u, the rest of the series is below 1e-18, its Horner sum is off by 1.3 u, the product
by u: below 5 u in all. log x = e LN2_HIGH + (e LN2_LOW + log m), where |log x| >= 0.3466 if e != 0: (5 + 1) 0.347 u /
0.3466 + u < 8 u.

The constants below are these bounds rounded up to powers of two, and `up` and `down` widen by twice as much.
"""

import math

import numpy as np

from kernels.problems.arrays import Array

UNIT = 2.0**-53  # u
EXP_ERROR, EXPM1_ERROR, LOG_ERROR = 2.0**-51, 2.0**-50, 2.0**-50  # relative: 4 u, 8 u, 8 u
LOWEST, HIGHEST = -700.0, 709.0  # arguments that `exp_pair` takes; exp(LOWEST) is 1e-304, which bounds what is below
TINIEST = 2.0**-1020
"""More than the error of an operation that underflows, also on a machine that flushes to zero."""

LN2_HIGH = float.fromhex("0x1.62e42fefa38p-1")
LN2_LOW = float.fromhex("0x1.ef35793c7673p-45")
LOG2E = float.fromhex("0x1.71547652b82fep+0")
_TAYLOR = tuple(1.0 / math.factorial(k + 1) for k in range(12, -1, -1))
_ATANH = tuple(1.0 / (2 * k + 1) for k in range(10, -1, -1))
_WIDER = 2.0**-48


def exp_pair(z: Array) -> tuple[Array, Array]:
    """Return exp(z) and expm1(z) within EXP_ERROR and EXPM1_ERROR, relative, for z in [LOWEST, HIGHEST]."""
    k = np.rint(z * LOG2E)
    r = z - k * LN2_HIGH
    r -= k * LN2_LOW
    p = _horner(_TAYLOR, r)
    p *= r
    power = ((k.astype(np.int64) + 1023) << 52).view(np.float64)
    p *= power
    exp = p + power
    power -= 1.0
    power += p
    return exp, power


def exp_up(x: Array) -> Array:
    """An upper bound on exp(x), for any x but NaN."""
    x = np.asarray(x, np.float64)
    exp, _ = exp_pair(np.clip(x, LOWEST, HIGHEST))
    return np.where(x > HIGHEST, np.inf, exp * (1 + _WIDER))


def exp_down(x: Array) -> Array:
    """A lower bound on exp(x), for any x but NaN."""
    x = np.asarray(x, np.float64)
    exp, _ = exp_pair(np.clip(x, LOWEST, HIGHEST))
    return np.where(x < LOWEST, 0.0, exp * (1 - _WIDER))


def expm1_up(x: Array) -> Array:
    """An upper bound on expm1(x), for any x but NaN; 0 at 0."""
    x = np.asarray(x, np.float64)
    _, expm1 = exp_pair(np.clip(x, LOWEST, HIGHEST))
    return np.where(x > HIGHEST, np.inf, np.where(x == 0, 0.0, expm1 + (abs(expm1) * _WIDER + TINIEST)))


def expm1_down(x: Array) -> Array:
    """A lower bound on expm1(x), for any x but NaN; 0 at 0."""
    x = np.asarray(x, np.float64)
    _, expm1 = exp_pair(np.clip(x, LOWEST, HIGHEST))
    wider = np.where(x == 0, 0.0, expm1 - (abs(expm1) * _WIDER + TINIEST))
    return np.where(x < LOWEST, -1.0, np.maximum(wider, -1.0))


def log_up(x: Array) -> Array:
    """An upper bound on log(x), x >= 0; 0 at 1."""
    log = _log(x)
    return np.asarray(log + abs(log) * _WIDER)


def log_down(x: Array) -> Array:
    """A lower bound on log(x), x >= 0; 0 at 1."""
    log = _log(x)
    return np.asarray(log - abs(log) * _WIDER)


def _log(x: Array) -> Array:
    x = np.asarray(x, np.float64)
    mantissa, exponent = np.frexp(x)
    low = mantissa < math.sqrt(0.5)
    m, e = np.where(low, 2 * mantissa, mantissa), (exponent - low).astype(np.float64)
    s = (m - 1) / (m + 1)
    log = e * LN2_HIGH + (e * LN2_LOW + 2 * s * _horner(_ATANH, s * s))
    return np.where((x > 0) & (x < np.inf), log, np.where(x > 0, x, -np.inf))


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    """The polynomial whose highest coefficient comes first."""
    value = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        value += coefficient
        value *= x
    value += coefficients[-1]
    return np.asarray(value)
