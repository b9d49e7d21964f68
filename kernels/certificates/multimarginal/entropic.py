"""Proof where there is an entropic term: a plan made of the potentials and repaired, and the dual value.

The bound. For any f, g, h and any plan P with the marginals a, b, c, sums of x log(x / r) - x + r >= x z - r (e^z - 1)
with z = (f + g + h - C) / reg and r = a b c give
    <C, P> + reg KL(P | a x b x c) >= <f, a> + <g, b> + <h, c> - reg (Z - 1),   Z = sum a b c exp(z).
f less reg log Z makes Z 1, so
    <f, a> + <g, b> + <h, c> - reg log Z
is a lower bound whatever f, g and h are.

The objective. P' = a b c exp(z) X_i Y_j W_k with factors X, Y, W of at most 1 that take every marginal to at most what
it should be: first W by the third marginal, then X by the first of what is left, then Y. With a', b', c' the marginals
of P', e = a - a' and so on are what the sides lack, each of the mass s = 1 - |P'|. P = P' + e_a x e_b x e_c / s^2 has
the marginals a, b, c (Lin, Ho, Cuturi, Jordan 2022, algorithm 4). What P costs is at most
    <f, a'> + <g, b'> + <h, c'> + s max(C, 0) + reg (s + 3 s log(1 / s)) :
log(P' / r) <= z as the factors are at most 1, so <C, P'> + reg sum P' log(P' / r) <= sum P' (f + g + h). KL is convex:
KL(P) <= (1 - s) KL(P' / (1 - s)) + s KL(what is added / s). The first is sum P' log(P' / r) - (1 - s) log(1 - s), the
last term of which is at most s. The second is a product of three sides e / s, and as e <= a each is at most log(1 / s).
s log(1 / s) is at most 1 / e = 0.3679. So no tensor is needed, but three marginals of P' and their errors (`sums.py`).

Whatever else is returned is held against P (`returned.py`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.certificates.barycenter.stated import concluded, numbers, refused, smallest
from kernels.certificates.multimarginal.returned import Repaired, differs
from kernels.certificates.multimarginal.sums import TINY, UNIT, Potentials, Sums, make
from kernels.certificates.rounded import add_up, mul_down, mul_up, sub_down, sub_up, sum_down, sum_up
from kernels.certificates.transport_elementary import log_down, log_up
from kernels.problems.arrays import Array, Mask
from kernels.problems.multimarginal import Multimarginal
from kernels.solution import Certificate, Solution, Termination, unheard

PEAK = 0.3679
"""Above 1 / e, the largest that x log(1 / x) can be."""
WORDS = (
    "objective = value of the plan of the potentials, repaired to have the marginals exactly, rounded up; bound = <f,"
    " a> + <g, b> + <h, c> - reg log Z, which no plan goes below, rounded down; both in float64 with proved errors;"
    " violation = the mass that the repair adds"
)


def certify(problem: Multimarginal, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Evaluate the potentials, and what is returned beside them."""
    if solution.termination is Termination.INFEASIBLE:
        return refused("a plan always exists")
    read = potentials_of(problem, solution)
    if isinstance(read, str):
        return refused(read)
    held, some = within(problem)
    found = _centred(some, tuple(one[mask] for one, mask in zip(read, held, strict=True)))
    sums = make(some, found, lambda share: progress(0.5 * share))
    if sums is None:
        return refused("f, g and h are far from the potentials of any plan")
    repair = _repair(some, sums)
    bound = _bound(some, found, repair.total)
    objective = _objective(some, found, repair)
    progress(0.9)
    lacks = [
        np.maximum(side - (low + high) / 2, 0.0)
        for side, low, high in zip(some.masses, repair.low, repair.high, strict=True)
    ]
    weights = tuple(side * factor for side, factor in zip(some.masses, repair.factors, strict=True))
    wrong = differs(solution, Repaired(some, found, sums, (weights[0], weights[1], weights[2]), lacks), held)
    if wrong:
        return refused(wrong)
    scales = problem.largest, min(smallest(part) for part in problem.parts)
    return concluded(solution, objective, bound, 0.0, repair.short, scales, WORDS)


def potentials_of(problem: Multimarginal, solution: Solution) -> Potentials | str:
    """f, g and h in float64, or why they cannot be read."""
    found = []
    for name, size in zip("fgh", problem.sizes, strict=True):
        one = numbers(solution.arrays, name, (size,))
        if isinstance(one, str):
            return one
        if not np.isfinite(one).all() or np.abs(one).max() > 1e150:
            return f"{name} holds an infinity, or numbers beyond 1e150"
        found.append(one)
    return found[0], found[1], found[2]


