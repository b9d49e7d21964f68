"""Exactly k pairs, and the least largest cost of k pairs, checked in whole numbers.

Sum: for any number t and any v <= 0, sum_i min(t, min_j c_ij - v_j) + sum_j v_j - (n_rows - k) t bounds the cost of k
pairs. Largest cost: of k pairs one lies in the rows R and outside the columns C, if |R| - |C| > n_rows - k.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.exact import assignment
from kernels.certificates.exact.statement import Claim, Inputs, Statement, dyadic, gap_statements, permitted, rational
from kernels.problems.arrays import Array, Csr


def is_selected(options: Mapping[str, Any]) -> bool:
    """Whether so many pairs are asked for, or the least largest cost."""
    return options.get("cardinality") is not None or options.get("objective", "sum") != "sum"


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of the answer."""
    cost = inputs["cost"]
    assert not isinstance(cost, Csr)
    asked = options.get("cardinality")
    count, maximize = min(cost.shape) if asked is None else int(asked), bool(options.get("maximize"))
    sign, bottleneck = -1 if maximize else 1, options.get("objective", "sum") == "bottleneck"
    outside = _outside(cost, count, claim)
    if claim.termination == "infeasible":
        holds = outside is not None and not outside
        return [Statement("infeasible", holds, f"of {count} pairs one would have to lie where all is forbidden")]
    pairs, wrong = assignment.pairing(cost, claim.arrays["assignment"].tolist())
    if wrong or len(pairs) > count:
        return [Statement("answer", False, wrong or f"{len(pairs)} pairs are formed, {count} were asked for")]
    said = [Statement("answer", True, f"{len(pairs)} pairs of {count}, no line twice, none forbidden")]
    objective = None
    if len(pairs) == count:
        values = [sign * rational(cost[pair]) for pair in pairs]
        objective = sign * (max(values) if bottleneck else sum(values, Fraction(0)))
    magnitude = assignment.size(cost, pairs)
    said.append(assignment.stated_objective(claim, objective, magnitude, len(pairs)))
    duals = Fraction(0)
    if bottleneck:
        least = [min(sign * value for value in found) for found in (outside, _everywhere(cost)) if found]
        shown = [sign * max(least)] if least else []
    else:
        shown, duals = _by_duals(cost, sign, count, pairs, claim)
    said.append(assignment.stated_bound(claim, shown, maximize))
    said += gap_statements(claim, objective, maximize)
    if claim.optimal:
        said.append(assignment.earned(claim, magnitude + duals, _natural(cost), cost))
    return said


def _natural(cost: Array) -> Fraction:
    sizes = [[abs(rational(c)) for c in row if permitted(c)] for row in cost]
    return sum((min((size for size in row if size), default=Fraction(0)) for row in sizes), Fraction(0))


def _everywhere(cost: Array) -> list[Fraction]:
    return [rational(c) for c in cost.reshape(-1) if permitted(c)]


def _outside(cost: Array, count: int, claim: Claim) -> list[Fraction] | None:
    """The permitted entries in the rows named and outside the columns named; None where these are too few."""
    if not {"hall_rows", "hall_cols"} <= claim.arrays.keys():
        return None
    rows, columns = (sorted(set(claim.arrays[name].tolist())) for name in ("hall_rows", "hall_cols"))
    n_rows, n_cols = cost.shape
    if any(not 0 <= i < n_rows for i in rows) or any(not 0 <= j < n_cols for j in columns):
        return None
    if len(rows) - len(columns) <= n_rows - count:
        return None
    others = sorted(set(range(n_cols)) - set(columns))
    return [rational(cost[i, j]) for i in rows for j in others if permitted(cost[i, j])]


def _by_duals(
    cost: Array, sign: int, count: int, pairs: list[tuple[int, int]], claim: Claim
) -> tuple[list[Fraction], Fraction]:
    """The bound that the duals prove, and the sizes of those of the pairs."""
    first, finer, level = claim.arrays["v"], claim.arrays.get("v_finer"), claim.arrays["level"]
    words = first[None] if finer is None or finer.shape[1:] != first.shape else np.concatenate([first[None], finer])
    if level.shape != (1,):
        return [], Fraction(0)
    (matrix, told), shift = dyadic(cost, np.where(np.isfinite(words), words, 0))
    scale = Fraction(1, 2**shift)
    t = sign * rational(level[0]) if np.isfinite(level[0]) else Fraction(0)  # any number gives a bound
    prices = [min(sign * sum(column) * scale, Fraction(0)) for column in zip(*told, strict=True)]
    least = [
        min([t, *(sign * c * scale - p for c, p in zip(row, prices, strict=True) if c is not None)]) for row in matrix
    ]
    bound = sum(least, Fraction(0)) + sum(prices, Fraction(0)) - (cost.shape[0] - count) * t
    return [sign * bound], sum((abs(least[i]) + abs(prices[j]) for i, j in pairs), Fraction(0))
