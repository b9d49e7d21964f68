"""Sinkhorn's iteration among three measures; the same lines for NumPy and CuPy.

Potentials are held over reg, F (l,), G (m,), H (n,), for costs less their least.

    repeat                        one iteration
      over_third                  both marginals of the plan as it is, which say whether to stop; then F, then G
      third                       H: the third marginal is right
"""

import math
from typing import TYPE_CHECKING, Any

from kernels.deadline import Deadline
from kernels.multimarginal.rounding import outputs, spread_out, with_mass
from kernels.multimarginal.sums import least_of, make_sums
from kernels.problems.multimarginal import Multimarginal
from kernels.solution import Solution
from kernels.stages import Schedule, Stopping

if TYPE_CHECKING:
    from kernels.multimarginal import MultimarginalOptions

LOOK = 10
"""Iterations between two looks at the clock and at how far the marginals are apart."""
SLOW = 1 << 22
"""Triples of points from which on the clock is looked at in every iteration."""
DEAREST, MIXED = 3.0, 60.0
"""Of the spread of the costs and of reg: what repairing a unit of mass adds to the certified gap at most, about."""
FLOOR = 1e-12
"""Of the spread of the costs: objectives below it are taken for that."""

Potentials = tuple[Any, Any, Any]


def scale(xp: Any, problem: Multimarginal, options: "MultimarginalOptions", deadline: Deadline) -> Solution:
    """Iterate on the device of `xp`; see `kernels.multimarginal.cpu.solver.solve`."""
    whole, problem = problem, with_mass(problem)
    stop = Stopping(options.iterations, 0.5 * options.tolerance, deadline)
    found: Potentials = (*(xp.zeros(size) for size in problem.sizes),)
    reg = before = problem.reg
    for reg in Schedule(problem.reg, problem.spread):
        found = _at(xp, problem, reg, _times(found, before / reg), stop)
        before = reg
        if stop.ended:
            break
    if reg != problem.reg:  # out of time on the way: potentials are costs, and stay what they are
        F, G, _ = _times(found, reg / problem.reg)
        found = F, G, make_sums(xp, problem, problem.reg).third(F, G)
        found = _centred(xp, problem, found)
    F, G, H = found
    arrays = outputs(xp, problem, (F + least_of(problem) / problem.reg, G, H), options.output)
    way = "products of matrices" if problem.tensor is None else "tensor"
    facts = {"reg": problem.reg, "tolerance": float(options.tolerance)}
    return Solution(stop.word, f"entropic, {way}", spread_out(whole, arrays), stop.done, facts=facts)


def _at(xp: Any, problem: Multimarginal, reg: float, begin: Potentials, stop: Stopping) -> Potentials:
    """Iterate at one reg until `stop` says that it is enough."""
    sums, spread, last = make_sums(xp, problem, reg), problem.spread, reg == problem.reg
    a, b, c = (xp.asarray(side) for side in problem.masses)
    slow = math.prod(problem.sizes) >= SLOW
    F, G, _ = begin
    H = sums.third(F, G)
    begun = stop.done
    while True:
        rows, columns, G_next = sums.over_third(F, G, H)
        stop.done += 1
        if (stop.done - begun) % LOOK == 1 or stop.done >= stop.most or (slow and stop.deadline.expired()):
            apart = float((a * xp.abs(xp.exp(rows) - 1.0)).sum() + (b * xp.abs(xp.exp(columns) - 1.0)).sum()) / 2
            value = reg * float((F * a).sum() + (G * b).sum() + (H * c).sum()) + least_of(problem)
            gap = apart * (DEAREST * spread + MIXED * reg)
            if stop.enough(value, gap, apart, max(abs(value), FLOOR * spread), last):
                return _centred(xp, problem, (F, G, H))
        F, G = F - rows, G_next
        H = sums.third(F, G)


def _centred(xp: Any, problem: Multimarginal, found: Potentials) -> Potentials:
    """The same plan by potentials of which the second and the third have the mean 0."""
    (_, b, c), (F, G, H) = (xp.asarray(side) for side in problem.masses), found
    of_G, of_H = (G * b).sum(), (H * c).sum()
    return F + of_G + of_H, G - of_G, H - of_H


def _times(found: Potentials, factor: float) -> Potentials:
    F, G, H = found
    return F * factor, G * factor, H * factor
