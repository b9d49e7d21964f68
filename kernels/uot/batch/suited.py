"""Which problems are solved a block each (batch.cu): for the solver, estimates and company, and without a GPU."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernels.problems.several import SeveralTransports
from kernels.problems.transport import UnbalancedTransport
from kernels.uot.build import Entropic
from kernels.uot.rounding import SAFE, hidden_gap, off_by

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

# rows and columns at most, then warps, rows of a warp, columns of a lane, rows of a warp whose costs are in registers,
# blocks of a processor
SHAPES = (
    (64, 64, 4, 16, 2, 16, 8),
    (128, 128, 8, 16, 4, 16, 2),
    (204, 224, 17, 12, 7, 0, 1),
    (256, 256, 16, 16, 8, 4, 1),
)
AXES = ("sqeuclidean", "euclidean")
"""Metrics whose costs are worked out there."""
SAME_RATIO = 1e-12
"""Of strengths over reg: what a sum of roundings may make of one ratio."""
WORTH = 20.0
"""Spreads of the costs beside the value of a problem, as long as the value is not known."""


def fits(shape: tuple[int, int], options: "TransportOptions") -> bool:
    """Whether problems of this shape with positive masses and finite costs are solved together with these options."""
    small = any(shape[0] <= s[0] and shape[1] <= s[1] for s in SHAPES)
    return small and options.method != "map-uot" and options.storage != "float64" and options.tolerance >= 1e-7


def has_mass(parts: Sequence[UnbalancedTransport]) -> bool:
    """Whether no line of any of the problems is without mass."""
    own = {id(mass): mass for part in parts for mass in (part.a, part.b)}  # what was left out is shared
    return bool((np.concatenate([mass.ravel() for mass in own.values()]) > 0).all())


def suits(problem: UnbalancedTransport, options: "TransportOptions") -> bool:
    """Whether problems of this shape, whose costs are finite, are solved together."""
    return fits(problem.shape, options) and has_mass([problem])


def stackable(problem: SeveralTransports) -> bool:
    """Whether problems have one shape and kind and, in units of their reg, the same strengths."""
    parts, first = problem.parts, problem.parts[0]
    if problem.divergence or first.batch is not None:
        return False
    kinds = {(p.a.shape, p.b.shape, p.cost is None, p.metric, p.reference, p.g0 is None) for p in parts}
    if len(kinds) > 1:
        return False
    if first.cost is None and first.metric not in AXES:
        return False
    strengths = {(part.reg, part.reg_m) for part in parts}
    if len(strengths) == 1:
        return True
    ratios = np.array([[strength / reg for strength in reg_m] for reg, reg_m in strengths])
    if not np.array_equal(np.isinf(ratios), np.isinf(np.broadcast_to(ratios[0], ratios.shape))):
        return False
    relaxed = ratios[:, np.isfinite(ratios[0])]
    return bool(np.ptp(relaxed, axis=0).max(initial=0.0) <= SAME_RATIO * relaxed.max(initial=1.0))


def vectors_alone(options: "TransportOptions") -> bool:
    """Whether potentials and marginals are all that is asked for: those are worked out of all problems at once."""
    return options.output == "potentials" and not (options.top_k or options.gradients or options.barycentric)


def at_once(problem: Entropic, options: "TransportOptions") -> bool:
    """Whether all of several problems are both solved and answered together, if their costs are finite."""
    if not vectors_alone(options) or not fits(problem.shape, options):
        return False
    if isinstance(problem, UnbalancedTransport):
        return problem.batch is not None and suits(problem, options)
    return stackable(problem) and has_mass(problem.parts)


def shows(problem: UnbalancedTransport, spread: float, tolerance: float) -> bool:
    """Whether float32 is likely to show that the gap of a problem is small enough, by the spread of its costs.

    Where it does not, each problem goes on by itself in float64.
    """
    if not spread > 0:
        return True
    delta = off_by(spread, problem.reg)
    hidden = hidden_gap(delta, 1.0, spread, spread / WORTH, problem.reg_m)
    return bool(hidden <= (1 - SAFE) * tolerance)
