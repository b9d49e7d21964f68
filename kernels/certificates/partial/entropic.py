"""Proof with an entropic term: the primal value of the plan rounded up, and the dual value of f, g rounded down.

Sums over the entries, with the bounds of their errors, are those of transport_sums.py. With P the plan and Q = P(f, g)

    <C, P> + reg Omega(P) = <f, P 1> + <g, P' 1> + reg sum phi(P, Q) - reg sum (Q - R),

so that each line costs f_i p + D(p), which is convex in its sum p: the larger of the values at two bounds of p bounds
it. What depends on lines alone is worked out in fractions (sides.py) and rounded once. Lines without mass carry
nothing.
Potentials of total variation below -r are taken as -r before anything is read.

A part of the mass is met up to rounding: `max_violation` bounds what is too much or too little, and the gap holds what
that is worth. Where it is certainly more than rounding leaves, 8 u of both sides a line (and of a line at most twice
the mass), there is no objective.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from kernels.certificates.flow import number
from kernels.certificates.flow.dyadic import Exact
from kernels.certificates.partial.linear import ROUNDED, between, concerned, infeasible, refused, words
from kernels.certificates.partial.sides import Missed, Side, missed, misstated
from kernels.certificates.rounded import down, up
from kernels.certificates.transport_answer import Answer
from kernels.certificates.transport_bound import LOST
from kernels.certificates.transport_direct import LARGEST, entries_value
from kernels.certificates.transport_elementary import UNIT
from kernels.certificates.transport_form import malformed, tolerance_of
from kernels.certificates.transport_shown import Shown
from kernels.certificates.transport_sums import Sums, measure
from kernels.certificates.transport_units import back, near_one
from kernels.problems.arrays import Array
from kernels.problems.marginal_transport import MarginalTransport
from kernels.solution import Certificate, Solution, Termination


def certify(problem: MarginalTransport, solution: Solution, progress: Callable[[float], None]) -> Certificate:
    """See the package."""
    if wrong := misstated(problem, solution.facts):
        return refused(wrong)
    if solution.termination is Termination.INFEASIBLE:
        return infeasible(problem, solution)
    arrays = solution.arrays
    if unread := malformed(problem.entropic, arrays, potentials=True):
        return refused(unread)
    if "plan" not in arrays:
        return refused("there is no plan")
    scaled, given, power, _ = near_one(replace(problem.entropic, reg_m=problem.strengths), arrays)
    plain = replace(scaled, reg_m=(math.inf, math.inf))  # so no potential may be infinite where there is mass
    assert plain.cost is not None
    moved = replace(problem, cost=plain.cost, reg=plain.reg, strengths=scaled.reg_m)  # smaller ones prove less
    partly = problem.kind == "partial"
    prices = [Fraction(0) if partly else Fraction(strength) / Fraction(2) ** power for strength in problem.strengths]
    answer = Answer(plain, {name: _clipped(moved, name, given[name]) for name in ("f", "g", "plan")})
    sums = measure(answer, Shown({}), progress)
    found = back(_stated(moved, answer, sums, prices), power)
    return replace(found, termination=_earned(solution.termination, found.gap_rel, tolerance_of(solution)))


def _clipped(problem: MarginalTransport, name: str, array: Array) -> Array:
    if problem.kind != "tv" or name == "plan":
        return array
    with np.errstate(invalid="ignore"):
        return np.maximum(np.asarray(array, np.float64), -problem.strengths["fg".index(name)])


def _stated(problem: MarginalTransport, answer: Answer, sums: Sums, prices: list[Fraction]) -> Certificate:
    sides = Side(problem, 0, answer.f), Side(problem, 1, answer.g)
    known = sums.valid and all(np.isfinite(ends).all() for ends in (*sums.rows, *sums.columns))
    off, settled = _missed(problem, sides, sums) if known else (Missed(Fraction(0), Fraction(0)), False)
    objective = number(_primal(answer, sums, sides, prices) if settled else None, up)
    bound = number(_dual(answer, sums, sides), down)
    gap, relative = between(objective, bound, off.price)
    mass = float(((sums.rows[0] + sums.rows[1]) / 2).sum())
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=relative,
        max_violation=up(off.violation) if known else float("inf"),
        holds=bool(sums.valid and answer.usable),
        proved=words(problem, objective is not None, "in float64 with every rounding bounded"),
        facts={"mass": mass if math.isfinite(mass) else None},
    )


def _earned(claim: Termination, relative: float | None, tolerance: float) -> Termination | None:
    """The word that the gap earns, None where that is the claim."""
    reached = relative is not None and relative <= tolerance
    if claim in (Termination.GAP_REACHED, Termination.OPTIMAL):
        return None if reached else Termination.CONVERGED
    return Termination.GAP_REACHED if reached and claim is Termination.CONVERGED else None


def _missed(problem: MarginalTransport, sides: tuple[Side, Side], sums: Sums) -> tuple[Missed, bool]:
    """At most what is missed and its worth; and whether that may be rounding."""
    if problem.kind != "partial":
        return Missed(Fraction(0), Fraction(0)), True
    low, high = ((Exact.of(sums.rows[end]), Exact.of(sums.columns[end])) for end in (0, 1))
    least, most = low[0].total, high[0].total
    found = missed(problem, sides, high)
    wide = most - least
    worth = wide * abs(sides[0].top + sides[1].top)
    wanted = Fraction(problem.mass)
    surely = sum((side.beyond(own).total for side, own in zip(sides, low, strict=True)), Fraction(0))
    surely += max(least - wanted, wanted - most, Fraction(0))
    allowed = ROUNDED * Fraction(problem.mass) + Fraction(8 * UNIT * sum(problem.shape)) * concerned(problem)
    return Missed(found.violation + wide, found.price + worth), surely <= allowed


def _dual(answer: Answer, sums: Sums, sides: tuple[Side, Side]) -> Fraction | None:
    """The dual value, where the potentials prove anything."""
    excess = sums.excess[1]
    parts = [side.least() for side in sides]
    if not (answer.usable and sums.finite and math.isfinite(excess)) or None in parts:
        return None
    total = sum((part for part in parts if part is not None), Fraction(0))
    return total - Fraction(answer.problem.reg) * Fraction(excess)


def _primal(answer: Answer, sums: Sums, sides: tuple[Side, Side], prices: list[Fraction]) -> Fraction | None:
    """At least the value of the plan: by its potentials, or where that is less without them.

    `prices`: the strengths, 0 for a part of the mass, not rounded as those of the problem may be.
    """
    reg, found = Fraction(answer.problem.reg), []
    both = list(zip(sides, (sums.rows, sums.columns), prices, strict=True))
    if sums.finite and math.isfinite(sums.divergence) and math.isfinite(sums.excess[0]):
        entries = reg * (Fraction(sums.divergence) - Fraction(sums.excess[0]))
        paid = (_lines(side, ends, price, side.potential) for side, ends, price in both)
        found.append(entries + sum(paid, Fraction(0)))
    m, n = answer.problem.shape
    if m * n <= LARGEST and not (found and _close(answer, sums, sides, found[0])):
        entries_up = entries_value(answer)
        if math.isfinite(entries_up):
            paid = (_lines(side, ends, price, np.zeros_like(side.potential)) for side, ends, price in both)
            found.append(Fraction(entries_up) + sum(paid, Fraction(0)))
    return min(found, default=None)


def _close(answer: Answer, sums: Sums, sides: tuple[Side, Side], value: Fraction) -> bool:
    """Whether the bounds of the sums are so near to each other that the value by potentials loses no digits."""
    loss = answer.problem.reg * (sums.excess[1] - sums.excess[0])
    for side, (low, high) in zip(sides, (sums.rows, sums.columns), strict=True):
        kind, r = side.problem.kind, side.problem.strengths[side.number]
        steep = abs(side.potential)
        if kind != "partial":
            steep = steep + (r if kind == "tv" else r * np.maximum(abs(low - side.masses), abs(high - side.masses)))
        with np.errstate(over="ignore"):
            loss += float((steep * (high - low)).sum())
    return loss <= LOST * max(up(abs(value)), answer.problem.reg * float(sums.rows[0].sum()))


def _lines(side: Side, ends: tuple[Array, Array], strength: Fraction, potential: Array) -> Fraction:
    """At least the sum of f_i p_i + D(p_i), for p_i between the ends."""
    f, away = Exact.of(potential), [side.away(Exact.of(end)) for end in ends]
    shift = max(one.shift for one in away)
    found = [Exact.of(end).over(shift) for end in ends]
    away = [one.over(shift) for one in away]
    r, of_r = strength.numerator, strength.denominator.bit_length() - 1
    squares = side.problem.kind == "l2"
    of_f, of_d = f.shift + shift, of_r + shift + (shift + 1 if squares else 0)
    up_f, up_d = max(of_d - of_f, 0), max(of_f - of_d, 0)
    values = [
        [
            ((p * price) << up_f) + ((r * (d * d if squares else abs(d))) << up_d)
            for p, price, d in zip(end.numbers, f.numbers, apart.numbers, strict=True)
        ]
        for end, apart in zip(found, away, strict=True)
    ]
    return Fraction(sum(map(max, *values)), 1 << max(of_f, of_d))
