"""The bound of Gilmore and Lawler for any costs of pairs of pairs: n^2 assignments of size n - 1, and one of size n."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from kernels.compiling import njit
from kernels.problems.arrays import AnyIntegers, Integers, Mask
from kernels.qap.bounds.lap import assign


def priced(costs: AnyIntegers, permitted: Mask, threads: int = 1) -> tuple[Integers, Integers, int]:
    """Prices that prove a lower bound on <costs, x x'> over permutations x, and the bound.

    Args:
        costs: (n^2, n^2) int32 or int64; those between pairs that share a facility or a location are not read.
        permitted: (n, n) bool.

    Returns:
        prices (n^2, n) int64 of the locations beside each pair, prices (n,) of the locations, the bound.
    """
    n = len(permitted)
    bar = 2 * n * (int(np.abs(costs).max()) + 1)
    prices, leaders = np.zeros((n * n, n), np.int64), np.empty(n * n, np.int64)
    pieces = np.linspace(0, n * n, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(
            pool.map(lambda k: _lead(costs, permitted, bar, prices, leaders, pieces[k], pieces[k + 1]), range(threads))
        )
    square = leaders.reshape(n, n)
    top = 2 * n * (int(np.abs(square).max()) + 1)
    barred = np.where(permitted, square, top)
    u, v = np.empty(n, np.int64), np.empty(n, np.int64)
    assign(barred, u, v, np.empty(n, np.int64))
    least = np.where(permitted, square - v, np.iinfo(np.int64).max).min(axis=1)
    return prices, v, int(sum(least.tolist()) + sum(v.tolist()))


def warm_up() -> None:
    """Compile for both types of costs."""
    for dtype in (np.int32, np.int64):
        priced(np.zeros((9, 9), dtype), np.ones((3, 3), bool))


@njit(cache=True, nogil=True)
def _lead(
    costs: AnyIntegers, permitted: Mask, bar: int, prices: Integers, leaders: Integers, begin: int, end: int
) -> Any:  # pragma: no cover - compiled
    """Assignments beside the pairs from `begin` to `end`; a leader is what its prices prove."""
    n = permitted.shape[0]
    beside = np.empty((n - 1, n - 1), np.int64)
    u, v = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64)
    row_of = np.empty(n - 1, np.int64)
    for pair in range(begin, end):
        i, j = pair // n, pair % n
        for a in range(n - 1):
            k = a + (a >= i)
            for b in range(n - 1):
                at = b + (b >= j)
                beside[a, b] = costs[pair, k * n + at] if permitted[k, at] else bar
        leaders[pair] = costs[pair, pair] + assign(beside, u, v, row_of)
        for b in range(n - 1):
            prices[pair, b + (b >= j)] = v[b]
