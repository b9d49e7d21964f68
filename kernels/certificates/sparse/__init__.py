"""Proof for entropic transport on the stored entries of a sparse cost.

Weak duality makes the dual value a lower bound on the optimum for any potentials f, g:

    D(f, g) = r1 <a, 1 - exp(-f / r1)> + r2 <b, 1 - exp(-g / r2)> - reg sum (P(f, g) - R)     over the stored entries,

with <a, f> in place of the first term where r1 is infinite; R is a x b on the entries, or 0 for the uniform reference.
`bound` is at most D, `objective` at least the value of the plan as it was returned: float64 with every rounding bounded
and turned to the weak side. `entries.py` has the sums over the entries, `sides.py` what lines alone tell, `slow.py` the
same in sixty digits.

An exact side is met up to rounding, 8 u of the mass for each line; what is off may cost |f_i| times that to first
order, which the gap holds. Where it is more there is no objective. A claim that no plan exists comes with rows or
columns that have more mass than all that they may use.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.certificates.rounded import sum_down, sum_up
from kernels.certificates.sparse.entries import Potentials, excess, primal
from kernels.certificates.sparse.sides import Side, line_sums, of_side
from kernels.certificates.transport_bound import gaps
from kernels.certificates.transport_form import tolerance_of
from kernels.problems.arrays import Array
from kernels.problems.sparse_transport import SparseTransport
from kernels.solution import Certificate, Solution, Termination, unheard

FAINT = 1e-6
"""Of the given mass: a plan below it is as good as empty, and the answer says so."""
SHAPES = {"f": 0, "g": 1, "row_marginal": 0, "column_marginal": 1, "entry_values": 2}
"""Arrays of an answer: one number for each row, column or entry."""


def certify(problem: SparseTransport, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective, bound and marginals."""
    if wrong := _misstated(problem, solution.facts):
        return _refused(wrong)
    if solution.termination is Termination.INFEASIBLE:
        return _infeasible(problem, solution.arrays)
    if wrong := _malformed(problem, solution.arrays):
        return _refused(wrong)
    arrays = {name: np.asarray(solution.arrays[name], np.float64) for name in SHAPES}
    plan = arrays["entry_values"]
    valid = bool(np.isfinite(plan).all() and (plan >= 0).all() and not plan[~problem.used].any())
    potentials = Potentials(problem, arrays["f"], arrays["g"])
    over = excess(problem, potentials, lambda done: progress(done / 2)) if potentials.usable else math.inf
    value = primal(problem, plan, lambda done: progress(0.5 + done / 2)) if valid else math.inf
    progress(1.0)
    lines = line_sums(problem, plan) if valid else None
    sides = [of_side(problem, side, potentials, lines) for side in (0, 1)]
    met = valid and all(side.met(sum(problem.shape)) for side in sides)
    objective = _total([value, *(side.paid for side in sides)], sum_up) if met else None
    bound = _total([*(side.least for side in sides), -over], sum_down) if potentials.usable else None
    price = _total([side.price for side in sides], sum_up)
    gap, relative = gaps(objective, bound, math.inf if price is None else price)
    away = _total([side.away for side in sides], sum_up)
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=relative,
        max_violation=math.inf if away is None else away,
        holds=valid,
        proved=_words(problem, objective is not None),
        facts=_facts(problem, arrays, sides) if valid else {},
        termination=_earned(solution.termination, relative, tolerance_of(solution)),
    )


def _total(parts: list[float], add: Callable[[Any], float]) -> float | None:
    if not np.isfinite(parts).all():
        return None
    total = add(parts)
    return total if math.isfinite(total) else None


def _refused(why: str) -> Certificate:
    return Certificate(None, None, None, None, math.inf, False, f"nothing: {why}")


def _misstated(problem: SparseTransport, facts: dict[str, Any]) -> str:
    true = {"reg": problem.reg, "reg_m": ["inf" if math.isinf(one) else one for one in problem.reg_m], **problem.told}
    for name in ("reg", "reg_m", "cost_scale", "reg_scale"):
        if name in facts and (type(facts[name]) is not type(true.get(name)) or facts[name] != true.get(name)):
            return f"{name} is stated as {facts[name]!r:.60}, and the problem has {true.get(name)!r:.60}"
    return ""


