"""The form in which a quadratic assignment is searched, by the CPU and by the GPU.

Diagonals are folded into the linear term. When one matrix is symmetric the other is replaced by M + M', which counts
every pair once and halves the work; that covers nearly all of QAPLIB. What is left is the fully asymmetric case.
"""

from dataclasses import dataclass, replace

import numpy as np

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Costs, Integers
from kernels.problems.quadratic import objective_bound

LARGEST_SUM = 2**62
"""Of costs and prices, in a search with integers."""


@dataclass(frozen=True, eq=False)
class SearchForm:
    """cost(p) = w sum_ij flow[i, j] distance[p[i], p[j]] + sum_i linear[i, p[i]], w = 1/2 if symmetric else 1.

    Both diagonals are zero; cost(p) is the objective of the problem it was made from, plus `penalty` per forbidden
    pair in use. `dtype` (int32, int64 or float64) is that of all three and provably holds every exchange's delta.
    """

    flow: Costs
    distance: Costs
    linear: Costs
    symmetric: bool

    @property
    def n(self) -> int:
        """Facilities, and as many locations."""
        return int(self.flow.shape[0])

    @property
    def dtype(self) -> np.dtype:
        """int32, int64 or float64."""
        return self.flow.dtype


def search_form(problem: QuadraticAssignment) -> SearchForm:
    """Fold diagonals, use symmetry, turn forbidden pairs into penalties and choose the narrowest safe dtype."""
    problem = penalised(problem)
    flow, distance = problem.flow.copy(), problem.distance.copy()
    linear = np.outer(np.diagonal(flow), np.diagonal(distance))
    if problem.linear is not None:
        linear = linear + problem.linear
    np.fill_diagonal(flow, 0)
    np.fill_diagonal(distance, 0)
    symmetric = True
    if (flow == flow.T).all():
        distance = distance + distance.T
    elif (distance == distance.T).all():
        flow = flow + flow.T
    else:
        symmetric = False
    dtype = flow.dtype
    if dtype.kind == "i" and largest_delta(flow, distance, linear) < 2**30:
        dtype = np.dtype(np.int32)
    flow, distance, linear = (np.ascontiguousarray(m, dtype) for m in (flow, distance, linear))
    return SearchForm(flow, distance, linear, symmetric)


def penalised(problem: QuadraticAssignment) -> QuadraticAssignment:
    """The same problem with a price on each forbidden pair instead, above what any permutation could save.

    Integers become floats where that price, or a search's sums, could leave int64: a search may be off by a rounding,
    its answers are priced anew by whoever takes them.
    """
    bound = objective_bound(problem.flow, problem.distance, problem.linear)
    if problem.integer and (4 * bound + 2) * (problem.n if problem.forbidden is not None else 1) >= LARGEST_SUM:
        flow, distance = problem.flow.astype(np.float64), problem.distance.astype(np.float64)
        linear = None if problem.linear is None else problem.linear.astype(np.float64)
        problem = replace(problem, flow=flow, distance=distance, linear=linear)
    if problem.forbidden is None:
        return problem
    price = 2 * int(bound) + 1 if problem.integer else 4.0 * bound or 1.0
    linear = np.zeros_like(problem.flow) if problem.linear is None else problem.linear
    return replace(problem, linear=np.where(problem.forbidden, price, linear), forbidden=None)


def largest_delta(flow: Integers, distance: Integers, linear: Integers) -> int:
    """A bound on |delta| of any exchange: sums wrap modulo 2^32 on the way, so only the result must fit.

    |delta(u, v)| <= sum_k (|F_uk| + |F_vk| + |F_ku| + |F_kv|) max|D_ak - D_bk| + 4 max|L|.
    """
    f, d = np.abs(flow.astype(np.float64)), np.abs(distance.astype(np.float64))
    rows = float((f.sum(axis=1) + f.sum(axis=0)).max())
    spread = float(d.max()) * (1 if float(distance.min()) >= 0 else 2)
    # 1.001 covers the rounding of these few float64 sums
    return int(1.001 * (2 * rows * spread + 4 * float(np.abs(linear.astype(np.float64)).max()))) + 1
