"""What a transport certificate is about, one block of rows at a time: exponents of P(f, g), and the plan itself.

P(f, g)_ij = w_i v_j exp(z_ij), z_ij = (f_i + g_j - C_ij) / reg, where w, v are a, b for the product reference, and 1
wherever there is mass for the uniform one. z is worked out with three roundings, of relative size u = 2^-53, and from
costs that may have errors of their own (transport_points.py):

    |error of z| <= (u + relative) |f_i + g_j| / reg + (2 u + relative) |z| + absolute_i / reg,

since |C| <= |f_i + g_j| + reg |z|. An error of z is a relative one of exp(z). With t the largest z of a row, entries
with z < t - NEAR are so far below the largest that (NEAR + x) exp(-NEAR - x) < 2^-51 for all x >= 0: a row's sum takes
the bound at z >= t - NEAR for all its entries and adds 2^-50 u w v exp(t) for each.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kernels.certificates.transport_elementary import TINIEST, UNIT, log_down
from kernels.certificates.transport_fine import REGS, exponents
from kernels.certificates.transport_points import SLACK, CostBlock, Costs
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport

BLOCK = 1 << 16  # entries in work at a time: the arrays of one operation stay in a core's cache
FLOOR = -600.0  # for z below it exp(FLOOR) stands: products with it are still normal numbers, others take ages
NEAR, FAR = 40.0, 750.0  # |z| up to which sums look, and up to which exp(z) is above 0
COARSE = 2.0**-44  # an error of z from which on an implicit plan is worth two words
FEW = 1 << 22  # entries, times the dimension of points, up to which they take no time
SMALLEST = 5e-324  # above 0
LARGEST = 1e300  # a potential beyond it is not one


@dataclass(frozen=True, eq=False)
class Exponents:
    """z (k, n) of some rows and the largest of them; z is -inf where forbidden or without weight.

    `near` (k,) bounds its errors where z is within NEAR of its row's largest, `far` (k,) those where z >= -FAR.
    `forbidden` marks entries, None where there are none. Where there is a `low`, it is a second word of z.
    """

    z: Array
    low: Array | None
    top: float
    near: Array
    far: Array
    forbidden: Array | None
    base: Array
    slope: float

    def errors(self, i: Array, z: Array) -> Array:
        """Bounds on the errors of `z`, any entries of the rows `i`."""
        return np.asarray(SLACK * (self.base[i] + self.slope * abs(z)))


class Answer:
    """A problem without batch axis, the potentials of its answer, and its plan.

    The plan is the array `plan`; where there is none it is P(f, g) + rest_a rest_b', but for the entries at entry_rows,
    entry_columns (-1 for none), which are entry_values; the last two where the arrays have them. `above` are the
    strengths that the plan is priced at, where those of the problem were rounded down.
    """

    def __init__(
        self, problem: UnbalancedTransport, arrays: Mapping[str, Array], above: tuple[float, float] | None = None
    ) -> None:
        self.problem, self.arrays, self.above = problem, arrays, above or problem.reg_m
        held_a, held_b = problem.a > 0, problem.b > 0
        product = problem.reference == "product"
        self.w, self.v = (problem.a, problem.b) if product else (held_a.astype(float), held_b.astype(float))
        self.few = self.w.size * self.v.size * (1 if problem.x is None else problem.x.shape[1]) <= FEW
        self.empty = not (self.w.all() and self.v.all())
        self.costs = Costs(problem)
        self.forbids = problem.cost is not None and bool(np.isposinf(problem.cost.max()))
        self.f, self.unreached_a, usable_a = self._potential("f", 0, held_a)
        self.g, self.unreached_b, usable_b = self._potential("g", 1, held_b)
        self.usable = usable_a and usable_b
        self.reach = float(abs(self.g).max())
        self.plan = arrays.get("plan")
        self.rest = _all_of(arrays, "rest_a", "rest_b")
        self.rest = None if self.rest is None else [np.asarray(part, np.float64) for part in self.rest]
        self.set = _all_of(arrays, "entry_rows", "entry_columns", "entry_values")
        self.placed = self.set is None or _placed(self.set[0], self.set[1], problem.shape)
        self.set = self.set if self.placed else None

    @functools.cached_property
    def logs(self) -> tuple[Array, Array]:
        """Lower bounds on log w and log v."""
        return log_down(self.w), log_down(self.v)

    @property
    def implicit(self) -> bool:
        """True where the plan is not an array but follows from potentials, and its entries have errors here."""
        return self.plan is None

    @property
    def beside(self) -> list[Array]:
        """What an implicit plan has beside P(f, g), none of which may be negative."""
        return [*(self.rest or []), *(self.set[2:] if self.set is not None else [])]

    @functools.cached_property
    def vanishes(self) -> bool:
        """True where a product of the two rests may be rounded to 0."""
        least = [part[part > 0].min(initial=np.inf) for part in self.rest or []]
        return bool(least) and bool(least[0] * least[1] == 0)

    @property
    def massless(self) -> bool:
        """True where a side has no mass at all: then P(f, g) and the reference are 0, and so is every plan."""
        return not (self.w.any() and self.v.any())

    @property
    def adds(self) -> bool:
        """True where an implicit plan is more than P(f, g)."""
        return self.rest is not None or self.set is not None

    def _potential(self, name: str, side: int, held: Array) -> tuple[Array, Array, bool]:
        """The potential with 0 where it says nothing, the lines it leaves empty, and whether it bounds anything.

        +inf is right for a relaxed line that no permitted entry reaches: all its mass is left behind.
        """
        given = np.asarray(self.arrays[name], np.float64)
        finite = abs(np.where(np.isnan(given), np.inf, given)) <= LARGEST
        unreached = held & (given == np.inf)
        for line in np.nonzero(unreached)[0]:
            unreached[line] = self._alone(side, int(line)) and np.isfinite(self.problem.reg_m[side])
        return np.where(finite & held, given, 0.0), unreached, bool((finite | unreached | ~held).all())

    def _alone(self, side: int, line: int) -> bool:
        """True where every entry of a line is forbidden or lies where there is no mass."""
        cost, other = self.problem.cost, (self.problem.b, self.problem.a)[side] > 0
        if cost is None:
            return not other.any()
        return bool(np.isposinf((cost[line] if side == 0 else cost[:, line])[other]).all())

    def blocks(self) -> Iterator[slice]:
        """Runs of rows, in order."""
        m, n = self.problem.shape
        step = max(1, BLOCK // n)
        return (slice(i, min(m, i + step)) for i in range(0, m, step))

    def exponents(self, rows: slice) -> Exponents:
        """z of some rows."""
        cost = self.costs.block(rows)
        z = self.f[rows][:, None] + self.g
        with np.errstate(over="ignore"):
            z -= cost.values
            z /= self.problem.reg
        if self.empty:
            z[self.w[rows] == 0] = -np.inf
            z[:, self.v == 0] = -np.inf
        base, slope = self._errors(rows, cost)
        tops, low = z.max(axis=1), -float(z.min())
        near = SLACK * (base + slope * np.maximum(np.minimum(NEAR - np.maximum(tops, -FAR), low), tops))
        far = SLACK * (base + slope * np.maximum(min(FAR, low), tops))
        forbidden = np.isposinf(cost.values) if self.forbids else None
        fine = self.implicit and float(near.max()) > COARSE and self.few
        if fine and (self.problem.cost is not None or REGS[0] < self.problem.reg < REGS[1]):
            return self._fine(rows, Exponents(z, None, float(tops.max()), near, far, forbidden, base, slope))
        return Exponents(z, None, float(tops.max()), near, far, forbidden, base, slope)

    def _fine(self, rows: slice, at: Exponents) -> Exponents:
        """The same exponents in two words."""
        z, low, error = exponents(self.problem, self.f, self.g, rows)
        if not error + 4 * UNIT < float(at.near.max()):  # the bounds of one word are not those of two
            return at
        z[np.isneginf(at.z)], low[np.isneginf(at.z)] = -np.inf, 0.0
        errors = np.full_like(at.near, error + 4 * UNIT)
        return replace(at, z=z, low=low, near=errors, far=errors)

    def _errors(self, rows: slice, cost: CostBlock) -> tuple[Array, float]:
        reg = self.problem.reg
        base = (UNIT + cost.relative) * ((abs(self.f[rows]) + self.reach) / reg) + cost.absolute / reg + TINIEST
        return base, 2 * UNIT + cost.relative

    def implied(self, rows: slice, dual: Array) -> Array:
        """Some rows of an implicit plan, from those of P(f, g)."""
        plan = dual.copy()
        if self.rest is not None:
            rest = np.multiply.outer(self.rest[0][rows], self.rest[1])
            if self.vanishes:  # too small to be told from 0, which matters where the plan must be 0
                rest[(rest == 0) & np.multiply.outer(self.rest[0][rows] > 0, self.rest[1] > 0)] = SMALLEST
            plan += rest
        if self.set is not None:
            i, j, values = self.set
            here = (i >= rows.start) & (i < rows.stop)
            plan[i[here] - rows.start, j[here]] = values[here]
        return plan


def _placed(rows: Array, columns: Array, shape: tuple[int, int]) -> bool:
    """True where each entry has a place of its own in the plan, or -1 for its row and its column."""
    some = (rows != -1) | (columns != -1)
    i, j = rows[some], columns[some]
    if not ((i >= 0) & (i < shape[0]) & (j >= 0) & (j < shape[1])).all():
        return False
    return bool(np.unique(i.astype(np.int64) * shape[1] + j.astype(np.int64)).size == i.size)


def _all_of(arrays: Mapping[str, Array], *names: str) -> list[Array] | None:
    """The arrays of these names, None unless all are there."""
    return [arrays[name] for name in names] if all(name in arrays for name in names) else None