def _malformed(problem: SparseTransport, arrays: dict[str, Array]) -> str:
    sizes = (*problem.shape, problem.nnz)
    for name, which in SHAPES.items():
        array = arrays.get(name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.shape != (sizes[which],):
            return f"{name} is not {sizes[which]} numbers"
    return ""


def _earned(claim: Termination, relative: float | None, tolerance: float) -> Termination | None:
    """The word that the gap earns, None where that is the claim."""
    reached = relative is not None and relative <= tolerance
    if claim in (Termination.GAP_REACHED, Termination.OPTIMAL):
        return None if reached else Termination.CONVERGED
    return Termination.GAP_REACHED if reached and claim is Termination.CONVERGED else None


def _facts(problem: SparseTransport, arrays: dict[str, Array], sides: list[Side]) -> dict[str, Any]:
    low, high = sides[0].sums
    mass, given = float((low + high).sum() / 2), float(min(problem.a.sum(), problem.b.sum()))
    facts: dict[str, Any] = {"mass": mass if math.isfinite(mass) else None}
    if mass < FAINT * given:
        facts["warning"] = (
            f"the plan carries {mass:.3g} of a given mass of {given:.3g}: at this reg_m it is cheaper to give up the"
            " mass than to move it along these entries; a larger reg_m, or costs of smaller scale, moves more"
        )
    for name, side in zip(("row_marginal", "column_marginal"), sides, strict=True):
        off = np.maximum(abs(arrays[name] - side.sums[0]), abs(arrays[name] - side.sums[1]))
        facts[f"{name}_within"] = sum_up(off) if np.isfinite(off).all() else None
    return facts | ({"mass_factor": problem.mass_factor} if np.isinf(problem.reg_m).all() else {})


def _words(problem: SparseTransport, settled: bool) -> str:
    exact = [name for name, one in zip(("rows", "columns"), problem.reg_m, strict=True) if math.isinf(one)]
    bound = "bound = dual value of f, g on the stored entries rounded down"
    arithmetic = "in float64 with every rounding bounded"
    if not exact:
        value = "objective = primal value of the returned plan rounded up"
        return f"{value}, {bound}, {arithmetic}; no constraint to violate"
    violation = f"violation = L1 distance of its balanced {' and '.join(exact)} from the given masses"
    if settled:
        value = "objective = primal value of the returned plan rounded up"
        return f"{value}, {bound}, {arithmetic}; {violation}, and the gap holds what that may cost at f, g"
    return (
        f"{bound}, {arithmetic}; the returned plan does not meet its balanced side, so it has no objective; {violation}"
    )


def _infeasible(problem: SparseTransport, arrays: dict[str, Array]) -> Certificate:
    """Whether the lines named have more mass than all that they may use; see `Side`."""
    shown = any(
        _crowded(problem, side, arrays[name])
        for side, name in enumerate(("hall_rows", "hall_columns"))
        if math.isinf(problem.reg_m[side]) and isinstance(arrays.get(name), np.ndarray)
    )
    factor = {"mass_factor": problem.mass_factor} if np.isinf(problem.reg_m).all() else {}
    proved = "no plan exists: the lines in hall_rows or hall_columns have more mass than all that they may use"
    return Certificate(None, None, None, None, 0.0, shown, proved, facts=factor)


def _crowded(problem: SparseTransport, side: int, lines: Array) -> bool:
    """Of an exact side. What columns may take is their mass where they are exact, else anything but for none."""
    masses, others = (problem.a, problem.b) if side == 0 else (problem.b, problem.a)
    if lines.ndim != 1 or lines.dtype.kind not in "iu" or not lines.size:
        return False
    if int(lines.min()) < 0 or int(lines.max()) >= masses.size:
        return False
    chosen = np.zeros(masses.size, bool)
    chosen[lines] = True
    ends = (problem.entry_rows, problem.entry_columns)
    reached = np.zeros(others.size, bool)
    reached[ends[1 - side][chosen[ends[side]]]] = True
    if math.isinf(problem.reg_m[1 - side]):
        return sum_down(masses[chosen]) > sum_up(others[reached])
    return bool((masses[chosen] > 0).any() and not (others[reached] > 0).any())
