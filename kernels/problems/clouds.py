"""Frames of points or boxes, one after the other, whose lines may be left at a price: costs are worked out, not given.

Here a cost is a float64, and the problem is that of these numbers. (Two clouds whose points must all be paired are
another problem, that of the real numbers: `points.py`.) Coordinates become float64, which is exact. Each operation is
rounded to nearest, in the order that is written here:

    iou           w = max(0, min(x2, x2') - max(x1, x1')), and h the same of y
                  common = w h,  union = ((x2 - x1) (y2 - y1) + (x2' - x1') (y2' - y1')) - common
                  cost = 1 - common / union, and 1 where common is 0
    sqeuclidean   t = (x_0 - y_0)^2, then t = t + (x_k - y_k)^2 for k = 1, 2, ...
    euclidean     the root of that
    cityblock     t = |x_0 - y_0|, then t = t + |x_k - y_k|

So whoever works them out has the same bits. A product is never added unrounded, as a fused operation would do it.
Where common is above 0, so is union: rounding never reverses an order, so common is at most either area.
"""

import math
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from kernels.problems.arrays import (
    Amounts,
    Costs,
    Csr,
    Indices,
    Inputs,
    InvalidProblem,
    Mask,
    Reals,
    is_masked,
    numeric,
)
from kernels.problems.assignment import check_range, is_in_range
from kernels.problems.derived import derived
from kernels.problems.metrics import BOX, MOST_COORDINATE, MOST_INTEGER
from kernels.problems.points import Points
from kernels.problems.rejecting import (
    FIELDS,
    PRICES,
    Form,
    Rejecting,
    entries_of,
    largest_of,
    longest_of,
    priced,
    refuse_what_does_not_fit,
    sizes_of,
)
from kernels.problems.seen import seen_of

ROUNDED = ("iou", "sqeuclidean", "euclidean", "cityblock")
"""Metrics with such a formula."""
ROOM = 1 + 2.0**-20
"""A sum of fewer than 2^32 terms that are not negative, rounded at each step, is at most this times the exact one."""


@dataclass(frozen=True, eq=False)
class PointRejecting(Rejecting):
    """As `Rejecting`, with the costs of `points`: x of all problems one after the other, and so y. `costs` is empty.

    Nobody keeps the costs here. The solver works them out, and the certificate does by code of its own, so that neither
    can read the other's.
    """

    points: Points = field(default_factory=lambda: Points(np.empty((0, 0)), np.empty((0, 0))))

    @property
    def entries(self) -> int:
        """How many costs there are."""
        return int((self.sizes[:, 0] * self.sizes[:, 1]).sum())

    def written_out(self, costs: Costs) -> Rejecting:
        """The same with these costs of all problems, one after the other; where there are none, with none."""
        known = costs if costs.size else self.costs
        prices = self.row_prices, self.col_prices
        return Rejecting(known, self.sizes, *prices, self.maximize, self.form, self.extents, self.strict)


def wants_clouds(inputs: Inputs, cost_limit: float | None) -> bool:
    """Whether points are to be paired in this form: lines have prices, or there are several problems."""
    return "sizes" in inputs or cost_limit is not None or not PRICES.isdisjoint(inputs)


