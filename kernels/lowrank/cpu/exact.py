"""Exact steps: with R and g held, the best Q is a transport of a to g at costs C R / g; and so with Q and R exchanged.

Each is solved by the network simplex, so no step raises the objective, and factors end as vertices: few rows are shared
between components. g stays what it is; mirror descent moves it (as factored couplings are alternated over in Forrow,
Huetter, Nitzan, Rigollet, Schiebinger, Weed 2019).
"""

import numpy as np

from kernels.lowrank.descent import Factors, rounded
from kernels.lowrank.search import LowRankSearch
from kernels.lowrank.starts import exact_transport
from kernels.problems.arrays import Floats
from kernels.problems.lowrank import LowRankTransport

MOST = 5e7
"""Entries of a factor times the root of its sides up to which it takes exact steps: up to a second each."""
ROUNDS = 50
CHANGE = 1e-9
"""Rounds at most, and what the last changes, relatively."""


def affordable(problem: LowRankTransport) -> bool:
    """Whether both factors are small enough."""
    return all(size * problem.rank * (size + problem.rank) ** 0.5 <= MOST for size in problem.shape)


def finish(search: LowRankSearch, at: Factors) -> Factors:
    """Factors that neither step makes better, from some whose sums are right."""
    costs, value = search.costs, search.costs.value(at.q, at.r, at.g)
    of_q, of_r = Resumed(search, search.sums.a, at.g), Resumed(search, search.sums.b, at.g)
    for _ in range(ROUNDS):
        if search.over():
            break
        q = of_q.best(costs.times(at.r / at.g))
        r = of_r.best(costs.transposed_times(q / at.g))
        now = costs.value(q, r, at.g)
        if not now < value:
            break
        at, before, value = Factors(q, r, at.g), value, now
        search.iterations += 1
        search.tell()
        if before - value <= max(CHANGE, 0.01 * search.options.tolerance) * abs(value):
            break
    return at


class Resumed:
    """Transports of the same weights to the components, one after another: each begins with the prices of the last.

    The simplex wants few rows and many columns, so components are its rows; and costs less prices, which change no
    optimum, lead its first plan close to the last one.
    """

    def __init__(self, search: LowRankSearch, weights: Floats, g: Floats) -> None:
        self.search, self.weights, self.g, self.prices = search, weights, g, np.zeros_like(g)

    def best(self, cost: Floats) -> Floats:
        """The factor of least cost (size, r)."""
        lower = cost - self.prices
        lower -= lower.min(axis=1, keepdims=True)
        more, plan = exact_transport(lower.T, self.g, self.weights, self.search.deadline)
        self.prices += np.where(np.isfinite(more), more, 0.0)
        return np.asarray(rounded(plan.T, self.weights, self.g, np))
