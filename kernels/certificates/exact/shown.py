"""What a transport's answer tells of its plan beside it: marginals, largest entries, derivatives, means and labels.

All of it is worked out from the plan with 60 digits. An answer to one problem states how far its marginals and largest
entries are from the plan's. Of the rest nothing is stated, and it may be off by what its type and sums round.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Statement
from kernels.certificates.exact.transport import ERROR, Plan, Problem
from kernels.problems.arrays import Array

CLOSE, CLOSE_32 = Decimal("1e-8"), Decimal("1e-3")
"""Of the sizes: how far a number may be off of which nothing is stated, from costs or points in float64, in float32."""
EXPONENTS = Decimal(2) ** -40
"""Of an entry: what rounding an exponent below 2^10 makes of it, which shares are stated without."""
TINIEST = Decimal(2) ** -1000
"""More than what underflows adds to a mass."""
Row = dict[int, Decimal]


def check(problem: Problem, plan: Plan, claim: Claim) -> Iterator[Statement]:
    """One statement for each of these arrays that the answer has."""
    arrays, facts = claim.arrays, claim.facts
    given = problem.table if problem.table is not None else problem.inputs["x"]
    narrow = isinstance(given, np.ndarray) and given.dtype.kind == "f" and given.dtype.itemsize < 8
    close = CLOSE_32 if narrow else CLOSE
    rows: list[Row] = [{} for _ in problem.a]
    for (i, j), mass in plan.items():
        rows[i][j] = mass
    sums = [[Decimal(0)] * len(side) for side in (problem.a, problem.b)]
    for (i, j), mass in plan.items():
        sums[0][i] += mass
        sums[1][j] += mass
    if facts.get("mass") is not None:
        mass, total = Decimal(facts["mass"]), sum(sums[0], Decimal(0))
        words = f"{facts['mass']} is stated, the plan carries {float(total)}"
        yield Statement("mass", abs(mass - total) <= CLOSE * total + TINIEST, words)
    for side, name in enumerate(("row", "column")):
        if f"{name}_marginal" in arrays:
            yield _marginal(name, arrays[f"{name}_marginal"], sums[side], facts, close)
    if "top_columns" in arrays and arrays["top_columns"].shape[-1]:
        yield _largest(arrays, rows, len(problem.b), facts, close)
    if "barycentric" in arrays and "y" in problem.inputs:
        yield _means(arrays["barycentric"], problem, rows, sums[0], close)
    if "label" in arrays and "labels" in problem.inputs:
        yield _labels(arrays, problem.inputs["labels"], rows, sums[0], close)
    for side, name in enumerate("ab"):
        if f"grad_{name}" in arrays:
            yield _by_mass(arrays, problem, side, sums[side], close)
    for side, name in enumerate("xy"):
        if f"grad_{name}" in arrays and "x" in problem.inputs:
            yield _by_points(arrays[f"grad_{name}"], problem, side, plan, close)


def _stated(facts: Any, name: str, otherwise: Decimal) -> Decimal:
    found = facts.get(name)
    return otherwise if found is None else Decimal(found)


def _numbers(array: Array) -> list[Decimal]:
    return [Decimal(one) for one in array.astype(np.float64).reshape(-1).tolist()]


def _far(found: list[Decimal], true: list[Decimal]) -> Decimal:
    """How far apart in sum; infinite where they are not as many, or one is no number."""
    if len(found) != len(true) or not all(one.is_finite() for one in found):
        return Decimal("Infinity")
    return sum((abs(p - q) for p, q in zip(found, true, strict=True)), Decimal(0))


def _marginal(name: str, given: Array, sums: list[Decimal], facts: Any, close: Decimal) -> Statement:
    total = sum(sums, Decimal(0))
    off, within = _far(_numbers(given), sums), _stated(facts, f"{name}_marginal_within", close * total)
    words = f"the {name}s' sums are {float(off):.3g} from the plan's, {float(within):.3g} is allowed"
    return Statement(f"{name} marginal", off <= within + ERROR * total, words)


def _largest(arrays: Any, rows: list[Row], n: int, facts: Any, close: Decimal) -> Statement:
    """Each listed value, and that what is not listed is no larger, as shares of the row's largest listed entry."""
    columns, values = arrays["top_columns"].tolist(), arrays["top_values"]
    within, worst = _stated(facts, "top_values_within", close), Decimal(0)
    if len(columns) != len(rows) or values.shape != arrays["top_columns"].shape:
        return Statement("top entries", False, "they are not of the plan's rows")
    for row, listed, shown in zip(rows, columns, values, strict=True):
        if len(set(listed)) < len(listed) or not all(0 <= j < n for j in listed):
            return Statement("top entries", False, "a column is listed twice, or there is none of that number")
        wanted = [row.get(j, Decimal(0)) for j in listed]
        rest = max((mass for j, mass in row.items() if j not in listed), default=Decimal(0))
        apart = [abs(p - q) for p, q in zip(_numbers(shown), wanted, strict=True)]
        off = max(max(apart), rest - min(wanted))
        if not off.is_finite() or (off > 0 and max(wanted) == 0):
            return Statement("top entries", False, "a row's entries are no numbers, or not where its mass is")
        worst = max(worst, off / max(wanted) if off > 0 else Decimal(0))
    words = f"the largest entries are {float(worst):.3g} from the plan's, as a share, {float(within):.3g} is allowed"
    return Statement("top entries", worst <= within + EXPONENTS, words)


