"""Assignments whose rows and columns may stay unassigned at a price, and problems of any sizes without padding."""

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kernels.problems.arrays import (
    FORBIDDEN,
    Amounts,
    Array,
    Costs,
    Csr,
    Indices,
    Inputs,
    InvalidProblem,
    Mask,
    finite,
    is_masked,
    numeric,
    permitted,
    untouched,
)
from kernels.problems.assignment import check_range, is_in_range
from kernels.problems.seen import seen_of

Form = Literal["one", "batch", "ragged"]
MOST_EMPTY_LINES = 1 << 22
"""Rows and columns of problems without an entry. Any number of them takes but a few bytes to ask for."""
EXACT_FLOAT = 1 << 53
"""Integers up to here are float64 without rounding."""
FIELDS = {"row_prices": "reject_rows", "col_prices": "reject_cols"}
PRICES = frozenset(FIELDS.values())


@dataclass(frozen=True, eq=False)
class Rejecting:
    """Pair rows with columns; the objective adds up the costs of the pairs and the prices of the lines that are left.

    `costs`: the matrices one after the other, each by rows, in one flat array. `sizes` (count, 2) int64: rows and
    columns of each, which may be 0. `row_prices` and `col_prices`, flat: what leaving a line adds to the objective, in
    its units. A price that is forbidden (+inf when minimising, -inf when maximising, `FORBIDDEN` in int64) says that
    the line must be paired. That is how an ordinary assignment looks here: the shorter side must be paired, the longer
    one may stay free for 0. Either all three arrays are int64, or the prices are float64 and the costs are floats.

    `form`: what the arrays of an answer look like. one: (n_rows,) and (n_cols,). batch: (count, n_rows) and (count,
    n_cols), padded to `extents`, the largest problem. ragged: the problems' lines one after the other.
    `strict`: the lines of the shorter side must be paired and the others cost nothing: an ordinary assignment.
    """

    costs: Costs
    sizes: Indices
    row_prices: Amounts
    col_prices: Amounts
    maximize: bool = False
    form: Form = "one"
    extents: tuple[int, int] = (0, 0)
    strict: bool = False

    @functools.cached_property
    def starts(self) -> Indices:
        """(count + 1, 3): where each problem's entries, rows and columns begin in the flat arrays, and the ends.

        Made once for all who ask, and not to be written to.
        """
        starts = np.zeros((len(self.sizes) + 1, 3), np.int64)
        np.multiply(self.sizes[:, 0], self.sizes[:, 1], out=starts[1:, 0])
        starts[1:, 1:] = self.sizes
        np.cumsum(starts, axis=0, out=starts)
        return untouched(starts)

    def matrix(self, k: int, starts: Indices | None = None) -> Costs:
        """The costs of problem k (n_rows, n_cols), a view."""
        at = self.starts if starts is None else starts
        rows, cols = self.sizes[k].tolist()
        return self.costs[at[k, 0] : at[k + 1, 0]].reshape(rows, cols)

    def inside(self, side: int) -> Mask:
        """Of a batch: which places (count, extent) of a padded array of rows (side 0) or columns (1) are in use."""
        return np.asarray(np.arange(self.extents[side]) < self.sizes[:, side, None])

    def shaped(self, name: str, flat: Amounts) -> Amounts:
        """A flat array of all rows, or columns, in the form that the answer's arrays have; -1 and 0 pad a batch."""
        if self.form != "batch":
            return flat
        side = int(name in ("v", "v_finer", "hall_cols"))
        padded = np.full((len(self.sizes), self.extents[side]), -1 if name == "assignment" else 0, flat.dtype)
        padded[self.inside(side)] = flat
        return padded


def wants_rejecting(inputs: Inputs, cost_limit: float | None) -> bool:
    """Whether a problem needs this form: prices of lines, or matrices one after the other."""
    cost = inputs.get("cost")
    flat = isinstance(cost, np.ndarray) and cost.ndim == 1 and "sizes" in inputs
    if flat or cost_limit is not None or not PRICES.isdisjoint(inputs):
        return True
    sizes = inputs.get("sizes")
    return isinstance(sizes, np.ndarray) and sizes.dtype.kind in "iu" and bool((sizes == 0).any())


