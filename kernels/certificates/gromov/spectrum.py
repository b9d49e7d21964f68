"""The projection bound of two symmetric matrices, proved: a transport, and eigenvalues of what it leaves.

For any e, f let X_ik = e_i + e_k + X'_ik and Y_jl = f_j + f_l + Y'_jl. With x = X' a and y = Y' b, a coupling P has

    <X P Y, P> = 2 (e.a) (f.b) + 2 sum (e_i (f_j + y_j) + x_i f_j) P_ij + <X' P Y', P>.

The last is tr(A N B N'), A = D X' D with D = diag(a)^1/2, B likewise, N = diag(a)^-1/2 P diag(b)^-1/2. N does not
lengthen a vector, since it takes b^1/2 to a^1/2 and back and is not negative. So with eigenvalues in descending order
the trace is at most sum max(0, s_r) max(0, t_r) over the largest ones, and the same over the smallest ones with their
signs turned (J. von Neumann's inequality for the positive and the negative parts). Of quadratic assignment this is
the projection bound (S. W. Hadley, F. Rendl, H. Wolkowicz, "A new lower bound via projection for the quadratic
assignment problem", Mathematics of Operations Research 17 (1992)).

e = X a - a' X a / 2 makes x vanish but for rounding; nothing depends on it.

Arithmetic. Entries are at most 1 in size after a power of two, so |e|, |f| <= 1.5 and |X'|, |Y'| <= 4. No number below
goes through more than 2 (n + m) + 40 roundings. With the factors in front, the sizes that they are of add up to 62 for
a cost (of e y and x f 6 each, four times, and the last roundings of all), and to 2 + 18 + 32 for what stands alone
(squares, the product of means, twice the trace): so 100 gamma is taken from each. D and X' are rounded, which moves A
by less than 100 u in the Frobenius norm, since the squares of D's products add up to 1. With V, L from any eigensolver,
eigenvalues of V L V' are L's times factors within |V'V - I| of 1 (Ostrowski's theorem), and those of A within |A - V L
V'| of these (Weyl). Norms are Frobenius norms, of matrices as they are worked out plus gamma(n + 4) |V|^2 (|L| + 1) for
their rounding.
"""

import numpy as np

from kernels.certificates.gromov.lower import transport_down
from kernels.certificates.gromov.objective import UNIT, exponent_of, gamma, shares
from kernels.certificates.rounded import add_down, mul_down, sub_down
from kernels.problems.arrays import Array
from kernels.problems.gromov import GromovWasserstein

LARGEST = 2000
"""Points of a space up to which eigenvalues take no more than seconds."""
SMALLEST_UNIT = -400
"""Exponent of the largest distance down to which its square is a normal float64 with room below."""


def projected(problem: GromovWasserstein, potentials: object) -> float | None:
    """The bound rounded down; None of matrices that are not symmetric, are too large, or hold next to nothing."""
    power = exponent_of(problem)
    if not problem.symmetric or max(problem.shape) > LARGEST or power < SMALLEST_UNIT:
        return None
    n, m = problem.shape
    sides = [_side(*pair, -power) for pair in ((problem.x_distance, problem.a), (problem.y_distance, problem.b))]
    if any(side is None for side in sides):
        return None
    (x, e, left, s, off), (y, f, right, t, away) = (side for side in sides if side is not None)
    each = gamma(2 * (n + m) + 40)
    costs = -4 * (e[:, None] * (f + right)[None, :] + left[:, None] * f[None, :]) - 100 * each
    costs = mul_down(problem.alpha, np.ldexp(costs, 2 * power))
    if problem.cost is not None:
        costs = add_down(mul_down(1 - problem.alpha, problem.cost), costs)
    carried = transport_down(problem, costs, potentials)
    a, b = shares(problem.a), shares(problem.b)
    alone = float(a @ (x * x) @ a) + float(b @ (y * y) @ b) - 4 * float(e @ a) * float(f @ b)
    rest = float(sub_down(alone - 2 * _together(s, off, t, away), 100 * each))
    return float(add_down(carried, mul_down(problem.alpha, np.ldexp(rest, 2 * power))))


def _side(matrix: Array, weights: Array, power: int) -> tuple[Array, Array, Array, Array, float] | None:
    """The matrix scaled, e, X' a, eigenvalues of A in descending order, and how far any may be from the true one."""
    scaled, a = np.ldexp(matrix, power), shares(weights)
    means = scaled @ a
    e = means - 0.5 * float(means @ a)
    rest = scaled - e[:, None] - e[None, :]
    roots = np.sqrt(a)
    whole = roots[:, None] * rest * roots[None, :]
    try:
        values, vectors = np.linalg.eigh((whole + whole.T) / 2)
    except np.linalg.LinAlgError:
        return None
    n, largest, width = len(a), float(abs(values).max()), _norm(vectors)
    rounding = gamma(n + 4) * width * width * (largest + 1)
    turned = _norm(vectors.T @ vectors - np.eye(n)) + rounding
    off = 1.01 * (_norm(whole - (vectors * values) @ vectors.T) + rounding + turned * largest + 100 * UNIT)
    return (scaled, e, means - e - float(e @ a), values[::-1], off) if np.isfinite(off) else None


def _norm(matrix: Array) -> float:
    """The Frobenius norm, or a little more."""
    return float(np.sqrt((matrix * matrix).sum())) * (1 + gamma(matrix.size + 4))


def _together(s: Array, off: float, t: Array, away: float) -> float:
    """At least the largest trace, but for roundings of the sums themselves."""
    count, total = min(len(s), len(t)), 0.0
    for left, right in ((s, t), (-s[::-1], -t[::-1])):
        high, low = np.maximum(0.0, left[:count]) + off, np.maximum(0.0, right[:count]) + away
        total += float(high @ low)
    return total
