"""Upper bounds on sums of phi(p, q) = p log(p / q) - p + q, for entries of a plan and for its marginals.

With delta = p / q - 1 the power series of (1 + delta) log(1 + delta) - delta gives

    phi(p, q) = q delta^2 (1/2 - delta / 6 + delta^2 / 12 - ... + delta^16 / (17 * 18)), and at most REMAINDER q delta^2
    more, |delta| <= WIDE:

next to q there is no cancellation, and no logarithm. Where |delta| > WIDE logarithms are taken after all
(transport_elementary.py). An error e of q, relative, e <= 1/2, moves phi by at most q (|delta| e + (1 + |delta|) e^2),
because d phi / dq = -delta. u = 2^-53; a block of k entries is summed in any order, off by (k - 1) u, relative.
"""

import numpy as np

from kernels.certificates.rounded import sum_up
from kernels.certificates.transport_answer import FLOOR, Answer, Exponents
from kernels.certificates.transport_elementary import EXP_ERROR, TINIEST, UNIT, log_down, log_up
from kernels.certificates.transport_points import SLACK
from kernels.problems.arrays import Array

DEEP = 1e200  # exp(-FLOOR) is more
WIDE = 0.125  # |delta| up to which the series is taken
NARROW = 2.0**-20  # |delta| up to which its first term is enough
_BRACKET = tuple((-1) ** k / ((k + 1) * (k + 2)) for k in range(16, -1, -1))
REMAINDER = 2.0**-58  # above WIDE^17 / (18 * 19 (1 - WIDE)), what the powers beyond the 16th add up to
WIDTH = 256  # terms of a chunk
WEIGHTS = 4 * UNIT  # relative rounding of the products with w and v, and of p / q


def of_entries(answer: Answer, part: slice, plan: Array, dual: Array, at: Exponents, mass: float) -> float:
    """Sum of phi(P, Q) over some rows, Q = `dual` with the errors of `at` and a sum of at most `mass`."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        delta = plan / dual
    delta -= 1
    largest = max(float(delta.max()), -float(delta.min()))
    apart = 0.0
    if not largest <= WIDE:
        wide = ~(abs(delta) <= WIDE)
        apart = _wide(answer, part, plan, dual, at, wide)
        delta[wide] = 0
        largest = max(float(delta.max()), -float(delta.min()))
    with np.errstate(under="ignore"):
        near = _series(delta, largest)
        near *= dual
        total = float(near.sum()) * (1 + SLACK * (near.size + 32) * UNIT)
    error = float(at.far.max()) + EXP_ERROR + WEIGHTS
    if not error <= 0.5:
        return np.inf if mass > 0 else apart
    error = SLACK * mass * (largest * error + (1 + largest) * error**2) + near.size * TINIEST
    return sum_up([total, apart, error]) if np.isfinite(total + apart + error) else np.inf


def _series(delta: Array, largest: float) -> Array:
    """An upper bound on (1 + delta) log(1 + delta) - delta, but for 32 u of itself; overwrites `delta`."""
    if largest <= NARROW:
        delta *= delta
        delta *= 0.5 + largest
        return delta
    bracket = _horner(delta)
    delta *= delta
    delta *= bracket
    return delta


def _wide(answer: Answer, part: slice, plan: Array, dual: Array, at: Exponents, wide: Array) -> float:
    """The sum of phi over the entries where `wide`, by logarithms; q alone where p = 0."""
    empty = wide & (plan == 0)
    total = float(dual[empty].sum()) * (1 + SLACK * (dual.size + 8) * UNIT)
    i, j = np.nonzero(wide & ~empty)
    if not i.size:
        return total
    p, q, z = plan[i, j], dual[i, j], at.z[i, j]
    # q stands for less than itself: p <= DEEP q says that log(p / (w v)) is negative, and log(p / q) at most -z.
    deep = (z <= FLOOR) & (p <= DEEP * q)
    if deep.any():
        total += float((q[deep] - p[deep] * z[deep]).sum()) * (1 + SLACK * (dual.size + 8) * UNIT)
        i, j, p, q, z = (array[~deep] for array in (i, j, p, q, z))
    log_w, log_v = answer.logs
    logs = log_up(p), -log_w[part][i], -log_v[j]
    with np.errstate(invalid="ignore", over="ignore"):
        rounding = 8 * UNIT * (sum(map(abs, logs)) + abs(z))
        ratio = (sum(logs) - z) + (rounding + at.errors(i, z))
        phi = p * ratio - p + q * (1 + _far(at.errors(i, z)))
        phi += 8 * UNIT * (p * abs(ratio) + p + q) + TINIEST
        rest = _sum(np.maximum(phi, 0.0))  # as what it bounds is not below 0
    return sum_up([total, rest]) if np.isfinite(total) and np.isfinite(rest) else float("inf")


def _sum(terms: Array) -> float:
    """At least the sum of terms of one sign: chunks, then the sums of chunks, each off by a unit a term at most."""
    whole = terms.size // WIDTH * WIDTH
    parts = np.append(terms[:whole].reshape(-1, WIDTH).sum(axis=1), terms[whole:].sum())
    return float(parts.sum()) * (1 + SLACK * (WIDTH + parts.size + 8) * UNIT)


def _far(error: Array) -> Array:
    return np.asarray(np.where(error <= 0.5, error * (1 + error), np.inf) + EXP_ERROR + WEIGHTS)


def of_marginal(p: Array, q: Array) -> Array:
    """Upper bounds on phi(p_i, q_i), q_i >= 0; inf where p_i > 0 = q_i, and q_i itself where p_i = 0.

    The quotient's two roundings move the bracket by 4.5 u and Horner's rule by 6 u, relative; log(p / q) is off by 8 u.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        delta = (p - q) / q
        near = np.where(abs(delta) <= WIDE, delta, 0.0)
        close = q * (near * near * _horner(near)) * (1 + 2.0**-48)
        ratio = p / q * (1 + 2.0**-51)
        plain = (ratio > 1e-300) & (ratio < np.inf)
        log = np.where(plain, log_up(np.where(plain, ratio, 1.0)), log_up(p) - log_down(q))
        top = np.where(p > 0, p * log, 0.0)
        far = (top - p + q) + 4 * UNIT * (abs(top) + p + q)
    bound = np.where(abs(delta) <= WIDE, close, np.where((p > 0) & (q == 0), np.inf, np.where(p == q, 0.0, far)))
    return np.where(p == 0, q, bound + TINIEST)


def _horner(delta: Array) -> Array:
    """At least 1/2 - delta / 6 + delta^2 / 12 - ..., its powers up to the 16th and a bound of the rest."""
    value = np.full_like(delta, _BRACKET[0])
    for coefficient in _BRACKET[1:]:
        value *= delta
        value += coefficient
    value += REMAINDER
    return value
