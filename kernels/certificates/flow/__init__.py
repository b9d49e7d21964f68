"""Proof for optimal transport without an entropic term, from a plan and the potentials of its columns.

For any g, u_i = min_j (c_ij - g_j) over the permitted entries gives u_i + g_j <= c_ij. So sum_i a_i u_i + sum_j b_j g_j
is at most what any plan with the sides a and b costs. The potentials of the rows are not looked at. u_i is the smallest
rounded difference, and the smallest of the errors of those entries that attain it: rounding to nearest keeps order, so
no other entry is below them. All products and sums are of integers over powers of two, without any rounding, and each
number is rounded once, to the weak side. Whole costs and masses stay Python's integers to the end.

A plan of floats misses its sides by rounding. `max_violation` states the L1 distance, and `gap_abs` adds what that mass
is worth at u and g to the distance of objective and bound.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from kernels.certificates.flow.dyadic import Exact
from kernels.certificates.rounded import down, share_up, two_sum, up
from kernels.problems.arrays import Array
from kernels.problems.exact_transport import ExactTransport
from kernels.solution import Certificate, Number, Solution, Termination, unheard

MISSED = Fraction(1, 1 << 40)
"""Of the mass: a plan that misses its sides by more has no objective."""
SMALL, SURE = Fraction(1, 1 << 50), Fraction(1, 10**9)
"""Of the sizes of the terms, and of the objective or the data: gaps of floats that leave the word optimal."""
BEYOND = Fraction(2) ** 1024
"""What is not below it is beyond float64."""
ARRAYS = {"plan": "fi", "f": "fi", "g": "fi", "entry_rows": "iu", "entry_columns": "iu", "entry_values": "fi"}
ENTRIES = ("entry_rows", "entry_columns", "entry_values")


def certify(problem: ExactTransport, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute the plan's cost and sides, and the bound of its potentials."""
    if solution.termination is Termination.INFEASIBLE:
        return _infeasible(problem, solution)
    entries = _entries(problem, solution)
    if isinstance(entries, str):
        return _refused(entries)
    plan = Plan(problem, *entries)
    wrong = plan.wrong()
    if wrong:
        return _refused(wrong)
    progress(0.5)
    rows = _row_potentials(problem, np.asarray(solution.arrays["g"]))
    return _stated(problem, solution, plan, rows)


def _refused(why: str) -> Certificate:
    return Certificate(None, None, None, None, float("inf"), False, f"nothing: {why}")


def _entries(problem: ExactTransport, solution: Solution) -> tuple[Array, Array, Array] | str:
    """Rows, columns and masses of the plan, those that are not 0; or why it cannot be read."""
    arrays, (m, n) = solution.arrays, problem.shape
    for name, kinds in ARRAYS.items():
        if name in arrays and (not isinstance(arrays[name], np.ndarray) or arrays[name].dtype.kind not in kinds):
            return f"{name} does not hold numbers"
    if "g" not in arrays or arrays["g"].shape != (n,) or arrays.get("f", np.empty(m)).shape != (m,):
        return "f or g is missing, or has another shape"
    if not np.isfinite(arrays["g"]).all():
        return "g holds what is no number"
    if "plan" in arrays:
        if arrays["plan"].shape != (m, n):
            return f"plan has shape {arrays['plan'].shape}, expected {(m, n)}"
        rows, columns = np.nonzero(arrays["plan"])
        return rows, columns, arrays["plan"][rows, columns]
    if any(name not in arrays or arrays[name].ndim != 1 for name in ENTRIES):
        return "there is no plan, and no list of its entries"
    rows, columns, masses = (arrays[name] for name in ENTRIES)
    if not rows.shape == columns.shape == masses.shape:
        return "the lists of entries differ in length"
    inside = (rows >= 0).all() and (rows < m).all() and (columns >= 0).all() and (columns < n).all()
    places = rows.astype(np.int64) * n + columns if inside else rows
    if not inside or np.unique(places).size != rows.size:
        return "an entry is outside the plan, or listed twice"
    return rows, columns, masses