def rejecting_assignment(inputs: Inputs, maximize: bool, cost_limit: float | None) -> Rejecting:
    """Build from `cost`, `sizes`, and either `cost_limit` or `reject_rows` and `reject_cols`.

    With a `cost_limit` each pair that could be formed and is not costs the limit, so that no pair above it is worth
    forming. That is lapx's price of half the limit for each line, less a constant: the lines of the shorter side
    cost the limit, the others nothing.

    Raises:
        InvalidProblem: wrong shape or dtype, NaN, sizes that do not fit, a limit when maximising, a limit beside
            prices, or numbers so large that the objective could leave int64 or float64.
    """
    costs, sizes, form, extents = _laid_flat(inputs)
    refuse_what_does_not_fit(inputs, maximize, cost_limit)
    costs, prices, strict = priced(inputs, costs, (sizes, form, extents), maximize, cost_limit)
    if cost_limit is None or not _is_fine(costs, cost_limit, extents):
        _check(costs, prices, sizes, maximize)
    return Rejecting(costs, sizes, prices[0], prices[1], maximize, form, extents, strict)


def priced(
    inputs: Inputs, costs: Costs, laid: tuple[Indices, Form, tuple[int, int]], maximize: bool, cost_limit: float | None
) -> tuple[Costs, list[Amounts], bool]:
    """The costs and the prices of rows and of columns in one kind of numbers, and whether the problem is `strict`.

    Of the costs only the kind counts here. Raises InvalidProblem, as `rejecting_assignment`.
    """
    sizes, form, extents = laid
    prices = [_line_prices(inputs, side, sizes, form, extents) for side in (0, 1)]
    strict = cost_limit is None and prices[0] is None and prices[1] is None
    found: list[Array]
    if strict:
        shorter = [sizes[:, 0] <= sizes[:, 1], sizes[:, 1] <= sizes[:, 0]]
        costs = costs.astype(np.int64) if costs.dtype.kind == "i" else costs
        must: Any = FORBIDDEN if costs.dtype.kind == "i" else (-np.inf if maximize else np.inf)
        zero = np.zeros((), costs.dtype if costs.dtype.kind == "i" else np.float64)
        found = [np.repeat(np.where(shorter[side], zero.dtype.type(must), zero), sizes[:, side]) for side in (0, 1)]
        return costs, found, True
    if cost_limit is not None:
        limit = np.array(int(cost_limit) if _whole(cost_limit, costs) else cost_limit)
        by_rows = sizes[:, 0] <= sizes[:, 1]
        one_sided = [by_rows, ~by_rows]
        prices = [np.repeat(np.where(one_sided[side], limit, limit * 0), sizes[:, side]) for side in (0, 1)]
    dtype = np.result_type(*(price for price in prices if price is not None))
    found = [
        np.zeros(int(sizes[:, side].sum()), dtype) if price is None else price for side, price in enumerate(prices)
    ]
    return *_of_one_kind(costs, found, -np.inf if maximize else np.inf), False


def refuse_what_does_not_fit(inputs: Inputs, maximize: bool, cost_limit: float | None) -> None:
    """A limit where there can be none, and duals to start from. Raises InvalidProblem."""
    if cost_limit is not None:
        if maximize:
            raise InvalidProblem("cost_limit", "is for costs, and `maximize` is set; expected `reject_rows` instead")
        if any(name in inputs for name in FIELDS.values()):
            raise InvalidProblem("cost_limit", "is given beside prices of lines; expected one of the two")
    for name in ("u0", "v0"):
        if name in inputs:
            raise InvalidProblem(name, "starts an assignment of all lines; expected none beside prices or flat costs")


