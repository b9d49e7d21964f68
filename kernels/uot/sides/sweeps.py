"""Sweeps over a stored kernel in float64, by matrix products of numpy or cupy: two reads of it for each.

The kernel is K_ij = weight_b_j exp((base_f_i + base_g_j - C_ij) / reg), where base_g is a recent g and base_f makes
each row's sum 1: so no row underflows, whatever limits f. It is built anew where g moved by DRIFT regs. A column
whose sum underflows carries nothing at any potential that limits it.
"""

from typing import Any

import numpy as np

from kernels.problems.marginal_transport import MarginalTransport
from kernels.uot.marginals import Vector
from kernels.uot.sides.penalties import SideMarginals

DRIFT = 200.0
BLOCK = 1 << 22
"""Entries in work at a time while a kernel is built."""


class StoredKernel:
    """`Sweeps` of outer.py. Bytes: 8 m n for the kernel, and as many for the costs on a device."""

    def __init__(self, xp: Any, problem: MarginalTransport, held: SideMarginals) -> None:
        self.xp, self.held = xp, held
        self.cost = xp.asarray(problem.cost)
        self.kernel = xp.empty(problem.shape)
        self.base_f = xp.zeros(problem.shape[0])
        self.base_g: Vector | None = None

    def start(self, reg: float) -> None:
        """Begin a stage at `reg`."""
        self.reg, self.base_g = reg, None

    def sweep(self, g: Vector) -> tuple[Vector, Vector]:
        """f and h for g, as `Marginals` defines them."""
        xp, held, reg = self.xp, self.held, self.reg
        g = held.within(g)
        if self.base_g is None or not float(abs(g - self.base_g).max()) <= DRIFT * reg:
            self._build(g)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            rows = self.kernel @ xp.exp((g - self.base_g) / reg)
            f = held.best(0, xp.log(rows) - self.base_f / reg, reg)
            column_sums = (held.weight_a * xp.exp((f - self.base_f) / reg)) @ self.kernel
            h = reg * (xp.log(column_sums) - held.log_weights[1]) - self.base_g
        return f, h

    def _build(self, g: Vector) -> None:
        m, n = self.kernel.shape
        for k in range(0, m, step := max(1, BLOCK // n)):
            part = slice(k, min(m, k + step))
            self.base_f[part] = rows_at(self.xp, self.held, self.cost[part], g, self.reg, self.kernel[part])
        self.base_g = g


def rows_at(xp: Any, held: SideMarginals, cost: Any, g: Vector, reg: float, into: Any) -> Vector:
    """Fills in weight_b_j exp((f_i + g_j - C_ij) / reg) with the f, returned, that makes the sum of each row 1."""
    into[...] = cost
    into *= -1 / reg
    into += g / reg + held.log_weights[1]
    top = into.max(axis=1)
    into -= top[:, None]
    xp.exp(into, out=into)
    sums = into.sum(axis=1)
    into /= sums[:, None]
    return -reg * (top + xp.log(sums))