class Plan:
    """The entries of a plan."""

    def __init__(self, problem: ExactTransport, rows: Array, columns: Array, masses: Array) -> None:
        self.problem, self.rows, self.columns, self.masses = problem, rows, columns, masses

    def wrong(self) -> str:
        """Why it is no plan; "" where it is one."""
        if not np.isfinite(self.masses).all() or (self.masses < 0).any():
            return "the plan holds negative mass, or what is no number"
        if not self.problem.permitted[self.rows, self.columns].all():
            return "the plan uses a forbidden entry"
        return ""

    @property
    def costs(self) -> Array:
        """Of its entries."""
        return self.problem.cost[self.rows, self.columns]

    def missed(self, side: int) -> Exact:
        """By how much each row or column sum lies above its mass."""
        masses, lines = (self.problem.a, self.problem.b)[side], (self.rows, self.columns)[side]
        wanted = Exact.of(masses)
        found = Exact.of(self.masses).over(wanted.shift)
        sums = [-one for one in wanted.over(found.shift).numbers]
        for line, mass in zip(lines.tolist(), found.numbers, strict=True):
            sums[line] += mass
        return Exact(sums, found.shift)


def _row_potentials(problem: ExactTransport, g: Array) -> Exact:
    """u_i of each row; 0 for one in which every entry is forbidden."""
    permitted = problem.permitted
    some = permitted.any(axis=1)
    if problem.cost.dtype == np.int64 and g.dtype.kind == "i" and _fits(problem.cost, permitted, g):
        least = np.where(permitted, problem.cost - g, np.iinfo(np.int64).max).min(axis=1)
        return Exact.of(np.where(some, least, 0))
    if problem.cost.dtype == np.int64 or g.dtype.kind == "i":
        return _by_entries(problem, permitted, g)
    with np.errstate(invalid="ignore", over="ignore"):
        nearest = problem.cost - g  # +inf where forbidden
        least = nearest.min(axis=1)
        if not np.isfinite(least[some]).all():
            return _by_entries(problem, permitted, g)
        rows, columns = np.nonzero(nearest == np.where(some, least, np.nan)[:, None])
        error = np.full(least.size, np.inf)
        np.minimum.at(error, rows, two_sum(problem.cost[rows, columns], -g[columns])[1])
    return Exact.of(np.where(some, least, 0.0)) + Exact.of(np.where(some, error, 0.0))


def _fits(cost: Array, permitted: Array, g: Array) -> bool:
    """Whether no difference leaves int64."""
    top = int(np.abs(np.where(permitted, cost, 0)).max())
    return top + max(abs(int(g.min())), abs(int(g.max()))) < 1 << 62


def _by_entries(problem: ExactTransport, permitted: Array, g: Array) -> Exact:
    """The same entry by entry."""
    prices = Exact.of(g)
    held = Exact.of(np.where(permitted, problem.cost, 0).ravel()).over(prices.shift)
    prices, n = prices.over(held.shift), g.size
    found = []
    for i, row in enumerate(permitted):
        each = [held.numbers[i * n + j] - prices.numbers[j] for j in np.flatnonzero(row).tolist()]
        found.append(min(each, default=0))
    return Exact(found, held.shift)


def _stated(problem: ExactTransport, solution: Solution, plan: Plan, u: Exact) -> Certificate:
    g, a, b = (Exact.of(values) for values in (np.asarray(solution.arrays["g"]), problem.a, problem.b))
    bounded = bool((problem.permitted.any(axis=1) | (problem.a == 0)).all())
    bound = a.dot(u) + b.dot(g) if bounded else None
    misses = [plan.missed(side) for side in (0, 1)]
    violation = misses[0].absolute.total + misses[1].absolute.total
    allowed = 0 if problem.whole else MISSED * a.total
    objective = Exact.of(plan.masses).dot(Exact.of(plan.costs)) if violation <= allowed else None
    price = misses[0].absolute.dot(u.absolute) + misses[1].absolute.dot(g.absolute)
    return _certificate(problem, solution, plan, objective, bound, price, violation, u, g)