def _laid_flat(inputs: Inputs) -> tuple[Costs, Indices, Form, tuple[int, int]]:
    """Costs one matrix after the other, and the sizes of each."""
    cost = inputs["cost"]
    if isinstance(cost, Csr):
        raise InvalidProblem("cost", "is sparse; expected a dense array (the auction solver takes CSR)")
    if cost.ndim not in (1, 2, 3):
        raise InvalidProblem("cost", f"has shape {cost.shape}; expected a matrix, a batch, or a flat array and sizes")
    if cost.ndim > 1 and cost.size == 0:
        _refuse_many_empty_lines("cost", math.prod(cost.shape[:-2]) * (1 + sum(cost.shape[-2:])))
    given = np.zeros(0) if cost.size == 0 else numeric("cost", cost.reshape(-1), ndim=(1,))
    if cost.ndim == 2:
        if "sizes" in inputs:
            raise InvalidProblem("sizes", "belongs to a batch or to flat costs; cost is one matrix")
        return given, np.array([cost.shape], np.int64), "one", cost.shape
    sizes = sizes_of(inputs, cost.shape)
    if cost.ndim == 1:
        if sizes.min(initial=1) < 1:
            _refuse_many_empty_lines("sizes", int(sizes[(sizes == 0).any(axis=1)].sum()))
        extents = longest_of(sizes)
        if (entries := entries_of(sizes, extents)) != cost.size:
            raise InvalidProblem("cost", f"has {cost.size} entries; expected {entries}, the sum of rows times columns")
        return given, sizes, "ragged", extents
    if (sizes != cost.shape[1:]).any():
        inside = (np.arange(cost.shape[1]) < sizes[:, :1])[:, :, None] & (np.arange(cost.shape[2]) < sizes[:, 1:])[
            :, None
        ]
        given = given.reshape(cost.shape)[inside]
    return given, sizes, "batch", cost.shape[1:]


def _refuse_many_empty_lines(field: str, lines: int) -> None:
    if lines > MOST_EMPTY_LINES:
        raise InvalidProblem(
            field, f"has {lines} rows and columns in problems without an entry; at most {MOST_EMPTY_LINES} are taken"
        )


def longest_of(sizes: Indices) -> tuple[int, int]:
    """The most rows and the most columns of a problem; 0 where there is none."""
    rows, columns = sizes.max(axis=0, initial=0).tolist()
    return rows, columns


def entries_of(sizes: Indices, longest: tuple[int, int]) -> int:
    """How many costs there are, which may be more than fit int64."""
    if longest[0] * longest[1] * len(sizes) < 1 << 62:
        return int(sizes[:, 0] @ sizes[:, 1])
    return sum(rows * columns for rows, columns in sizes.tolist())


def sizes_of(inputs: Inputs, shape: tuple[int, ...]) -> Indices:
    """Rows and columns of each problem, int64, of costs of that shape. Raises InvalidProblem."""
    if "sizes" not in inputs:
        if len(shape) == 3:
            return np.broadcast_to(np.array(shape[1:], np.int64), (shape[0], 2)).copy()
        raise InvalidProblem("cost", f"has shape {shape}; expected a matrix, a batch, or `sizes` beside a flat array")
    sizes = np.asarray(inputs["sizes"])
    if sizes.ndim != 2 or sizes.shape[1] != 2 or (sizes.dtype.kind not in "iu" and sizes.size):
        raise InvalidProblem("sizes", f"has shape {sizes.shape} and dtype {sizes.dtype}; expected integers (count, 2)")
    if len(shape) == 3 and len(sizes) != shape[0]:
        raise InvalidProblem("sizes", f"has {len(sizes)} problems; expected {shape[0]}")
    most = np.array(shape[1:] if len(shape) == 3 else [2**31 - 1] * 2)
    if sizes.size and (sizes.min() < 0 or sizes.max() > most.min()) and (bad := (sizes < 0) | (sizes > most)).any():
        k = int(bad.any(axis=1).argmax())
        raise InvalidProblem("sizes", f"gives problem {k} the size {sizes[k].tolist()}; expected 0 to {most.tolist()}")
    return np.ascontiguousarray(sizes, dtype=np.int64)


def _line_prices(inputs: Inputs, side: int, sizes: Indices, form: Form, extents: tuple[int, int]) -> Costs | None:
    """The prices of one side as a flat array; one number for all lines is taken as well."""
    name = ("reject_rows", "reject_cols")[side]
    given = inputs.get(name)
    if given is None:
        return None
    if isinstance(given, Csr):
        raise InvalidProblem(name, "is sparse; expected a price for each line")
    total = int(sizes[:, side].sum())
    shape = (len(sizes), extents[side]) if form == "batch" else (total,)
    if given.shape != shape:
        raise InvalidProblem(name, f"has shape {given.shape}; expected {shape}, a price for each line")
    if given.size == 0:
        return np.zeros(0, np.int64 if given.dtype.kind in "iu" else np.float64)
    prices = finite(name, numeric(name, given, ndim=(1, 2)))
    if not permitted(prices).all():
        raise InvalidProblem(name, "holds a masked entry; expected a price for each line")
    if form == "batch":
        prices = prices[np.arange(extents[side]) < sizes[:, side, None]]
    return np.ascontiguousarray(prices)


