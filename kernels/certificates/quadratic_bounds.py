"""Lower bounds of a quadratic assignment that are true whatever evidence they are given.

Evidence is the prices v of the locations, and for the level-1 reformulation what its rows and columns have given away.
No number of it is believed: the best duals u that go with v are worked out here, and a price that takes more than is
there costs the bound what it takes too much. So evidence that is wrong makes a bound worse, never false.

Arithmetic: exact where the problem is `Whole`. Else every rounding goes down. Minimal scalar products are then sums
of exact products of slices (K. Ozaki, T. Ogita, S. Oishi, S. M. Rump, "Error-free transformations of matrix
multiplication by using fast routines of matrix multiplication", Numerical Algorithms 59 (2012)): a slice has so few
bits that a float64 matrix product of two of them is exact in any order of summation.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from kernels.certificates import rounded
from kernels.certificates.quadratic_exact import LARGEST, Whole
from kernels.problems import Array, QuadraticAssignment
from kernels.solution import Number

SLICES = 4
WORK = 2**27
"""Products between two reports of progress: about 10 ms."""
CLIP = 2**58
FARTHEST = 1e300
"""Prices beyond these are cut back to them, which keeps sums finite. Objectives of floats stay below 1e300."""


def gilmore_lawler(
    problem: QuadraticAssignment,
    data: Whole | None,
    by_columns: bool,
    prices: Array | None,
    progress: Callable[[float], None],
) -> Number:
    """The bound of Gilmore (1962) and Lawler (1963) from prices of the locations.

    Facility i at location j pays at least l_ij: what is its own there, and the minimal scalar product of what flows
    between it and the others with the distances to the other locations (by columns: the flows towards it). For any
    prices v, sum_i min_j (l_ij - v_j) + sum_j v_j is at most the cost of the cheapest assignment under l.

    Args:
        data: the problem in int64, if it fits: the bound is then an integer of its units.
        prices: (n,), anything; where they are missing or of no use, the least l_ij of each column.
    """
    source = problem if data is None else data
    flow, distance = (m.T if by_columns else m for m in (source.flow, source.distance))
    rows = np.hstack((_off_diagonal(flow)[:, ::-1], flow.diagonal()[:, None]))
    columns = np.hstack((_off_diagonal(distance), distance.diagonal()[:, None]))
    permitted = np.ones(flow.shape, bool) if problem.forbidden is None else ~problem.forbidden
    if data is not None:
        costs = _in_blocks(lambda part: _product(part, columns), rows, progress)[0] + data.linear
        return data.rounded_up(_assigned(costs, permitted, whole_prices(prices, data)))
    costs, rest = _in_blocks(lambda part: _product_down(part, columns), rows, progress)
    linear = np.zeros(flow.shape) if problem.linear is None else problem.linear
    return _assigned_down(costs, rest, linear, permitted, float_prices(prices, problem.n))


def rlt1(problem: QuadraticAssignment, data: Whole, evidence: Mapping[str, Array]) -> Number | None:
    """The dual bound of the level-1 reformulation (Hahn and Grant 1998), None where its evidence cannot be read.

    Facility i at j and facility k at l together pay c = F_ik D_jl + F_ki D_lj. With any rows r and columns q, of
    scale s, let w_ik = min over j != l of s c - r_ijk - q_ijl - r_kli - q_klj, and l_ij = s (L_ij + F_ii D_jj) +
    sum_k r_ijk + sum_l q_ijl. Then s times any objective is at least the cheapest assignment under l plus the sum
    of w_ik over i < k: every facility and every pair of them is somewhere.
    """
    n = problem.n
    shapes = {"scale": (), "rows": (n, n, n), "columns": (n, n, n), "v": (n,)}
    if not all(k in evidence and evidence[k].shape == s and evidence[k].dtype.kind == "i" for k, s in shapes.items()):
        return None
    rows, columns, scale = evidence["rows"], evidence["columns"], int(evidence["scale"])
    largest = 2 * int(np.abs(data.flow).max()) * int(np.abs(data.distance).max())
    if scale < 1 or scale * largest > LARGEST:
        return None
    rows, columns = (np.clip(m.astype(np.int64), -CLIP, CLIP) for m in (rows, columns))
    permitted = np.ones((n, n), bool) if problem.forbidden is None else ~problem.forbidden
    apart = ~np.eye(n, dtype=bool)
    total = 0
    for i in range(n - 1):
        after = slice(i + 1, n)
        pays = np.multiply.outer(data.flow[i, after], data.distance)
        pays = (pays + np.multiply.outer(data.flow[after, i], data.distance.T)) * scale
        pays -= rows[i, :, after].T[:, :, None] + columns[i][None]
        pays -= rows[after, :, i][:, None, :] + columns[after].transpose(0, 2, 1)
        there = permitted[i][None, :, None] & permitted[after][:, None, :] & apart[None]
        total += sum(np.where(there, pays, LARGEST * 2 - 1).min(axis=(1, 2)).tolist())
    own = np.outer(data.flow.diagonal(), data.distance.diagonal()) + data.linear
    given = np.where(apart[:, None, :], rows, 0).astype(object).sum(axis=2)
    given = given + np.where(apart[None], columns, 0).astype(object).sum(axis=2)
    total += _assigned(own.astype(object) * scale + given, permitted, evidence["v"].astype(object))
    return data.rounded_up(-(-total // scale))


def rlt1_rounded(problem: QuadraticAssignment, evidence: Mapping[str, Array]) -> Fraction | None:
    """The same for floats: the bound of the data rounded to integers, less what rounding may have added to it.

    Evidence names the exponents of `nearest`.
    """
    near = nearest(problem, evidence["exponents"])
    bound = None if near is None else rlt1(problem, near[0], evidence)
    return None if near is None or bound is None else (Fraction(bound) - near[1]) / Fraction(2) ** near[2]


def nearest(problem: QuadraticAssignment, exponents: Array) -> tuple[Whole, Fraction, int] | None:
    """Floats rounded to integers; what that may have added to an objective; the exponent of its units.

    With the exponents a and b flow is multiplied by 2^a, distance by 2^b, linear costs by 2^(a + b), and rounded. Each
    entry is off by 1/2 at most, so a product of integers f d by (|f| + |d|) / 2 + 1/4. None where `exponents` are none,
    or sums of the integers leave int64.
    """
    if exponents.shape != (2,) or exponents.dtype.kind != "i" or int(np.abs(exponents.astype(float)).max()) > 4000:
        return None
    a, b = exponents.tolist()
    linear = np.zeros_like(problem.flow) if problem.linear is None else problem.linear
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [np.rint(np.ldexp(m, e)) for m, e in ((problem.flow, a), (problem.distance, b), (linear, a + b))]
        sizes = [np.abs(m) for m in parts]
        largest = [sizes[0].sum() * sizes[1].max() + sizes[2].max(axis=1).sum(), sizes[0].sum(), sizes[1].sum()]
    if not all(size * (1 + 2.0**-12) <= LARGEST for size in largest):
        return None
    flow, distance, linear = (m.astype(np.int64) for m in parts)
    n, magnitudes = problem.n, int(np.abs(flow).sum()) + int(np.abs(distance).sum())
    return Whole(flow, distance, linear, 0), Fraction(magnitudes + n, 2) + Fraction(n * n, 4), int(a + b)


def whole_prices(prices: Array | None, data: Whole) -> Array | None:
    """Prices in the units of `data`, as int64 below 2^61; None where there are none to be read."""
    n = len(data.flow)
    if prices is None or prices.shape != (n,) or prices.dtype.kind not in "if":
        return None
    if prices.dtype.kind == "i" and data.exponent == 0:
        return np.clip(prices.astype(np.int64), -LARGEST, LARGEST)
    with np.errstate(over="ignore"):
        scaled = np.ldexp(np.nan_to_num(prices.astype(np.float64)), -data.exponent)
    return np.asarray(np.rint(np.clip(scaled, -LARGEST, LARGEST)).astype(np.int64))


def float_prices(prices: Array | None, n: int) -> Array | None:
    """Prices as finite float64; None where there are none to be read."""
    if prices is None or prices.shape != (n,) or prices.dtype.kind not in "if":
        return None
    return np.asarray(np.clip(np.nan_to_num(prices.astype(np.float64)), -FARTHEST, FARTHEST))


def _off_diagonal(matrix: Array) -> Array:
    """Each row without its diagonal entry, in ascending order."""
    n = matrix.shape[0]
    return np.asarray(np.sort(matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1), axis=1))


def _in_blocks(
    work: Callable[[Array], tuple[Array, ...]], rows: Array, progress: Callable[[float], None]
) -> list[Array]:
    """`work` on a few rows at a time, with a report after each."""
    n = len(rows)
    height = max(1, WORK // (n * n))
    parts = []
    for at in range(0, n, height):
        parts.append(work(rows[at : at + height]))
        progress(min(1.0, (at + height) / n))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _assigned(costs: Array, permitted: Array, prices: Array | None) -> int:
    """sum_i min_j (costs_ij - v_j) + sum_j v_j over permitted pairs, exactly."""
    if prices is None:
        prices = np.where(permitted, costs, LARGEST).min(axis=0)
    # int64 costs and prices are at most 2^61, so that their difference fits; Python's integers are as long as they must
    highest = 2 * LARGEST if costs.dtype != object else 1 << 200
    left = np.where(permitted, costs - prices, highest).min(axis=1)
    return int(sum(left.tolist()) + sum(prices.tolist()))


def _assigned_down(costs: Array, rest: Array, linear: Array, permitted: Array, prices: Array | None) -> float:
    """The same for costs + rest + linear in float64, every rounding down, and one rounding of the sum."""
    if prices is None:
        prices = np.where(permitted, costs + linear, np.inf).min(axis=0)
    together, first = rounded.two_sum(costs, linear)
    left, second = rounded.two_sum(together, -prices)
    left = rounded.add_down(left, rounded.add_down(rest, rounded.add_down(first, second)))
    return rounded.sum_down(np.concatenate((np.where(permitted, left, np.inf).min(axis=1), prices)))


def _product(x: Array, y: Array) -> tuple[Array]:
    """x y' in int64, exactly where it fits. By float64 products whose sums stay below 2^53, so that they are exact."""
    bits = [int(np.abs(m).max(initial=0)).bit_length() for m in (x, y)]
    if sum(bits) + x.shape[1].bit_length() <= 53:
        return (np.asarray((x.astype(np.float64) @ y.T.astype(np.float64)).astype(np.int64)),)
    if bits[0] < bits[1]:
        return (_product(y, x)[0].T,)
    low = bits[0] // 2
    high = x >> low  # wraps beyond 2^63 on the way, which the sum undoes
    return ((_product(high, y)[0] << low) + _product(x - (high << low), y)[0],)


