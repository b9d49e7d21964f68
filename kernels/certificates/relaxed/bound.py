"""A lower bound on quadratic assignment by one eigenvalue and n^2 + 1 assignments, true whatever its evidence is.

Evidence is a matrix Q of integers, of order n^2, whose indices are the pairs (facility i, location j); prices; and a
guess of an eigenvalue. Let L be the matrix with L[ij, kl] = F_ik D_jl for i != k, and L_ij + F_ii D_jj on its diagonal,
so that <L, x x'> is the objective of a permutation x, a vector of n^2 zeros and ones. Then, for Z = Q - L,

    objective = <Q, x x'> - x' Z x.

The first term. Beside a pair (i, j), every other facility k is at one other location l: the entries of row (i, j) that
x x' takes add up to at least sum_k min_l (Q[ij, kl] - p_ij,l) + sum_l p_ij,l for any prices p. With Q[ij, ij] that is
what the pair pays at least, and prices v of the locations bound the cheapest assignment of pairs in the same way. All
of it in int64 that cannot overflow: exact.

The second. x has the length sqrt(n), and rows and columns that sum to 1, so x = P x, where P projects onto the span of
the vector of ones and of all matrices with rows and columns that sum to 0. So x' Z x <= n max(0, lambda), lambda the
largest eigenvalue of B = P (Z + Z') P / 2. (Where that is below 0 in the span, a multiple of the identity is better put
into Q, as x' x = n.) Z + Z' times n^4 is projected in integers, exactly; what does not fit is
first cut off from the entries of Z, and paid for: x' E x is at most n^2 times the largest |entry| of E.

That lambda <= s is shown by a Cholesky factorisation of A = s - B. In floating point it can only end well for an A
whose least eigenvalue is at least - gamma / (1 - gamma) times its trace, gamma = (m + 1) u / (1 - (m + 1) u) for the
order m (S. M. Rump, "Verification of positive definiteness", BIT Numerical Mathematics 46 (2006); N. J. Higham,
"Accuracy and Stability of Numerical Algorithms", 2nd edition, SIAM 2002, theorems 10.3 and 10.5), in any order of
summation. Twice that is added to s, and what rounding A has changed. Where the guess fails, larger ones are tried, and
in the end twice the norm is taken. So evidence that is wrong makes the bound worse, never false.
"""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from kernels.certificates.quadratic_bounds import nearest
from kernels.certificates.quadratic_exact import Whole, whole
from kernels.problems import Array, QuadraticAssignment

MOST, WIDEST_N = 2**50, 256
"""Entries and prices of evidence stay below this, and n at or below that: sums of 4 n^2 of them fit int64."""
UNIT = 2.0**-53
TINY = 2.0**-500
DEEPEST = 60
"""Q is in units of 2^-60 of the objective at least."""


