"""Barycenters, checked with 60 decimal digits: the plans' value after their repair, and the bound of the potentials.

What is proved stands in kernels/certificates/barycenter/; here every step is one of Python's decimals, fractions for
the masses, and lists. Python rounds +, -, *, /, exp and ln correctly, so a value is within 10^-40 of the sizes of its
terms (see transport.py), and every comparison allows that much.
"""

from collections.abc import Mapping
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from kernels.certificates.exact.statement import Claim, Inputs, Statement, gap_statements, plain, rational
from kernels.problems.arrays import Array
from kernels.problems.barycenter import Barycenter, FreeBarycenter, fixed_barycenter, free_barycenter

DIGITS = Context(prec=60, Emin=-999999, Emax=999999, traps=[])
MOST = 40_000
"""Entries of all plans: more would take minutes."""
ROUNDED, CLOSE = Fraction(1, 10**13), Fraction(1, 10**6)
"""Of the sizes of a value's terms: how far an objective may lie below and above it."""
TOP = Decimal(300)
Line = list[Decimal]
SURE, ROUNDING = Fraction(1, 10**9), Fraction(1, 2**44)
"""Relative gap, and share of the largest cost, up to which an answer may be called optimal."""
UNSTATED = 1e-8
"""How far the sides of returned plans may be off where the answer does not say how far they are."""
Scales = tuple[Fraction, Fraction]
"""The largest cost: a rounding of the mass costs at most that. And the smallest that is not 0, or 0."""
Found = tuple[Fraction, Fraction, Fraction | None, Scales]
"""Value of the plans, sizes of its terms, bound, and scales."""


