"""The quadratic assignment problem of Koopmans and Beckmann."""

from dataclasses import dataclass
from math import gcd

import numpy as np

from kernels.problems.arrays import (
    Array,
    Bytes,
    Costs,
    Csr,
    Indices,
    Inputs,
    InvalidProblem,
    Mask,
    finite,
    numeric,
    permitted,
)

LARGEST_OBJECTIVE = 2**61
"""Integer objectives stay below this in absolute value: the search adds M + M' and needs two bits of headroom."""


@dataclass(frozen=True, eq=False)
class QuadraticAssignment:
    """min over permutations p of sum_ij flow[i, j] distance[p[i], p[j]] + sum_i linear[i, p[i]].

    `flow`, `distance`, `linear`: (n, n), int64 when the input is integer, float64 otherwise.
    `forbidden`: (n, n) bool, True where facility i must not go to location k (+inf in the input's `linear`).
    `start`: (n,) int64, a permutation to begin with.
    `log`: (bytes,) uint8, the log of a branch and bound to go on with; of another problem it is not used.
    `best_known`: an objective somebody claims, reported beside the answer and never used as a bound.
    `target`: an objective that is good enough; who reaches it may say so.
    """

    flow: Array
    distance: Array
    linear: Array | None = None
    best_known: int | float | None = None
    forbidden: Mask | None = None
    start: Indices | None = None
    log: Bytes | None = None
    target: int | float | None = None

    @property
    def n(self) -> int:
        """Facilities, and as many locations."""
        return int(self.flow.shape[0])

    @property
    def integer(self) -> bool:
        """True when the objective is an integer, computed exactly."""
        return self.flow.dtype.kind == "i"

    def objective(self, permutation: Indices) -> int | float:
        """The objective of facility i at location permutation[i], exact in int64 when the data are integer."""
        value = (self.flow * self.distance[np.ix_(permutation, permutation)]).sum()
        if self.linear is not None:
            value = value + self.linear[np.arange(self.n), permutation].sum()
        return int(value) if self.integer else float(value)

    def allows(self, permutation: Indices) -> bool:
        """True when no facility sits at a location forbidden to it."""
        return self.forbidden is None or not bool(self.forbidden[np.arange(self.n), permutation].any())

    @property
    def granularity(self) -> int:
        """A divisor of every objective of integer data: 2 gcd(flow) gcd(distance) when both are symmetric, ..."""
        if not self.integer:
            return 0
        flow, distance = _hollow(self.flow), _hollow(self.distance)
        pairs = int(np.gcd.reduce(flow, axis=None)) * int(np.gcd.reduce(distance, axis=None))
        if (flow == flow.T).all() and (distance == distance.T).all():
            pairs *= 2
        singles = np.outer(np.diagonal(self.flow), np.diagonal(self.distance))
        if self.linear is not None:
            singles = singles + self.linear
        return gcd(pairs, int(np.gcd.reduce(singles, axis=None)))


def quadratic_assignment(
    inputs: Inputs,
    *,
    fixed: dict[int, int] | None = None,
    best_known: int | float | None = None,
    target: int | float | None = None,
) -> QuadraticAssignment:
    """Check `flow`, `distance`, optional `linear`, `permutation0` and `tree0`, and build the problem.

    Fewer facilities than locations: facilities without flow or cost are added, and what gets those stays free.

    Args:
        inputs: named arrays; +inf in `linear`, and `FORBIDDEN` in int64, forbids that pair.
        fixed: facility -> location that it must take.
        best_known, target: passed on.

    Raises:
        InvalidProblem: not square, different n, NaN or inf, an objective that could leave int64 (integers) or 1e300
            (floats), integers that floats beside them would round, no permutation.
    """
    flow, distance = _square("flow", inputs), _square("distance", inputs)
    facilities, n = len(flow), len(distance)
    if n < facilities:
        raise InvalidProblem(
            "distance", f"has shape {distance.shape}; expected {flow.shape}, the shape of flow, or more"
        )
    flow = _padded(flow, (n, n))
    linear, forbidden = _linear(inputs, facilities, n)
    forbidden = _fix(forbidden, fixed or {}, n)
    matrices = [flow, distance] + ([] if linear is None else [linear])
    dtype = np.int64 if all(m.dtype.kind == "i" for m in matrices) else np.float64
    if dtype is np.float64:
        for field, m in zip(("flow", "distance", "linear"), matrices, strict=False):
            _refuse_rounding(field, m)
    flow, distance = flow.astype(dtype), distance.astype(dtype)
    linear = None if linear is None else linear.astype(dtype)
    _refuse_overflow(flow, distance, linear)
    start = _permutation(inputs["permutation0"], facilities, n) if "permutation0" in inputs else None
    log = _bytes("tree0", inputs["tree0"]) if "tree0" in inputs else None
    return QuadraticAssignment(flow, distance, linear, best_known, forbidden, start, log, target)


def objective_bound(flow: Costs, distance: Costs, linear: Costs | None) -> int | float:
    """An upper bound on |objective| over all permutations, exact (Python integers) for integer data."""
    if flow.dtype.kind == "f":
        f, d = np.abs(flow), np.abs(distance)
        low = 2.0**-64 if max(f.max(), d.max()) > 1e280 else 1.0  # sums of such entries stay finite
        with np.errstate(over="ignore"):
            extra = 0.0 if linear is None else float((np.abs(linear).max(axis=1) * low).sum())
            return float(min((f * low).sum() * d.max(), f.max() * (d * low).sum()) + extra) / low
    sums, tops = zip(*(_magnitudes(m) for m in (flow, distance)), strict=True)
    extra_int = 0 if linear is None else sum(_magnitudes(row)[1] for row in linear)
    return int(min(sums[0] * tops[1], tops[0] * sums[1]) + extra_int)


