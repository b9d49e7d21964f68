"""Proof for barycenters on given points: plans from the barycenter, and a bound from potentials.

The bound. Take any f_k, g_k and any b >= 0 of mass 1 with plans P_k >= 0 of row sums b and column sums a_k, and R with
the entries 1 / (m n). As x log(x / r) - x + r >= x z - r (e^z - 1) for every z, with z = (f_k + g_k - C_k) / reg,
    <C_k, P_k> + reg KL(P_k | R) >= <f_k, b> + <g_k, a_k> - reg (sum R exp((f_k + g_k - C_k) / reg) - 1).
Weighted with w_k and summed, the f_k meet b in sum_i b_i r_i with r = sum_k w_k f_k. That is at least min_i r_i, for b
has mass 1. So
    sum_k w_k (<g_k, a_k> - reg (Z_k - 1)) + min_i r_i
is below the value of every barycenter, whatever f and g are; a sum r that is not exactly 0 costs what it is off.
Without an entropic term g_k is worked out anew as min_i (C_k - f_k), and the term with Z_k is gone.

The objective. A plan is made for each measure from f_k and g_k (without an entropic term it is given), scaled down
where a row or column has too much, and what is then missing is added as a product of what rows and columns lack. It
is a plan of the returned barycenter, so its value is at least the best. What rounding leaves of the sides is measured,
stated as `max_violation`, and `gap_abs` adds what it is worth at f and g.

Errors, with u = 2^-53. z is off by at most 4 u (|f| + |g| + |C|) / reg in each entry; exponentials by 4 u of themselves
(transport_elementary.py); a sum of N terms of one sign by N u of itself (Higham 2002, section 4.2). So Z is multiplied
by exp(4 u ...) (1 + 2^-48 + 2 N u). The terms p (C + reg (L - 1)) of a value, L = log(p m n) off by 2^-48 of itself and
2 u of p m n, are off by 2^-46 p (|C| + reg (|L| + 2)), their sum by 2 N u of the sizes: both are added. The masses are
quotients within 3 u of the given ones, which moves <g, a> by 3 u sum |g| a at most. All other steps round outward.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from kernels.certificates.barycenter.stated import TINIEST, UNIT, concluded, misses, numbers, refused, smallest
from kernels.certificates.rounded import add_down, add_up, mul_down, mul_up, sub_down, sum_down, sum_up, up
from kernels.certificates.transport_elementary import LOWEST, exp_pair, exp_up, log_up
from kernels.problems.arrays import Array
from kernels.problems.barycenter import Barycenter
from kernels.solution import Certificate, Solution, unheard

BLOCK = 1 << 14
"""Entries of a plan that are looked at together: what is worked out on the way stays in a cache."""
DEBIASED = (
    "objective = value of plans made from the potentials and repaired, less half of a lower bound on the transport of"
    " the barycenter to itself, rounded up; there is no bound: the problem is a difference, and potentials bound its"
    " parts from one side only; violation = largest L1 distance of a plan's sides from the barycenter and a measure"
)
TERM = 2.0**-46
SAME = 2.0**-46
"""Of 1: what the mass of a barycenter may be off by rounding."""
TOP = 300.0
"""Logarithm of an entry of a plan: potentials that make larger ones bound nothing."""


@dataclass
class _Part:
    """What one measure adds, before its weight."""

    value: float
    bound: float
    price: float
    violation: float


def certify(problem: Barycenter, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Evaluate the barycenter, and the bound of its potentials."""
    k, m, n = problem.sizes
    shapes = {"barycenter": (m,), "f": (k, m), "g": (k, n)} | ({} if problem.reg else {"plan": (k, m, n)})
    shapes |= {"h": (m,)} if problem.debiased else {}
    read = {name: numbers(solution.arrays, name, shape) for name, shape in shapes.items()}
    for found in read.values():
        if isinstance(found, str):
            return refused(found)
    arrays = {name: found for name, found in read.items() if isinstance(found, np.ndarray)}
    wrong = _wrong(problem, arrays)
    if wrong:
        return refused(wrong)
    parts = []
    for one in range(k):
        parts.append(_part(problem, arrays, one))
        progress((one + 1) / k)
    if misses(max(part.violation for part in parts), m, n) or not all(math.isfinite(part.value) for part in parts):
        return refused("its plans have other sides than the barycenter and the measures")
    if problem.debiased:
        return _debiased(problem, solution, arrays, parts)
    stated = _stated(problem, solution, arrays["f"], parts)
    if problem.reg:
        return stated
    return replace(stated, facts=stated.facts | {"returned_plan_misses": _missed(problem, arrays)})


