"""The certificate of an auction of integers: objective, bound and gap without rounding.

Any prices p >= 0 give a bound, so the certificate may change those that it is given: it takes them as multiples of
2^-k, with the largest k that leaves room for every benefit and price in int64. Benefits are at most 2^61 in size (the
problem's own check) and prices are cut to less than 2^62, so that 2^k (b - p) lies above -2^63, which stands for none.
Sums are Python integers. The optimum is an integer, so the bound is rounded down at the end.
"""

from collections.abc import Callable

import numpy as np

from kernels.certificates.auction_rows import Proof, block_of, ends_of, over, values_at
from kernels.problems import UNASSIGNED, Array, Csr
from kernels.problems.sparse import Auction

NONE = np.iinfo(np.int64).min
MOST_PRICE = 2**62 - 1
MOST_BENEFIT = 2**61
FINEST = 50
"""Prices are taken to 2^-50 at best: a float64 from 8 on has no finer digits."""


def prove(problem: Auction, solution_arrays: dict[str, Array], progress: Callable[[float], None]) -> Proof | str:
    """Prove what `assignment` and `prices` give in integers; a sentence when a pair is forbidden."""
    weights, reject = problem.weights, problem.reject
    assignment = solution_arrays["assignment"]
    rows = np.flatnonzero(assignment != UNASSIGNED)
    taken, permitted = values_at(weights, rows, assignment[rows])
    if not permitted:
        return "not an assignment: a pair is forbidden"
    objective = total(taken)
    if reject is not None:
        objective += total(reject[assignment == UNASSIGNED])
    prices, k = fixed(solution_arrays["prices"], _largest(weights, reject))
    finite = all(bool(np.isfinite(solution_arrays[name]).all()) for name in ("prices", "profits"))
    best = _best_nets(problem, prices, k, progress)
    short, off = _difference(best, k, solution_arrays["profits"])
    if (best == NONE).any():
        return Proof(objective, None, None, short, off, 0, 0, finite)
    bound = (total(best) + total(prices)) >> k
    return Proof(objective, bound, bound - objective, short, off, 0, 0, finite)


def fixed(prices: Array, largest: int) -> tuple[Array, int]:
    """Prices in [0, 2^62) as int64 multiples of 2^-k, and k; 0 for those that are no numbers.

    `largest` bounds the size of a benefit; k leaves room for that too.
    """
    if prices.dtype.kind in "iu":
        return np.clip(prices, 0, MOST_PRICE).astype(np.int64), 0
    known = np.where(np.isfinite(prices), prices, 0).astype(np.float64)
    known = np.clip(known, 0, 2.0**61)
    k = min(FINEST, (MOST_BENEFIT // max(1, largest)).bit_length() - 1)
    while k > 0 and float(known.max(initial=0)) * 2.0**k > 2.0**61:
        k -= 1
    return np.rint(np.ldexp(known, k)).astype(np.int64), k


def total(values: Array) -> int:
    """The exact sum of integers: the upper and lower halves of fewer than 2^31 of them cannot overflow."""
    wide = values.astype(np.int64, copy=False)
    return (int((wide >> 32).sum()) << 32) + int((wide & 0xFFFFFFFF).sum())


def _largest(weights: Array | Csr, reject: Array | None) -> int:
    values = weights.values if isinstance(weights, Csr) else weights
    parts = [part for part in (values, reject) if part is not None and part.size]
    return max((max(-int(part.min()), int(part.max())) for part in parts), default=0)


def _best_nets(problem: Auction, prices: Array, k: int, progress: Callable[[float], None]) -> Array:
    """2^k times u_i = max(reject_i, max_j b_ij - p_j), NONE for a row that has neither."""
    best = np.full(problem.shape[0], NONE, np.int64)

    def look(first: int, last: int) -> None:
        block = block_of(problem.weights, first, last, np.int64)
        scaled = block._replace(values=block.values << k) if k else block
        best[first:last] = scaled.maxima(scaled.nets(prices), NONE)

    over(ends_of(problem.weights), look, progress)
    return best if problem.reject is None else np.maximum(best, problem.reject.astype(np.int64) << k)


def _difference(best: Array, k: int, profits: Array) -> tuple[int | float, int | float]:
    """How far profits fall short of `best` 2^-k at most, and how far they are from it at most."""
    known = best != NONE
    if not known.any():
        return 0, 0
    rough = best[known].astype(np.float64) * 2.0**-k - profits[known].astype(np.float64)
    rough = np.nan_to_num(rough, nan=np.finfo(np.float64).max)
    if k or profits.dtype.kind != "i" or not (np.abs(rough) < 2.0**61).all():
        return max(0.0, float(rough.max())), float(np.abs(rough).max())
    exact = best[known] - profits[known]
    return max(0, int(exact.max())), int(np.abs(exact).max())
