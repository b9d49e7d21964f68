"""Linear assignment, checked in whole numbers: each line here is one line of the theory.

The problem: choose min(n_rows, n_cols) pairs, no row and no column twice, so that the sum of costs is least. For any
numbers v, sum_j v_j + sum_i min_j (c_ij - v_j) is at most that sum, provided v_j <= 0 on columns that may stay free.
Floats are integers over one power of two, so every sum below is exact.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from kernels.certificates.exact.statement import (
    Claim,
    Inputs,
    Statement,
    dyadic,
    gap_statements,
    near,
    permitted,
    plain,
    rational,
)
from kernels.problems.arrays import Array, Csr

Matrix = list[list[int | None]]

EARNED = Fraction(1, 2**50)
"""Of the sum over the chosen pairs of |c| + |u| + |v|: how far objective and bound of an optimum in floats may be."""
FROM_DATA = Fraction(1, 10**9)
"""Of max(|objective|, sum over the rows of the smallest entry that is not 0): the same, whatever the duals are."""


def check(inputs: Inputs, maximize: bool, claim: Claim) -> list[Statement]:
    """Every statement of one problem's answer. `inputs` holds `cost` (n_rows, n_cols); infinities are forbidden."""
    cost = inputs["cost"]
    assert not isinstance(cost, Csr)
    if claim.termination == "infeasible":
        return [_no_room(cost, claim)]
    assignment = claim.arrays["assignment"].tolist()
    taken, wrong = pairing(cost, assignment)
    if wrong:
        return [Statement("answer", False, wrong)]
    u, v = (_in_words(claim, name) for name in "uv")
    (matrix, *words), shift = dyadic(cost, u, v)
    rows, columns = ([sum(x) for x in zip(*side, strict=True)] for side in words)
    said = [Statement("answer", True, f"{len(taken)} pairs, no column twice, none forbidden")]
    objective = total(cost, taken) if len(taken) == min(cost.shape) else None
    said.append(stated_objective(claim, objective, size(cost, taken), len(taken)))
    bounds = dual_bounds(matrix, rows, columns, maximize)
    said.append(stated_bound(claim, [Fraction(bound, 2**shift) for bound in bounds], maximize))
    said += gap_statements(claim, objective, maximize)
    if claim.optimal:
        pairs = [(i, j) for i, j in enumerate(assignment) if j >= 0]
        returned = sum(abs(rows[i]) + abs(columns[j]) for i, j in pairs)
        duals = Fraction(max(returned, tightened(matrix, rows, columns, pairs, maximize)), 2**shift)
        said.append(earned(claim, size(cost, taken) + duals, smallest(matrix, shift), cost))
    return said


def _in_words(claim: Claim, name: str) -> Array:
    """Duals as sums of words (n_words, n), several where float64 is too coarse. What is no number counts as 0.

    Finer words of another form or type than the first are left out.
    """
    first, finer = claim.arrays[name], claim.arrays.get(f"{name}_finer")
    readable = finer is not None and finer.dtype == np.float64 and finer.shape[1:] == first.shape and finer.ndim == 2
    words = np.concatenate([first[None], finer]) if readable else first[None]
    return np.where(np.isfinite(words), words, 0) if words.dtype.kind == "f" else words


def pairing(cost: Array, assignment: Sequence[int]) -> tuple[list[tuple[int, int]], str]:
    """The pairs that are assigned, and a sentence when this is no assignment."""
    n_rows, n_cols = cost.shape
    if len(assignment) != n_rows:
        return [], f"{len(assignment)} rows are answered, the problem has {n_rows}"
    pairs = [(i, j) for i, j in enumerate(assignment) if j != -1]
    columns = [j for _, j in pairs]
    if any(not 0 <= j < n_cols for j in columns):
        return [], "a column is out of range"
    if len(set(columns)) < len(columns):
        return [], "a column is taken twice"
    if any(not permitted(cost[pair]) for pair in pairs):
        return [], "a forbidden pair is assigned"
    return pairs, ""


def total(cost: Array, pairs: Sequence[tuple[int, int]]) -> Fraction:
    """The sum of the chosen costs."""
    return sum((rational(cost[pair]) for pair in pairs), Fraction(0))


def size(cost: Array, pairs: Sequence[tuple[int, int]]) -> Fraction:
    """The sum of their magnitudes."""
    return sum((abs(rational(cost[pair])) for pair in pairs), Fraction(0))


