"""From potentials to what the caller asked for, the same on both devices: the plan, or its marginals and top entries.

What is returned is the plan that meets its balanced sides (repair.py, flow.py), and potentials that belong to it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Array, Floats, Indices, Reals
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.derived import Derived
from kernels.uot.flow import settle
from kernels.uot.repair import BLOCK, Entries, Repair, line_potentials, repair
from kernels.uot.support import Support, costs

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

LARGEST_LOG_32, LARGEST_LOG_64 = 80.0, 650.0  # of entries whose sums do not overflow
CENTRED = 0.25  # of their size: smaller potentials are worth a move


@dataclass(frozen=True)
class Writer:
    """What a device brings.

    `entries` takes potentials, a dtype and the array for the plan (None where none is asked for), and returns rows of
    P(f, g) in that dtype: views of the array where `in_place`, which it then fills, else blocks on the device.
    `largest` takes a block and k, and returns columns and values of each row's k largest entries, on the host. `empty`
    makes the array for a plan, of a shape and dtype.
    """

    xp: Any
    entries: Callable[[Floats, Floats, Any, Reals | None], Entries]
    largest: Callable[[Any, int], tuple[Indices, Reals]]
    block: int
    in_place: bool
    empty: Callable[[tuple[int, int], Any], Reals] = np.empty

    def copy(self, block: Any, into: Reals) -> None:
        """Bring a contiguous block to the host."""
        if self.xp is np:
            into[...] = block
        else:
            block.get(out=into)

    def host(self, array: Any) -> Floats:
        """The array in host memory."""
        return np.asarray(array if self.xp is np else array.get())


@dataclass
class Ended:
    """How the iteration ended on the reduced problem: its potentials (host, float64), why, and by which method."""

    potentials: tuple[Floats, Floats]
    termination: Termination
    method: str
    facts: dict[str, Any]


def finish(part: Support, options: "TransportOptions", ended: Ended, writer: Writer, deadline: Deadline) -> Solution:
    """The solution of the whole problem."""
    f, g = part.spread_out(*ended.potentials)
    arrays = outputs(part.problem, options, f, g, writer, deadline)
    termination = ended.termination
    if "hall_rows" in arrays:
        termination = Termination.INFEASIBLE
    elif termination is Termination.INFEASIBLE:  # by potentials that grow; the masses fit all the same, or nearly
        termination = Termination.CONVERGED
    return Solution(termination, ended.method, arrays, facts=ended.facts)


def outputs(
    problem: UnbalancedTransport, options: "TransportOptions", f: Floats, g: Floats, writer: Writer, deadline: Deadline
) -> dict[str, Array]:
    """f, g; plan, or row_marginal, column_marginal and what the plan is beside P(f, g); with top_k the largest entries.

    f, g and hall_rows alone where no plan can exist.
    """
    given = problem.x if problem.cost is None else problem.cost
    assert given is not None
    exact = np.isinf(problem.reg_m)
    whole = options.output == "plan"
    blocked = bool(exact.all()) and problem.cost is not None and bool(np.isposinf(problem.cost.max()))
    # Rounding to float32 moves some 1e-8 of the mass, which exact marginals and fine tolerances can see.
    coarse = given.dtype == np.float32 and options.tolerance >= 1e-7 and not exact.any()
    dtype = np.dtype(np.float32 if coarse and _largest_log(problem, f, g) < LARGEST_LOG_32 else np.float64)
    plan = writer.empty(problem.shape, dtype) if whole or blocked else None
    f, g = _centred(problem, f, g)
    f = _bounded(problem, f, g)
    f, g, entries, fix = _repaired(problem, f, g, writer, dtype, plan, not blocked)
    derived = Derived(problem, options, writer.xp)
    found = _Found(problem, min(options.top_k, problem.shape[1]), writer, not whole, derived)
    parts = _parts(problem, writer)
    if fix.sums is not None and not (whole or blocked or found.k or derived.there):  # another pass would find the same
        parts = iter(())
        found.row_sums, found.column_sums = writer.host(fix.sums[0]), fix.sums[1]
    for some in parts:
        block = fix.apply(some, entries(some)) if exact.any() else entries(some)
        if plan is not None and not writer.in_place:
            writer.copy(block, plan[some])
        if not blocked:
            found.look(some, block)
    f, g = fix.potentials(f, g, problem.reg, writer.host)
    arrays: dict[str, Array] = {"f": f, "g": g}
    if blocked:
        assert plan is not None
        found_of_plan = _unblocked(problem, plan, found, writer, deadline, whole)
        return arrays | found_of_plan | ({} if "hall_rows" in found_of_plan else derived.arrays(f, g))
    if plan is not None:
        arrays["plan"] = plan
    elif fix.rest_a is not None:
        arrays |= {"rest_a": writer.host(fix.rest_a), "rest_b": writer.host(fix.rest_b)}
    return arrays | found.arrays() | derived.arrays(f, g)


def _repaired(
    problem: UnbalancedTransport, f: Floats, g: Floats, writer: Writer, dtype: Any, plan: Reals | None, spreads: bool
) -> tuple[Floats, Floats, Entries, Repair]:
    """Entries of P(f, g) and its repair; lines that underflowed get new potentials first."""
    parts = list(_parts(problem, writer))
    entries = writer.entries(f, g, dtype, plan)
    fix = repair(writer.xp, problem, entries, parts, spreads)
    rows, columns = fix.lost
    if rows.size or columns.size:
        f, g = f.copy(), g.copy()
        f[rows] = line_potentials(problem, 0, rows, g)
        g[columns] = line_potentials(problem, 1, columns, f)
        entries = writer.entries(f, g, dtype, plan)
        fix = repair(writer.xp, problem, entries, parts, spreads)
    return f, g, entries, fix


def _centred(problem: UnbalancedTransport, f: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Potentials without the constant that two balanced sides leave free, where it takes most of their digits.

    A step of acceleration may add one. What the move rounds is smaller than what the constant hid, and is repaired.
    """
    held = (problem.b > 0) & np.isfinite(g), (problem.a > 0) & np.isfinite(f)
    if not np.isinf(problem.reg_m).all() or not held[0].any() or not held[1].any():
        return f, g
    middle = g[held[0]].max() / 2 + g[held[0]].min() / 2
    before = abs(f[held[1]]).max() + abs(g[held[0]]).max()
    after = abs(f[held[1]] + middle).max() + abs(g[held[0]] - middle).max()
    return (f + middle, g - middle) if after < CENTRED * before else (f, g)


