"""The linear assignment problem, dense, batched or sparse."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels.problems import ranges
from kernels.problems.arrays import FORBIDDEN, Array, Costs, Csr, Indices32, Inputs, InvalidProblem, finite, numeric
from kernels.problems.ranges import extremes, largest_finite
from kernels.problems.seen import seen_of

UNASSIGNED = -1
"""The column of a row that has none, everywhere in Allot."""

HEADROOM = 32
"""Sums of duals and path lengths stay below HEADROOM / 2 * (n_rows + n_cols) * max |weight| in every solver."""
MASKED_HEADROOM = 4 * HEADROOM
"""The same beside forbidden entries of integers: those sums stay below 2^60, so that 2^62 minus any is beyond them."""


MOST = {"i": (1 << 63) - 1, "f": sys.float_info.max}
"""What sums of weights may not leave, by the kind of their dtype."""


class Looked(NamedTuple):
    """What the checks saw of `weights`: the largest permitted magnitude, and whether integers hold `FORBIDDEN`.

    `beside` is what a solver made of the rows meanwhile (`ranges.beside`), for it alone.
    """

    weights: Costs
    largest: int | float
    masked: bool
    beside: ranges.Beside | None = None


@dataclass(frozen=True, eq=False)
class Assignment:
    """Choose at most one column per row, each column at most once, to minimise (or maximise) the sum of weights.

    `weights`: (n_rows, n_cols), (batch, n_rows, n_cols) or `Csr`; +inf (when minimising) or -inf (when
    maximising) marks a forbidden entry of floats, `FORBIDDEN` one of int64. min(n_rows, n_cols) pairs must be
    formed, unless `reject` (n_rows,) gives each row a price (in the units of the objective) for staying unassigned.
    `sizes`: (batch, 2) int32, rows and columns in use of each problem of a ragged batch; None means all.
    `u0` (..., n_rows), `v0` (..., n_cols): duals to start from; they need not be feasible, only finite.
    `looked`: what is known of the range of `looked.weights`; it is of no use where those are not `weights`.
    """

    weights: Costs | Csr
    maximize: bool = False
    reject: Costs | None = None
    sizes: Indices32 | None = None
    u0: Costs | None = None
    v0: Costs | None = None
    looked: Looked | None = None


def dense_assignment(inputs: Inputs, maximize: bool) -> Assignment:
    """Build a dense or batched problem from `cost`, optional duals `u0`, `v0`, and `sizes` of a ragged batch.

    Raises:
        InvalidProblem: wrong shape or dtype, NaN, an infinity that does not forbid, sizes out of range, or
            entries so large that the objective could leave int64 or float64.
    """
    cost = inputs["cost"]
    if isinstance(cost, Csr):
        raise InvalidProblem("cost", "is sparse; expected a dense array (the auction solver takes CSR)")
    weights = numeric("cost", np.asanyarray(cost), ndim=(2, 3))
    sizes = _sizes(inputs, weights.shape)
    beside = _beside(weights, maximize, inputs)
    if sizes is None:
        largest, masked = _largest(weights, maximize, beside)
    else:
        found = [_largest_of(k, weights[k, :rows, :cols], maximize) for k, (rows, cols) in enumerate(sizes)]
        largest, masked = max(largest for largest, _ in found), any(masked for _, masked in found)
    check_range("cost", largest, weights.dtype, weights.shape[-2] + weights.shape[-1], masked)
    u0 = _duals("u0", inputs, weights.shape[:-1])
    v0 = _duals("v0", inputs, (*weights.shape[:-2], weights.shape[-1]))
    return Assignment(weights, maximize, sizes=sizes, u0=u0, v0=v0, looked=Looked(weights, largest, masked, beside))


def check_range(
    field: str, largest: int | float, dtype: np.dtype[np.generic], n_lines: int, masked: bool = False
) -> None:
    """Refuse weights whose sums could overflow: `largest` magnitude, `n_lines` = n_rows + n_cols.

    Raises:
        InvalidProblem: HEADROOM * n_lines * largest leaves int64 (integers; beside forbidden entries with
            MASKED_HEADROOM) or float64 (floats).
    """
    most = _most(dtype, n_lines, masked)
    if largest > most:
        name = "int64" if dtype.kind == "i" else "float64"
        raise InvalidProblem(
            field,
            f"has an entry of magnitude {largest}; at this size the objective could overflow {name}: at most {most}",
        )


def is_in_range(largest: int | float, dtype: np.dtype[np.generic], n_lines: int) -> bool:
    """Whether `check_range` takes weights without forbidden integers."""
    return largest <= _most(dtype, n_lines, False)


def _most(dtype: np.dtype[np.generic], n_lines: int, masked: bool) -> int | float:
    """The largest magnitude that sums of so many lines can have."""
    limit, headroom = MOST[dtype.kind], MASKED_HEADROOM if masked else HEADROOM
    return int(limit) // (headroom * n_lines) if dtype.kind == "i" else float(limit) / (HEADROOM * n_lines)


def _beside(weights: Costs, maximize: bool, inputs: Inputs) -> ranges.Beside | None:
    """What a solver does with the rows while they are checked, where it is to start from prices."""
    v0 = inputs.get("v0")
    if ranges.beside is None or not isinstance(v0, np.ndarray) or v0.dtype.kind not in "fi" or weights.ndim != 2:
        return None
    if v0.shape != weights.shape[1:]:
        return None
    return ranges.beside(weights, maximize, v0, inputs.get("u0"))


def _largest_of(k: int, weights: Costs, maximize: bool) -> tuple[int | float, bool]:
    """As `_largest`, of problem k of a batch with sizes."""
    try:
        return _largest(weights, maximize)
    except InvalidProblem as wrong:
        raise InvalidProblem("cost", wrong.message.replace(" at [", f" in matrix {k} at [", 1)) from None


def _largest(weights: Costs, maximize: bool, beside: ranges.Beside | None = None) -> tuple[int | float, bool]:
    """The largest permitted magnitude, after refusing what is neither finite nor forbidden; are integers masked?

    `weights`: a matrix, or several of one shape.
    """
    allow = -math.inf if maximize else math.inf
    if (seen := seen_of(weights)) is not None and seen.allows(allow):
        return seen.largest, seen.masked
    if beside is not None and (found := beside()) is not None:
        return found, False
    largest: int | float = 0
    masked, wide = False, weights.dtype == np.int64
    lines = weights.reshape(-1, weights.shape[-1])
    rows = max(1, (1 << 17) // lines.shape[1])  # a block that stays in the cache between two passes
    for first in range(0, len(lines), rows):
        block = lines[first : first + rows]
        low, high = extremes(block)
        if (high == allow and math.isfinite(low)) or (low == allow and math.isfinite(high)):
            low = high = largest_finite(block)  # a NaN would be an end, and so would another infinity
        elif not (math.isfinite(low) and math.isfinite(high)):
            if ((~np.isfinite(block)) & (block != allow)).any():
                finite("cost", weights, allow=allow)  # names the place
            known = block[np.isfinite(block)]
            low, high = (known.min().item(), known.max().item()) if known.size else (0, 0)
        elif wide and low == FORBIDDEN:
            masked = True
            low = block.min(where=block != FORBIDDEN, initial=high).item()
            low, high = (low, high) if high != FORBIDDEN else (0, 0)
        largest = max(largest, -low, high)
    return largest, masked


def _sizes(inputs: Inputs, shape: tuple[int, ...]) -> Indices32 | None:
    if "sizes" not in inputs:
        return None
    if len(shape) != 3:
        raise InvalidProblem("sizes", f"belongs to a batch; cost has shape {shape}, expected (batch, n_rows, n_cols)")
    sizes = np.asarray(inputs["sizes"])
    if sizes.shape != (shape[0], 2) or sizes.dtype.kind not in "iu":
        raise InvalidProblem(
            "sizes", f"has shape {sizes.shape} and dtype {sizes.dtype}; expected integers of shape ({shape[0]}, 2)"
        )
    bad = (sizes < 1) | (sizes > np.array(shape[1:]))
    if bad.any():
        k = int(np.argmax(bad.any(axis=1)))
        raise InvalidProblem(
            "sizes",
            f"gives problem {k} the size {sizes[k].tolist()}; expected between 1 x 1 and {shape[1]} x {shape[2]}",
        )
    return np.ascontiguousarray(sizes, dtype=np.int32)


def _duals(name: str, inputs: Mapping[str, Array | Csr], shape: tuple[int, ...]) -> Costs | None:
    if name not in inputs:
        return None
    duals = numeric(name, np.asarray(inputs[name]), ndim=(1, 2))
    if duals.shape != shape:
        raise InvalidProblem(name, f"has shape {duals.shape}; expected {shape}")
    return finite(name, duals)