def _missed(problem: Barycenter, arrays: dict[str, Array]) -> float:
    """The largest L1 distance of a returned plan's sides from the returned barycenter and a measure, rounded up.

    The plan that is certified is that one repaired. So the two are at most twice as far apart, entry by entry. What
    the masses of a measure and of the barycenter, and sums here, are off by rounding is added.
    """
    b, worst = arrays["barycenter"], 0.0
    for plan, a in zip(arrays["plan"], problem.masses, strict=True):
        off = [abs(Fraction(math.fsum(row)) - Fraction(x)) for row, x in zip(plan.tolist(), b.tolist(), strict=True)]
        off += [abs(Fraction(math.fsum(row)) - Fraction(x)) for row, x in zip(plan.T.tolist(), a.tolist(), strict=True)]
        worst = max(worst, up(sum(off) * (1 + Fraction(1, 1 << 40)) + Fraction(2 * SAME)))
    return worst


def _wrong(problem: Barycenter, arrays: dict[str, Array]) -> str:
    b, f, g = arrays["barycenter"], arrays["f"], arrays["g"]
    held = g[problem.masses > 0]
    if not (np.isfinite(b).all() and np.isfinite(f).all() and np.isfinite(held).all()):
        return "barycenter, f or g holds an infinity"
    if (b < 0).any() or (b > 2).any() or abs(math.fsum(b) - 1) > SAME:
        return "the barycenter has negative mass, or another mass than 1"
    if max(np.abs(f).max(), np.abs(held).max()) > 1e150:
        return "f or g holds numbers beyond 1e150"
    plan = arrays.get("plan")
    if plan is not None and (not np.isfinite(plan).all() or (plan < 0).any() or (plan > 2).any()):
        return "a plan holds negative mass, or more than there is"
    return ""


def _stated(problem: Barycenter, solution: Solution, f: Array, parts: list[_Part]) -> Certificate:
    w = problem.weights
    sizes = np.array([math.fsum(column) for column in (w[:, None] * np.abs(f)).T])
    each = np.array([math.fsum(column) for column in (w[:, None] * f).T])
    least = float((each - 4 * UNIT * sizes - TINIEST * (f != 0).any(axis=0)).min())
    values, bounds, prices = (np.array([getattr(p, name) for p in parts]) for name in ("value", "bound", "price"))
    objective = sum_up(mul_up(w, values))
    price = sum_up(mul_up(w, prices))
    used = w > 0
    bound = -math.inf
    if np.isfinite(bounds[used]).all():
        pulled = mul_down(w[used], bounds[used])
        bound = sum_down(np.append(pulled, least))
    violation = max(part.violation for part in parts)
    scales = float(np.abs(problem.cost).max()), smallest(problem.cost)
    return concluded(solution, objective, bound, price, violation, scales, _words(problem))


def _debiased(problem: Barycenter, solution: Solution, arrays: dict[str, Array], parts: list[_Part]) -> Certificate:
    """The value less half of a lower bound on T(b, b): that of the potentials h on both sides. There is no bound."""
    b, h = arrays["barycenter"], arrays["h"]
    if not np.isfinite(h).all() or np.abs(h).max() > 1e150:
        return refused("h holds an infinity")
    itself = Barycenter(b[None], np.ones(1), problem.cost, problem.reg)
    low = _part(itself, {"barycenter": b, "f": h[None], "g": h[None]}, 0).bound
    pulled = mul_down(b, h)
    low = float(sub_down(add_down(low, sum_down(pulled)), 4 * UNIT * float(np.abs(pulled).sum()) + TINIEST))
    if not math.isfinite(low):
        return refused("h is far from the potential of the barycenter with itself")
    w = problem.weights
    values = sum_up(mul_up(w, np.array([part.value for part in parts])))
    objective = float(add_up(values, -low / 2))
    violation = max(part.violation for part in parts)
    return concluded(solution, objective, -math.inf, 0.0, violation, (0.0, 0.0), DEBIASED)


def _words(problem: Barycenter) -> str:
    sides = "violation = largest L1 distance of a plan's sides from the barycenter and a measure"
    if problem.reg:
        objective = "objective = value of plans made from the potentials and repaired to the barycenter's sides"
        bound = "bound = sum w_k (<g_k, a_k> - reg (Z_k - 1)) + min_i sum_k w_k f_ki, below every barycenter's value"
    else:
        objective = "objective = cost of the returned plans, repaired to the barycenter's sides"
        bound = "bound = sum w_k sum_j a_kj min_i (c_ij - f_ki) + min_i sum_k w_k f_ki, below every barycenter's cost"
    return f"{objective}; {bound}; both rounded to the weak side; {sides}"


def _part(problem: Barycenter, arrays: dict[str, Array], k: int) -> _Part:
    measure = _Measure(problem, arrays, k)
    held = measure.held
    top = measure.first()
    a, g = problem.masses[k][held], measure.g[held] if problem.reg else measure.least[held]
    pulled = mul_down(a, g)
    bound = sum_down(np.append(pulled, -4 * UNIT * float(np.abs(pulled).sum()) - TINIEST * pulled.any()))
    if problem.reg:
        bound = float(sub_down(bound, mul_up(problem.reg, add_up(top, -1.0))))
    value = measure.second()
    return _Part(value, bound, measure.price, measure.violation)


