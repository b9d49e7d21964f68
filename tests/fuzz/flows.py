"""Transport without an entropic term against its optimum, which shortest augmenting paths find in fractions."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from kernels.certificates.exact.statement import Claim, permitted, plain, rational
from tests.fuzz.case import Case

Table = list[list[Fraction | None]]
PARTIAL = ("time_limit", "iteration_limit", "stopped")
ROUNDED = Fraction(1, 2**40)
"""Of the sizes of the terms: how far an optimum in floats may be away, whatever is rounded on the way."""


def against(case: Case, claim: Claim) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each claim that the optimum refutes."""
    cost = [[Fraction(c) if permitted(c) else None for c in row] for row in case.inputs["cost"].tolist()]
    a, b = ([Fraction(mass) for mass in case.inputs[name].tolist()] for name in "ab")
    best = least_flow(cost, a, b)
    if best is None:
        if claim.termination not in ("infeasible", *PARTIAL) or claim.objective is not None:
            yield "wrong", f"{claim.termination}, objective {claim.objective}; there is no plan"
        return
    if claim.termination == "infeasible":
        yield "wrong", f"infeasible, it says; the optimum is {plain(best)}"
        return
    whole = case.inputs["cost"].dtype.kind != "f" and case.inputs["a"].dtype.kind != "f"
    sizes = sum(a) * max((abs(c) for row in cost for c in row if c is not None), default=Fraction(0))
    slack = Fraction(0) if whole else sizes * ROUNDED
    if claim.bound is not None and rational(claim.bound) > best:
        yield "misleading", f"bound {claim.bound} is beyond the optimum {plain(best)}"
    if claim.objective is None:
        if claim.termination not in PARTIAL:
            yield "refused", f"{claim.termination}, and no objective where the optimum is {plain(best)}"
        return
    if claim.gap_abs is not None and rational(claim.objective) - best > rational(claim.gap_abs):
        yield "misleading", f"gap {claim.gap_abs}, and the optimum {plain(best)} is further away"
    if claim.optimal and abs(rational(claim.objective) - best) > slack:
        yield "wrong", f"{claim.objective} is optimal, it says; {plain(best)} is"


def least_flow(cost: Table, a: list[Fraction], b: list[Fraction]) -> Fraction | None:
    """The least cost of a plan with the sides a and b, whose sums are equal; None where there is none."""
    left_a, left_b = list(a), list(b)
    flow = [[Fraction(0)] * len(b) for _ in a]
    while any(left_a):
        path = _cheapest(cost, flow, left_a, left_b)
        if path is None:
            return None
        moved = min(
            left_a[path[0]], left_b[path[-1]], *(flow[i][j] for j, i in zip(path[1::2], path[2::2], strict=False))
        )
        for i, j in zip(path[::2], path[1::2], strict=True):
            flow[i][j] += moved
        for j, i in zip(path[1::2], path[2::2], strict=False):
            flow[i][j] -= moved
        left_a[path[0]] -= moved
        left_b[path[-1]] -= moved
    pairs = np.ndindex(len(a), len(b))
    return sum((flow[i][j] * (cost[i][j] or 0) for i, j in pairs if flow[i][j]), Fraction(0))


def _cheapest(
    cost: Table, flow: list[list[Fraction]], left_a: list[Fraction], left_b: list[Fraction]
) -> list[int] | None:
    """Row, column, ..., column: a cheapest way from a row with mass left to a column that lacks some (Bellman-Ford)."""
    rows: list[Fraction | None] = [Fraction(0) if mass else None for mass in left_a]
    columns: list[Fraction | None] = [None] * len(left_b)
    from_row, from_column = [-1] * len(left_b), [-1] * len(left_a)
    for _ in range(len(left_a) + len(left_b)):
        for i, j in np.ndindex(len(left_a), len(left_b)):
            price, so_far = cost[i][j], rows[i]
            if price is None:
                continue
            here = columns[j]
            if so_far is not None and (here is None or so_far + price < here):
                columns[j], from_row[j] = so_far + price, i
            here, so_far = columns[j], rows[i]
            if flow[i][j] and here is not None and (so_far is None or here - price < so_far):
                rows[i], from_column[i] = here - price, j
    ends = [
        (length, j) for j, (length, mass) in enumerate(zip(columns, left_b, strict=True)) if mass and length is not None
    ]
    if not ends:
        return None
    path = [min(ends)[1]]
    while True:
        path.append(from_row[path[-1]])
        if from_column[path[-1]] < 0:
            return path[::-1]
        path.append(from_column[path[-1]])
