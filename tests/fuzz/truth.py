"""The claims of an answer against the true optimum of its problem, which oracles.py works out."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from kernels import Array, Csr
from kernels.certificates.exact import auction as exact_auction
from kernels.certificates.exact import points
from kernels.certificates.exact import rejecting as exact_rejecting
from kernels.certificates.exact import selected as exact_selected
from kernels.certificates.exact.assignment import EARNED, FROM_DATA
from kernels.certificates.exact.every import problems_of
from kernels.certificates.exact.quadratic import Problem
from kernels.certificates.exact.statement import Claim, dyadic, plain, rational
from tests.fuzz import between, carried, couplings, oracles, thin, triples
from tests.fuzz.case import Case

Found = Iterator[tuple[str, str]]
PARTIAL = ("time_limit", "iteration_limit", "stopped")
LARGEST = {"lap": 16, "auction": 20, "qap": 6}
"""Lines up to which an optimum is worked out; beyond, the statements of an answer are all that is re-checked."""


def against_optimum(case: Case, claim: Claim) -> Found:
    """(verdict, why) for each claim that the optimum refutes."""
    if case.solver == "uot":
        yield from carried.against(case, claim)
    elif case.solver == "gromov":
        yield from couplings.against(case, claim)
    elif case.solver == "barycenter":
        yield from between.against(case, claim)
    elif case.solver == "lowrank":
        yield from thin.against(case, claim)
    elif case.solver == "multimarginal":
        yield from triples.against(case, claim)
    elif is_selected(case):
        best, integer = least_selected(case)
        yield from _compare(claim, best, Fraction(0), integer, bool(case.options.get("maximize")))
    elif is_priced(case):
        yield from _priced(case, claim)
    elif case.solver == "lap" and _is_batch(case):
        yield from _batch(case, claim)
    elif _lines(case) <= LARGEST[case.solver]:
        best, slack, integer, maximize = optimum(case, claim)
        yield from _compare(claim, best, slack, integer, maximize)


def _is_batch(case: Case) -> bool:
    return "cost" in case.inputs and case.inputs["cost"].ndim == 3


def _lines(case: Case) -> int:
    if "x" in case.inputs:
        return max(len(case.inputs[name]) for name in "xy")
    return max(int(max(case.inputs[name].shape)) for name in ("cost", "benefit", "flow") if name in case.inputs)


def optimum(case: Case, claim: Claim | None = None) -> tuple[Fraction | None, Fraction, bool, bool]:
    """(optimum or None when infeasible, what distances in float64 may lose, integers?, maximised?)."""
    if case.solver == "lap":
        maximize = bool(case.options.get("maximize"))
        if "x" in case.inputs:
            return _points(case, maximize)
        cost = case.inputs["cost"]
        return _lap(cost, maximize), Fraction(0), cost.dtype.kind in "iu", maximize
    if case.solver == "auction":
        best, slack, integer = _auction(case, claim)
        return best, slack, integer, True
    fixed = case.options.get("fixed") or {}
    problem = Problem(case.inputs, fixed)
    found = oracles.least_quadratic(problem.flow, problem.distance, problem.linear)
    best = None if found is None else Fraction(found, 2**problem.shift)
    return best, Fraction(0), problem.integer, False


def must_answer(case: Case, claim: Claim) -> bool:
    """Whether an objective has to be there: the problem has answers, and nothing is forbidden that could be hard."""
    if case.solver in ("gromov", "barycenter", "lowrank", "multimarginal"):
        return True
    if claim.termination in ("infeasible", "stopped") or case.solver == "uot":
        return False
    if is_selected(case):
        return claim.termination not in PARTIAL and least_selected(case)[0] is not None
    if is_priced(case):
        return claim.termination not in PARTIAL and is_single(case)
    if case.solver == "lap" and _is_batch(case):
        return False
    if _lines(case) > LARGEST[case.solver] or (claim.termination in PARTIAL and _is_sparse(case)):
        return False  # a partial answer may have run into a dead end
    return optimum(case, claim)[0] is not None


def _is_sparse(case: Case) -> bool:
    given = case.inputs.get("cost", case.inputs.get("benefit", case.inputs.get("linear")))
    if given is None:
        return "neighbours" in case.options
    if isinstance(given, Csr):
        return "reject" not in case.inputs and not case.options.get("allow_unassigned")
    return any(entry is None for row in dyadic(given)[0][0] for entry in row)


def _compare(claim: Claim, best: Fraction | None, slack: Fraction, integer: bool, maximize: bool) -> Found:
    if claim.termination == "infeasible":
        if best is not None:
            yield "wrong", f"infeasible, it says; the optimum is {plain(best)}"
        return
    if best is None:
        if claim.objective is not None and claim.optimal:
            yield "wrong", f"objective {claim.objective} of a problem without answers"
        return
    sign = -1 if maximize else 1
    if claim.bound is not None and sign * (rational(claim.bound) - best) > slack:
        yield "misleading", f"bound {claim.bound} is beyond the optimum {plain(best)}"
    if claim.objective is None:
        return
    worse = sign * (rational(claim.objective) - best)
    if claim.gap_abs is not None and worse > rational(claim.gap_abs) + slack + rounding(claim):
        yield "misleading", f"gap {claim.gap_abs}, and the optimum {plain(best)} is {plain(worse)} better"
    if claim.optimal and (worse != 0 if integer else worse > limit(claim, best) + slack):
        yield "wrong", f"{claim.objective} is optimal, it says; {plain(best)} is"


def rounding(claim: Claim) -> Fraction:
    """One rounding of the stated objective; the gap itself is re-checked without it."""
    return Fraction(0) if isinstance(claim.objective, int) else abs(rational(claim.objective or 0)) / 2**52


def limit(claim: Claim, best: Fraction) -> Fraction:
    """Far above what any rounding explains, whatever the data: what no optimum in floats may be away."""
    return max(abs(best), abs(rational(claim.objective or 0))) * FROM_DATA + EARNED * _magnitude(claim)


def _magnitude(claim: Claim) -> Fraction:
    names = ("u", "v", "profits", "prices")
    given = [abs(claim.arrays[name].astype(float)) for name in names if name in claim.arrays]
    with np.errstate(over="ignore"):
        size = sum(float(one[np.isfinite(one)].sum()) for one in given)  # a dual that is no number counts as 0
    return Fraction(size) if np.isfinite(size) else Fraction(0)


def _lap(cost: Array, maximize: bool) -> Fraction | None:
    (table,), shift = dyadic(cost)
    sign = -1 if maximize else 1
    best = oracles.least_assignment([[None if c is None else sign * c for c in row] for row in table])
    return None if best is None else Fraction(sign * best, 2**shift)


def _points(case: Case, maximize: bool) -> tuple[Fraction, Fraction, bool, bool]:
    costs, slack = points.table(case.inputs, case.options)
    sign = -1 if maximize else 1
    signed: Any = [[sign * c for c in row] for row in costs]  # the oracle adds and compares, fractions too
    best = oracles.least_assignment(signed)
    assert best is not None
    return Fraction(sign * best), slack, False, maximize


def _auction(case: Case, claim: Claim | None) -> tuple[Fraction | None, Fraction, bool]:
    given: dict[str, Any] = dict(case.inputs)
    if case.options.get("allow_unassigned") and "reject" not in given:
        given["reject"] = np.zeros(given.get("benefit", given.get("x")).shape[0], np.int64)  # type: ignore[union-attr]
    seen = claim if claim is not None else Claim("", None, None, None, None, None, {})
    rows, data, slack = exact_auction.benefits(given, case.options, seen)
    n_cols = (given["benefit"] if "benefit" in given else given["y"]).shape[0 if "y" in given else 1]
    below = lcm(*{b.denominator for row in rows for b in row.values()})
    reject = [Fraction(x) for x in given["reject"].tolist()] if "reject" in given else None
    below = lcm(below, *(x.denominator for x in reject or []))
    table: list[list[int | None]] = []
    for i, row in enumerate(rows):
        line: list[int | None] = [None if j not in row else -int(row[j] * below) for j in range(n_cols)]
        if reject is not None:
            line += [-int(reject[i] * below) if k == i else None for k in range(len(rows))]
        table.append(line)
    best = oracles.least_assignment(table)
    exact = all(array.dtype.kind in "iu" for array in data)
    return (None if best is None else Fraction(-best, below)), slack, exact


def _batch(case: Case, claim: Claim) -> Found:
    """The sums over the problems that have an answer, and each problem's own numbers where the facts list them."""
    cost, sizes = case.inputs["cost"], case.inputs.get("sizes")
    maximize, integer = bool(case.options.get("maximize")), cost.dtype.kind in "iu"
    optima = []
    for k in range(len(cost)):
        rows, columns = cost.shape[1:] if sizes is None else sizes[k].tolist()
        optima.append(_lap(cost[k, :rows, :columns], maximize))
    try:
        claims = problems_of(claim, len(cost))
    except KeyError as error:
        yield "wrong", str(error)
        return
    for k, (best, one) in enumerate(zip(optima, claims, strict=True)):
        for kind, why in _compare(one, best, Fraction(0), integer, maximize):
            yield kind, f"problem {k}: {why}"
        if best is not None and one.objective is None and one.termination not in PARTIAL:
            yield "refused", f"problem {k} has answers and no objective"
    if claim.objective is not None:
        yield from _sums(claim, claims, maximize)


