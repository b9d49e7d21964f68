"""Which duals to start from are worth starting from: a warm start may cost time, never the answer.

A search adds and subtracts costs and prices in float64. Prices of 1e15 beside costs of 1 leave those a few bits, and
the search then tells good pairs from bad ones no longer. Useful duals are of the size of the costs, whose middle is
taken from a sample: it does not follow a few entries that stand for "never". Duals beyond OUT_OF_PROPORTION times that
are dropped, and the start is a cold one. What passes is cut to 4 max |cost|, as garbage may be large and still pass.
Integers lose no bits, and are only cut.
"""

import numpy as np

from kernels.problems import Array
from kernels.problems.arrays import permitted

OUT_OF_PROPORTION = 2.0**16
SAMPLE = 1 << 12


def sane(weights: Array, u0: Array | None, v0: Array | None) -> tuple[Array | None, Array | None, int | float]:
    """(u0, v0, most): the duals that are in proportion to the weights, cut to +-`most` and in the weights' kind."""
    if u0 is None and v0 is None:
        return None, None, 0
    most, middle = sizes(weights)
    exact = weights.dtype.kind == "i"
    kept: list[Array | None] = []
    for given in (u0, v0):
        if given is None or (not exact and np.abs(given).max() > OUT_OF_PROPORTION * middle):
            kept.append(None)
        elif exact:
            kept.append(np.clip(np.rint(given), -most, most).astype(np.int64))
        else:
            kept.append(np.clip(given.astype(np.float64), -most, most))
    return kept[0], kept[1], most


def sizes(weights: Array) -> tuple[int | float, float]:
    """4 max |weight| and the middle size of a sample of the non-zero ones, of what is permitted; 0 where all are 0."""
    lowest, highest = 0, 0
    step = max(1, (1 << 19) // weights.shape[1])
    for first in range(0, len(weights), step):
        block = weights[first : first + step]
        known = block[permitted(block)]
        if known.size:
            lowest, highest = min(lowest, known.min().item()), max(highest, known.max().item())
    flat = weights.reshape(-1)[:: max(1, weights.size // SAMPLE)]
    sample = np.abs(flat[permitted(flat)].astype(np.float64))
    sample = sample[sample > 0]
    return 4 * max(-lowest, highest), float(np.median(sample)) if sample.size else 0.0
