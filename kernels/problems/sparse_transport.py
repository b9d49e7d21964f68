"""Entropic transport on the stored entries of a sparse cost matrix: the problem and its checks."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.problems.arrays import TOLD, Csr, Floats, Indices, Indices32, Inputs, InvalidProblem, Mask
from kernels.problems.made import make
from kernels.problems.sparse import stored
from kernels.problems.transport import UnbalancedTransport, check_range, masses_of, same_mass, start_of

SMALLEST_REG, LARGEST_REG = 1e-100, 1e100
"""No product of a cost, a strength and a mass near 1 leaves float64 between them."""


@dataclass(frozen=True, eq=False)
class SparseTransport:
    """min over P >= 0 on the stored entries of <C, P> + reg Omega(P) + reg_m[0] KL(P 1 | a) + reg_m[1] KL(P' 1 | b).

    A pair that `cost` does not store carries no mass; one that it stores as 0 costs nothing. Omega(P) is KL(P | a x b)
    summed over the stored entries for `reference` "product" and sum P (log P - 1) for "uniform". `reg_m` = inf makes
    that marginal exact.

    `cost` has int64 indptr, int32 indices and float64 values, each row in the order given, no pair twice. `a` (m,), `b`
    (n,) and what else is here are as in `UnbalancedTransport`.
    """

    cost: Csr
    a: Floats
    b: Floats
    reg: float
    reg_m: tuple[float, float]
    reference: str = "product"
    f0: Floats | None = None
    g0: Floats | None = None
    mass_factor: float = field(default=1.0, metadata=TOLD)
    told: Mapping[str, Any] = field(default_factory=dict, metadata=TOLD)
    batch: None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the plan."""
        return self.a.size, self.b.size

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self.cost.indices.size)

    @functools.cached_property
    def values(self) -> Floats:
        """Their costs, float64."""
        return np.asarray(self.cost.values, np.float64)

    @functools.cached_property
    def entry_rows(self) -> Indices:
        """The row of each stored entry."""
        return np.repeat(np.arange(self.a.size), np.diff(self.cost.indptr))

    @property
    def entry_columns(self) -> Indices32:
        """The column of each stored entry."""
        return np.asarray(self.cost.indices, np.int32)

    @functools.cached_property
    def used(self) -> Mask:
        """Which stored entries lie between a row and a column with mass."""
        return np.asarray((self.a > 0)[self.entry_rows] & (self.b > 0)[self.entry_columns])

    @property
    def spread(self) -> float:
        """How far the costs range."""
        return float(self.values.max() - self.values.min()) if self.nnz else 0.0

    def plain(self, cost: Floats | None = None) -> UnbalancedTransport:
        """Masses and strengths of it, with a dense cost or with none: what asks for no more takes it."""
        return UnbalancedTransport(self.a, self.b, self.reg, self.reg_m, cost=cost, reference=self.reference)

    def check_range(self) -> None:
        """Refuse what no float64 arithmetic can answer. Raises: InvalidProblem."""
        if not SMALLEST_REG <= self.reg <= LARGEST_REG:
            wanted = f"expected {SMALLEST_REG:g} to {LARGEST_REG:g} with a sparse cost"
            raise InvalidProblem("reg", f"is {self.reg:.6g}; {wanted}")
        if self.nnz:
            check_range(self.plain(self.values[None]))


def sparse_transport(inputs: Inputs, reference: str) -> SparseTransport:
    """Check named inputs and return the problem, whose strengths are 1 and infinite until somebody says them.

    Raises:
        InvalidProblem: names the input that is wrong and what was expected.
    """
    given = inputs["cost"]
    assert isinstance(given, Csr)
    graph = stored("cost", given)
    _once(graph)
    m, n = graph.shape
    make(sum(size for name, size in (("a", m), ("b", n)) if name not in inputs))
    a, b = masses_of("a", inputs.get("a"), (m,)), masses_of("b", inputs.get("b"), (n,))
    f0, g0 = (start_of(name, inputs[name], of.shape) if name in inputs else None for name, of in (("f0", a), ("g0", b)))
    cost = Csr(graph.indptr, graph.indices.astype(np.int32, copy=False), graph.values.astype(np.float64), (m, n))
    return SparseTransport(cost, a, b, 1.0, (np.inf, np.inf), reference, f0, g0)


def balanced(problem: SparseTransport) -> tuple[Floats, float]:
    """b with the mass of a, where both sides are exact, and the factor; see `same_mass`."""
    if not np.isinf(problem.reg_m).all():
        return problem.b, 1.0
    b, factor = same_mass(problem.a, problem.b)
    assert isinstance(factor, float)
    return b, factor


def _once(graph: Csr) -> None:
    """Refuse a pair that is listed twice."""
    n = graph.shape[1]
    row = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    places = row * n + graph.indices
    if (places[1:] > places[:-1]).all():
        return
    places.sort()
    twice = np.flatnonzero(places[1:] == places[:-1])
    if twice.size:
        i, j = divmod(int(places[twice[0]]), n)
        told = f"lists column {j} twice in row {i}; expected each pair once: add duplicates up before"
        raise InvalidProblem("cost.indices", told)
