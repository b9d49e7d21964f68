"""Which duals to start from are worth starting from: a warm start may cost time, never the answer.

A search adds and subtracts costs and prices in float64. Prices of 1e15 beside costs of 1 leave those a few bits, and
the search then tells good pairs from bad ones no longer. Useful duals are of the size of the costs, whose middle is
taken from a sample: it does not follow a few entries that stand for "never". Duals beyond OUT_OF_PROPORTION times that
are dropped, and the start is a cold one. What passes is cut to 4 max |cost|, as garbage may be large and still pass.
Integers lose no bits, and are only cut.
"""

import functools
import math

import numpy as np

from kernels.problems.arrays import FORBIDDEN, Amounts, Costs, Integers, permitted

OUT_OF_PROPORTION = 2.0**16
SAMPLE, RUN = 1 << 8, 8
"""Entries that are looked at, so many of them side by side: a line of the cache each."""


def proportionate(weights: Costs, u0: Costs | None, v0: Costs | None) -> tuple[Costs | None, Costs | None]:
    """(u0, v0) with None for what is out of proportion to `weights`, which are on the host and read in few places."""
    if weights.dtype.kind == "i" or (u0 is None and v0 is None):
        return u0, v0
    most = OUT_OF_PROPORTION * middle(weights)
    kept = [None if given is None or np.abs(given).max() > most else given for given in (u0, v0)]
    return kept[0], kept[1]


def cut(given: Costs | None, most: int | float, exact: bool) -> Amounts | None:
    """Duals within +-most, in int64 (`exact`) or float64."""
    if given is None:
        return None
    if exact:
        whole = np.rint(given) if given.dtype.kind == "f" else given.astype(np.int64, copy=False)
        return np.asarray(np.clip(whole, -most, most), np.int64)
    return np.asarray(np.clip(given, -most, most), np.float64)


def middle(weights: Costs) -> float:
    """The median size of a sample of the permitted non-zero entries; 0 where it has none."""
    flat = weights.reshape(-1)
    if flat.size > 4 * SAMPLE:
        flat = flat[_places(flat.size)]
    sample = np.abs(flat[permitted(flat)].astype(np.float64))
    sample = np.sort(sample[sample > 0])  # np.median looks for NaN and axes first
    return float(sample[(sample.size - 1) // 2] + sample[sample.size // 2]) / 2 if sample.size else 0.0


@functools.lru_cache(16)
def _places(size: int) -> Integers:
    """Where the sample of so many entries stands."""
    apart = size * RUN // SAMPLE | 1  # an odd number, so that the runs do not stand in a few columns
    return (np.arange(0, size - RUN, apart)[:, None] + np.arange(RUN)).reshape(-1)


def largest(weights: Costs) -> int | float:
    """max |weight| of what is permitted; 0 where nothing is."""
    found: int | float = 0
    step = max(1, (1 << 19) // weights.shape[1])
    for first in range(0, len(weights), step):
        block = weights[first : first + step]
        low, high = block.min().item(), block.max().item()
        if math.isfinite(low) and math.isfinite(high) and low != FORBIDDEN:  # picking entries takes ten times as long
            found = max(found, -low, high)
            continue
        known = block[permitted(block)]
        if known.size:
            found = max(found, -known.min().item(), known.max().item())
    return found