def stated_objective(claim: Claim, objective: Fraction | None, magnitude: Fraction, terms: int) -> Statement:
    """An integer must be the sum itself; a float may differ by a rounding a term."""
    if objective is None or claim.objective is None:
        same = objective is None and claim.objective is None
        return Statement("objective", same, f"{claim.objective} is stated; {'rows are missing' * (objective is None)}")
    slack = magnitude * (terms + 1) / 2**53 + Fraction(1, 2**1074)
    right = near(claim.objective, objective, slack)
    return Statement("objective", right, f"{claim.objective} is stated, {plain(objective)} found")


def dual_bounds(matrix: Matrix, u: list[int], v: list[int], maximize: bool) -> list[int]:
    """The bounds that the column duals and (where columns all have to be taken) the row duals prove."""
    sign = -1 if maximize else 1
    cost = [[None if c is None else sign * c for c in row] for row in matrix]
    turned = [list(line) for line in zip(*cost, strict=True)]
    n_rows, n_cols = len(cost), len(turned)
    bounds = []
    if n_rows <= n_cols:
        bounds.append(_bound(cost, [sign * x for x in v], n_cols > n_rows))
    if n_cols <= n_rows:
        bounds.append(_bound(turned, [sign * x for x in u], n_rows > n_cols))
    return [sign * bound for bound in bounds if bound is not None]


def _bound(cost: Matrix, prices: list[int], free: bool) -> int | None:
    """sum_j v_j + sum_i min_j (c_ij - v_j); None where a row has no permitted entry, which bounds nothing."""
    if free:
        prices = [min(price, 0) for price in prices]
    least = [
        min((c - price for c, price in zip(row, prices, strict=True) if c is not None), default=None) for row in cost
    ]
    return None if None in least else sum(prices) + sum(x for x in least if x is not None)


def tightened(matrix: Matrix, u: list[int], v: list[int], pairs: list[tuple[int, int]], maximize: bool) -> int:
    """The sum over the pairs of |u_i| + |v_j|, the shorter side's being the best that the longer side's allow."""
    if len(u) > len(v):
        turned = [list(line) for line in zip(*matrix, strict=True)]
        return tightened(turned, v, u, [(j, i) for i, j in pairs], maximize)
    best = max if maximize else min
    best_u = {i: best(c - x for c, x in zip(matrix[i], v, strict=True) if c is not None) for i, _ in pairs}
    return sum(abs(best_u[i]) + abs(v[j]) for i, j in pairs)


def stated_bound(claim: Claim, shown: list[Fraction], maximize: bool) -> Statement:
    """A bound is true when the returned duals prove one at least as strong."""
    if claim.bound is None:
        return Statement("bound", True, "none is stated")
    if not shown:
        return Statement("bound", False, f"{claim.bound} is stated, and the returned duals bound nothing")
    best = min(shown) if maximize else max(shown)
    weaker = rational(claim.bound) >= best if maximize else rational(claim.bound) <= best
    return Statement("bound", weaker, f"{claim.bound} is stated, the returned duals prove {plain(best)}")


def smallest(matrix: Matrix, shift: int) -> Fraction:
    """The sum over the rows of the smallest permitted |entry| that is not 0."""
    return Fraction(sum(min((abs(c) for c in row if c), default=0) for row in matrix), 2**shift)


def earned(claim: Claim, magnitude: Fraction, from_data: Fraction, *data: Array) -> Statement:
    """Whether the gap allows the word "optimal": 0 on integers, both limits of this file on floats."""
    if claim.gap_abs is None or claim.objective is None:
        return Statement("optimal", False, "an optimum is claimed without a gap")
    gap = rational(claim.gap_abs)
    if all(array.dtype.kind in "iu" for array in data):
        return Statement("optimal", gap == 0, f"on integers the gap must be 0 and is {claim.gap_abs}")
    most = min(EARNED * magnitude, FROM_DATA * max(abs(rational(claim.objective)), from_data))
    return Statement("optimal", gap <= most, f"the gap may be {plain(most)} and is {claim.gap_abs}")


def _no_room(cost: Array, claim: Claim) -> Statement:
    """Some rows have permitted entries in fewer columns than they need."""
    rows, columns = (sorted(set(claim.arrays[name].tolist())) for name in ("hall_rows", "hall_cols"))
    n_rows, n_cols = cost.shape
    inside = bool(rows) and all(0 <= i < n_rows for i in rows)
    outside = set(range(n_cols)) - set(columns)
    barred = inside and not any(permitted(cost[i, j]) for i in rows for j in outside)
    spare = max(0, n_rows - n_cols)
    holds = barred and len(rows) > len(columns) + spare
    words = f"{len(rows)} rows have permitted entries in {len(columns)} columns; {spare} rows may stay unassigned"
    return Statement("infeasible", holds, words)
