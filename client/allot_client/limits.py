"""Assignments whose rows and columns may stay alone, as ordinary ones.

A pair is worth forming where it costs less than `cost_limit`. Each line of the shorter side gets a way out at that
price: as many more columns (or rows), all at the limit. Leaving a pair out then costs the limit once, which is lapx's
`extend_cost` with half the limit on either side, at most twice the entries instead of at least four times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from allot_client.arrays import FORBIDDEN_INTEGER, Array

Shape = tuple[int, int]


def with_way_out(cost: Array, limit: float) -> Array:
    """The matrix (m, n), or batch of matrices, with min(m, n) more columns or rows at the limit. Raises: ValueError."""
    if not limit >= 0 or limit == np.inf:
        raise ValueError(f"cost_limit is {limit}; expected a number of at least 0")
    m, n = cost.shape[-2:]
    if cost.dtype.kind in "iu" and not float(limit).is_integer():
        forbidden = cost == FORBIDDEN_INTEGER if cost.dtype == np.int64 else np.zeros(cost.shape, bool)
        cost = np.where(forbidden, np.inf, cost.astype(np.float64))
    elif cost.dtype.kind == "f":
        cost = cost.astype(np.float64, copy=False)  # the limit is rarely a float32
    more = min(m, n)
    wide = m <= n
    shape = (*cost.shape[:-2], m, n + more) if wide else (*cost.shape[:-2], m + more, n)
    extended = np.full(shape, limit, cost.dtype if cost.dtype.kind == "f" else np.int64)
    extended[..., :m, :n] = cost
    return extended


def without_way_out(arrays: dict[str, Array], shapes: Sequence[Shape]) -> dict[str, Array]:
    """The arrays of the answer for the matrices of `shapes` as they were: who took a way out has none (-1)."""
    found = dict(arrays)
    single = found["assignment"].ndim == 1 if "assignment" in found else True
    for name, side, empty in (("assignment", 0, -1), ("u", 0, 0), ("v", 1, 0)):
        if name not in found:
            continue
        given = found[name][None] if single else found[name]
        own = np.full((len(shapes), max(shape[side] for shape in shapes)), empty, given.dtype)
        for k, shape in enumerate(shapes):
            line = given[k, : shape[side]]
            own[k, : shape[side]] = np.where(line < shape[1], line, -1) if name == "assignment" else line
        found[name] = own[0] if single else own
    return found