def _whole(limit: float, costs: Costs) -> bool:
    """Whether a limit among integers is one."""
    return costs.dtype.kind == "i" and float(limit).is_integer() and abs(limit) < 2.0**62


def _of_one_kind(costs: Costs, prices: list[Amounts], forbidden: float) -> tuple[Costs, list[Amounts]]:
    """All in int64, or costs in floats and prices in float64; nothing is rounded."""
    if costs.size == 0 and prices[0].dtype.kind == prices[1].dtype.kind == "i":
        costs = costs.astype(np.int64)
    if all(array.dtype.kind == "i" for array in (costs, *prices)):
        return costs.astype(np.int64, copy=False), [price.astype(np.int64, copy=False) for price in prices]
    for field, array in (("cost", costs), ("reject_rows", prices[0]), ("reject_cols", prices[1])):
        if array.dtype.kind == "i" and largest_of(array) > EXACT_FLOAT:
            raise InvalidProblem(field, "holds integers beyond 2^53 beside floats; expected all in integers or floats")
    if costs.dtype.kind == "i":
        costs = np.where(permitted(costs), costs, forbidden).astype(np.float64)
    return costs, [price.astype(np.float64, copy=False) for price in prices]


def _check(costs: Costs, prices: list[Amounts], sizes: Indices, maximize: bool) -> None:
    """Refuse what is no number, and numbers whose sums could overflow."""
    allow = -np.inf if maximize else np.inf
    try:
        most = largest_of(costs, allow)
    except InvalidProblem as wrong:
        raise InvalidProblem("cost", _in_its_problem(costs, sizes, allow) or wrong.message) from None
    largest = max(most, *(largest_of(array) for array in prices))
    lines = max(1, int((sizes[:, 0] + sizes[:, 1]).max(initial=0)))
    kind = np.dtype(np.int64) if costs.dtype.kind == "i" else costs.dtype
    check_range("cost", largest, kind, lines, masked=is_masked(costs) or any(is_masked(price) for price in prices))


def _is_fine(costs: Costs, cost_limit: float, extents: tuple[int, int]) -> bool:
    """Whether it is known without a look at any number that `_check` refuses nothing: of costs seen as they came."""
    seen = seen_of(costs)
    if seen is None or seen.masked or not seen.allows(np.inf):
        return False
    return is_in_range(max(seen.largest, abs(cost_limit)), costs.dtype, max(1, sum(extents)))


def _in_its_problem(costs: Costs, sizes: Indices, allow: float) -> str:
    """Where among matrices one after the other the first entry is that is no cost; empty where there is one alone."""
    if costs.ndim != 1 or costs.dtype.kind != "f":
        return ""
    at = int((~np.isfinite(costs) & (costs != allow)).argmax())
    ends = np.cumsum(sizes.prod(axis=1))
    k = int(np.searchsorted(ends, at, side="right"))
    row, column = divmod(at - int(ends[k] - sizes[k].prod()), int(sizes[k, 1]))
    expected = f"finite numbers, or {allow:+} for a forbidden entry"
    return f"holds {costs[at]} in matrix {k} at [{row}, {column}]; expected {expected}"


def largest_of(array: Costs, allow: float | None = None) -> int | float:
    """The largest permitted magnitude; costs must be finite numbers, or `allow`. What was seen before is not read."""
    seen = seen_of(array)
    if seen is not None and (allow is None or seen.allows(allow)):
        return seen.largest
    if array.size == 0:
        return 0
    low: int | float = array.min().item()
    high: int | float = array.max().item()
    if not (np.isfinite(low) and np.isfinite(high)) or low == FORBIDDEN:
        if allow is not None:
            finite("cost", array, allow=allow)
        known = array[permitted(array)]
        low, high = (known.min().item(), known.max().item()) if known.size else (0, 0)
    return max(0, -low, high)