def problem_of(inputs: Inputs, options: Mapping[str, Any]) -> Barycenter | FreeBarycenter:
    """The problem as it was given."""
    x, reg = inputs.get("x"), options.get("reg", "auto")
    method, metric = options.get("method", "auto"), options.get("metric", "sqeuclidean")
    clouds = isinstance(x, np.ndarray) and x.ndim == 3
    if method == "free" or (method == "auto" and clouds and "support" not in inputs):
        return free_barycenter(inputs, options.get("support_points"), options.get("seed", 0))
    return fixed_barycenter(inputs, 0.0 if method == "exact" else reg, metric, bool(options.get("debiased")))


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Whether each statement of the answer holds."""
    if claim.termination == "infeasible":
        return [Statement("infeasible", False, "a barycenter always exists")]
    problem = problem_of(inputs, options)
    if problem.sizes[0] * problem.sizes[1] * problem.sizes[2] > MOST:
        return [Statement("objective", None, f"more than {MOST} entries are not checked digit by digit")]
    with localcontext(DIGITS):
        if isinstance(problem, FreeBarycenter):
            found = _moving(problem, claim)
        else:
            found = _fixed(problem, claim)
    tolerance = Fraction(options.get("tolerance", 1e-6))
    missed = _missed(problem, claim) if isinstance(problem, Barycenter) and not problem.reg else []
    return [*_compared(claim, *found), *missed, *_word(claim, found[3], tolerance)]


def _missed(problem: Barycenter, claim: Claim) -> list[Statement]:
    """How far the sides of the returned plans are from those of the repaired ones, which are what is certified."""
    given = [Fraction(one) for one in claim.arrays["barycenter"].astype(float).tolist()]
    b, worst = [one / sum(given) for one in given], Fraction(0)
    for plan, masses in zip(claim.arrays["plan"], problem.masses.tolist(), strict=True):
        a = [Fraction(one) / sum(map(Fraction, masses)) for one in masses]
        rows = [[Fraction(x) for x in row] for row in plan.astype(float).tolist()]
        off = sum((abs(sum(row) - x) for row, x in zip(rows, b, strict=True)), Fraction(0))
        off += sum((abs(sum(row) - x) for row, x in zip(zip(*rows, strict=True), a, strict=True)), Fraction(0))
        worst = max(worst, off)
    stated = claim.facts.get("returned_plan_misses", UNSTATED)
    words = (
        f"the returned plans' sides are {float(worst):.3g} off, {stated} is stated; the plans repaired are certified"
    )
    return [Statement("returned plan", worst <= rational(stated), words)]


def _word(claim: Claim, scales: Scales, tolerance: Fraction) -> list[Statement]:
    """Whether the gap allows the words "optimal" and "gap_reached"."""
    if claim.termination not in ("optimal", "gap_reached"):
        return []
    name = claim.termination.replace("_", " ")
    if claim.objective is None or claim.bound is None or claim.gap_abs is None:
        return [Statement(name, False, "it is claimed without a gap")]
    gap, objective = rational(claim.gap_abs), abs(rational(claim.objective))
    asked = SURE if claim.optimal else tolerance
    earned = gap <= asked * max(objective, abs(rational(claim.bound)))
    earned = earned or gap <= min(ROUNDING * scales[0], SURE * max(objective, scales[1]))
    return [Statement(name, earned, f"the gap is {claim.gap_abs}, the objective {claim.objective}")]


def _scales(costs: list[Decimal]) -> Scales:
    return Fraction(max(map(abs, costs))), Fraction(min((abs(one) for one in costs if one), default=Decimal(0)))


def _compared(
    claim: Claim, objective: Fraction, size: Fraction, bound: Fraction | None, scales: Scales
) -> list[Statement]:
    if claim.objective is None:
        return [Statement("objective", None, "none is stated")]
    stated = rational(claim.objective)
    words = f"{claim.objective} is stated, the plans are worth {plain(objective)}"
    slack = ROUNDED * (size + scales[0])
    said = [
        Statement("objective", stated >= objective - slack, words),
        Statement("objective close", stated <= objective + CLOSE * size + slack, words),
    ]
    if claim.bound is not None:
        slack = Fraction(1, 10**38) * size
        holds = bound is not None and rational(claim.bound) <= bound + slack
        found = "none" if bound is None else plain(bound)
        said.append(Statement("bound", holds, f"{claim.bound} is stated, the potentials give {found}"))
    return said + gap_statements(claim, stated)


def _masses(problem: Barycenter | FreeBarycenter) -> list[Line]:
    """The masses of each measure as decimals of sum 1, which the stored ones are within three roundings."""
    found = []
    for row in problem.masses.tolist():
        exact = [Fraction(one) for one in row]
        total = sum(exact)
        found.append([Decimal((one / total).numerator) / Decimal((one / total).denominator) for one in exact])
    return found


def _decimals(values: Array) -> Line:
    return [Decimal(one) for one in values.tolist()]


def _fixed(problem: Barycenter, claim: Claim) -> Found:
    k, m, n = problem.sizes
    w, masses, reg = _decimals(problem.weights), _masses(problem), Decimal(problem.reg)
    b = _decimals(claim.arrays["barycenter"].astype(float))
    assert min(b) >= 0, "the barycenter has negative mass"
    b = [one / sum(b) for one in b]
    value = size = bound = Decimal(0)
    pulls = [Decimal(0)] * m
    for one in range(k):
        cost = [_decimals(row) for row in problem.cost_of(one)]
        f, a = _decimals(claim.arrays["f"][one].astype(float)), masses[one]
        pulls = [pull + w[one] * x for pull, x in zip(pulls, f, strict=True)]
        if reg:
            g = _decimals(np.where(problem.masses[one] > 0, claim.arrays["g"][one], 0.0))
            plan = _entropic(cost, f, g, a, reg)
            bound += w[one] * (_dot(g, a) - reg * (_entropic_mass(cost, f, g, a, reg) - 1))
        else:
            g = [min(row[j] - x for row, x in zip(cost, f, strict=True)) for j in range(n)]
            plan = [_decimals(row) for row in claim.arrays["plan"][one].astype(float)]
            assert all(x >= 0 for row in plan for x in row), "a plan holds negative mass, or no number"
            plan = [[x if a[j] else Decimal(0) for j, x in enumerate(row)] for row in plan]
            bound += w[one] * _dot(g, a)
        worth, terms = _worth(_repaired(plan, b, a), cost, reg)
        value, size = value + w[one] * worth, size + w[one] * terms
    if problem.debiased:
        h, cost = _decimals(claim.arrays["h"].astype(float)), [_decimals(row) for row in problem.cost]
        own = 2 * _dot(h, b) - reg * (_entropic_mass(cost, h, h, b, reg) - 1)
        value, size, bound = value - own / 2, size + abs(own), Decimal("-Infinity")
    largest, smallest = _scales(_decimals(problem.cost.astype(float).reshape(-1)))
    least = Fraction(bound + min(pulls)) if bound.is_finite() else None
    return Fraction(value), Fraction(size), least, (largest + Fraction(reg), smallest)


def _dot(x: Line, y: Line) -> Decimal:
    return sum((p * q for p, q in zip(x, y, strict=True)), Decimal(0))


def _entropic(cost: list[Line], f: Line, g: Line, a: Line, reg: Decimal) -> list[Line]:
    """The plan, whose exponents are at most TOP: potentials that ask for more bound nothing, and make any plan."""
    cells = Decimal(len(f) * len(g))
    return [
        [min(TOP, (f[i] + g[j] - c) / reg).exp() / cells if a[j] else Decimal(0) for j, c in enumerate(row)]
        for i, row in enumerate(cost)
    ]


def _entropic_mass(cost: list[Line], f: Line, g: Line, a: Line, reg: Decimal) -> Decimal:
    """What the plan sums to; infinite where an exponent is beyond TOP."""
    top = max((f[i] + g[j] - c) / reg for i, row in enumerate(cost) for j, c in enumerate(row) if a[j])
    return (
        sum((x for row in _entropic(cost, f, g, a, reg) for x in row), Decimal(0))
        if top <= TOP
        else Decimal("Infinity")
    )


def _repaired(plan: list[Line], b: Line, a: Line) -> list[Line]:
    """Scaled down where a line has too much; what is missing is added as a product."""
    for i, row in enumerate(plan):
        total = sum(row)
        if total > b[i]:
            plan[i] = [x * b[i] / total for x in row]
    columns = [sum(column) for column in zip(*plan, strict=True)]
    factors = [a[j] / total if total > a[j] else Decimal(1) for j, total in enumerate(columns)]
    plan = [[x * factors[j] for j, x in enumerate(row)] for row in plan]
    rows = [b[i] - sum(row) for i, row in enumerate(plan)]
    lack = [a[j] - total * factors[j] for j, total in enumerate(columns)]
    short = sum(lack)
    if short > Decimal("1e-50"):
        plan = [[x + rows[i] * lack[j] / short for j, x in enumerate(row)] for i, row in enumerate(plan)]
    return plan


def _worth(plan: list[Line], cost: list[Line], reg: Decimal) -> tuple[Decimal, Decimal]:
    """(value of a plan, sizes of its terms)."""
    cells = Decimal(len(plan) * len(plan[0]))
    value, size = reg, reg
    for row, line in zip(plan, cost, strict=True):
        for p, c in zip(row, line, strict=True):
            log = (p * cells).ln() if reg and p > 0 else Decimal(0)
            value += p * (c + reg * (log - 1))
            size += abs(p) * (abs(c) + reg * (abs(log) + 2))
    return value, size


def _moving(problem: FreeBarycenter, claim: Claim) -> Found:
    k, m, _ = problem.sizes
    w, masses = _decimals(problem.weights), _masses(problem)
    points = [_decimals(row) for row in claim.arrays["points"].astype(float)]
    clouds = [[_decimals(row) for row in cloud] for cloud in problem.clouds]
    even, value = [1 / Decimal(m)] * m, Decimal(0)
    for one in range(k):
        plan = [_decimals(row) for row in claim.arrays["plan"][one].astype(float)]
        off = sum(abs(sum(row) - e) for row, e in zip(plan, even, strict=True))
        off += sum(abs(sum(col) - e) for col, e in zip(zip(*plan, strict=True), masses[one], strict=True))
        assert off < Decimal("1e-11"), "a plan has other sides"
        value += w[one] * _worth(plan, _squares(points, clouds[one]), Decimal(0))[0]
    bound = Decimal(0)
    for at, (i, j) in enumerate(combinations(range(k), 2)):
        g = _decimals(claim.arrays["pair_potentials"][at].astype(float))
        cost = _squares(clouds[i], clouds[j])
        there = [at for at, mass in enumerate(masses[j]) if mass]
        u = [min(row[y] - g[y] for y in there) for row in cost]
        least = _dot(u, masses[i]) + sum((g[y] * masses[j][y] for y in there), Decimal(0))
        bound += w[i] * w[j] * max(least, Decimal(0))
    largest = Fraction(max(max(map(max, _squares(points, cloud))) for cloud in clouds))
    smallest = _scales([one for cloud in clouds for row in _squares(clouds[0], cloud) for one in row])[1]
    return Fraction(value), Fraction(value), Fraction(bound / sum(w)), (largest, smallest)


def _squares(x: list[Line], y: list[Line]) -> list[Line]:
    return [[sum(((p - q) ** 2 for p, q in zip(one, other, strict=True)), Decimal(0)) for other in y] for one in x]