def _bounded(problem: UnbalancedTransport, f: Floats, g: Floats) -> Floats:
    """f, lower by a constant where a first answer is so far off that an entry of P(f, g) would overflow.

    Potentials of a small reg are hundreds of it, and every entry is small all the same: only entries can tell.
    """
    if not _largest_log(problem, f, g) > LARGEST_LOG_64:
        return f
    over = _largest_entry(problem, f, g) - LARGEST_LOG_64
    return f - over * problem.reg if 0 < over < np.inf else f


def _largest_log(problem: UnbalancedTransport, f: Floats, g: Floats) -> float:
    """A bound on the logarithms of the entries of P(f, g), from vectors alone."""
    row, column = _lines(problem, f, g)
    return float(row.max() + column.max()) - problem.cost_bounds[0] / problem.reg


def _largest_entry(problem: UnbalancedTransport, f: Floats, g: Floats) -> float:
    """The largest logarithm of an entry of P(f, g); reads every cost."""
    row, column = _lines(problem, f, g)
    step, top = max(1, BLOCK // column.size), -np.inf
    for start in range(0, row.size, step):
        some = slice(start, start + step)
        top = max(top, float((row[some, None] + column - costs(problem, some) / problem.reg).max()))
    return top


def _lines(problem: UnbalancedTransport, f: Floats, g: Floats) -> tuple[Floats, Floats]:
    """What rows and columns add to the logarithms of entries; -inf where they have no mass."""
    lines = []
    for masses, potential in ((problem.a, f), (problem.b, g)):
        held = (masses > 0) & np.isfinite(potential)
        weight = np.log(masses[held]) if problem.reference == "product" else 0.0
        line = np.full(masses.size, -np.inf)
        line[held] = potential[held] / problem.reg + weight
        lines.append(line)
    return lines[0], lines[1]


def _parts(problem: UnbalancedTransport, writer: Writer) -> Iterator[slice]:
    m, n = problem.shape
    step = max(1, writer.block // n)
    return (slice(start, min(m, start + step)) for start in range(0, m, step))


def _unblocked(
    problem: UnbalancedTransport, plan: Reals, found: "_Found", writer: Writer, deadline: Deadline, whole: bool
) -> dict[str, Array]:
    """The outputs of a plan (host) whose missing mass may not go everywhere; it is changed in its place."""
    assert problem.cost is not None
    permitted = (problem.cost < np.inf) & (problem.a > 0)[:, None] & (problem.b > 0)
    before = None if whole else plan.copy()
    settled = settle(plan, permitted, problem.a, problem.b, deadline.expired)
    if settled.hall_rows is not None:
        return {"hall_rows": settled.hall_rows}
    for some in _parts(problem, writer):
        found.look(some, writer.xp.asarray(plan[some]))
    if before is None:
        return {"plan": plan} | found.arrays()
    i, j = np.nonzero(plan != before)
    entries = {"entry_rows": i, "entry_columns": j, "entry_values": plan[i, j]}
    return entries | found.arrays()


class _Found:
    """Marginals and largest entries of the plan, collected block by block."""

    def __init__(self, problem: UnbalancedTransport, k: int, writer: Writer, marginals: bool, derived: Derived) -> None:
        m, n = problem.shape
        given = problem.x if problem.cost is None else problem.cost
        assert given is not None
        self.k, self.writer, self.marginals, self.derived = k, writer, marginals, derived
        self.row_sums, self.column_sums = np.empty(m), writer.xp.zeros(n)
        self.best, self.values = np.empty((m, k), np.int32), np.empty((m, k), given.dtype)

    def look(self, some: slice, block: Any) -> None:
        """Take in some rows of the plan."""
        self.derived.look(some, block)
        if self.marginals:
            self.row_sums[some] = self.writer.host(block.sum(axis=1, dtype=np.float64))
            self.column_sums += block.sum(axis=0, dtype=np.float64)
        if self.k:
            self.best[some], self.values[some] = self.writer.largest(block, self.k)

    def arrays(self) -> dict[str, Array]:
        """By their names in an answer."""
        out = {}
        if self.marginals:
            out = {"row_marginal": self.row_sums, "column_marginal": self.writer.host(self.column_sums)}
        return out | ({"top_columns": self.best, "top_values": self.values} if self.k else {})
