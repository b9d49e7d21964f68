"""Exact sides made exact: the plan that is returned meets them up to rounding, and its potentials follow.

One exact side: its lines are scaled, which is a half step of Sinkhorn's iteration. Both: the rounding of Altschuler,
Weed and Rigollet (2017), algorithm 2: rows, then columns are scaled down to what they may carry, and the mass that is
still missing goes everywhere, in proportion to what rows and columns miss. Where entries are forbidden that last step
is a flow instead (flow.py). Factors of lines go into the potentials, so that the plan is P(f, g) but for the last step.

Written against the array API that numpy and cupy share; blocks of the plan come from a function, as often as asked for.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels.problems.arrays import Floats, Indices, Integers
from kernels.problems.transport import UnbalancedTransport
from kernels.uot.support import costs, flipped

LOST = 1e-100  # of its mass: a line whose sum is below it has underflowed, above its inverse overflowed
BLOCK = 1 << 20  # entries of lines in work at a time
MET = 2.0**-52  # of the mass, a line: what is missing by less is rounding
Vector = Any  # numpy.ndarray or cupy.ndarray, float64
Entries = Callable[[slice], Any]


@dataclass(frozen=True)
class Repair:
    """The plan diag(row_factors) P diag(column_factors) + rest_a rest_b'; no rest where `rest_a` is None.

    `lost` are the balanced rows and columns (indices, on the host) that left the range of float64 in P, `sums` the
    plan's row and column sums where they are known by now.
    """

    row_factors: Vector
    column_factors: Vector
    lost: tuple[Integers, Integers]
    rest_a: Vector | None = None
    rest_b: Vector | None = None
    sums: tuple[Vector, Vector] | None = None

    def apply(self, part: slice, block: Any) -> Any:
        """Some rows of the plan, in the place of those of P."""
        block *= self.row_factors[part][:, None]
        block *= self.column_factors
        if self.rest_a is not None and self.rest_b is not None:
            block += self.rest_a[part][:, None] * self.rest_b
        return block

    def potentials(
        self, f: Floats, g: Floats, reg: float, on_host: Callable[[Vector], Floats]
    ) -> tuple[Floats, Floats]:
        """f and g with the factors inside, on the host."""
        moved = []
        for potential, factor in ((f, on_host(self.row_factors)), (g, on_host(self.column_factors))):
            with np.errstate(divide="ignore", invalid="ignore"):
                step = reg * np.log(factor)
            moved.append(np.where(np.isfinite(step) & np.isfinite(potential), potential + step, potential))
        return moved[0], moved[1]


def repair(
    xp: Any, problem: UnbalancedTransport, entries: Entries, parts: Iterable[slice], spreads: bool = True
) -> Repair:
    """What makes the balanced sides of the plan exact; `spreads` False leaves out what would fall on every entry.

    Args:
        xp: numpy or cupy.
        entries: some rows of the plan in float64; the block may be overwritten.
        parts: runs of rows that cover the plan, gone through up to three times.
    """
    a, b = xp.asarray(problem.a), xp.asarray(problem.b)
    parts = list(parts)
    exact_a, exact_b = np.isinf(problem.reg_m)
    row_factors, of_rows, of_columns = xp.ones_like(a), xp.copy(a), xp.copy(b)
    if exact_a or exact_b:
        of_columns[:] = 0
        for part in parts:
            block = entries(part)
            of_rows[part] = block.sum(axis=1)
            row_factors[part] = _ratio(xp, a[part], of_rows[part]) if exact_a else 1
            if exact_a and exact_b:
                row_factors[part] = xp.minimum(row_factors[part], 1)
            of_columns += row_factors[part] @ block if exact_a else block.sum(axis=0)
    lost = _lost(xp, a, of_rows, exact_a), _lost(xp, b, of_columns, exact_b)
    column_factors = _ratio(xp, b, of_columns) if exact_b else xp.ones_like(b)
    if not (exact_a and exact_b):
        return Repair(row_factors, column_factors, lost, sums=(a, of_columns) if exact_a else None)
    return _round(xp, a, b, entries, parts, Repair(row_factors, xp.minimum(column_factors, 1), lost), spreads)


def _round(
    xp: Any, a: Vector, b: Vector, entries: Entries, parts: list[slice], scaled: Repair, spreads: bool
) -> Repair:
    """The last step of Altschuler, Weed and Rigollet's algorithm 2, after lines were scaled down."""
    rest_a, carried = xp.copy(a), xp.zeros_like(b)
    for part in parts:
        block = entries(part) * scaled.column_factors
        rest_a[part] -= scaled.row_factors[part] * block.sum(axis=1)
        carried += scaled.row_factors[part] @ block
    rest_a, rest_b = xp.maximum(rest_a, 0), xp.maximum(b - carried, 0)
    missing = float(rest_b.sum())
    if not spreads or max(missing, float(rest_a.sum())) <= MET * (a.size + b.size) * float(a.sum()) or not missing:
        return replace(scaled, sums=(a, b))
    return replace(scaled, rest_a=rest_a, rest_b=rest_b / missing, sums=(a, b))


def _ratio(xp: Any, wanted: Vector, found: Vector) -> Vector:
    """wanted / found; 1 where nothing was found or nothing is wanted."""
    some = (found > 0) & (wanted > 0)
    return xp.where(some, wanted / xp.where(some, found, 1.0), 1.0)


def _lost(xp: Any, wanted: Vector, found: Vector, exact: bool) -> Integers:
    if not exact:
        return np.empty(0, np.int64)
    lost = ~((found > LOST * wanted) & (found < wanted / LOST)) & (wanted > 0)
    return np.asarray(lost if xp is np else lost.get()).nonzero()[0]


def line_potentials(problem: UnbalancedTransport, side: int, lines: Indices, other: Floats) -> Floats:
    """Potentials of some lines (indices) of a side, 0 rows or 1 columns, at which P(f, g) carries their whole mass.

    -reg log sum_j w_j exp((g_j - C_ij) / reg), from the largest term; for the uniform reference plus reg log a_i.
    """
    product = problem.reference == "product"
    own, others = (problem.a, problem.b) if side == 0 else (problem.b, problem.a)
    turned = problem if side == 0 else flipped(problem, lines)
    found = np.empty(lines.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where((others > 0) & np.isfinite(other), np.log(others) if product else 0.0, -np.inf)
        for k in range(0, lines.size, step := max(1, BLOCK // others.size)):
            some = slice(k, k + step)
            z = (other - costs(turned, lines[some] if side == 0 else some)) / problem.reg + weight
            z[np.isnan(z)] = -np.inf
            top = z.max(axis=1, keepdims=True)
            top[~np.isfinite(top)] = 0
            found[some] = np.log(np.exp(z - top).sum(axis=1)) + top[:, 0]
        target = 0.0 if product else np.log(own[lines])
    return np.asarray(problem.reg * (target - found))
