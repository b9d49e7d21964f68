"""Two exact sides on a sparse pattern: whether a plan exists, and one that meets them, made of one that nearly does.

The missing masses have one flow only along a spanning forest of the entries, the largest of the plan first, from the
leaves inwards. It changes large entries by a little, so its price goes with the square of what is missing. Where it
would take more than an entry has, lines are scaled down to what they may carry, and the rest is sent along shortest
augmenting paths (Dinic 1970). Masses are whole numbers of 2^-61 of the total there, so that it ends whatever they are.
Rows from which no path leaves then break Hall's condition: no plan has such marginals.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from kernels.deadline import Deadline
from kernels.problems.arrays import Floats, Indices, Indices32, untouched
from kernels.problems.sparse_transport import SparseTransport
from kernels.uot.sparse.flow_loops import Residual, along_forest, blocking, levels, spanning_forest
from kernels.uot.sparse.value import marginals_of

BITS = 61
"""Of the total mass: sums of two such numbers fit int64."""
UNIT = 2.0**-53
KEPT = 2.0**-20
"""Of an entry that the forest must leave, so that potentials still describe it."""
STEPS = 32
"""Of a factor 2 between two entries: how finely they are told apart when the largest are taken first."""
LOWEST = -(1 << 15)


@dataclass(frozen=True)
class Completed:
    """The plan that was found, and rows that have more mass than all columns that they may use."""

    plan: Floats
    hall_rows: Indices | None = None


@dataclass(frozen=True)
class Lines:
    """Entries line by line: where each line begins, the other end of an entry, and its cost."""

    indptr: Indices
    ends: Indices32
    cost: Floats

    @property
    def count(self) -> int:
        """Lines."""
        return self.indptr.size - 1


class Network:
    """The entries of a problem whose every line has mass and an entry, by row and by column.

    `places` is where each entry by column stands by row.
    """

    def __init__(self, problem: SparseTransport) -> None:
        self.problem, graph = problem, problem.cost
        m, n = problem.shape
        places = np.arange(problem.nnz)
        by_column = csr_array((places, graph.indices, graph.indptr), shape=(m, n)).tocsc()
        self.places: Indices = by_column.data
        indptr, ends = by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32)
        self.rows = Lines(untouched(graph.indptr), untouched(problem.entry_columns), untouched(problem.values))
        self.columns = Lines(untouched(indptr), untouched(ends), untouched(problem.values[self.places]))

    @property
    def rounding(self) -> float:
        """What the sums of the marginals may lack by rounding alone."""
        return 2 * UNIT * sum(self.problem.shape) * float(self.problem.a.sum())

    def missing(self, plan: Floats) -> tuple[Floats, Floats]:
        """What the rows and the columns of a plan lack; below 0 where they have too much."""
        rows, columns = marginals_of(self.problem, plan)
        return self.problem.a - rows, self.problem.b - columns

    def meets(self, plan: Floats) -> bool:
        """Whether a plan lacks no more than rounding leaves."""
        return _sizes(self.missing(plan)) <= 4 * self.rounding

    def along_forest(self, plan: Floats, logs: Floats, kept: float = KEPT) -> Floats | None:
        """The plan that lacks nothing, None where an entry would keep less than that share of itself.

        `logs` are the logarithms of its entries.
        """
        lacks = self.missing(plan)
        if _sizes(lacks) <= self.rounding:
            return plan
        problem = self.problem
        ranks = np.maximum((logs - logs.max()) * (STEPS / np.log(2)), LOWEST).astype(np.int16)
        order = np.argsort(~ranks, kind="stable")  # 16 bits are sorted by their digits
        rows, columns = problem.entry_rows, self.rows.ends
        taken = np.flatnonzero(spanning_forest(order, rows, columns, *problem.shape))
        left = np.concatenate(lacks)
        changed: Floats = plan[taken] + along_forest(taken, rows, columns, problem.a.size, left)
        if (changed < kept * plan[taken]).any() or float(abs(left).sum()) > 4 * self.rounding:
            return None
        found = plan.copy()
        found[taken] = changed
        return found

    def along_paths(self, plan: Floats, deadline: Deadline) -> Floats:
        """A plan that lacks nothing however much that is, as far as time allows."""
        problem = self.problem
        for masses, at in ((problem.a, problem.entry_rows), (problem.b, problem.entry_columns)):
            sums = np.bincount(at, plan, masses.size)
            plan = plan * np.divide(masses, sums, out=np.ones_like(sums), where=sums > masses)[at]
        plan = self.completed(plan, deadline).plan
        with np.errstate(divide="ignore"):
            logs = np.where(plan > 0, np.log(plan), -1e4)
        last = self.along_forest(plan, logs, 0.0)  # what whole numbers rounded
        return plan if last is None else last

    def completed(self, plan: Floats, deadline: Deadline) -> Completed:
        """Add to a plan, whose lines have no more than they may, what they lack: as much as can be, or until then."""
        problem, rows, columns = self.problem, self.problem.entry_rows, self.rows.ends
        unit = max(float(problem.a.sum()), float(problem.b.sum())) * 2.0**-BITS
        rest_a, rest_b = (np.floor(masses / unit).astype(np.int64) for masses in (problem.a, problem.b))
        flow = np.floor(plan / unit).astype(np.int64)
        before = flow.copy()
        np.subtract.at(rest_a, rows, flow)
        np.subtract.at(rest_b, columns, flow)
        np.maximum(rest_a, 0, out=rest_a)
        np.maximum(rest_b, 0, out=rest_b)
        of_rows, of_columns = np.empty(rest_a.size, np.int64), np.empty(rest_b.size, np.int64)
        graph = (self.rows.indptr, columns, self.columns.indptr, self.columns.ends, self.places)
        state = Residual(*graph, flow, rest_a, rest_b, of_rows, of_columns)
        while (reached := levels(state)) and not deadline.expired():
            blocking(state)
        found = np.maximum(plan + (flow - before) * unit, 0.0)
        allowed = int(self.rounding / unit) + sum(problem.shape)
        if reached or int(rest_a.sum()) <= allowed:
            return Completed(found)
        return Completed(found, np.flatnonzero(of_rows >= 0))


def _sizes(lacks: tuple[Floats, Floats]) -> float:
    return float(abs(lacks[0]).sum() + abs(lacks[1]).sum())