def rejecting_points(inputs: Inputs, metric: str, maximize: bool, cost_limit: float | None) -> PointRejecting:
    """Build from `x`, `y`, `sizes` where there are several problems, and limit or prices as `rejecting_assignment`.

    Beside `sizes` `y` may be left out: `x` then holds the points of all rows, and behind them those of all columns.

    Raises:
        InvalidProblem: another metric than those of ROUNDED, another input; points that are missing, not finite, beyond
            1e100 or, as integers, 2^53; boxes that are none; sizes that do not add up; prices as in `rejecting.py`.
    """
    if metric not in ROUNDED:
        beside = "sizes, cost_limit, reject_rows or reject_cols"
        raise InvalidProblem("metric", f"is {metric}; beside {beside} expected one of {', '.join(ROUNDED)}")
    if other := sorted(set(inputs) - {"x", "y", "u0", "v0", "sizes", *PRICES}):
        raise InvalidProblem(other[0], "is given beside x and y; expected a matrix of costs, or points")
    known = [_is_in_range(inputs[name]) for name in ("x", "y") if name in inputs]
    inputs, sizes = _apart(inputs)
    x, y = _cloud("x", inputs), _cloud("y", inputs)
    form, sizes = _sizes(inputs, sizes, x, y)
    refuse_what_does_not_fit(inputs, maximize, cost_limit)
    x, y = _of_one_dimension(x, y)
    counts = sizes if form == "ragged" else None
    derived(lambda: _checked((x, y), metric, counts, (known[0], known[-1])), 1.0)
    extents = longest_of(sizes)
    some = entries_of(sizes, extents) > 0
    costs, prices, strict = priced(inputs, np.zeros(int(some)), (sizes, form, extents), maximize, cost_limit)
    most, lines = _largest(metric, x, y), max(1, sum(extents))
    if cost_limit is None or not is_in_range(max(abs(cost_limit), most), prices[0].dtype, lines):
        _check_sums(most, prices, sizes, "cost_limit" if cost_limit is not None else "")
    dtype = np.result_type(x, y)
    points = Points(x.astype(dtype, copy=False), y.astype(dtype, copy=False), metric)
    return PointRejecting(costs[:0], sizes, prices[0], prices[1], maximize, form, extents, strict, points)


def _apart(inputs: Inputs) -> tuple[Inputs, Indices | None]:
    """With `y`, where the points of all columns stand in `x` behind those of all rows. Both are views.

    Also the sizes, where they were needed for that.
    """
    both = inputs.get("x")
    if "y" in inputs or "sizes" not in inputs or not isinstance(both, np.ndarray) or not both.ndim:
        return inputs, None
    sizes = sizes_of(inputs, (0,))
    rows, columns = sizes.sum(axis=0).tolist()
    if len(both) != rows + columns:
        raise InvalidProblem(
            "x", f"has {len(both)} points and y is left out; expected {rows + columns}, the sum of all sizes"
        )
    return {**inputs, "x": both[:rows], "y": both[rows:]}, sizes


def _cloud(name: str, inputs: Inputs) -> Reals:
    """The points of all problems (number, dimension) in float32 or float64; there may be none."""
    given = inputs.get(name)
    if given is None or isinstance(given, Csr):
        raise InvalidProblem(name, "is missing or sparse; expected points (number, dimension)")
    if given.ndim in (1, 2) and len(given) == 0:  # an empty list in JSON has one dimension
        return np.zeros((0, given.shape[1] if given.ndim == 2 else 0))
    cloud = numeric(name, given.astype(np.int8) if given.dtype == np.bool_ else given, ndim=(2,))
    if cloud.dtype.kind == "f":
        return cast(Reals, cloud)
    if max(-int(cloud.min()), int(cloud.max())) > MOST_INTEGER:
        raise InvalidProblem(name, "holds an integer beyond 2^53, which float64 would round; expected coordinates")
    return cloud.astype(np.float64)


def _sizes(inputs: Inputs, sizes: Indices | None, x: Reals, y: Reals) -> tuple[Form, Indices]:
    """The form, and rows and columns of each problem; `sizes` where they are known to add up."""
    if sizes is not None:
        return "ragged", sizes
    if "sizes" not in inputs:
        return "one", np.array([[len(x), len(y)]], np.int64)
    sizes = sizes_of(inputs, (0,))
    for side, (name, cloud, total) in enumerate(zip("xy", (x, y), sizes.sum(axis=0).tolist(), strict=True)):
        if len(cloud) != total:
            raise InvalidProblem(name, f"has {len(cloud)} points; expected {total}, the sum of sizes[:, {side}]")
    return "ragged", sizes


