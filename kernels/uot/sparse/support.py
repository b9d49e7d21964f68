"""What of a sparse problem can carry mass, and whether exact sides leave a plan at all."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Csr, Floats, Indices, Mask
from kernels.problems.sparse_transport import SparseTransport
from kernels.solution import Termination
from kernels.uot.sparse.flow import Network


@dataclass(frozen=True)
class Reach:
    """A problem, and the part of it in which every row and column has mass and an entry.

    `rows`, `columns` and `entries` mark that part. `unreached` are the rows and the columns with mass whose every
    entry is missing, or meets no mass.
    """

    problem: SparseTransport
    reduced: SparseTransport
    rows: Mask
    columns: Mask
    entries: Mask
    unreached: tuple[Mask, Mask]

    @property
    def empty(self) -> bool:
        """True where nothing can carry mass."""
        return not self.entries.any()

    @property
    def left(self) -> float:
        """What the mass costs that no entry reaches."""
        sides = zip((self.problem.a, self.problem.b), self.unreached, self.problem.reg_m, strict=True)
        return sum(strength * float(masses[off].sum()) for masses, off, strength in sides if off.any())

    def spread_out(self, f: Floats, g: Floats) -> tuple[Floats, Floats]:
        """Potentials of all lines: +inf where no entry is, whose mass is left; 0 where there is no mass."""
        whole = []
        for potential, on, off in ((f, self.rows, self.unreached[0]), (g, self.columns, self.unreached[1])):
            found = np.where(off, np.inf, 0.0)
            found[on] = potential
            whole.append(found)
        return whole[0], whole[1]


def support(problem: SparseTransport) -> Reach:
    """Take out lines without mass, and what then has no entries."""
    entries, rows_of = problem.used, problem.entry_rows
    rows = np.bincount(rows_of[entries], minlength=problem.a.size) > 0
    columns = np.bincount(problem.entry_columns[entries], minlength=problem.b.size) > 0
    unreached = (problem.a > 0) & ~rows, (problem.b > 0) & ~columns
    if rows.all() and columns.all():
        return Reach(problem, problem, rows, columns, entries, unreached)
    counts = np.bincount(rows_of[entries], minlength=problem.a.size)[rows]
    places = np.cumsum(columns) - 1
    indices = places[problem.entry_columns[entries]].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    cost = Csr(indptr, indices, problem.values[entries], (int(rows.sum()), int(columns.sum())))
    start = {
        name: None if given is None else given[on]
        for name, given, on in (("f0", problem.f0, rows), ("g0", problem.g0, columns))
    }
    parts: dict[str, Any] = {"a": problem.a[rows], "b": problem.b[columns], **start}
    return Reach(problem, replace(problem, cost=cost, **parts), rows, columns, entries, unreached)


def impossible(part: Reach, network: Network | None, deadline: Deadline) -> dict[str, Indices] | None:
    """A witness that no plan exists: lines with more mass than all that they may use. None where there is none.

    `hall_rows` or `hall_columns` name the lines. Where time runs out before it is known, none is found. The network is
    that of the reduced problem, None where that is empty.
    """
    exact = np.isinf(part.problem.reg_m)
    for side, name in enumerate(("hall_rows", "hall_columns")):
        lonely = np.flatnonzero(part.unreached[side])
        if exact[side] and lonely.size:
            return {name: lonely}
    if not exact.all() or network is None:
        return None
    found = network.completed(np.zeros(part.reduced.nnz), deadline)
    if found.hall_rows is None:
        return None
    return {"hall_rows": np.flatnonzero(part.rows)[found.hall_rows]}


def nothing(part: Reach) -> tuple[dict[str, Floats], Termination]:
    """The answer where only the empty plan is left."""
    problem = part.problem
    f, g = part.spread_out(np.empty(0), np.empty(0))
    none = {name: np.zeros(size) for name, size in zip(("row_marginal", "column_marginal"), problem.shape, strict=True)}
    return {"f": f, "g": g, "entry_values": np.zeros(problem.nnz), **none}, Termination.GAP_REACHED
