"""Proof without an entropic term: the plan's objective in fractions, and the bound that the columns' potentials prove.

From any g, f_i = min_j (c_ij - g_j) over the permitted entries, each difference rounded down (exactly for integers): so
f_i + g_j <= c_ij holds for the rounded numbers themselves. A part of the mass may take f_i lower: at most s for all
rows, where the rows with a larger f_i have just the mass that is kept. Total variation needs f_i >= -r_1: where a row
is raised to that, the columns follow, g_j <= min_i (c_ij - f_i). All that follows is in fractions, rounded once.

A plan of floats breaks its constraints by rounding: `max_violation` is the mass that is too much or too little, and
`gap_abs` adds what that is worth at f and g. Where it is more than 2^-40 of the mass and 2^-49 of both sides the plan
has no objective. Of a line at most twice the mass counts there: its own size may be far beyond what it carries.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from kernels.certificates.flow import at_least, hall_rows, number
from kernels.certificates.flow.dyadic import Exact
from kernels.certificates.partial.sides import Missed, Side, missed, misstated
from kernels.certificates.rounded import down, share_up, sub_down, up
from kernels.certificates.told import number_of
from kernels.problems.arrays import Array
from kernels.problems.marginal_transport import MarginalTransport
from kernels.solution import Certificate, Number, Solution, Termination, unheard

ROUNDED = Fraction(1, 1 << 40)
"""Of the mass: constraints that are broken by more are broken."""
SMALL, SURE = Fraction(1, 1 << 49), Fraction(1, 10**9)
"""Of the sizes of the terms, and of the objective or the data: gaps of floats that leave the word optimal."""
KINDS = {"plan": "fi", "f": "fi", "g": "fi", "entry_rows": "iu", "entry_columns": "iu", "entry_values": "fi"}
LISTED = ("entry_rows", "entry_columns", "entry_values")
BLOCK = 1 << 20
"""Entries in work at a time."""


def certify(problem: MarginalTransport, solution: Solution, progress: Callable[[float], None]) -> Certificate:
    """See the package."""
    if wrong := misstated(problem, solution.facts):
        return refused(wrong)
    if solution.termination is Termination.INFEASIBLE:
        return infeasible(problem, solution)
    plan = read(problem, solution)
    if isinstance(plan, str):
        return refused(plan)
    sides = potentials(problem, _wide(problem, solution.arrays["g"]), progress)
    return _stated(problem, solution, plan, sides)


def _wide(problem: MarginalTransport, g: Array) -> Array:
    """Potentials in the arithmetic of the proof: narrower types round a limit, and floats integers beside them."""
    whole = g.dtype.kind == "i" and problem.cost.dtype == np.int64
    return g.astype(np.int64 if whole else np.float64)


def refused(why: str) -> Certificate:
    """Of an answer that is none."""
    return Certificate(None, None, None, None, float("inf"), False, f"nothing: {why}")


class Plan:
    """Rows, columns and masses of the entries of a plan."""

    def __init__(self, rows: Array, columns: Array, masses: Array) -> None:
        self.rows, self.columns, self.masses = rows, columns, masses

    def sums(self, shape: tuple[int, int]) -> tuple[Exact, Exact]:
        """Of its rows and columns."""
        masses = Exact.of(self.masses)
        found = ([0] * shape[0], [0] * shape[1])
        for lines, into in zip((self.rows, self.columns), found, strict=True):
            for line, mass in zip(lines.tolist(), masses.numbers, strict=True):
                into[line] += mass
        return Exact(found[0], masses.shift), Exact(found[1], masses.shift)


def read(problem: MarginalTransport, solution: Solution) -> Plan | str:
    """The plan of an answer with potentials; or why it is none."""
    arrays, (m, n) = solution.arrays, problem.shape
    for name, kinds in KINDS.items():
        if name in arrays and (not isinstance(arrays[name], np.ndarray) or arrays[name].dtype.kind not in kinds):
            return f"{name} does not hold numbers"
    for name, size in (("f", m), ("g", n)):
        if name not in arrays or arrays[name].shape != (size,) or not np.isfinite(arrays[name].astype(float)).all():
            return f"{name} is missing, has another shape, or holds what is no number"
    found = _entries(solution, m, n)
    if isinstance(found, str):
        return found
    if not np.isfinite(found.masses).all() or (found.masses < 0).any():
        return "the plan holds negative mass, or what is no number"
    if not problem.permitted[found.rows, found.columns].all():
        return "the plan uses a forbidden entry"
    return found


def _entries(solution: Solution, m: int, n: int) -> Plan | str:
    arrays = solution.arrays
    if "plan" in arrays:
        if arrays["plan"].shape != (m, n):
            return f"plan has shape {arrays['plan'].shape}, expected {(m, n)}"
        rows, columns = np.nonzero(arrays["plan"])
        return Plan(rows, columns, arrays["plan"][rows, columns])
    if any(name not in arrays or arrays[name].ndim != 1 for name in LISTED):
        return "there is no plan, and no list of its entries"
    rows, columns, masses = (arrays[name] for name in LISTED)
    if not rows.shape == columns.shape == masses.shape:
        return "the lists of entries differ in length"
    inside = (rows >= 0).all() and (rows < m).all() and (columns >= 0).all() and (columns < n).all()
    if not inside or np.unique(rows.astype(np.int64) * n + columns).size != rows.size:
        return "an entry is outside the plan, or listed twice"
    return Plan(rows, columns, masses)


def potentials(
    problem: MarginalTransport, g: Array, progress: Callable[[float], None] = unheard
) -> tuple[Side, Side] | None:
    """f and g with f_i + g_j <= c_ij; None where these costs have none that prove anything."""
    limits = tuple(int(one) if problem.whole and problem.kind == "tv" else one for one in problem.strengths)
    if problem.kind == "tv":
        g = np.minimum(np.maximum(g, -limits[1]), limits[1])
    f = _least(problem, g, 1, progress)
    if np.isneginf(f).any():
        return None
    if problem.kind == "partial":
        f = np.minimum(f, _level(problem, f))
    elif problem.kind == "l2":
        f = np.where(np.isfinite(f), f, limits[0] * problem.a)
    else:
        f = np.minimum(np.where(problem.permitted.any(axis=1), f, limits[0]), limits[0])
        if (f < -limits[0]).any():
            f = np.maximum(f, -limits[0])
            g = np.minimum(_least(problem, f, 0, unheard), g)
            if not _affordable(problem):
                return None
            g = np.maximum(g, -limits[1])  # -r_2 at most what is left beside a row at -r_1, before rounding
    return Side(problem, 0, f), Side(problem, 1, g)


def _least(problem: MarginalTransport, other: Array, axis: int, progress: Callable[[float], None]) -> Array:
    """The least cost less the other side's potential, rounded down, of each row (axis 1) or column; inf for none."""
    cost = problem.cost if axis == 1 else problem.cost.T
    permitted = problem.permitted if axis == 1 else problem.permitted.T
    whole = cost.dtype == np.int64 and other.dtype.kind == "i"
    if cost.dtype == np.int64 and not whole:
        cost = _as_floats(cost, permitted)
    if whole and not _fits(cost, permitted, other):
        cost, other = _as_floats(cost, permitted), _as_floats(-other, np.ones(other.shape, bool)) * -1.0
        whole = False
    found = []
    step = max(1, BLOCK // other.size)
    for k in range(0, len(cost), step):
        some = permitted[k : k + step]
        apart = cost[k : k + step] - other if whole else sub_down(np.where(some, cost[k : k + step], 0.0), other)
        top = np.iinfo(np.int64).max if whole else np.inf
        found.append(np.where(some, apart, top).min(axis=1))
        progress(0.5 * min(1.0, (k + step) / len(cost)))
    least, some = np.concatenate(found), np.asarray(permitted.any(axis=1))
    if whole and not some.all():  # nothing bounds these: any number does
        least = np.where(some, least, int(least[some].max()) if some.any() else 0)
    return least


def _as_floats(cost: Array, permitted: Array) -> Array:
    """Integers as the next floats that are not above them; inf where forbidden."""
    nearest = cost.astype(np.float64)
    with np.errstate(invalid="ignore"):
        above = (nearest >= 2.0**63) | (np.where(nearest < 2.0**63, nearest, 0).astype(np.int64) > cost)
    return np.where(permitted, np.where(above, np.nextafter(nearest, -np.inf), nearest), np.inf)


def _fits(cost: Array, permitted: Array, other: Array) -> bool:
    """Whether no difference leaves int64."""
    top = int(np.abs(np.where(permitted, cost, 0)).max())
    return top + max(abs(int(other.min())), abs(int(other.max()))) < 1 << 62


def _level(problem: MarginalTransport, f: Array) -> float:
    """s: the rows with a larger potential have at most the mass that is kept, and with those at s more than that."""
    held = (problem.a > 0) & np.isfinite(f)
    if not held.any():
        return 0
    order = np.argsort(-f[held], kind="stable")
    kept = float(problem.a.sum(dtype=np.float64)) - float(problem.mass)
    beside = float(problem.a[~held].sum(dtype=np.float64))
    before = beside + np.cumsum(problem.a[held][order], dtype=np.float64)
    place = min(int(np.searchsorted(before, kept, side="right")), order.size - 1)
    level: float = f[held][order][place].item()
    return level


def _affordable(problem: MarginalTransport) -> bool:
    """Whether no permitted entry costs less than -(r_1 + r_2)."""
    held = problem.cost[problem.permitted]
    return not held.size or Fraction(held.min().item()) + sum(map(Fraction, problem.strengths)) >= 0


def _stated(problem: MarginalTransport, solution: Solution, plan: Plan, sides: tuple[Side, Side] | None) -> Certificate:
    parts = (None, None) if sides is None else (sides[0].least(), sides[1].least())
    bound = None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    m, n = problem.shape
    asked = sides or (Side(problem, 0, np.zeros(m)), Side(problem, 1, np.zeros(n)))
    sums = plan.sums((m, n))
    off = missed(problem, asked, sums)
    allowed = 0 if problem.whole else ROUNDED * Fraction(problem.mass) + SMALL * concerned(problem)
    objective = None
    if off.violation <= allowed:
        spent = Exact.of(plan.masses).dot(Exact.of(problem.cost[plan.rows, plan.columns]))
        objective = spent + asked[0].paid(sums[0]) + asked[1].paid(sums[1])
    return _certificate(problem, solution, plan, objective, bound, off, asked, sums)


def _certificate(
    problem: MarginalTransport,
    solution: Solution,
    plan: Plan,
    objective: Fraction | None,
    bound: Fraction | None,
    off: Missed,
    sides: tuple[Side, Side],
    sums: tuple[Exact, Exact],
) -> Certificate:
    stated, proved = number(objective, up), number(bound, down)
    apart, relative = between(stated, proved, off.price)
    claim, earned = solution.termination, None
    tolerance = number_of(solution.facts.get("tolerance")) or 0.0
    close = relative is not None and tolerance > 0 and relative <= tolerance
    if claim in (Termination.OPTIMAL, Termination.GAP_REACHED) and not close:
        sizes = _sizes(problem, plan, sides, sums)
        earned = None if _optimal(problem, stated, apart, sizes) else Termination.CONVERGED
    return Certificate(
        objective=stated,
        bound=proved,
        gap_abs=apart,
        gap_rel=relative,
        max_violation=at_least(off.violation),
        holds=True,
        proved=words(problem, stated is not None, "exactly, in fractions, and rounded once to the weak side"),
        facts={"mass": _float(sums[0].total)},
        termination=earned,
    )


def concerned(problem: MarginalTransport) -> Fraction:
    """The masses of both sides, of a line at most twice the mass that is kept."""
    limit = 2 * problem.mass
    return sum((Exact.of(np.minimum(masses, limit)).total for masses in (problem.a, problem.b)), Fraction(0))


def _float(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def between(stated: Number | None, proved: Number | None, price: Fraction) -> tuple[Number | None, float | None]:
    """The absolute and the relative gap, rounded up."""
    if stated is None or proved is None:
        return None, None
    apart = Fraction(stated) - Fraction(proved)
    gap = number(max(apart + price, -apart), up)
    return gap, None if gap is None else share_up(gap, stated, proved)


def _sizes(problem: MarginalTransport, plan: Plan, sides: tuple[Side, Side], sums: tuple[Exact, Exact]) -> Fraction:
    """Of the terms that the objective and its bound are sums of."""
    total = Exact.of(plan.masses).dot(Exact.of(problem.cost[plan.rows, plan.columns]).absolute)
    for side, own in zip(sides, sums, strict=True):
        total += Exact.of(side.masses).dot(Exact.of(side.potential).absolute) + side.paid(own)
    return total


def _optimal(problem: MarginalTransport, objective: Number | None, gap: Number | None, sizes: Fraction) -> bool:
    """Whether the gap leaves the word: none of whole numbers, rounding of floats."""
    if gap is None or objective is None:
        return False
    if problem.whole or gap == 0:
        return gap == 0
    return Fraction(gap) <= SMALL * sizes and Fraction(gap) <= SURE * max(abs(Fraction(objective)), _natural(problem))


def _natural(problem: MarginalTransport) -> Fraction:
    """The scale of an objective, from the data alone: all that is to be moved at the smallest cost that is not 0.

    Where nothing has to be moved, it is at most what an empty plan pays, which no optimum is above.
    """
    entries = np.where(problem.permitted & (problem.cost != 0), np.abs(problem.cost.astype(np.float64)), np.inf)
    least = float(entries.min())
    if not np.isfinite(least):
        return Fraction(0)
    if problem.kind == "partial":
        return Fraction(problem.mass) * Fraction(least)
    nothing = (Side(problem, k, np.zeros(n)).paid(Exact.of(np.zeros(n))) for k, n in enumerate(problem.shape))
    return min(Fraction(problem.a.sum(dtype=np.float64).item()) * Fraction(least), sum(nothing, Fraction(0)))


def words(problem: MarginalTransport, settled: bool, arithmetic: str) -> str:
    """What is proved, and how."""
    bound = f"bound = dual value of f, g, {arithmetic}"
    if problem.kind != "partial":
        return f"objective = primal value of the returned plan, {bound}; no constraint to violate"
    violation = "violation = mass that a line gives or takes beyond its own, and by which the sum is off"
    if settled:
        return f"objective = primal value of the returned plan, {bound}; {violation}, and the gap holds its worth"
    return f"{bound}; the returned plan breaks its constraints and has no objective; {violation}"


def infeasible(problem: MarginalTransport, solution: Solution) -> Certificate:
    """Rows without which, but for the columns that they may use, too little mass is left."""
    rows = hall_rows(solution, problem.shape[0])
    if isinstance(rows, str):
        return refused(rows)
    columns = problem.permitted[rows].any(axis=0)
    others = np.ones(problem.shape[0], bool)
    others[rows] = False
    most = Exact.of(problem.a[others]).total + Exact.of(problem.b[columns]).total
    if problem.kind != "partial" or most >= Fraction(problem.mass):
        return refused("the rows that are to show it leave mass enough")
    proved = f"the {rows.size} rows hall_rows may use {int(columns.sum())} columns; these and the other rows have less"
    facts = {"mass_at_most": float(most), "mass_wanted": float(problem.mass)}
    return Certificate(None, None, None, None, 0, True, f"{proved} mass together than is to be moved, exactly", facts)