class _Measure:
    """One measure's plan, block of rows by block of rows, twice."""

    def __init__(self, problem: Barycenter, arrays: dict[str, Array], k: int) -> None:
        _, self.m, self.n = problem.sizes
        self.reg, self.cost = problem.reg, problem.cost_of(k)
        self.a, self.b = problem.masses[k], arrays["barycenter"]
        self.held = self.a > 0
        self.f, self.g = arrays["f"][k], np.where(self.held, arrays["g"][k], 0.0)
        self.plan = None if self.reg else arrays["plan"][k]
        self.least = np.full(self.n, np.inf)
        self.rows, self.columns = np.ones(self.m), np.zeros(self.n)
        self.price = self.violation = 0.0

    def _blocks(self) -> Iterator[slice]:
        step = max(1, BLOCK // self.n)
        return (slice(i, min(self.m, i + step)) for i in range(0, self.m, step))

    def _entries(self, some: slice) -> Array:
        """The plan before its repair; only exponents within reach of float64 are taken."""
        if self.plan is not None:
            return np.where(self.held, self.plan[some], 0.0)
        z = (self.f[some, None] + self.g - self.cost[some]) / self.reg
        entries, _ = exp_pair(np.clip(z, LOWEST, TOP))
        self.highest = max(getattr(self, "highest", -np.inf), float(z[:, self.held].max()))
        return np.where(self.held & (z > LOWEST), entries / (self.m * self.n), 0.0)

    def first(self) -> float:
        """Scale rows, sum columns; what comes back is an upper bound on Z, inf where it cannot be told."""
        total = []
        for some in self._blocks():
            block = self._entries(some)
            sums = block.sum(axis=1)
            total += sums.tolist()
            with np.errstate(divide="ignore", invalid="ignore"):
                self.rows[some] = np.where(sums > self.b[some], self.b[some] / sums, 1.0)
            self.columns += (block * self.rows[some, None]).sum(axis=0)
            if self.plan is not None:
                below = sub_down(self.cost[some], self.f[some, None])
                self.least = np.minimum(self.least, below.min(axis=0))
        if self.plan is not None:
            return 0.0
        if self.highest > TOP:
            return math.inf
        sizes = np.abs(self.f).max() + np.abs(self.g).max() + np.abs(self.cost).max()
        off = float(exp_up(np.array(4 * UNIT * sizes / self.reg)))
        tail = float(exp_up(np.array(LOWEST)))  # of the entries that were left out
        return float((math.fsum(total) + tail) * off * (1 + 2.0**-47 + 4 * self.n * UNIT))

    def second(self) -> float:
        """An upper bound on the value of the repaired plan; notes what its sides miss and what that is worth."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(self.columns > self.a, self.a / self.columns, 1.0)
        lacking = np.maximum(self.a - self.columns * scale, 0.0)
        lacking[~self.held] = 0.0
        short = float(lacking.sum())
        values, sizes, reached, touched = [], [], np.zeros(self.n), self.reg > 0
        missed_rows = np.zeros(self.m)
        for some in self._blocks():
            block = self._entries(some) * self.rows[some, None] * scale
            lost = np.maximum(self.b[some] - block.sum(axis=1), 0.0)
            if short > 0:
                block += lost[:, None] * (lacking / short)
            sums = block.sum(axis=1)
            missed_rows[some] = np.abs(sums - self.b[some]) + 2 * self.n * UNIT * sums
            reached += block.sum(axis=0)
            value, size = self._value(some, block)
            touched = touched or bool(((block > 0) & (self.cost[some] != 0)).any())
            values += value
            sizes += size
        missed = np.where(self.held, np.abs(reached - self.a) + 2 * self.m * UNIT * reached, 0.0)
        self.violation = float((missed_rows.sum() + missed.sum()) * (1 + 1e-12))
        potential = self.g if self.reg else self.least
        prices = missed_rows * np.abs(self.f), missed * np.abs(np.where(self.held, potential, 0.0))
        self.price = float(sum_up(np.concatenate(prices)) * (1 + 1e-12))
        slack = (TERM + 4 * self.n * UNIT) * math.fsum(sizes) + TINIEST * touched
        more = self.reg if self.reg else 0.0  # the mass of R
        return sum_up(np.array([*values, slack * (1 + 1e-12), more]))

    def _value(self, some: slice, block: Array) -> tuple[list[float], list[float]]:
        """Sums of a block's rows: of its terms, and of their sizes."""
        cost = self.cost[some]
        if not self.reg:
            return (block * cost).sum(axis=1).tolist(), (block * np.abs(cost)).sum(axis=1).tolist()
        logs = np.where(block > 0, log_up(np.where(block > 0, block, 1.0) * (self.m * self.n)), 0.0)
        terms = block * (cost + self.reg * (logs - 1.0))
        sizes = block * (np.abs(cost) + self.reg * (np.abs(logs) + 2.0))
        return terms.sum(axis=1).tolist(), sizes.sum(axis=1).tolist()
