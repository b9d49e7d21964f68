"""Couplings of low rank against optimal transport, in fractions: no coupling is below it, and no bound above."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, plain, rational
from kernels.problems.lowrank import low_rank_transport
from tests.fuzz.case import Case
from tests.fuzz.flows import least_flow

Line = list[Fraction]
_known: dict[int, tuple[Case, Fraction]] = {}
"""The optimum of the case that was asked for last: answers to it are corrupted one by one."""


def against(case: Case, claim: Claim) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each claim that the optimum refutes."""
    if claim.termination == "infeasible":
        yield "wrong", "infeasible, it says; there always is a coupling"
    best = least(case)
    if claim.bound is not None and rational(claim.bound) > best:
        yield "misleading", f"bound {claim.bound} is beyond optimal transport, {plain(best)}"
    if claim.objective is None:
        return
    above = rational(claim.objective) - best
    if above < 0:
        yield "wrong", f"objective {claim.objective} is below optimal transport, {plain(best)}"
    if claim.gap_abs is not None and above > rational(claim.gap_abs):
        yield "misleading", f"gap {claim.gap_abs}, and optimal transport is {plain(above)} better"
    if claim.optimal and above > max(abs(best), abs(rational(claim.objective))) / 10**8:
        yield "wrong", f"{claim.objective} is optimal, it says; {plain(best)} is"


def least(case: Case) -> Fraction:
    """What optimal transport costs."""
    if id(case) not in _known:
        cost = table(case)
        a, b = (_weights(case.inputs.get(name), size) for name, size in (("a", len(cost)), ("b", len(cost[0]))))
        found = least_flow([list(row) for row in cost], a, b)
        assert found is not None
        _known.clear()
        _known[id(case)] = case, found
    return _known[id(case)][1]


def table(case: Case) -> list[Line]:
    """All costs: those of the real numbers, but for metrics that float64 makes of points."""
    metric = case.options.get("metric", "sqeuclidean")
    problem = low_rank_transport(case.inputs, rank=1, metric=metric)
    if problem.cost is not None:
        return _lines(problem.cost)
    if "row_factors" in case.inputs:
        left, right = (_lines(case.inputs[name]) for name in ("row_factors", "column_factors"))
        return [[_dot(one, other) for other in right] for one in left]
    x, y = (_lines(case.inputs[name]) for name in "xy")
    if metric == "inner":
        return [[-_dot(one, other) for other in y] for one in x]
    away = [[[s - t for s, t in zip(one, other, strict=True)] for other in y] for one in x]
    return [[_dot(step, step) for step in row] for row in away]


def _weights(given: Any, size: int) -> Line:
    if given is None:
        return [Fraction(1, size)] * size
    masses = np.asarray(given, np.float64)
    known = [Fraction(mass) if mass >= 1e-250 * masses.max() else Fraction(0) for mass in masses.tolist()]
    return [mass / sum(known) for mass in known]


def _lines(given: Any) -> list[Line]:
    return [list(map(Fraction, line)) for line in np.asarray(given, np.float64).tolist()]


def _dot(one: Line, other: Line) -> Fraction:
    return sum((s * t for s, t in zip(one, other, strict=True)), Fraction(0))