def _of_one_dimension(x: Reals, y: Reals) -> tuple[Reals, Reals]:
    """Both, where one without points has the dimension of the other."""
    if not len(x) or not len(y):
        d = (y if not len(x) else x).shape[1]
        return x.reshape(len(x), d), y.reshape(len(y), d)
    if x.shape[1] != y.shape[1]:
        raise InvalidProblem("y", f"has dimension {y.shape[1]} and x {x.shape[1]}; expected the same")
    return x, y


def _is_in_range(given: object) -> bool:
    """Whether all numbers of an input, floats, were seen as they came to be coordinates."""
    seen = seen_of(given)
    if seen is None or seen.plus or seen.minus or seen.low is None or seen.high is None:
        return False
    return isinstance(seen.low, float) and seen.low >= -MOST_COORDINATE and seen.high <= MOST_COORDINATE


def _checked(clouds: tuple[Reals, Reals], metric: str, sizes: Indices | None, known: tuple[bool, bool]) -> float:
    """1, after refusing what is no coordinate, or no box: `sizes` where there are several problems."""
    for side, name in enumerate("xy"):
        _check(name, clouds[side], metric, None if sizes is None else sizes[:, side], known[side])
    return 1.0


def _check(name: str, cloud: Reals, metric: str, counts: Indices | None, known: bool) -> None:
    """Refuse what is no coordinate, or no box.

    `counts`: the points of each problem, where there are several. `known`: all numbers are coordinates.
    """
    if not len(cloud):
        return
    if metric == "iou" and cloud.shape[1] != BOX:
        raise InvalidProblem(name, f"has {cloud.shape[1]} coordinates a box; expected x1, y1, x2, y2")
    low, high = (0.0, 0.0) if known else (cloud.min().item(), cloud.max().item())
    if not (low >= -MOST_COORDINATE and high <= MOST_COORDINATE):  # as a NaN is not
        row, column = _first(~(np.abs(cloud.astype(np.float64)) <= MOST_COORDINATE))
        where = _place(counts, row, f", {column}")
        raise InvalidProblem(name, f"holds {cloud[row, column]} {where}; expected finite numbers up to 1e100")
    if metric == "iou" and (turned := (cloud[:, 0] > cloud[:, 2]) | (cloud[:, 1] > cloud[:, 3])).any():
        row = int(turned.argmax())
        where = _place(counts, row)
        raise InvalidProblem(name, f"holds the box {cloud[row].tolist()} {where}; expected x1 <= x2 and y1 <= y2")


def _first(marked: Mask) -> tuple[int, int]:
    row, column = np.unravel_index(int(marked.argmax()), marked.shape)
    return int(row), int(column)


def _place(counts: Indices | None, row: int, column: str = "") -> str:
    """Where a point is, in words; of several problems within its own."""
    if counts is None:
        return f"at [{row}{column}]"
    ends = np.cumsum(counts)
    k = int(np.searchsorted(ends, row, side="right"))
    return f"in problem {k} at [{row - int(ends[k] - counts[k])}{column}]"


def _largest(metric: str, x: Reals, y: Reals) -> float:
    """No cost is above this."""
    if metric == "iou":
        return 1.0
    apart = 2 * max(max(-float(cloud.min()), float(cloud.max())) if cloud.size else 0.0 for cloud in (x, y))
    d: int = x.shape[1]
    most = {"sqeuclidean": d * apart * apart, "euclidean": math.sqrt(d) * apart, "cityblock": d * apart}
    return most[metric] * ROOM


def _check_sums(most: float, prices: list[Amounts], sizes: Indices, limit: str) -> None:
    """Refuse numbers whose sums could overflow. `limit` names the option where it is the price."""
    kind, lines = prices[0].dtype, max(1, int((sizes[:, 0] + sizes[:, 1]).max(initial=0)))
    masked = any(is_masked(price) for price in prices)
    for name, price in zip(FIELDS.values(), prices, strict=True):
        check_range(limit or name, largest_of(price), kind, lines, masked)
    if kind.kind == "f":
        check_range("x", most, kind, lines)