def _magnitudes(integers: Array) -> tuple[int, int]:
    """The sum and the largest of the absolute values, exactly."""
    largest = max(int(integers.max()), -int(integers.min()))
    if largest * integers.size < 2**63:
        return int(np.abs(integers).sum()), largest
    return sum(map(abs, integers.ravel().tolist())), largest


def _refuse_overflow(flow: Costs, distance: Costs, linear: Costs | None) -> None:
    bound = objective_bound(flow, distance, linear)
    if flow.dtype.kind == "i" and bound > LARGEST_OBJECTIVE:
        raise InvalidProblem(
            "flow", f"times distance could reach an objective of {bound}; expected at most {LARGEST_OBJECTIVE} (2^61)"
        )
    if not bound < 1e300:
        raise InvalidProblem("flow", f"times distance could reach an objective of {bound}; expected below 1e300")


def _refuse_rounding(field: str, matrix: Costs) -> None:
    """Integers beside floats become floats, which must not change them."""
    if matrix.dtype != np.int64 or max(int(matrix.max()), -int(matrix.min())) <= 2**53:
        return
    if any(int(float(x)) != x for x in matrix.ravel().tolist()):
        raise InvalidProblem(
            field, "holds integers beyond 2^53 beside floats, which would round them; expected one kind"
        )


def _hollow(matrix: Costs) -> Costs:
    copy = matrix.copy()
    np.fill_diagonal(copy, 0)
    return copy


def _square(field: str, inputs: Inputs) -> Costs:
    if field not in inputs:
        raise InvalidProblem(field, "is missing; expected an (n, n) matrix")
    matrix = inputs[field]
    if isinstance(matrix, Csr):
        raise InvalidProblem(field, "is sparse; expected a dense (n, n) matrix")
    matrix = finite(field, numeric(field, matrix, ndim=(2,)))
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidProblem(field, f"has shape {matrix.shape}; expected a square matrix")
    return matrix


def _padded(matrix: Costs, shape: tuple[int, int]) -> Costs:
    """With rows and columns of zeros added to that shape."""
    if matrix.shape == shape:
        return matrix
    found = np.zeros(shape, matrix.dtype)
    found[: matrix.shape[0], : matrix.shape[1]] = matrix
    return found


def _linear(inputs: Inputs, facilities: int, n: int) -> tuple[Costs | None, Mask | None]:
    if "linear" not in inputs:
        return None, None
    matrix = inputs["linear"]
    if isinstance(matrix, Csr):
        raise InvalidProblem("linear", "is sparse; expected a dense (n, n) matrix")
    matrix = finite("linear", numeric("linear", matrix, ndim=(2,)), allow=np.inf)
    if matrix.shape != (facilities, n):
        raise InvalidProblem("linear", f"has shape {matrix.shape}; expected {(facilities, n)}, facilities by locations")
    matrix = _padded(matrix, (n, n))
    forbidden = ~permitted(matrix)
    if not forbidden.any():
        return matrix, None
    matrix = np.where(forbidden, matrix.dtype.type(0), matrix)
    # a file may forbid a pair of integers by +inf alone, which turns them into floats: turn them back
    if matrix.dtype.kind == "f" and (matrix == np.rint(matrix)).all() and np.abs(matrix).max() <= LARGEST_OBJECTIVE / n:
        matrix = matrix.astype(np.int64)
    return matrix, forbidden


def _fix(forbidden: Mask | None, fixed: dict[int, int], n: int) -> Mask | None:
    if not fixed:
        return forbidden
    forbidden = np.zeros((n, n), bool) if forbidden is None else forbidden.copy()
    for facility, location in fixed.items():
        if not (0 <= facility < n and 0 <= location < n):
            raise InvalidProblem("fixed", f"sends {facility} to {location}; expected indices in [0, {n})")
        forbidden[facility, np.arange(n) != location] = True
        forbidden[np.arange(n) != facility, location] = True
    return forbidden


def _permutation(array: Array | Csr, facilities: int, n: int) -> Indices:
    if isinstance(array, Csr):
        raise InvalidProblem("permutation0", "is sparse; expected n integers")
    start = numeric("permutation0", array, ndim=(1,))
    if start.dtype.kind == "i" and start.shape == (facilities,) and facilities < n:
        start = np.concatenate((start, np.setdiff1d(np.arange(n), start)))
    if start.dtype.kind != "i" or start.shape != (n,) or sorted(start.tolist()) != list(range(n)):
        raise InvalidProblem("permutation0", f"expected each of 0 to {n - 1} once, as integers")
    return start.astype(np.int64)


def _bytes(field: str, array: Array | Csr) -> Bytes:
    if isinstance(array, Csr):
        raise InvalidProblem(field, "is sparse; expected bytes")
    array = numeric(field, array, ndim=(1,))
    if array.dtype.kind not in "iu" or (array.size and not 0 <= int(array.min()) <= int(array.max()) <= 255):
        raise InvalidProblem(field, "holds more than bytes; expected integers from 0 to 255")
    return array.astype(np.uint8)