def is_selected(case: Case) -> bool:
    """Whether exactly so many pairs are asked for, or the least largest cost."""
    return case.solver == "lap" and exact_selected.is_selected(case.options)


def least_selected(case: Case) -> tuple[Fraction | None, bool]:
    """The optimum, None without one, and whether it is one of integers."""
    cost, sign = case.inputs["cost"], -1 if case.options.get("maximize") else 1
    (matrix,), shift = dyadic(cost)
    table = [[None if c is None else sign * c for c in row] for row in matrix]
    asked = case.options.get("cardinality")
    find = oracles.least_largest if case.options.get("objective", "sum") == "bottleneck" else oracles.least_of_pairs
    best = find(table, min(cost.shape) if asked is None else asked)
    return None if best is None else Fraction(sign * best, 2**shift), cost.dtype.kind in "iu"


def is_priced(case: Case) -> bool:
    """Whether lines may be left at a price, or matrices come one after the other."""
    return case.solver == "lap" and exact_rejecting.is_priced(case.inputs, case.options)


def is_single(case: Case) -> bool:
    """Whether there is one problem, and not a list of them."""
    return "sizes" not in case.inputs and ("x" in case.inputs or case.inputs["cost"].ndim == 2)


def _least_duals(problem: exact_rejecting.Priced) -> Fraction:
    """Sizes that the duals of columns have at least: no dual is above its line's price, which may be below 0."""
    return sum((max(Fraction(0), -price) for price in problem.prices[1] if price is not None), Fraction(0))


