"""Sums over the stored entries, rounded up: of P(f, g) - R for the dual value, and of what a plan costs.

u = 2^-53. P(f, g)_ij = w_i v_j exp(z), z = (f_i + g_j - C_ij) / reg in three roundings. Since |C| <= |f_i + g_j| + reg
|z|, an error of z is at most u |f_i + g_j| / reg + 2 u |z| (transport_answer.py), and moves exp(z) by that share of
itself. exp, expm1 and log have the bounds of transport_elementary.py. What is below LOWEST counts as that.

A plan's entry costs p C + reg phi(p, r), phi(p, r) = p log(p / r) - p + r and r = w v with a rounding e <= u, which
moves phi by at most |p - r| e + (p + r) e^2, as d phi / dr = 1 - p / r. For the uniform reference it is p log p - p.

Sums: chunks of 32 terms, then 32 of such sums, and so on, each off by 32 u times the sizes of its terms; the totals of
blocks are added up exactly.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from kernels.certificates.rounded import mul_up, sum_up
from kernels.certificates.transport_divergence import of_marginal
from kernels.certificates.transport_elementary import (
    EXPM1_ERROR,
    HIGHEST,
    LOWEST,
    TINIEST,
    UNIT,
    exp_pair,
    log_down,
    log_up,
)
from kernels.problems.arrays import Array
from kernels.problems.sparse_transport import SparseTransport

BLOCK = 1 << 16
CHUNK = 32
LARGEST = 1e300
"""A potential beyond it is not one."""
SLACK = 1 + 2.0**-40
"""What rounds a bound of an error up that a few operations made."""
FADED = 2.0**-900
"""Products of masses below it lose digits: their logarithm is that of the masses then."""
CLEAR = 0.5
"""Errors of an exponent up to which e (1 + e) bounds exp(e) - 1."""


class Potentials:
    """f and g with 0 where they say nothing. `usable`: they bound something.

    A line with mass and no entry that meets any may have +inf where its side is relaxed: its mass is left behind.
    `left` marks such lines, of rows and of columns.
    """

    def __init__(self, problem: SparseTransport, f: Array, g: Array) -> None:
        self.usable, self.left, found = True, [], []
        ends = (problem.entry_rows[problem.used], problem.entry_columns[problem.used])
        for side, given in enumerate((f, g)):
            masses = (problem.a, problem.b)[side]
            alone = np.bincount(ends[side], minlength=masses.size) == 0
            left = (given == np.inf) & (masses > 0) & alone & math.isfinite(problem.reg_m[side])
            finite = abs(np.where(np.isnan(given), np.inf, given)) <= LARGEST
            self.usable = self.usable and bool((finite | left | (masses == 0)).all())
            self.left.append(left)
            found.append(np.where(finite & (masses > 0), given, 0.0))
        self.f, self.g = found


def blocks(count: int, progress: Callable[[float], None]) -> Iterator[slice]:
    """Runs of entries, and how far they have come."""
    for number, start in enumerate(range(0, count, BLOCK)):
        yield slice(start, min(count, start + BLOCK))
        if number % 16 == 15:
            progress(start / count)


def at_least(terms: Array) -> tuple[float, float]:
    """The sum of terms and what its rounding may lack."""
    sizes, levels = float(abs(terms).sum()) * (1 + 2 * terms.size * UNIT), 0
    while terms.size > CHUNK:
        whole = terms.size // CHUNK * CHUNK
        terms = np.append(terms[:whole].reshape(-1, CHUNK).sum(axis=1), terms[whole:].sum())
        levels += 1
    return math.fsum(terms.tolist()), SLACK * (CHUNK * (levels + 1) + 2) * UNIT * sizes + (TINIEST if sizes else 0.0)


def _weights(problem: SparseTransport) -> tuple[Array, Array]:
    if problem.reference == "product":
        return problem.a, problem.b
    return (problem.a > 0).astype(float), (problem.b > 0).astype(float)


def _weighted(terms: Array, of_a: Array, of_b: Array) -> Array:
    """terms of_a of_b, rounded twice. A product of two masses may underflow where its exponential is large."""
    (mantissa_a, power_a), (mantissa_b, power_b) = np.frexp(of_a), np.frexp(of_b)
    mantissas = mantissa_a * mantissa_b
    return np.asarray(np.ldexp(np.where(mantissas > 0, terms, 0.0) * mantissas, power_a + power_b))


def excess(problem: SparseTransport, at: Potentials, progress: Callable[[float], None]) -> float:
    """At least reg sum (P(f, g) - R), or reg sum P(f, g) for the uniform reference; inf where that is too large."""
    rows, columns, costs, reg = problem.entry_rows, problem.entry_columns, problem.values, problem.reg
    weights_a, weights_b = _weights(problem)
    product, parts = problem.reference == "product", [0.0]
    for some in blocks(costs.size, progress):
        i, j = rows[some], columns[some]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            both = at.f[i] + at.g[j]
            z = (both - costs[some]) / reg
            z[(problem.a[i] == 0) | (problem.b[j] == 0)] = 0.0  # the weight is 0
            if not float(z.max(initial=0.0)) <= HIGHEST:
                return math.inf
            error = SLACK * (UNIT * abs(both) / reg + 2 * UNIT * abs(z)) + TINIEST
            moved = np.where(error <= CLEAR, error * (1 + error), np.inf)
            # below LOWEST exp(z) counts as exp(LOWEST), which bounds it, if its error is a small part of z
            moved[(z < 2 * LOWEST) & (error < -LOWEST)] = 0.0
            exp, expm1 = exp_pair(np.maximum(z, LOWEST))
            terms = expm1 if product else exp
            terms = terms + (SLACK * (EXPM1_ERROR * abs(terms) + exp * moved) + TINIEST)
            terms = _weighted(terms, weights_a[i], weights_b[j])
            terms = terms + 4 * UNIT * abs(terms)
            underflow = int(((problem.a[i] > 0) & (problem.b[j] > 0)).sum()) * TINIEST
        if not np.isfinite(terms).all():
            return math.inf
        parts += [*at_least(terms), underflow]
    return float(mul_up(reg, sum_up(parts)))


def primal(problem: SparseTransport, plan: Array, progress: Callable[[float], None]) -> float:
    """At least <C, P> + reg Omega(P), for a plan that is finite, not negative, and 0 where there is no mass."""
    rows, columns, costs = problem.entry_rows, problem.entry_columns, problem.values
    parts = [0.0]
    for some in blocks(costs.size, progress):
        p, i, j = plan[some], rows[some], columns[some]
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            paid, entropy = p * costs[some], _entropy(problem, p, i, j)
            terms = paid + problem.reg * entropy
            terms = terms + 4 * UNIT * (abs(paid) + problem.reg * abs(entropy))
        if not np.isfinite(terms).all():
            return math.inf
        some_term = p > 0
        if problem.reference == "product":  # what is not 0 may be rounded to it
            some_term = some_term | ((problem.a[i] > 0) & (problem.b[j] > 0))
        parts += [*at_least(terms), int(some_term.sum()) * TINIEST * max(1.0, problem.reg)]
    return sum_up(parts)


def _entropy(problem: SparseTransport, p: Array, i: Array, j: Array) -> Array:
    """At least the entropic term of entries, but for roundings that underflow."""
    if problem.reference == "uniform":
        logs = np.where(p > 0, log_up(np.where(p > 0, p, 1.0)), 0.0)
        return np.asarray(p * logs - p + 4 * UNIT * (p * abs(logs) + p))
    r = problem.a[i] * problem.b[j]
    found = of_marginal(p, r) + SLACK * UNIT * (abs(p - r) + 4 * UNIT * (p + r)) + 4 * UNIT * abs(p - r) * UNIT
    faded = (p > 0) & (r < FADED) & (problem.a[i] > 0) & (problem.b[j] > 0)
    if faded.any():
        q = p[faded]
        logs = log_up(q) - log_down(problem.a[i][faded]) - log_down(problem.b[j][faded])
        found[faded] = q * logs - q + r[faded] + 8 * UNIT * q * (abs(log_up(q)) + 1500) + TINIEST
    return np.asarray(found)
