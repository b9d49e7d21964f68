"""Assignments whose lines may be left at a price, checked in whole numbers, problem by problem.

The problem: choose pairs, no row and no column twice, so that the costs of the pairs and the prices of the lines that
are left add up to the least. For any numbers v that are at most the columns' prices,

    sum_j v_j + sum_i min(price of row i, min_j c_ij - v_j)

is at most that sum, and the same with rows and columns exchanged. A line without a price must be paired: in an ordinary
assignment those of the shorter side; the others cost nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.exact import assignment, rounded_points
from kernels.certificates.exact.stated import OF_ASSIGNMENTS, misshapen, together
from kernels.certificates.exact.statement import (
    Claim,
    Inputs,
    Statement,
    dyadic,
    gap_statements,
    permitted,
    plain,
    rational,
)
from kernels.problems.arrays import Array, Csr

PRICES = ("reject_rows", "reject_cols")


@dataclass(frozen=True)
class Priced:
    """One problem: costs (n_rows, n_cols), and the prices of its lines, None where they are those of `strict`."""

    cost: Array
    prices: tuple[list[Fraction | None], list[Fraction | None]]
    strict: bool


def is_priced(inputs: Inputs, options: Mapping[str, Any]) -> bool:
    """Whether lines may be left at a price, or sizes are not those of an array."""
    cost = inputs.get("cost")
    flat = isinstance(cost, np.ndarray) and cost.ndim == 1
    sizes = inputs.get("sizes")
    several = isinstance(sizes, np.ndarray) and ("x" in inputs or bool((sizes == 0).any()))
    return flat or several or options.get("cost_limit") is not None or any(name in inputs for name in PRICES)


def problems(inputs: Inputs, options: Mapping[str, Any]) -> list[Priced]:
    """The problems one by one."""
    matrices = _between(inputs, options) if "x" in inputs else _matrices(inputs)
    limit = options.get("cost_limit")
    found = []
    at = [0, 0]
    for k, cost in enumerate(matrices):
        sides: list[list[Fraction | None]] = []
        for side, name in enumerate(PRICES):
            count, shorter = cost.shape[side], cost.shape[side] <= cost.shape[1 - side]
            given = inputs.get(name)
            if limit is not None:
                first = cost.shape[0] <= cost.shape[1]
                sides.append([Fraction(limit) if first == (side == 0) else Fraction(0)] * count)
            elif isinstance(given, np.ndarray):
                own = given[k, :count] if _form(inputs) == "batch" else given.reshape(-1)[at[side] : at[side] + count]
                sides.append([rational(price) for price in own.tolist()])
            else:
                must = shorter and not any(other in inputs for other in PRICES)
                sides.append([None if must else Fraction(0)] * count)
            at[side] += count
        strict = limit is None and not any(name in inputs for name in PRICES)
        found.append(Priced(cost, (sides[0], sides[1]), strict))
    return found


def _form(inputs: Inputs) -> str:
    if "x" in inputs:
        return "ragged" if "sizes" in inputs else "one"
    cost = inputs["cost"]
    assert not isinstance(cost, Csr)
    return {1: "ragged", 2: "one", 3: "batch"}[cost.ndim]


def _between(inputs: Inputs, options: Mapping[str, Any]) -> list[Array]:
    """The costs of points, rounded as the problem says."""
    x, y, sizes = (inputs.get(name) for name in ("x", "y", "sizes"))
    assert isinstance(x, np.ndarray)
    assert not isinstance(sizes, Csr)
    if y is None and sizes is not None:  # those of all columns stand in x, behind those of all rows
        rows = sum(count for count, _ in sizes.tolist())
        x, y = x[:rows], x[rows:]
    assert isinstance(y, np.ndarray)
    listed = [[len(x), len(y)]] if sizes is None else sizes.tolist()
    return rounded_points.matrices(x, y, listed, options.get("metric") or "sqeuclidean")


def _matrices(inputs: Inputs) -> list[Array]:
    cost, sizes = inputs["cost"], inputs.get("sizes")
    assert isinstance(cost, np.ndarray)
    assert not isinstance(sizes, Csr)
    if cost.ndim == 2:
        return [cost]
    if cost.ndim == 3:
        listed = [cost.shape[1:]] * len(cost) if sizes is None else sizes.tolist()
        return [cost[k, :rows, :columns] for k, (rows, columns) in enumerate(listed)]
    assert sizes is not None
    found, at = [], 0
    for rows, columns in sizes.tolist():
        found.append(cost[at : at + rows * columns].reshape(rows, columns))
        at += rows * columns
    return found


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of the answer."""
    from kernels.certificates.exact.every import problems_of

    given, form, maximize = problems(inputs, options), _form(inputs), bool(options.get("maximize"))
    if form == "one":
        return _one(given[0], maximize, claim)
    if said := misshapen(claim, *_extents(inputs, given, form)):
        return said
    at = [0, 0]
    for k, (problem, part) in enumerate(zip(given, problems_of(claim, len(given)), strict=True)):
        arrays = {name: _own(name, array, k, at, problem.cost.shape, form) for name, array in claim.arrays.items()}
        for statement in _one(problem, maximize, replace(part, arrays=arrays)):
            said.append(replace(statement, name=f"problem {k}: {statement.name}"))
        at = [at[0] + problem.cost.shape[0], at[1] + problem.cost.shape[1]]
    return said + together(claim, maximize, OF_ASSIGNMENTS)


def _extents(inputs: Inputs, given: list[Priced], form: str) -> tuple[tuple[int, ...], int | None]:
    """How many rows and columns the arrays of the answer are of, and how many problems where these are padded."""
    if form == "batch":
        return np.shape(inputs["cost"])[1:], len(given)
    return tuple(sum(one.cost.shape[side] for one in given) for side in (0, 1)), None