def _product_down(x: Array, y: Array) -> tuple[Array, Array]:
    """(a, b) with a + b <= x y' in exact arithmetic, by less than 2^-80 of n times the rows' largest products.

    Rows are first divided by powers of two that leave their largest entry in [1/2, 1). Each is then cut into SLICES
    slices of k bits, slice p being integers of at most 2^k times 2^(-k (p + 1)). Pairs of slices with p + q >=
    SLICES are left out: each is at most n 2^(-k (p + q)), at most SLICES + 1 of them have the same p + q, and the
    powers add up to less than twice the first. What underflows by the division is far below that.
    """
    n = x.shape[1]
    bits = (53 - n.bit_length()) // 2
    (scaled_x, slices_x, all_x), (scaled_y, slices_y, all_y) = (_slices(m, bits) for m in (x, y))
    total, rest, size = np.zeros((3, len(x), len(y)))
    complete = all_x and all_y
    for p, left in enumerate(slices_x if slices_y else []):
        paired = slices_y[: SLICES - p]
        complete &= len(paired) == len(slices_y)
        for product in np.split(left @ np.concatenate(paired).T, len(paired), axis=1):
            total, error = rounded.two_sum(total, product)
            rest += error
            size += np.abs(error)
    # rest adds up at most 10 errors, none of which is near underflow: it is off by less than 11 u times their size
    rest -= 2.0**-49 * size
    if not complete:
        lost = 2.0 * n * (SLICES + 1) * 2.0 ** (-bits * SLICES)
        both = np.outer(x.any(axis=1), y.any(axis=1))
        rest = np.where(both, rounded.sub_down(rest, 1.01 * lost), rest)
    exponents = np.add.outer(scaled_x, scaled_y)
    return _scaled_down(total, exponents), _scaled_down(rest, exponents)


def _slices(matrix: Array, bits: int) -> tuple[Array, list[Array], bool]:
    """The rows' exponents, the slices of the rows divided by them, and whether nothing is left over."""
    exponents = np.frexp(np.abs(matrix).max(axis=1, initial=0))[1]
    left = np.ldexp(matrix, -exponents[:, None])
    exact = bool((np.ldexp(left, exponents[:, None]) == matrix).all())
    slices: list[Array] = []
    while len(slices) < SLICES and left.any():
        unit = bits * (len(slices) + 1)
        piece = np.ldexp(np.rint(np.ldexp(left, unit)), -unit)
        slices.append(piece)
        left = left - piece
    return exponents, slices, exact and not left.any()


def _scaled_down(values: Array, exponents: Array) -> Array:
    """values 2^exponents, rounded down where that underflows."""
    scaled = np.ldexp(values, exponents)
    lost = np.ldexp(scaled, -exponents) > values
    return np.asarray(np.where(lost, np.nextafter(scaled, -np.inf), scaled))
