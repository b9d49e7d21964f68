"""Proof where there is no entropic term: what the returned plan costs, and potentials that no plan goes below.

The bound. For any f, g, h and any plan P with the marginals a, b, c, masses of sum 1,
    <C, P> >= <f, a> + <g, b> + <h, c> + min (C - f - g - h).

The objective. The plan is repaired: each line that has too much is scaled down, P' is what is left, and what then
lacks, the mass s, is added as a product. So there is a plan with exactly the marginals a, b, c that costs at most
<C, P'> + s max(C, 0).

Errors, with u = 2^-53. A marginal is a sum of sums, of terms of one sign: l + m + n roundings at most, and 12 u for the
three factors and the masses, which are within 3 u of the true ones. C_ijk is rounded to the weak side, and sums of its
products with P' are off by m + n + 4 roundings of their sizes. All further sums round outward. What a plan misses of
its marginals is stated as `max_violation`; more than MISSED is refused.
"""

import math
from collections.abc import Callable

import numpy as np

from kernels.certificates.barycenter.stated import TINIEST, concluded, refused, smallest
from kernels.certificates.multimarginal.entropic import potentials_of, price, within
from kernels.certificates.multimarginal.returned import MARGINALS, SAME, returned
from kernels.certificates.multimarginal.sums import UNIT, Potentials, slices
from kernels.certificates.rounded import add_down, add_up, mul_down, sub_down, sub_up, sum_down, sum_up
from kernels.problems.arrays import Array
from kernels.problems.multimarginal import Multimarginal
from kernels.solution import Certificate, Solution, Termination, unheard

MISSED = 1e-9
"""Of the mass: a plan that misses its marginals by more is none."""
AXES = ((1, 2), (0, 2), (0, 1))
WORDS = (
    "objective = cost of the returned plan, repaired to have the marginals exactly, rounded up; bound = <f, a> + <g, b>"
    " + <h, c> + min (C - f - g - h), which no plan goes below, rounded down; violation = L1 distance of the plan's"
    " marginals from the masses"
)


def certify(problem: Multimarginal, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Evaluate the plan, and the bound of the potentials."""
    if solution.termination is Termination.INFEASIBLE:
        return refused("a plan always exists")
    found = potentials_of(problem, solution)
    if isinstance(found, str):
        return refused(found)
    plan = returned(solution, "plan", problem.sizes)
    if isinstance(plan, str):
        return refused(plan)
    violation = _violation(problem, plan)
    if not violation <= MISSED:
        return refused(f"the plan's marginals are {violation:.3g} from the masses")
    wrong = _sums_differ(solution, plan)
    if wrong:
        return refused(wrong)
    held, some = within(problem)
    objective = _objective(some, plan[np.ix_(*held)])
    progress(0.5)
    bound = _bound(some, (found[0][held[0]], found[1][held[1]], found[2][held[2]]))
    scales = problem.largest, min(smallest(part) for part in problem.parts)
    return concluded(solution, objective, bound, 0.0, violation, scales, WORDS)


def _violation(problem: Multimarginal, plan: Array) -> float:
    """At least what the marginals of the plan are off, in all."""
    rows, m, n = problem.sizes
    off = math.fsum(float(np.abs(_marginal(plan, k) - side).sum()) for k, side in enumerate(problem.masses))
    return float(off * (1 + 8 * UNIT * (rows + m + n)) + 8 * (rows + m + n) * UNIT * (1 + float(plan.max())))


def _sums_differ(solution: Solution, plan: Array) -> str:
    """Which pair marginals that are returned beside the plan are not its own."""
    for name, axis in zip(MARGINALS, (2, 1, 0), strict=True):
        if name not in solution.arrays:
            continue
        own = plan.sum(axis=axis)
        found = returned(solution, name, own.shape)
        if isinstance(found, str):
            return found
        off = float(np.abs(found - own).sum())
        if not off <= SAME:
            return f"{name} is {off:.3g} of the mass from that of the plan"
    return ""


def _marginal(plan: Array, side: int) -> Array:
    """Sums over the other two sides, one after the other."""
    one, other = AXES[side]
    return np.asarray(plan.sum(axis=other).sum(axis=one))


def _objective(problem: Multimarginal, plan: Array) -> float:
    """At least the cost of the repaired plan."""
    rows, m, n = problem.sizes
    relative = 4 * UNIT * (rows + m + n + 16)
    left = np.array(plan)
    for side, masses in enumerate(problem.masses):
        sums = _marginal(left, side) * (1 + relative)
        with np.errstate(divide="ignore", invalid="ignore"):
            down = np.where(sums > masses * (1 - 8 * UNIT), masses * (1 - 16 * UNIT) / sums, 1.0)
        left *= down.reshape([-1 if at == side else 1 for at in range(3)])
    total = sum_down(_marginal(left, 0)) * (1 - relative)
    short = max(0.0, float(sub_up(1.0, total)))
    terms, sizes = [], []
    for some in slices(problem):
        cost = _costs(problem, some, add_up)
        each = left[some] * cost
        terms.append(each.sum(axis=2).sum(axis=1))
        sizes.append(np.abs(each).sum(axis=2).sum(axis=1))
    size = math.fsum(np.concatenate(sizes))
    off = 4 * UNIT * (m + n + 16) * size + TINIEST * bool(size)
    return float(add_up(sum_up(np.append(np.concatenate(terms), off)), price(problem, short)))


def _costs(problem: Multimarginal, some: slice, add: Callable[[Array, Array], Array]) -> Array:
    """Costs rounded by `add`: up or down."""
    if problem.tensor is not None:
        return np.asarray(problem.tensor[some])
    first, second, third = problem.pairs
    return add(add(first[some, :, None], second[some, None, :]), third)


def _bound(problem: Multimarginal, found: Potentials) -> float:
    """<f, a> + <g, b> + <h, c> + min (C - f - g - h), rounded down; the masses are within 3 units of the true ones."""
    f, g, h = found
    least = min(
        float(sub_down(_costs(problem, some, add_down), add_up(add_up(f[some, None, None], g[:, None]), h)).min())
        for some in slices(problem)
    )
    pulled = np.concatenate([mul_down(side, one) for side, one in zip(problem.masses, found, strict=True)])
    off = 4 * UNIT * math.fsum(np.abs(pulled)) + (TINIEST if pulled.any() else 0.0)
    return sum_down(np.append(pulled, [-off, least]))