def _points(problem: Problem, name: str) -> list[list[Decimal]]:
    return [[Decimal(c) for c in point] for point in np.asarray(problem.inputs[name]).tolist()]


def _means(given: Array, problem: Problem, rows: list[Row], sums: list[Decimal], close: Decimal) -> Statement:
    """Where each row goes on average; NaN for a row without mass."""
    y, worst = _points(problem, "y"), Decimal(0)
    size = max((abs(c) for point in y for c in point), default=Decimal(0))
    if given.shape != (len(rows), len(y[0])):
        return Statement("barycentric", False, "it is not of the plan's rows and the points' coordinates")
    for row, total, shown in zip(rows, sums, given.tolist(), strict=True):
        if not total:
            worst = worst if np.isnan(shown).all() else Decimal("Infinity")
            continue
        true = [sum((mass * y[j][d] for j, mass in row.items()), Decimal(0)) / total for d in range(len(y[0]))]
        worst = max(worst, _far([Decimal(one) for one in shown], true))
    words = f"a row's mean is {float(worst):.3g} from the plan's, {float(close * size):.3g} is allowed"
    return Statement("barycentric", worst <= close * size * len(y[0]), words)


def _labels(arrays: Any, labels: Any, rows: list[Row], sums: list[Decimal], close: Decimal) -> Statement:
    """The label of most of a row's mass, and its share; -1 and 0 for a row without mass."""
    known, shares = np.asarray(labels).tolist(), arrays["label_share"].tolist()
    for row, total, label, share in zip(rows, sums, arrays["label"].tolist(), shares, strict=True):
        by: dict[int, Decimal] = {}
        for j, mass in row.items():
            by[known[j]] = by.get(known[j], Decimal(0)) + mass
        if not total:
            right = label == -1 and share == 0
        else:
            own = by.get(label, Decimal(0)) / total
            right = abs(own - Decimal(share)) <= close and max(by.values()) / total <= own + close
        if not right:
            return Statement("labels", False, f"{label} is stated of a row, with a share of {share}")
    return Statement("labels", True, "each row has the label of most of its mass, and the share of it")


def _by_mass(arrays: Any, problem: Problem, side: int, sums: list[Decimal], close: Decimal) -> Statement:
    """r (1 - exp(-f / r)) + reg (the other side's mass - marginal / mass), f itself where the side is exact."""
    name, potentials = f"grad_{'ab'[side]}", arrays["fg"[side]].tolist()
    masses, others = ((problem.a, problem.b), (problem.b, problem.a))[side]
    r, reg = problem.strengths[side], problem.reg if problem.product else Decimal(0)
    other = sum(others, Decimal(0))
    for potential, mass, found, shown in zip(potentials, masses, sums, arrays[name].tolist(), strict=True):
        if not mass or not np.isfinite(potential):
            continue  # nothing to hold it against: no entry tells of this line
        f = Decimal(potential)
        grown = None if r is None else (-f / r).exp()
        true = f if r is None or grown is None else r * (1 - grown)
        size = abs(true) + (Decimal(0) if r is None or grown is None else r * (1 + grown))
        true += reg * (other - found / mass)
        size += reg * (other + found / mass)
        if not np.isfinite(shown) or abs(Decimal(shown) - true) > close * size:
            return Statement(name, False, f"{shown} is stated, {float(true)} found")
    return Statement(name, True, "the derivatives by the masses follow from the potentials and the plan")


def _by_points(given: Array, problem: Problem, side: int, plan: Plan, close: Decimal) -> Statement:
    """The derivatives of <C, P> with the plan as it is."""
    x, y = _points(problem, "x"), _points(problem, "y")
    own, metric = (x, y)[side], problem.options.get("metric", "sqeuclidean")
    true = [[Decimal(0)] * len(x[0]) for _ in own]
    sizes = [[Decimal(0)] * len(x[0]) for _ in own]
    for (i, j), mass in plan.items():
        here, there, at = (x[i], y[j], i) if side == 0 else (y[j], x[i], j)
        weight = 2 * mass
        if metric == "euclidean":
            distance = sum(((p - q) ** 2 for p, q in zip(here, there, strict=True)), Decimal(0)).sqrt()
            weight = mass / distance if distance else Decimal(0)
        for d, (p, q) in enumerate(zip(here, there, strict=True)):
            true[at][d] += -mass * q if metric == "inner" else weight * (p - q)
            sizes[at][d] += mass * abs(q) if metric == "inner" else weight * (abs(p) + abs(q))
    name = f"grad_{'xy'[side]}"
    for point, right, size in zip(given.tolist(), true, sizes, strict=True):
        for shown, one, most in zip(point, right, size, strict=True):
            if not np.isfinite(shown) or abs(Decimal(shown) - one) > close * most:
                return Statement(name, False, f"{shown} is stated, {float(one)} found")
    return Statement(name, True, "the derivatives by the points are those of the plan's cost")
