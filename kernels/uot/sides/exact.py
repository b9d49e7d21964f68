"""Partial transport and total variation without an entropic term, as balanced transport with one more row and column.

A part of the mass: the last row takes what columns are not given, the last column what rows keep, both for nothing, and
nothing goes from the one to the other (Caffarelli and McCann 2010; Chapel, Alaya and Gasso 2020). So the rest of the
plan carries just the mass that is asked for. Of a line twice that mass is enough: it is never used up, so potentials
stay the same, and a mass far below the line's own is not lost in its rounding.

Total variation: what row i keeps costs r_1, or, where that is cheaper, goes to a column that gets more than it should:
c_ij + r_2. What column j lacks costs r_2, or comes from a row that gives more than it has. An entry for which both
would pay at once is refused as a problem. So the least of each stands in the last column and row, and the corner is 0.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import FORBIDDEN, Amounts, Array, Indices
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.marginal_transport import MarginalTransport
from kernels.solution import Solution, Termination
from kernels.uot.cpu import exact

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

Entries = tuple[Indices, Indices, Amounts]


def solve(problem: MarginalTransport, options: "TransportOptions", deadline: Deadline) -> Solution:
    """Solve by the network simplex: f, g and the plan, or its entries for output "potentials"; see cpu/exact.py.

    Where forbidden entries leave no way for the mass that is asked for, hall_rows are rows that show it: all others,
    and the columns that these may use, cannot carry it.
    """
    m = problem.shape[0]
    extended = _partial(problem) if problem.kind == "partial" else _total_variation(problem)
    found = exact.solve(extended, options.model_copy(update={"output": "potentials"}), deadline)
    facts = {"pivots": found.facts["pivots"], "tolerance": 0.0, **problem.told}
    if problem.kind == "tv":
        facts["reg_m"] = list(problem.strengths)
    if found.termination is Termination.INFEASIBLE:
        rows = found.arrays["hall_rows"]
        return replace(found, arrays={"hall_rows": rows[rows < m]}, facts=facts)
    rows, columns, masses = _within(problem, *(found.arrays[f"entry_{name}"] for name in ("rows", "columns", "values")))
    arrays = _potentials(problem, found.arrays["f"], found.arrays["g"])
    if options.output == "potentials":
        arrays |= {"entry_rows": rows, "entry_columns": columns, "entry_values": masses}
    else:
        arrays["plan"] = np.zeros(problem.shape, masses.dtype)
        arrays["plan"][rows, columns] = masses
    return replace(found, arrays=arrays, facts=facts)


def _partial(problem: MarginalTransport) -> ExactTransport:
    m, n = problem.shape
    cost = np.zeros((m + 1, n + 1), problem.cost.dtype)
    cost[:m, :n] = problem.cost
    cost[m, n] = FORBIDDEN if cost.dtype == np.int64 else np.inf
    a, b = (np.minimum(masses, 2 * problem.mass) for masses in (problem.a, problem.b))
    kept = [max(_total(masses) - problem.mass, 0) for masses in (b, a)]
    return ExactTransport(cost, _with(a, kept[0]), _with(b, kept[1]))


def _potentials(problem: MarginalTransport, f: Amounts, g: Amounts) -> dict[str, Array]:
    """Of the rows and columns that there are. With those of the last column and row they are what giving up costs."""
    m, n = problem.shape
    if problem.kind == "partial":
        return {"f": f[:m], "g": g[:n]}
    return {"f": f[:m] + g[n], "g": g[:n] + f[m]}


def _total(masses: Amounts) -> float:
    return int(masses.sum()) if masses.dtype == np.int64 else math.fsum(masses)


def _with(masses: Amounts, one: float) -> Amounts:
    """The masses and one more, of integers where all are."""
    return np.append(masses, np.array([one], np.int64 if masses.dtype == np.int64 and isinstance(one, int) else float))


def _total_variation(problem: MarginalTransport) -> ExactTransport:
    m, n = problem.shape
    of_rows, of_columns = _strengths(problem)
    cost = np.zeros((m + 1, n + 1), problem.cost.dtype)
    cost[:m, :n] = problem.cost
    to, back = _cheapest(problem, 1), _cheapest(problem, 0)
    cost[:m, n], cost[m, :n] = of_rows, of_columns
    rows, columns = np.flatnonzero(to >= 0), np.flatnonzero(back >= 0)
    cost[rows, n] = np.minimum(of_rows, problem.cost[rows, to[rows]] + of_columns)
    cost[m, columns] = np.minimum(of_columns, problem.cost[back[columns], columns] + of_rows)
    return ExactTransport(
        cost, _with(problem.a, _total(problem.b)), _with(problem.b, _total(problem.a)), told=problem.told
    )


def _strengths(problem: MarginalTransport) -> tuple[Any, Any]:
    """Of rows and columns, in the type of the costs."""
    kind = problem.cost.dtype.type
    return kind(problem.strengths[0]), kind(problem.strengths[1])


def _cheapest(problem: MarginalTransport, axis: int) -> Indices:
    """The column of each row (axis 1), or the row of each column, with the cheapest permitted entry; -1: has none."""
    permitted = problem.permitted
    top: Any = np.iinfo(np.int64).max if problem.cost.dtype == np.int64 else np.inf
    best = np.where(permitted, problem.cost, top).argmin(axis=axis)
    return np.where(permitted.any(axis=axis), best, -1)


def _within(problem: MarginalTransport, rows: Indices, columns: Indices, masses: Amounts) -> Entries:
    """The entries of the plan, from those of the larger one: each once."""
    m, n = problem.shape
    if problem.kind == "tv":
        rows, columns = _sent_on(problem, rows, columns)
    inside = (rows < m) & (columns < n)
    places, where = np.unique(rows[inside].astype(np.int64) * n + columns[inside], return_inverse=True)
    sums = np.zeros(places.size, masses.dtype)
    np.add.at(sums, where, masses[inside])
    return places // n, places % n, sums


def _sent_on(problem: MarginalTransport, rows: Indices, columns: Indices) -> tuple[Indices, Indices]:
    """Where mass goes that a row has too much of, or a column too little, if not to be kept or left out."""
    m, n = problem.shape
    strengths = _strengths(problem)
    for axis in (0, 1):
        mine, other, size = (columns, rows, m) if axis == 0 else (rows, columns, n)
        best = _cheapest(problem, axis)
        line = np.where(mine < best.size, mine, 0)
        some = (other == size) & (mine < best.size) & (best[line] >= 0)
        at = (best[line], line) if axis == 0 else (line, best[line])
        price = problem.cost[np.where(some, at[0], 0), np.where(some, at[1], 0)]
        some[some] = (price[some] + strengths[axis]) < strengths[1 - axis]
        moved = np.where(some, best[line], other)
        rows, columns = (moved, columns) if axis == 0 else (rows, moved)
    return rows, columns