def proved_bound(problem: QuadraticAssignment, evidence: Mapping[str, Array]) -> Fraction | None:
    """The bound in the problem's own units; None where the evidence cannot be read.

    Args:
        evidence: `costs` (n^2, n^2) integers, Q in units of 2^exponent; `exponent` (); `prices` (n^2, n), `leaders`
            (n,) integers in the same units; `eigenvalue` (), a float in them. For floats that are not `Whole`,
            `exponents` (2,): Q is of the problem that is rounded to integers with these.
    """
    rounding = evidence.get("exponents")
    if rounding is None or problem.integer:
        data = whole(problem)
        found = None if data is None else _bound(problem, data, evidence)
        return None if data is None or found is None else data.number(data.rounded_up(-(-found // 1)))
    near = nearest(problem, rounding)
    found = None if near is None else _bound(problem, near[0], evidence)
    return None if near is None or found is None else (found - near[1]) * _power(-near[2])


def _bound(problem: QuadraticAssignment, data: Whole, evidence: Mapping[str, Array]) -> Fraction | None:
    """The bound in units of `data`."""
    n = problem.n
    shapes = {"costs": (n * n, n * n), "exponent": (), "prices": (n * n, n), "leaders": (n,)}
    if not 2 <= n <= WIDEST_N:
        return None
    if not all(k in evidence and evidence[k].shape == s and evidence[k].dtype.kind == "i" for k, s in shapes.items()):
        return None
    shift = -int(evidence["exponent"])
    costs = evidence["costs"].astype(np.int64)
    largest = int(np.abs(data.flow).max()) * int(np.abs(data.distance).max()) + int(np.abs(data.linear).max())
    if not 0 <= shift <= DEEPEST or not _within(costs, MOST) or largest << shift > MOST:
        return None
    permitted = np.ones((n, n), bool) if problem.forbidden is None else ~problem.forbidden
    assigned = _assigned(costs, permitted, *(_clipped(evidence[k]) for k in ("prices", "leaders")))
    guess = evidence.get("eigenvalue", np.zeros(()))
    most = _most(costs, data, shift, float(guess) if guess.shape == () and guess.dtype.kind == "f" else 0.0)
    bound: Fraction = (Fraction(assigned) - most) * _power(-shift)
    return bound


def _power(exponent: int) -> Fraction:
    return Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)


def _within(integers: Array, limit: int) -> bool:
    return -limit <= int(integers.min()) and int(integers.max()) <= limit


def _clipped(prices: Array) -> Array:
    return np.asarray(np.clip(prices.astype(np.int64), -MOST, MOST))


def _assigned(costs: Array, permitted: Array, prices: Array, last: Array) -> int:
    """At most <Q, x x'> for any permitted permutation x."""
    n, none = len(permitted), 2**62
    leaders = np.empty((n, n), np.int64)
    apart = ~np.eye(n, dtype=bool)
    for i in range(n):
        others = np.flatnonzero(apart[i])
        own = prices[i * n : (i + 1) * n]
        left = costs[i * n : (i + 1) * n].reshape(n, n, n)[:, others] - own[:, None, :]
        left = np.where(permitted[others] & apart[:, None, :], left, none).min(axis=2)
        beside = np.where(left == none, 0, left).sum(axis=1) + np.where(apart, own, 0).sum(axis=1)
        leaders[i] = np.where((left == none).any(axis=1), none, beside)  # nobody can be beside that pair
    single = costs.reshape(n, n, n, n)[np.arange(n)[:, None], np.arange(n), np.arange(n)[:, None], np.arange(n)]
    usable = permitted & (leaders < none)
    if not usable.any(axis=1).all():  # no permutation is permitted: anything is a bound
        return -none
    total = np.where(usable, leaders, 0) + single - last
    return int(sum(np.where(usable, total, none).min(axis=1).tolist()) + sum(last.tolist()))


def _most(costs: Array, data: Whole, shift: int, guess: float) -> Fraction:
    """At least x' (Q - L) x for any permutation x, in units of Q."""
    n = len(data.flow)
    z = costs - (_lifted(data) << shift)
    z += z.T
    room = 62 - 2 * (5 * n * n).bit_length()  # each side of the projection makes an entry 5 n^2 times as large at most
    cut = max(0, int(np.abs(z).max()).bit_length() - room)
    lost = Fraction(0)
    if cut:
        low = z - ((z >> cut) << cut)
        lost = Fraction(n * n * int(low.max()), 2)
        z >>= cut
    scaled = _projected(z, n)
    bound = _largest(scaled, float(2 * n**4), float(np.ldexp(guess, -cut)) if np.isfinite(guess) else 0.0)
    return n * max(Fraction(0), bound) * _power(cut) + lost


def _lifted(data: Whole) -> Array:
    n = len(data.flow)
    pairs = (data.flow[:, None, :, None] * data.distance[None, :, None, :]).reshape(n * n, n * n)
    at = np.arange(n * n)
    pairs[at, at] += data.linear.ravel()
    return np.asarray(pairs)


def _projected(z: Array, n: int) -> Array:
    """n^4 P z P, exactly. P keeps the mean of all, and what is left of a vector without the means of its lines."""
    for _ in range(2):
        lines = z.reshape(n, n, n * n)
        rows, columns = lines.sum(axis=1, keepdims=True), lines.sum(axis=0, keepdims=True)
        whole_sum = lines.sum(axis=(0, 1), keepdims=True)
        z = (n * n * lines - n * rows - n * columns + 2 * whole_sum).reshape(n * n, n * n).T
    return np.ascontiguousarray(z)


def _largest(scaled: Array, divisor: float, guess: float) -> Fraction:
    """A number that no eigenvalue of scaled / divisor exceeds, by factorisations."""
    order = len(scaled)
    matrix = scaled.astype(np.float64) / divisor
    size = float(np.sqrt((matrix**2).sum())) * (1 + 4 * order**2 * UNIT) + TINY
    for value in (guess, guess + 2.0**-30 * size, guess + 2.0**-16 * size, size):
        if not 0 <= value <= 4 * size:
            continue
        shifted = -matrix
        at = np.arange(order)
        shifted[at, at] += value
        trace = float(shifted[at, at].sum())
        try:
            factor = np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            continue
        if not np.isfinite(factor).all():
            continue
        # entries: converted, divided, and one subtraction on the diagonal; the trace: a sum of `order` terms
        changed = 4 * UNIT * size + 2 * UNIT * float(np.abs(shifted[at, at]).max())
        gamma = 2 * (order + 2) * UNIT
        backward = gamma * (abs(trace) + 2 * order * UNIT * float(np.abs(shifted[at, at]).sum()))
        return Fraction(value) + Fraction(changed) + Fraction(backward) + Fraction(order * TINY)
    return Fraction(size) * 2
