"""What is returned beside potentials, held against the plan that is certified: P of `entropic.py`.

A plan, or its pair marginals, worked out again, may differ in L1 by SAME and by 16 times what rounding may do to a sum
of exponentials (`Sums.relative`): both sides work such sums out and scale by them, three times each. Costs of a million
times reg make that about 1e-7. Nothing may lie where there is no mass. What is compared are floats as they are;
objective and bound do not rest on it.
"""

from dataclasses import dataclass

import numpy as np

from kernels.certificates.barycenter.stated import numbers
from kernels.certificates.multimarginal.sums import Potentials, Sums, exp, exponents, slices
from kernels.problems.arrays import Array, Mask
from kernels.problems.multimarginal import PAIRS, Multimarginal
from kernels.solution import Solution

SAME = 1e-9
"""Of the mass: how far in L1 a returned plan may be from the one that is certified, beside rounding."""
MARGINALS = ("plan_xy", "plan_xz", "plan_yz")


@dataclass(frozen=True)
class Repaired:
    """The plan u_i v_j w_k E_ijk with the product of what the sides lack added, among the points that have mass."""

    problem: Multimarginal
    found: Potentials
    sums: Sums
    weights: tuple[Array, Array, Array]
    lacks: list[Array]

    @property
    def short(self) -> float:
        """The mass that is added."""
        return max(float(lack.sum()) for lack in self.lacks)

    @property
    def same(self) -> float:
        """How far in L1 a returned plan may be from this one."""
        return SAME + 16 * self.sums.relative

    @property
    def shares(self) -> list[Array]:
        """Each side of what is added, with the mass 1."""
        return [lack / lack.sum() if lack.any() else lack for lack in self.lacks]


def differs(solution: Solution, plan: Repaired, held: tuple[Mask, Mask, Mask]) -> str:
    """What of the answer is not that of the repaired plan; nothing where all is."""
    there = [name for name in MARGINALS if name in solution.arrays]
    if there and len(there) < len(MARGINALS):
        return f"{' and '.join(there)} stand without the other marginals"
    wrong = _marginals(solution, plan, held) if there else ""
    return wrong or (_plan(solution, plan, held) if "plan" in solution.arrays else "")


def _marginals(solution: Solution, plan: Repaired, held: tuple[Mask, Mask, Mask]) -> str:
    shares, short = plan.shares, plan.short
    for name, one, (i, j) in zip(MARGINALS, plan.sums.pairs(*plan.weights), PAIRS, strict=True):
        found = returned(solution, name, (held[i].size, held[j].size))
        if isinstance(found, str):
            return found
        inside = found[np.ix_(held[i], held[j])]
        off = float(np.abs(inside - one - short * np.outer(shares[i], shares[j])).sum())
        if not off + abs(float(found.sum()) - float(inside.sum())) <= plan.same:
            return f"{name} is {off:.3g} of the mass from that of the potentials"
    return ""


def _plan(solution: Solution, plan: Repaired, held: tuple[Mask, Mask, Mask]) -> str:
    found = returned(solution, "plan", (held[0].size, held[1].size, held[2].size))
    if isinstance(found, str):
        return found
    inside, (u, v, w), shares = found[np.ix_(*held)], plan.weights, plan.shares
    off = abs(float(found.sum()) - float(inside.sum()))
    for some in slices(plan.problem):
        expected = exp(exponents(plan.problem, plan.found, some)) * u[some, None, None] * v[:, None] * w
        expected += plan.short * shares[0][some, None, None] * shares[1][:, None] * shares[2]
        off += float(np.abs(inside[some] - expected).sum())
    return "" if off <= plan.same else f"plan is {off:.3g} of the mass from that of the potentials"


def returned(solution: Solution, name: str, shape: tuple[int, ...]) -> Array | str:
    """The array in float64, or why it is no plan."""
    found = numbers(solution.arrays, name, shape)
    if isinstance(found, str):
        return found
    if not np.isfinite(found).all() or (found < 0).any() or (found > 2).any():
        return f"{name} holds negative mass, or more than there is"
    return found
