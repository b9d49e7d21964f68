"""Which rows of a square problem take a column at old duals before any search: the rule of seats.cu, row by row."""

from typing import Any, NamedTuple

import numpy as np

from kernels.problems import Array

TIES, ROUNDS, ROUNDING = 16, 64, 2.0**-51


class Told(NamedTuple):
    """Of a row: its least, columns that it may take, and whether these are at its earlier dual."""

    least: Any
    columns: list[int]
    own: bool


def first_column(i: int, n: int) -> int:
    """Where a row begins to be read, so that rows that tie list different columns."""
    return ((i * 2654435761 & 0xFFFFFFFF) * n >> 32) & ~3


def told(reduced: Array, v: Array, own: Any, first: int) -> Told:
    """Columns at the earlier dual `own`, if that is the row's least up to rounding; or else those at its least."""
    order = np.roll(np.arange(len(v)), -first)
    turned = reduced[order]
    at = int(turned.argmin())
    least = limit = turned[at]
    if reduced.dtype.kind == "f":
        if np.isinf(least):
            return Told(least, [], own=False)
        limit = least + ROUNDING * (abs(least) + abs(v[order[at]]))
    exact = order[turned == own]
    if len(exact) and own <= limit:
        return Told(least, exact[:TIES].tolist(), own=True)
    return Told(least, order[turned <= limit][:TIES].tolist(), own=False)


def seated(cost: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """(row of each column or -1, least of each row); of the minimisation, duals in their own type."""
    n = len(v)
    reduced = cost.astype(v.dtype) - v
    rows = [told(reduced[i], v, u[i], first_column(i, n)) for i in range(n)]
    col_row, row_col = np.full(n, -1), np.full(n, -1)
    for _ in range(ROUNDS):
        options = [[j for j in row.columns if row_col[i] < 0 and col_row[j] < 0] for i, row in enumerate(rows)]
        wanted = np.bincount(np.array([j for each in options for j in each], np.int64), minlength=n)
        claims = claimed(rows, options, wanted, leaves=True) or claimed(rows, options, wanted, leaves=False)
        for j, (_, i) in claims.items():
            col_row[j], row_col[i] = i, j
    return col_row, np.array([row.least for row in rows])


def claimed(rows: list[Told], options: list[list[int]], wanted: Array, leaves: bool) -> dict[int, tuple[bool, int]]:
    """By column the row that gets it: one at its earlier dual first, then the lower one. A row claims one column.

    `leaves`: rows claim that have one column left, or a column that no other wants.
    """
    claims: dict[int, tuple[bool, int]] = {}
    for i, each in enumerate(options):
        j = min(each, key=lambda j: wanted[j], default=-1)
        if j >= 0 and (len(each) == 1 or wanted[j] == 1 or not leaves):
            claims[j] = min(claims.get(j, (True, len(rows))), (not rows[i].own, i))
    return claims
