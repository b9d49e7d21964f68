"""Sweeps over the stored entries in the domain of logarithms, and vectors of a problem whose entries are some only.

The entries are kept twice, by row and by column: what is best for the columns is a sum over rows, and neither needs the
other's order. So no entry is ever written, and no scaling can leave the range of float64.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels.problems.arrays import Floats
from kernels.problems.sparse_transport import SparseTransport
from kernels.uot.cpu.threads import in_threads
from kernels.uot.marginals import Marginals, SweepState, Vector
from kernels.uot.sparse.flow import Lines, Network
from kernels.uot.sparse.loops import soft_maxima

LOG2E = math.log2(math.e)
NOISE = 2.0**-48
"""Of potentials: what sums of them may be off by."""
AROUND = 4.0
"""Times the divergence of what is missing: about what it costs on its way along a forest."""


@dataclass(frozen=True)
class Sweeper:
    """What a device brings: its arrays, what it makes of lines of entries, and a soft maximum over each of them.

    `soft` takes what `upload` returned, the scale of costs and a value of each entry's other end, and returns log2 of
    the sum over each line of 2^(value - scale cost).
    """

    name: str
    xp: Any
    upload: Callable[[Lines], Any]
    soft: Callable[[Any, float, Vector], Vector]


def _soft(lines: Lines, scale: float, values: Floats) -> Floats:
    out = np.empty(lines.count)

    def work(_: int, first: int, last: int) -> None:
        soft_maxima(first, last, lines.indptr, lines.ends, lines.cost, scale, values, out)

    in_threads(out.size, max(1, lines.cost.size // out.size), work)
    return out


HOST = Sweeper("log", np, lambda lines: lines, _soft)


class SparseMarginals(Marginals):
    """`Marginals` of a problem whose reference is that of its entries alone; `left` is what other lines cost."""

    def __init__(self, xp: Any, problem: SparseTransport, left: float = 0.0) -> None:
        low, high = float(problem.values.min()), float(problem.values.max())
        super().__init__(xp, problem.plain(), high - low)
        self.left = left
        self.highest = (0.0, -math.inf)  # of the dual values at a reg
        self.exact = bool(np.isinf(problem.reg_m).all())
        if problem.reference == "product":
            self.constant = float((problem.a[problem.entry_rows] * problem.b[problem.entry_columns]).sum())

    def symmetric(self) -> bool:
        """False: nobody looks."""
        return False

    def evaluate(self, f: Vector, g: Vector, h: Vector, reg: float) -> SweepState:
        """As there; between two exact sides the gap is what the flow of what is missing may cost, to second order.

        That is a guess: the solver holds it against the plan, and aims lower where it was too small. It is at least
        what another state at this reg had more: beside the value of potentials that ran away anything looks small.
        """
        state = super().evaluate(f, g, h, reg)
        state = replace(state, dual=state.dual + self.left)
        if not self.exact:
            return state
        b, found = self.b, state.column_sums
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            missing = self.xp.where(b > 0, b * self.xp.log(b / found) - b + found, found)
        highest = self.highest[1] if self.highest[0] == reg else -math.inf
        surely = state.dual - NOISE * float(b.sum()) * float(abs(state.f).max() + abs(state.g).max())
        if math.isfinite(surely):
            highest = max(highest, surely)
        self.highest = (reg, highest)
        return replace(state, gap=max(AROUND * reg * float(missing.sum()), highest - state.dual))


class SparseSweeps:
    """`Sweeps` of outer.py. Bytes: 24 for each entry."""

    def __init__(self, device: Sweeper, network: Network, held: SparseMarginals) -> None:
        self.device, self.held = device, held
        self.rows, self.columns = device.upload(network.rows), device.upload(network.columns)
        xp = held.xp
        self.log_a, self.log_b = xp.log2(held.weight_a), xp.log2(held.weight_b)

    def start(self, reg: float) -> None:
        """Begin a stage at `reg`."""
        self.reg, self.scale = reg, LOG2E / reg

    def sweep(self, g: Vector) -> tuple[Vector, Vector]:
        """f and h for g, as `Marginals` defines them, in one read of the entries by row and one by column."""
        soft, scale, held = self.device.soft, self.scale, self.held
        rows = soft(self.rows, scale, g * scale + self.log_b)
        f = held.damping(0, self.reg) * (self.reg * held.log_target_a - rows / scale)
        return f, soft(self.columns, scale, f * scale + self.log_a) / scale
