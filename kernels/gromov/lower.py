"""The evidence of lower bounds: potentials of Memoli's third and of the projection bound, worked out in floats.

Whatever the coupling, row i of X and row j of Y pay at least the transport between their distributions of distances,
T_ij, a problem on a line. The least <(1 - alpha) M + alpha T, P> over couplings P is a bound (Memoli 2011, definition
6.1). Where both matrices are symmetric, what X and Y are beyond sums of a term for each line is bounded by eigenvalues
(as in Hadley, Rendl, Wolkowicz 1992). Both are a transport, whose plan is a start of the search, and whose potentials
the certificate needs to prove the bound again.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernels.deadline import Deadline
from kernels.gromov.iteration import Scaling
from kernels.problems.arrays import Floats
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.gromov import GromovWasserstein

LARGEST_SIMPLEX = 1500
"""Rows and columns together up to which the transport is solved by a network simplex."""
MOST_PRODUCTS = 1 << 33
"""Of quantiles, in one T: some seconds of a core."""
LARGEST_SPECTRUM = 2000
"""Points of a space up to which eigenvalues are asked for."""
SMOOTH, SWEEPS = 0.005, 300
"""Of larger ones: the entropic term over the range of the costs, and how often it is scaled."""


@dataclass(frozen=True)
class Lower:
    """A bound, the potentials of its rows, and its plan on the host."""

    value: float
    f: Floats
    plan: Floats


def third(problem: GromovWasserstein, lines: str, xp: Any, deadline: Deadline) -> Lower:
    """The bound by the distributions of rows, or of columns, of both matrices."""
    return _transported(problem, local_costs(problem, lines, xp), 0.0, xp, deadline)


def projected(problem: GromovWasserstein, xp: Any, deadline: Deadline) -> Lower:
    """The bound by eigenvalues, of symmetric matrices."""
    sides = []
    for matrix, weights in ((problem.x_distance, problem.a), (problem.y_distance, problem.b)):
        share, roots = weights / weights.sum(), np.sqrt(weights / weights.sum())
        means = matrix @ share
        e = means - 0.5 * float(means @ share)
        rest = xp.asarray(roots[:, None] * (matrix - e[:, None] - e[None, :]) * roots[None, :])
        values = xp.linalg.eigvalsh(rest)
        values = values if xp is np else values.get()
        sides.append((e, float(share @ (matrix * matrix) @ share), float(e @ share), values))
    (e, of_x, of_e, s), (f, of_y, of_f, t) = sides
    count = min(len(s), len(t))
    pairs = ((s[::-1], t[::-1]), (-s, -t))
    overlap = sum(float(np.maximum(0.0, p[:count]) @ np.maximum(0.0, q[:count])) for p, q in pairs)
    alone = of_x + of_y - 4 * of_e * of_f - 2 * overlap
    return _transported(problem, xp.asarray(-4 * np.outer(e, f)), alone, xp, deadline)


def _transported(problem: GromovWasserstein, costs: Any, alone: float, xp: Any, deadline: Deadline) -> Lower:
    """The transport of these costs and M's, and a term of its own."""
    if problem.alpha != 1 or problem.cost is not None:
        costs, alone = problem.alpha * costs, problem.alpha * alone
    if problem.cost is not None:
        costs = costs + (1 - problem.alpha) * xp.asarray(problem.cost)
    a, b = problem.a / problem.a.sum(), problem.b / problem.b.sum()
    if sum(problem.shape) <= LARGEST_SIMPLEX:
        on_host = np.asarray(costs if xp is np else costs.get())
        f, plan = exact_transport(on_host, a, b, deadline)
    else:
        scaling = Scaling(xp.asarray(a), xp.asarray(b), xp)
        smooth = max(float(costs.max() - costs.min()) * SMOOTH, float(np.finfo(float).tiny))
        found = scaling.plan(costs, smooth, 1e-6, SWEEPS)
        f, plan = (part if xp is np else part.get() for part in (scaling.f, found))
        f = np.where(np.isfinite(f), f, 0.0)
    g = (costs - xp.asarray(f)[:, None]).min(axis=0)
    return Lower(alone + float(a @ f + b @ (g if xp is np else g.get())), f, plan)


def exact_transport(costs: Floats, a: Floats, b: Floats, deadline: Deadline) -> tuple[Floats, Floats]:
    """Potentials of the rows, and a plan that is a vertex, by the network simplex of `kernels.uot`."""
    from kernels.uot.cpu import exact  # compiles: loaded when first used

    asked = SimpleNamespace(output="plan", iterations=10_000)
    found = exact.solve(ExactTransport(np.ascontiguousarray(costs), a, b), asked, deadline)
    return found.arrays["f"], found.arrays["plan"]


def local_costs(problem: GromovWasserstein, lines: str, xp: Any) -> Any:
    """T_ij, the squared 2-Wasserstein distances between lines of X and of Y, from their quantiles; rounding apart."""
    levels = _levels(problem)
    sides = ((problem.x_distance, problem.a), (problem.y_distance, problem.b))
    p, q = (xp.asarray(_quantiles(m if lines == "rows" else m.T, w, levels)) for m, w in sides)
    squares = (p * p).sum(axis=1)[:, None] + (q * q).sum(axis=1)[None, :]
    return xp.maximum(0.0, squares - 2 * (p @ q.T)) / levels


def _levels(problem: GromovWasserstein) -> int:
    """How many quantiles: all that there are of uniform weights and one size, else about four a point."""
    n, m = problem.shape
    if n == m and _uniform(problem.a) and _uniform(problem.b):
        return n
    return max(16, min(4 * max(n, m), MOST_PRODUCTS // (n * m)))


def _uniform(weights: Floats) -> bool:
    return bool((weights == weights[0]).all())


def _quantiles(matrix: Floats, weights: Floats, levels: int) -> Floats:
    """Of each row, at the middles of `levels` equal shares of its mass."""
    order = np.argsort(matrix, axis=1, kind="stable")
    values = np.take_along_axis(matrix, order, axis=1)
    if levels == len(weights) and _uniform(weights):
        return values
    reached = np.cumsum((weights / weights.sum())[order], axis=1)
    middles = (np.arange(levels) + 0.5) / levels
    last = matrix.shape[1] - 1
    return np.stack(
        [row[np.minimum(np.searchsorted(up, middles), last)] for row, up in zip(values, reached, strict=True)]
    )
