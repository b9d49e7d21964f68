"""A lower bound by the level-1 reformulation (Hahn and Grant 1998) that is true whatever multipliers it is given.

Facility i at p and facility k at q together pay s = c[i, p, k, q] + c[k, q, i, p]. With any rows r and columns w let

    rest[i, p, k, q] = s - r[i, p, k] - w[i, p, q] - r[k, q, i] - w[k, q, p],   i < k and p != q,
    leader[i, p]     = singles[i, p] + sum_k r[i, p, k] + sum_q w[i, p, q] + sum_(k > i) min_q rest[i, p, k, q].

A permutation pays the singles and, for i < k, the pairs: that is at least the sum of leader[i, p(i)], since each r of
i and k and each w of p and q that it meets is added once and taken off once. For any prices v the cheapest assignment
under leader costs at least sum_i min_p (leader[i, p] - v_p) + sum_p v_p.

Without multipliers r = w = 0. The result is rounded up to a multiple of what divides all singles and all s.

int64: s is below 2^57, multipliers are cut to 2^55, so a rest is below 2^59. One below -2^55 is refused, one above 2^55
cut. Then a leader is below 2^62, and prices are cut to 2^60. Sums of leaders are Python's integers.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from kernels.certificates.lawler.whole import Whole
from kernels.problems.arrays import Array, Integers

CLIP, FARTHEST_PRICE = 2**55, 2**60


def level_one(whole: Whole, given: Mapping[str, Array], progress: Callable[[float], None]) -> int:
    """The bound in integers of `whole`, its constant included."""
    k = len(whole.singles)
    rows, columns = (_read(given.get(name), (k, k, k), CLIP) for name in ("rows", "columns"))
    none = np.zeros((k, k, k), np.int64)
    leaders = None
    if rows is not None and columns is not None:
        leaders = _leaders(whole, rows, columns, progress)
    if leaders is None:
        leaders = _leaders(whole, none, none, progress)
    assert leaders is not None
    prices = _read(given.get("prices"), (k,), FARTHEST_PRICE)
    tried = [np.zeros(k, np.int64), leaders.min(axis=0) >> 1]
    least = max(_assigned(leaders, v) for v in (tried if prices is None else [prices, *tried]))
    grain = _grain(whole)
    return whole.constant + (-(-least // grain) * grain if grain else 0)


def _leaders(whole: Whole, rows: Integers, columns: Integers, progress: Callable[[float], None]) -> Integers | None:
    """None where a rest is so low that it could overflow."""
    k = len(whole.singles)
    leaders: Integers = whole.singles + rows.sum(axis=2) + columns.sum(axis=2)
    every = np.arange(k)
    leaders -= rows[every, :, every] + columns[:, every, every]  # no pair has these
    for i in range(k - 1):
        rest = _both(whole, i)
        rest -= rows[i, :, i + 1 :, None] + columns[i, :, None, :]
        rest -= rows[i + 1 :, :, i] + columns[i + 1 :].transpose(2, 0, 1)
        rest[every, :, every] = 2 * CLIP
        if int(rest.min()) < -CLIP:
            return None
        leaders[i] += np.minimum(rest.min(axis=2), CLIP).sum(axis=1)
        progress(0.2 + 0.8 * i / k)
    return leaders


def _both(whole: Whole, i: int) -> Integers:
    """s of facility i with each later one: (place of i, other facility, its place)."""
    return np.asarray(whole.quads[i, :, i + 1 :] + whole.quads[i + 1 :, :, i].transpose(2, 0, 1))


def _assigned(leaders: Integers, prices: Integers) -> int:
    return int(sum((leaders - prices).min(axis=1).tolist()) + sum(prices.tolist()))


def _grain(whole: Whole) -> int:
    """What divides all that a permutation pays beside the constant."""
    k = len(whole.singles)
    grain = int(np.gcd.reduce(whole.singles, axis=None))
    every = np.arange(k)
    for i in range(k - 1):
        if grain == 1:
            break
        both = _both(whole, i)
        both[every, :, every] = 0
        if not grain or (both % grain).any():  # a remainder is several times as fast as a gcd
            grain = math.gcd(grain, int(np.gcd.reduce(both, axis=None)))
    return grain


def _read(array: Array | None, shape: tuple[int, ...], most: int) -> Integers | None:
    """Integers of that shape, cut to what fits; None where they are something else."""
    if array is None or array.dtype.kind != "i" or array.shape != shape:
        return None
    return np.clip(array.astype(np.int64), -most, most)
