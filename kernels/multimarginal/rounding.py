"""The answer: potentials as costs, and a plan or its pair marginals, repaired to have the marginals of the problem.

A repair scales rows, then columns, down where they have too much. The third marginal was right, so it now lacks mass
like the others, and what lacks is added as a product of the three sides (Lin, Ho, Cuturi, Jordan 2022, algorithm 4).
"""

from typing import Any

import numpy as np

from kernels.multimarginal.sums import Products, least_of
from kernels.problems.arrays import Floats
from kernels.problems.multimarginal import PAIRS, Multimarginal

BLOCK = 1 << 20
"""Entries of the tensor that are worked out together."""
MARGINALS = ("plan_xy", "plan_xz", "plan_yz")

Potentials = tuple[Any, Any, Any]


def outputs(xp: Any, problem: Multimarginal, found: Potentials, output: str) -> dict[str, Floats]:
    """The arrays of an entropic answer, from potentials over reg, for the costs as they are."""
    F, G, H = (hosted(xp, one) for one in found)
    arrays = {name: problem.reg * one for name, one in zip("fgh", (F, G, H), strict=True)}
    if output == "marginals":
        arrays |= dict(zip(MARGINALS, _marginals(xp, problem, (F, G, H)), strict=True))
    if output == "plan":
        arrays["plan"] = repaired(problem, _plan(problem, (F, G, H), slice(None)))
    return arrays


SIDES = {"f": (0,), "g": (1,), "h": (2,), "plan": (0, 1, 2), "plan_xy": (0, 1), "plan_xz": (0, 2), "plan_yz": (1, 2)}


def with_mass(problem: Multimarginal) -> Multimarginal:
    """The problem of the points that have mass: elsewhere a potential may be anything, and its exponential infinite."""
    held = [side > 0 for side in problem.masses]
    if all(one.all() for one in held):
        return problem
    a, b, c = (side[one] for side, one in zip(problem.masses, held, strict=True))
    tensor = None if problem.tensor is None else problem.tensor[np.ix_(*held)]
    pairs = tuple(part[np.ix_(held[i], held[j])] for part, (i, j) in zip(problem.pairs, PAIRS, strict=False))
    return Multimarginal((a, b, c), problem.reg, tensor, pairs)


def spread_out(problem: Multimarginal, arrays: dict[str, Floats]) -> dict[str, Floats]:
    """The arrays of the points with mass, with 0 for all others."""
    found = {}
    for name, array in arrays.items():
        found[name] = np.zeros([problem.sizes[side] for side in SIDES[name]])
        found[name][np.ix_(*(problem.masses[side] > 0 for side in SIDES[name]))] = array
    return found


def hosted(xp: Any, array: Any) -> Floats:
    """The array in memory of the host."""
    return np.asarray(array if xp is np else array.get())


def repaired(problem: Multimarginal, plan: Floats) -> Floats:
    """A plan near `plan` whose marginals are those of the problem, but for rounding."""
    plan = np.array(plan)
    for side, masses in enumerate(problem.masses):
        others = tuple(other for other in range(3) if other != side)
        down = _down(masses, plan.sum(axis=others))
        plan *= down.reshape([-1 if at == side else 1 for at in range(3)])
    lacks = [
        _lack(masses, plan.sum(axis=tuple(other for other in range(3) if other != side)))
        for side, masses in enumerate(problem.masses)
    ]
    short = _short(lacks)
    if short:
        plan += lacks[0][:, None, None] * (lacks[1] / short)[:, None] * (lacks[2] / short)
    return plan


def _marginals(xp: Any, problem: Multimarginal, found: Potentials) -> tuple[Floats, ...]:
    """The pair marginals of the repaired plan."""
    F, G, H = found
    pairs = _pairs(xp, problem, found)
    with np.errstate(divide="ignore"):
        rows = _down(problem.masses[0], pairs[0].sum(axis=1))
        columns = _down(problem.masses[1], rows @ pairs[0])
        pairs = _pairs(xp, problem, (F + np.log(rows), G + np.log(columns), H))
    sums = pairs[0].sum(axis=1), pairs[0].sum(axis=0), pairs[1].sum(axis=0)
    lacks = [_lack(masses, side) for masses, side in zip(problem.masses, sums, strict=True)]
    short = _short(lacks)
    if short:
        sides = ((0, 1), (0, 2), (1, 2))
        pairs = [one + np.outer(lacks[i], lacks[j] / short) for one, (i, j) in zip(pairs, sides, strict=True)]
    return pairs[0], pairs[1], pairs[2]


def _down(masses: Floats, sums: Floats) -> Floats:
    """What takes sums down to the masses."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(sums > masses, masses / sums, 1.0))


def _lack(masses: Floats, sums: Floats) -> Floats:
    return np.maximum(masses - sums, 0.0)


def _short(lacks: list[Floats]) -> float:
    """What all three sides lack; each says it, up to rounding."""
    return max(float(lack.sum()) for lack in lacks) if all(lack.any() for lack in lacks) else 0.0


def _pairs(xp: Any, problem: Multimarginal, found: Potentials) -> Any:
    if problem.tensor is None:
        F, G, H = (xp.asarray(one) for one in found)
        products = Products(xp, problem, problem.reg)
        if products.keep(F - least_of(problem) / problem.reg, G, H):
            return [hosted(xp, one) for one in products.pairs()]
    rows, m, n = problem.sizes
    xy, xz, yz = np.empty((rows, m)), np.empty((rows, n)), np.zeros((m, n))
    step = max(1, BLOCK // (m * n))
    for first in range(0, rows, step):
        some = slice(first, first + step)
        block = _plan(problem, found, some)
        xy[some], xz[some] = block.sum(axis=2), block.sum(axis=1)
        yz += block.sum(axis=0)
    return xy, xz, yz


def _plan(problem: Multimarginal, found: Potentials, some: slice) -> Floats:
    """(some of l, m, n) entries of the plan of potentials over reg."""
    (F, G, H), (a, b, c) = found, problem.masses
    entries = problem.costs(some) / -problem.reg
    entries += F[some, None, None] + G[:, None] + H
    np.exp(entries, out=entries)
    entries *= a[some, None, None] * b[:, None] * c
    return entries
