"""What a sample of a matrix tells about how hard it will be; for estimates alone.

Assignment is quick where entries have nothing to do with each other, as every row soon finds a column of its own. It is
slow where rows are alike: distances between points, costs of few kinds, constants. The rank of a sample, after row and
column means are taken off, tells these apart: near the size of the sample for independent entries, the dimension for
distances, 0 for a constant.

Whoever builds a problem once more is told what was found (problems/derived.py), and does not read the sample again.
"""

import functools
from dataclasses import dataclass

import numpy as np

from kernels.problems.arrays import Costs, Floats, Integers, Mask
from kernels.problems.derived import derived

SIDE = 32
"""Of the sample."""


@dataclass(frozen=True)
class Texture:
    """Of a sample of a matrix.

    Attributes:
        rank: effective rank of the doubly centred sample over the most that it can be, in [0, 1].
        permitted: the share of entries that are not forbidden.
        distinct: the share of permitted entries that differ from all others of the sample.
    """

    rank: float
    permitted: float
    distinct: float


def texture(weights: Costs, mask: Mask | None = None) -> Texture:
    """Of a dense matrix (n_rows, n_cols), or of the first of a batch; +-inf or `mask` forbids entries."""
    look = functools.cache(functools.partial(_look, weights, mask))
    return Texture(
        derived(lambda: look().rank, 1.0), derived(lambda: look().permitted, 1.0), derived(lambda: look().distinct, 1.0)
    )


def _look(weights: Costs, mask: Mask | None) -> Texture:
    matrix = weights if weights.ndim == 2 else weights[0]
    n_rows, n_cols = matrix.shape
    places = _places(n_rows, n_cols)
    sample = matrix[places].astype(np.float64)
    open_ = np.isfinite(sample)
    if mask is not None:
        open_ &= ~(mask if mask.ndim == 2 else mask[0])[places]
    values = sample[open_]
    if not values.size:
        return Texture(1.0, 0.0, 1.0)
    kinds, order = np.unique(values, return_inverse=True)  # by order, so that neither scale nor a long tail counts
    ranks = np.full(sample.shape, order.mean())
    ranks[open_] = order.reshape(-1)
    return Texture(_rank(ranks / kinds.size), float(open_.mean()), kinds.size / values.size)


def _rank(sample: Floats) -> float:
    """(sum of squares)^2 / sum of fourth powers of the singular values, over the smaller side less one.

    Both sums are traces: of the product of the sample with itself turned, and of the square of that.
    """
    most = min(sample.shape) - 1
    if most < 2:
        return 1.0
    centred = sample - sample.mean(axis=0) - sample.mean(axis=1)[:, None] + sample.mean()
    product = centred @ centred.T
    total = float(np.trace(product))
    if total < 1e-20 * sample.size:
        return 0.0
    return float(min(1.0, total**2 / float((product**2).sum()) / most))


@functools.lru_cache(64)
def _places(n_rows: int, n_cols: int) -> tuple[Integers, Integers]:
    """Rows and columns of the sample, as NumPy's `ix_` has them."""
    return _spread(n_rows)[:, None], _spread(n_cols)[None, :]


def _spread(size: int) -> Integers:
    return np.unique(np.linspace(0, size - 1, min(size, SIDE)).astype(np.int64))