def _own(name: str, array: Array, k: int, at: list[int], shape: tuple[int, ...], form: str) -> Array:
    """A problem's part of an array of the answer."""
    side = int(name in ("v", "v_finer", "hall_cols"))
    if form == "batch":
        own = (array[:, k] if name.endswith("_finer") else array[k])[..., : shape[side]]
    else:
        own = array[..., at[side] : at[side] + shape[side]]
    return np.flatnonzero(own) if name.startswith("hall_") else np.asarray(own)


def _one(problem: Priced, maximize: bool, claim: Claim) -> list[Statement]:
    if claim.termination == "infeasible":
        if not problem.strict:
            return [Statement("infeasible", False, "every line may be left, so that there is an answer")]
        return assignment.check({"cost": problem.cost}, maximize, claim)
    pairs, wrong = assignment.pairing(problem.cost, claim.arrays["assignment"].tolist())
    if wrong:
        return [Statement("answer", False, wrong)]
    left = [set(range(len(side))) - {pair[n] for pair in pairs} for n, side in enumerate(problem.prices)]
    prices = [problem.prices[n][line] for n, lines in enumerate(left) for line in lines]
    words = f"{len(pairs)} pairs, no column twice, none forbidden; {len(prices)} lines left"
    said = [Statement("answer", True, words)]
    size = sum((abs(rational(problem.cost[pair])) for pair in pairs), Fraction(0))
    size += sum((abs(price) for price in prices if price is not None), Fraction(0))
    objective = None
    if None not in prices:
        objective = assignment.total(problem.cost, pairs) + sum((p for p in prices if p is not None), Fraction(0))
    said.append(assignment.stated_objective(claim, objective, size, len(pairs) + len(prices)))
    sign = -1 if maximize else 1
    bounds, duals = _bounds(problem, sign, claim)
    said.append(assignment.stated_bound(claim, [sign * bound for bound in bounds], maximize))
    said += gap_statements(claim, objective, maximize)
    if claim.optimal:
        said.append(_earned(problem, claim, size, [(i, j) for i, j in pairs], left, duals))
    return said


def _bounds(problem: Priced, sign: int, claim: Claim) -> tuple[list[Fraction], list[dict[int, Fraction]]]:
    """The bounds that the duals of either side prove, in min form, and the largest size of each line's dual."""
    words = [_in_words(claim, name) for name in "uv"]
    (matrix, *told), shift = dyadic(problem.cost, *words)
    scale = Fraction(1, 2**shift)
    given = [[sign * sum(column) * scale for column in zip(*side, strict=True)] for side in told]
    caps = [[None if price is None else sign * price for price in side] for side in problem.prices]
    entries = [[None if c is None else sign * c * scale for c in row] for row in matrix]
    turned = [[row[j] for row in entries] for j in range(problem.cost.shape[1])]
    found, sizes = [], [dict.fromkeys(range(len(side)), Fraction(0)) for side in caps]
    for lines, side in ((entries, 0), (turned, 1)):
        prices = [p if cap is None else min(p, cap) for p, cap in zip(given[1 - side], caps[1 - side], strict=True)]
        least = []
        for i, line in enumerate(lines):
            choices = [c - p for c, p in zip(line, prices, strict=True) if c is not None]
            own = caps[side][i]
            choices += [] if own is None else [own]
            least.append(min(choices, default=None))
        if None not in least:
            found.append(sum(prices, Fraction(0)) + sum((x for x in least if x is not None), Fraction(0)))
        for i, value in enumerate(least):
            sizes[side][i] = max(sizes[side][i], abs(value or Fraction(0)))
        for j, price in enumerate(prices):
            sizes[1 - side][j] = max(sizes[1 - side][j], abs(price))
    return found, sizes


def _in_words(claim: Claim, name: str) -> Array:
    """Duals as sums of words (n_words, n); what is no number counts as 0."""
    first, finer = claim.arrays[name], claim.arrays.get(f"{name}_finer")
    readable = finer is not None and finer.dtype == np.float64 and finer.shape[1:] == first.shape and finer.ndim == 2
    words = np.concatenate([first[None], finer]) if readable else first[None]
    return np.where(np.isfinite(words), words, 0) if words.dtype.kind == "f" else words


def _earned(
    problem: Priced,
    claim: Claim,
    size: Fraction,
    pairs: list[tuple[int, int]],
    left: list[set[int]],
    duals: list[dict[int, Fraction]],
) -> Statement:
    """Whether the gap allows the word "optimal"."""
    if claim.gap_abs is None or claim.objective is None:
        return Statement("optimal", False, "an optimum is claimed without a gap")
    gap = rational(claim.gap_abs)
    whole = problem.cost.dtype.kind in "iu" or problem.cost.size == 0
    whole &= all(price is None or price.denominator == 1 for side in problem.prices for price in side)
    if whole and gap == 0:
        return Statement("optimal", True, "the gap is 0")
    size += sum((duals[0][i] + duals[1][j] for i, j in pairs), Fraction(0))
    size += sum((duals[n][line] for n, lines in enumerate(left) for line in lines), Fraction(0))
    data = Fraction(0)
    for i in range(problem.cost.shape[0]):
        numbers = [abs(rational(c)) for c in problem.cost[i] if permitted(c)]
        own = problem.prices[0][i]
        numbers += [] if own is None else [abs(own)]
        data += min((number for number in numbers if number), default=Fraction(0))
    most = min(assignment.EARNED * size, assignment.FROM_DATA * max(abs(rational(claim.objective)), data))
    return Statement("optimal", gap <= most, f"the gap may be {plain(most)} and is {claim.gap_abs}")