def _returned_duals(claim: Claim, problems: Sequence[exact_rejecting.Priced]) -> list[Fraction]:
    """The sizes of each problem's own duals, which come one problem after the other."""
    found = [Fraction(0)] * len(problems)
    for axis, name in enumerate("uv"):
        given = claim.arrays[name].reshape(-1).astype(float)
        ends = np.cumsum([problem.cost.shape[axis] for problem in problems])
        for k, own in enumerate(np.split(np.abs(given[: ends[-1]]), ends[:-1])):
            found[k] += Fraction(float(own[np.isfinite(own)].sum()))
    return found


def _priced(case: Case, claim: Claim) -> Found:
    """Each problem against its optimum, by the square of all lines with a private place for each that may be left."""
    maximize = bool(case.options.get("maximize"))
    problems = exact_rejecting.problems(case.inputs, case.options)
    single = is_single(case)
    try:
        claims = [claim] if single else problems_of(claim, len(problems))
    except KeyError as error:
        yield "wrong", str(error)
        return
    returned = [Fraction(0)] if single else _returned_duals(claim, problems)  # `limit` counts those of a single one
    for k, (problem, one) in enumerate(zip(problems, claims, strict=True)):
        best, integer = least_priced(problem, -1 if maximize else 1)
        for kind, why in _compare(one, best, EARNED * (_least_duals(problem) + returned[k]), integer, maximize):
            yield kind, why if single else f"problem {k}: {why}"
        if best is not None and one.objective is None and one.termination not in PARTIAL:
            yield "refused", f"problem {k} has answers and no objective"
    if not single and claim.objective is not None:
        yield from _sums(claim, claims, maximize)


def least_priced(problem: exact_rejecting.Priced, sign: int) -> tuple[Fraction | None, bool]:
    """The optimum of one problem, None without one, and whether all its numbers are integers."""
    (matrix,), shift = dyadic(problem.cost)
    n, m = problem.cost.shape
    known = [price for side in problem.prices for price in side if price is not None]
    below = max([2**shift, *(price.denominator for price in known)])
    more = below // 2**shift
    rows, columns = ([None if p is None else int(sign * p * below) for p in side] for side in problem.prices)
    table: list[list[int | None]] = [
        [None if c is None else sign * c * more for c in row] + [rows[i] if k == i else None for k in range(n)]
        for i, row in enumerate(matrix)
    ]
    table += [[columns[j] if k == j else None for k in range(m)] + [0] * n for j in range(m)]
    best = oracles.least_assignment(table) if table else 0
    integer = problem.cost.dtype.kind in "iu" and all(price.denominator == 1 for price in known)
    return None if best is None else Fraction(sign * best, below), integer


def _sums(claim: Claim, claims: list[Claim], maximize: bool) -> Found:
    """Whether objective and bound of the whole are sums over the problems that have an objective."""
    solved = [one for one in claims if one.objective is not None]
    total = sum((rational(one.objective) for one in solved), Fraction(0))
    size = sum((abs(rational(one.objective)) for one in solved), Fraction(0))
    if abs(total - rational(claim.objective)) > size * len(claims) / 2**52 + Fraction(1, 2**1074):
        yield "wrong", f"the objective {claim.objective} is not the problems' sum {plain(total)}"
    if claim.bound is None or any(one.bound is None for one in solved):
        return
    bounds = sum((rational(one.bound) for one in solved), Fraction(0))
    beyond = (rational(claim.bound) - bounds) * (-1 if maximize else 1)
    if beyond > 0:
        yield "misleading", f"the bound {claim.bound} is beyond the problems' sum {plain(bounds)}"