def _certificate(
    problem: ExactTransport,
    solution: Solution,
    plan: Plan,
    objective: Fraction | None,
    bound: Fraction | None,
    price: Fraction,
    violation: Fraction,
    u: Exact,
    g: Exact,
) -> Certificate:
    stated, proved = number(objective, up), number(bound, down)
    apart = None
    if stated is not None and proved is not None:
        between = Fraction(stated) - Fraction(proved)
        apart = number(max(between + price, -between), up)
    relative = None
    if apart is not None and stated is not None and proved is not None:
        relative = share_up(apart, stated, proved)
    claim, earned = solution.termination, None
    if claim in (Termination.OPTIMAL, Termination.GAP_REACHED) and not _optimal(problem, plan, stated, apart, u, g):
        earned = Termination.CONVERGED
    mass = float(plan.masses.sum(dtype=np.float64))
    return Certificate(
        objective=stated,
        bound=proved,
        gap_abs=apart,
        gap_rel=relative,
        max_violation=at_least(violation),
        holds=True,
        proved=_words(problem, objective is not None),
        facts={"mass": mass if math.isfinite(mass) else None, "mass_factor": problem.mass_factor},
        termination=earned,
    )


def number(value: Fraction | None, rounded: Callable[[Fraction | int], float]) -> Number | None:
    """A whole number as it is, where a JSON reader has all its digits by int; others rounded once.

    None where float64 has none that large.
    """
    if value is None or abs(value) >= BEYOND:
        return None
    if value.denominator == 1:
        return int(value)
    found = rounded(value)
    return found if np.isfinite(found) else None


def at_least(violation: Fraction) -> Number:
    """What is stated of a violation: infinity where float64 has no number that large."""
    found = number(violation, up)
    return math.inf if found is None else found


def _optimal(
    problem: ExactTransport,
    plan: Plan,
    objective: Number | None,
    gap: Number | None,
    u: Exact,
    g: Exact,
) -> bool:
    """Whether the gap leaves the word: none of whole numbers, rounding of floats."""
    if gap is None or objective is None:
        return False
    if problem.whole or gap == 0:
        return gap == 0
    prices = u.absolute.at(plan.rows.tolist()) + g.absolute.at(plan.columns.tolist())
    sizes = Exact.of(plan.masses).dot(Exact.of(plan.costs).absolute + prices)
    entries = np.where(problem.permitted & (problem.cost != 0), np.abs(problem.cost.astype(np.float64)), np.inf)
    least = entries.min(axis=1)
    data = Exact.of(problem.a).dot(Exact.of(np.where(np.isfinite(least), least, 0.0)))
    return Fraction(gap) <= SMALL * sizes and Fraction(gap) <= SURE * max(abs(Fraction(objective)), data)


def _words(problem: ExactTransport, settled: bool) -> str:
    arithmetic = "exactly, in integers" if problem.whole else "exactly, in fractions, and rounded once to the weak side"
    bound = "bound = sum a_i min_j (c_ij - g_j) + sum b_j g_j"
    violation = "violation = L1 distance of its sides from the given masses"
    if settled:
        return f"objective = cost of the returned plan, {bound}, both {arithmetic}; {violation}"
    return f"{bound}, {arithmetic}; the returned plan has other sides and so no objective; {violation}"


def hall_rows(solution: Solution, m: int) -> Array | str:
    """The rows, of m, that are to show that there is no plan; in words why they cannot."""
    rows = solution.arrays.get("hall_rows")
    if not isinstance(rows, np.ndarray) or rows.dtype.kind not in "iu" or rows.ndim != 1 or not rows.size:
        return "there are no rows that show it"
    if (rows < 0).any() or (rows >= m).any() or np.unique(rows).size != rows.size:
        return "rows that are to show it are none, or are named twice"
    return rows


def _infeasible(problem: ExactTransport, solution: Solution) -> Certificate:
    """Rows with more mass than all columns that they may use."""
    rows = hall_rows(solution, problem.shape[0])
    if isinstance(rows, str):
        return _refused(rows)
    columns = problem.permitted[rows].any(axis=0)
    asked, there = Exact.of(problem.a[rows]).total, Exact.of(problem.b[columns]).total
    words = f"the {rows.size} rows hall_rows have more mass than the {int(columns.sum())} columns that they may use"
    facts: dict[str, Any] = {"mass_of_rows": float(asked), "mass_of_columns": float(there)}
    if asked <= there:
        return _refused("the rows that are to show it have columns enough")
    return Certificate(None, None, None, None, 0, True, f"{words}, exactly", facts)
