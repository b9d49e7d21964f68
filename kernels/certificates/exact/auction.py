"""Assignment by auction, checked in whole numbers: each line here is one line of the theory.

The problem: give every row a column of its own (or, with `reject`, its reject price instead) so that the sum is
greatest. For any prices p >= 0, sum_j p_j + sum_i max(reject_i, max_j b_ij - p_j) is at least that sum.
"""

from fractions import Fraction
from math import floor, isfinite
from typing import Any

import numpy as np

from kernels.certificates.exact import profits
from kernels.certificates.exact.assignment import EARNED, earned, stated_bound
from kernels.certificates.exact.points import DIRECTIONS, ROOTED, allowed, clouds, cost
from kernels.certificates.exact.profits import Priced, Rows
from kernels.certificates.exact.statement import (
    Claim,
    Inputs,
    Statement,
    gap_statements,
    near,
    permitted,
    plain,
    rational,
)
from kernels.problems.arrays import Array, Csr


def check(inputs: Inputs, options: dict[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of an answer. `inputs`: benefit (dense or CSR) or x and y; `reject` where rows may stay free."""
    rows, data, slack = benefits(inputs, options, claim)
    if claim.termination == "infeasible":
        return [_no_room(rows, claim, "reject" in inputs)]
    prices, assignment = claim.arrays["prices"], claim.arrays["assignment"].tolist()
    reject = _reject(inputs)
    worth, wrong = pairs(rows, assignment, reject)
    if wrong:
        return [Statement("answer", False, wrong)]
    missing = sum(one is None for one in worth)
    named = claim.arrays.get("neighbours")
    said = [] if named is None else [_nearest(inputs, options, named)]
    said.append(
        Statement("answer", True, f"{len(worth) - missing} rows are settled, {missing} are not; no column twice")
    )
    objective = None if missing else sum((one for one in worth if one is not None), Fraction(0))
    magnitude = sum((abs(one) for one in worth if one is not None), Fraction(0))
    least = min((abs(one) for one in worth if one), default=Fraction(1))
    lost = allowed(inputs, options, magnitude, least) if "x" in inputs and "benefit" not in inputs else Fraction(0)
    said.append(_objective(claim, objective, magnitude * (len(worth) + 1) / 2**53 + slack + lost))
    exact = all(array.dtype.kind in "iu" for array in data)
    priced, *finer = (Priced(rows, given, reject) for given in known_prices(prices, exact))
    bounds = [one.bound() for one in (priced, *finer)]
    shown = [Fraction(floor(bound)) if exact else bound - slack for bound in bounds if bound is not None]
    said.append(stated_bound(claim, shown, maximize=True))
    said += gap_statements(claim, None if objective is None else objective + slack, maximize=True)
    duals = max(_duals(claim, assignment), _tightened(priced, assignment)) if claim.optimal else Fraction(0)
    if claim.optimal:
        said.append(earned(claim, magnitude + duals, _smallest(rows, reject), *data))
    said.append(profits.check(claim, priced, inputs, options, exact, EARNED * (magnitude + duals)))
    if claim.termination == "gap_reached":
        said.append(_within(claim, len(worth), options.get("epsilon")))
    return said


def benefits(inputs: Inputs, options: dict[str, Any], claim: Claim) -> tuple[Rows, list[Array], Fraction]:
    """The permitted entries of every row, the arrays they come from, and what distances worked out in float64 lose."""
    given, reject = inputs.get("benefit"), inputs.get("reject")
    others = [reject] if isinstance(reject, np.ndarray) else []
    if given is None:
        return _distances(inputs, options, claim)
    if isinstance(given, Csr):
        values, columns, ends = given.values.tolist(), given.indices.tolist(), given.indptr.tolist()
        rows = [{columns[k]: Fraction(values[k]) for k in range(ends[i], ends[i + 1])} for i in range(given.shape[0])]
        return rows, [given.values, *others], Fraction(0)
    rows = [{j: Fraction(b) for j, b in enumerate(row) if permitted(b)} for row in given.tolist()]
    return rows, [given, *others], Fraction(0)


def _distances(inputs: Inputs, options: dict[str, Any], claim: Claim) -> tuple[Rows, list[Array], Fraction]:
    """Benefits of points: minus each distance, of the named neighbours alone where there are such; roots to 2^-200."""
    points_x, points_y, metric = clouds(inputs, options)
    near = claim.arrays.get("neighbours")
    rows: Rows = []
    for i, p in enumerate(points_x):
        columns = range(len(points_y)) if near is None else near[i].tolist()
        rows.append({j: -cost(p, points_y[j], metric) for j in columns})
    most = sum((max((abs(b) for b in row.values()), default=Fraction(0)) for row in rows), Fraction(0))
    most += len(rows) if metric in DIRECTIONS else 0  # 1 less a quotient: its root is off by a share of 1
    return rows, [np.zeros(0)], most / 2**110 if metric in ROOTED else Fraction(0)


def _nearest(inputs: Inputs, options: dict[str, Any], named: Array) -> Statement:
    """Whether no column that was left out is nearer than one that was named, by more than distances in float64 lose."""
    points_x, points_y, metric = clouds(inputs, options)
    for i, p in enumerate(points_x):
        columns = set(named[i].tolist())
        away = [cost(p, q, metric) for q in points_y]
        rest = [d for j, d in enumerate(away) if j not in columns]
        if len(columns) < named.shape[1]:
            return Statement("neighbours", False, f"row {i} names a column twice")
        if rest and max(away[j] for j in columns) > min(rest) * (1 + Fraction(len(p) + 8, 2**50)):
            return Statement("neighbours", False, f"row {i} has a nearer column that is not named")
    return Statement("neighbours", True, f"each row's {named.shape[1]} columns are its nearest")


def pairs(rows: Rows, assignment: list[int], reject: list[Fraction] | None) -> tuple[list[Fraction | None], str]:
    """What each row adds to the objective (None: nothing yet), and a sentence when this is no assignment."""
    if len(assignment) != len(rows):
        return [], f"{len(assignment)} rows are answered, the problem has {len(rows)}"
    taken = [j for j in assignment if j != -1]
    if len(set(taken)) < len(taken):
        return [], "a column is taken twice"
    if any(j != -1 and j not in row for j, row in zip(assignment, rows, strict=True)):
        return [], "a pair is not permitted"
    free: list[Fraction | None] = [None] * len(rows) if reject is None else [*reject]
    return [free[i] if j == -1 else rows[i][j] for i, j in enumerate(assignment)], ""


def _reject(inputs: Inputs) -> list[Fraction] | None:
    """What each row adds by staying free; None where none may."""
    given = inputs.get("reject")
    assert not isinstance(given, Csr)
    return None if given is None else [Fraction(price) for price in given.tolist()]


def known_prices(prices: Array, exact: bool) -> list[list[Fraction]]:
    """The prices, 0 for what is no number; on integers also as multiples of 2^-k, which bound as well as any others.

    An integer optimum lets a bound be rounded down, so a price that is a little better can show one less.
    """
    given = [Fraction(p) if isfinite(p) else Fraction(0) for p in prices.tolist()]
    if not exact or prices.dtype.kind in "iu":
        return [given]
    return [given, *([Fraction(round(p * 2**k), 2**k) for p in given] for k in range(51))]


def _objective(claim: Claim, objective: Fraction | None, slack: Fraction) -> Statement:
    if objective is None or claim.objective is None:
        return Statement("objective", objective is None and claim.objective is None, f"{claim.objective} is stated")
    right = near(claim.objective, objective, slack + Fraction(1, 2**1074))
    return Statement("objective", right, f"{claim.objective} is stated, {plain(objective)} found")


def _duals(claim: Claim, assignment: list[int]) -> Fraction:
    """The magnitudes of the duals of the chosen pairs: a row's profit and its column's price; 0 where one is none."""
    told = claim.arrays["profits"].shape == (len(assignment),)
    if not told or not all(np.isfinite(claim.arrays[name]).all() for name in ("profits", "prices")):
        return Fraction(0)
    nets, prices = (claim.arrays[name].tolist() for name in ("profits", "prices"))
    terms = [abs(Fraction(nets[i])) + (abs(Fraction(prices[j])) if j >= 0 else 0) for i, j in enumerate(assignment)]
    return sum(terms, Fraction(0))


def _tightened(priced: Priced, assignment: list[int]) -> Fraction:
    """The same with the profits that the prices allow at best."""
    sizes = [abs(net) for net in priced.nets if net is not None]
    return sum([*sizes, *(abs(priced.prices[j]) for j in assignment if j >= 0)], Fraction(0))


def _smallest(rows: Rows, reject: list[Fraction] | None) -> Fraction:
    """The sum over the rows of the smallest permitted |entry| that is not 0."""
    least = Fraction(0)
    for i, row in enumerate(rows):
        entries = [abs(b) for b in row.values() if b]
        entries += [] if reject is None or not reject[i] else [abs(reject[i])]
        least += min(entries, default=Fraction(0))
    return least


def _within(claim: Claim, n_rows: int, asked: float | None) -> Statement:
    """Whether the gap is what the asked epsilon promises."""
    epsilon = claim.facts.get("epsilon")
    if epsilon is None or claim.gap_abs is None:
        return Statement("gap reached", False, "an epsilon was reached, it says, without an epsilon or a gap")
    if asked is None or rational(epsilon) > rational(asked):
        return Statement(
            "gap reached", False, f"{epsilon} is stated as the epsilon that was reached, {asked} was asked"
        )
    promise = n_rows * rational(epsilon)
    return Statement("gap reached", rational(claim.gap_abs) <= promise, f"{claim.gap_abs} of at most {plain(promise)}")


def _no_room(rows: Rows, claim: Claim, may_stay: bool) -> Statement:
    """Some rows together have fewer columns than they are."""
    named = sorted(set(claim.arrays["hall_rows"].tolist()))
    seen = {j for i in named if 0 <= i < len(rows) for j in rows[i]}
    inside = all(0 <= i < len(rows) for i in named)
    words = f"{len(named)} rows have edges to {len(seen)} columns only"
    return Statement("infeasible", inside and not may_stay and len(seen) < len(named), words)
