"""Float data as integers: those that are integers times powers of two exactly, others rounded for a proof."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ldexp
from typing import TYPE_CHECKING

import numpy as np

from kernels.deadline import Deadline, Retell, Retold
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Floats
from kernels.problems.quadratic import objective_bound
from kernels.qap.bounds.lower import Bound
from kernels.qap.exact.log import resealed
from kernels.solution import Number, Solution

if TYPE_CHECKING:
    from kernels.qap import QapOptions

Solve = Callable[[QuadraticAssignment, "QapOptions", Deadline], Solution]
NARROW = 2**52
"""Objectives stay below this, so that all of them are float64 numbers in the data's own units too."""


def _in_units(exponent: int) -> Retell:
    """Objectives and bounds times 2^exponent."""

    def scaled(value: Number | None) -> Number | None:
        return None if value is None else ldexp(value, exponent)

    return lambda objective, bound: (scaled(objective), scaled(bound))


def solve_as_integers(
    solve: Solve, problem: QuadraticAssignment, options: "QapOptions", deadline: Deadline
) -> Solution | None:
    """Solve a float problem by its integers, where it has them; None otherwise. Everything comes back in its units."""
    found = None if problem.integer else integers(problem)
    if found is None:
        return None
    whole, exponent = found
    if options.target is not None:
        with np.errstate(over="ignore"):
            target = float(np.floor(np.clip(np.ldexp(options.target, -exponent), -(2.0**61), 2.0**61)))
        options = options.model_copy(update={"target": target})
    if problem.log is not None:
        whole = replace(whole, log=resealed(problem.log, problem, whole))
    solution = solve(whole, options, Retold(deadline, _in_units(exponent)))
    bounds = solution.facts.get("bounds", {})
    solution.facts["bounds"] = {name: ldexp(value, exponent) for name, value in bounds.items()}
    if "tree" in solution.arrays:
        solution.arrays["tree"] = resealed(solution.arrays["tree"], whole, problem)
    for name in solution.evidence:
        if name.endswith(":v") and not name.startswith("rlt1:"):
            solution.evidence[name] = np.ldexp(solution.evidence[name].astype(np.float64), exponent)
    return solution


def integers(problem: QuadraticAssignment) -> tuple[QuadraticAssignment, int] | None:
    """The problem divided by 2^exponent, in integers with objectives below NARROW; None where it has too many bits."""
    flow, distance = problem.flow, problem.distance
    linear = np.zeros_like(flow) if problem.linear is None else problem.linear
    if not flow.any() or not distance.any():
        flow, distance = np.zeros_like(flow), np.zeros_like(distance)
    units = [_unit(m) for m in (flow, distance, linear)]
    if any(unit is None for unit in units):
        return None
    of_flow, of_distance, of_linear = (unit or 0 for unit in units)
    pairs, alone = bool(flow.any()), bool(linear.any())
    exponent = min([of_flow + of_distance] * pairs + [of_linear] * alone, default=0)
    if pairs:
        of_flow = exponent - of_distance
    parts = [np.ldexp(m, -e) for m, e in ((flow, of_flow), (distance, of_distance), (linear, exponent))]
    if not all(float(np.abs(m).max()) < NARROW for m in parts) or not objective_bound(*parts) < NARROW:
        return None
    flow, distance, linear = (m.astype(np.int64) for m in parts)
    given = None if problem.linear is None else linear
    return replace(problem, flow=flow, distance=distance, linear=given), exponent


@dataclass(frozen=True, eq=False)
class Rounded:
    """Float data times powers of two, rounded to integers: flow by 2^a, distance by 2^b, linear costs by 2^(a + b).

    For any permutation, `problem.objective` is within `error` of 2^(a + b) times the objective of the floats: each
    entry is off by 1/2 at most, so a product by half the size of either factor and 1/4.
    """

    problem: QuadraticAssignment
    exponents: tuple[int, int]
    error: int

    def bound(self, found: Bound) -> Bound:
        """A bound on the rounded problem as one on the floats."""
        evidence = found.evidence | {"exponents": np.array(self.exponents)}
        return Bound(found.name, self.value(int(found.value)), self.value(int(found.value)), evidence)

    def value(self, whole: int) -> float:
        """What a lower bound on the rounded problem is worth."""
        return float(np.nextafter(ldexp(float(whole - self.error), -sum(self.exponents)), -np.inf))


def in_integers(problem: QuadraticAssignment) -> tuple[QuadraticAssignment, Rounded | None]:
    """What a proof in integers is of: the problem itself, or its floats rounded, where they can be."""
    near = None if problem.integer else rounded(problem)
    return (problem, None) if near is None else (near.problem, near)


def rounded(problem: QuadraticAssignment) -> Rounded | None:
    """Integers whose objectives reach about 2^50; None where flow or distance are zero, or nothing beside linear."""
    flow, distance = problem.flow, problem.distance
    linear = np.zeros_like(flow) if problem.linear is None else problem.linear
    size = float(objective_bound(flow, distance, linear))
    if not flow.any() or not distance.any() or not 1e-250 < size < 1e250:
        return None
    total = 50 - int(np.frexp(size)[1])
    larger = int(np.frexp(np.abs(flow).max())[1]) - int(np.frexp(np.abs(distance).max())[1])
    a = (total - larger) // 2
    exponents = (a, total - a)
    parts = [np.rint(np.ldexp(m, e)) for m, e in ((flow, a), (distance, total - a), (linear, total))]
    if not max(float(np.abs(m).max()) for m in parts) < NARROW:
        return None
    flow, distance, linear = (m.astype(np.int64) for m in parts)
    whole = replace(problem, flow=flow, distance=distance, linear=None if problem.linear is None else linear)
    error = (int(np.abs(flow).sum()) + int(np.abs(distance).sum()) + problem.n**2 + problem.n) // 2 + 1
    return Rounded(whole, exponents, error)


def _unit(matrix: Floats) -> int | None:
    """The largest power of two that divides every entry, as its exponent (0 for zeros); None beyond 52 bits."""
    entries = np.abs(matrix[matrix != 0])
    if not entries.size:
        return 0
    highest = int(np.frexp(entries.max())[1])
    scaled = np.ldexp(entries, 52 - highest)
    if not (scaled == np.rint(scaled)).all():
        return None
    # below 2^52 an entry's divisors are those of an integer
    bits = int(np.bitwise_or.reduce(scaled.astype(np.int64)))
    return highest - 52 + (bits & -bits).bit_length() - 1