def within(problem: Multimarginal) -> tuple[tuple[Mask, Mask, Mask], Multimarginal]:
    """Which points have mass, and the problem of those alone: no plan goes elsewhere."""
    a, b, c = (masses > 0 for masses in problem.masses)
    if a.all() and b.all() and c.all():
        return (a, b, c), problem
    masses = tuple(side[mask] for side, mask in zip(problem.masses, (a, b, c), strict=True))
    tensor = None if problem.tensor is None else problem.tensor[np.ix_(a, b, c)]
    sides = ((a, b), (a, c), (b, c))
    pairs = tuple(part[np.ix_(*both)] for part, both in zip(problem.pairs, sides, strict=False))
    return (a, b, c), Multimarginal((masses[0], masses[1], masses[2]), problem.reg, tensor, pairs)


def _centred(problem: Multimarginal, found: tuple[Array, ...]) -> Potentials:
    """Potentials of the same plan but for rounding, g and h about 0. Any may be taken; these make small errors."""
    f, g, h = found
    _, b, c = problem.masses
    of_g, of_h = float(b @ g), float(c @ h)
    return f + (of_g + of_h), g - of_g, h - of_h


@dataclass(frozen=True)
class _Repair:
    """`factors` X, Y, W; `low` and `high` are bounds of the marginals of P', `total` one on Z, `short` one on s."""

    factors: tuple[Array, Array, Array]
    low: tuple[Array, Array, Array]
    high: tuple[Array, Array, Array]
    total: float
    short: float


def _repair(problem: Multimarginal, sums: Sums) -> _Repair:
    a, b, c = problem.masses
    above, below = 1 + 1.01 * sums.relative, 1 - 1.01 * sums.relative

    def down(ratio: Array) -> Array:
        """What takes a marginal, over what it should be, to 1 at most, whatever the errors."""
        return np.minimum(1.0, (1 - 16 * UNIT) / (ratio * above + TINY))

    thirds = sums.third(a, b)
    W = down(thirds)
    S = sums.over_third(c * W)
    X = down(S @ b)
    Y = down((a * X) @ S)
    ratios = X * (S @ (b * Y)), Y * ((a * X) @ S), W * sums.third(a * X, b * Y)
    masses = problem.masses
    low = tuple(side * np.maximum(ratio * below - TINY, 0.0) for side, ratio in zip(masses, ratios, strict=True))
    high = tuple(
        side * np.minimum(ratio * above + TINY, 1 + 4 * UNIT) for side, ratio in zip(masses, ratios, strict=True)
    )
    total = float(sum_up(c * (thirds * above + TINY))) * (1 + 8 * UNIT)
    short = max(0.0, float(sub_up(1.0, sum_down(low[0]) * (1 - 8 * UNIT))))
    return _Repair((X, Y, W), (low[0], low[1], low[2]), (high[0], high[1], high[2]), total, short)


def _bound(problem: Multimarginal, found: Potentials, total: float) -> float:
    """<f, a> + <g, b> + <h, c> - reg log Z, rounded down; the masses are within 3 units of the true ones."""
    pulled = np.concatenate([mul_down(side, one) for side, one in zip(problem.masses, found, strict=True)])
    off = 4 * UNIT * math.fsum(np.abs(pulled)) + (TINY if pulled.any() else 0.0)
    least = sum_down(np.append(pulled, -off))
    return float(sub_down(least, mul_up(problem.reg, log_up(np.array(total)))))


def _objective(problem: Multimarginal, found: Potentials, repair: _Repair) -> float:
    """At least the value of the repaired plan."""
    terms = [
        mul_up(np.where(one > 0, high, low), one) for one, low, high in zip(found, repair.low, repair.high, strict=True)
    ]
    size = math.fsum(np.abs(np.concatenate(terms)))
    moved = sum_up(np.append(np.concatenate(terms), 8 * UNIT * size))
    return float(add_up(moved, price(problem, repair.short)))


def price(problem: Multimarginal, short: float) -> float:
    """At most what adding the mass `short` costs: at the dearest triple, and with its entropy."""
    if not short:
        return 0.0
    dearest = sum(max(float(part.max()), 0.0) for part in problem.parts) * (1 + 4 * UNIT)
    mixed = PEAK if short > PEAK else min(PEAK, short * -float(log_down(np.array(short))) * (1 + 4 * UNIT))
    entropy = mul_up(problem.reg, (short + 3 * mixed) * (1 + 4 * UNIT)) if problem.reg else np.float64(0)
    return float(add_up(mul_up(short, dearest), entropy))
