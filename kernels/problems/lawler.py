"""Quadratic assignment with Lawler's general costs: the problem and its checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernels.problems.arrays import Amounts, Csr, Indices, Inputs, InvalidProblem, Mask, finite, numeric

LARGEST_N = 40
"""Places: n^4 costs are 20 MB."""
LARGEST_OBJECTIVE = 2**61
"""Of integers, as in `qap`."""
LARGEST_FLOAT = 1e300


@dataclass(frozen=True, eq=False)
class LawlerAssignment:
    """min over injections p of the sum over facilities i, k of cost[i, p(i), k, p(k)]; max where `maximize`.

    `cost`: (m, n, m, n), int64 when the input is integer, float64 otherwise; m <= n <= 40. Entries with i = k and
    other places, or one place and other facilities, are never paid and are 0.
    `fixed`: facility -> place that it must take.
    `start`: (n,) int64, a permutation to begin with, which has the fixed facilities at their places. Facilities from m
    on cost nothing.
    """

    cost: Amounts
    maximize: bool = False
    fixed: Mapping[int, int] = field(default_factory=dict)
    start: Indices | None = None

    @property
    def n(self) -> int:
        """Places."""
        return int(self.cost.shape[1])

    @property
    def facilities(self) -> int:
        """Those that cost something, m."""
        return int(self.cost.shape[0])

    @property
    def free(self) -> int:
        """Facilities without a fixed place, those that cost nothing among them."""
        return self.n - len(self.fixed)

    @property
    def integer(self) -> bool:
        """True when the objective is an integer."""
        return self.cost.dtype.kind == "i"


def lawler_assignment(inputs: Inputs, *, maximize: bool, fixed: Mapping[int, int]) -> LawlerAssignment:
    """Check `cost` and `permutation0`, and build the problem.

    Raises:
        InvalidProblem: not (m, n, m, n) with m <= n <= 40, NaN, an infinity that could be paid, an objective that could
            leave 2^61 (integers) or 1e300 (floats), no permutation, places that do not fit.
    """
    cost = _cost(inputs)
    n = cost.shape[1]
    _refuse_overflow(cost)
    fixed = _fixed(fixed, n)
    start = _permutation(inputs, cost.shape[0], n, fixed)
    return LawlerAssignment(cost, maximize, fixed, start)


def _cost(inputs: Inputs) -> Amounts:
    given = inputs.get("cost")
    if not isinstance(given, np.ndarray):
        told = "is missing" if given is None else "is sparse"
        if given is None and {"flow", "distance"} & inputs.keys():
            told += " (flow and distance are inputs of solver qap)"
        raise InvalidProblem("cost", f"{told}; expected a dense (m, n, m, n) array")
    found = numeric("cost", given, ndim=(4,))
    m, n = found.shape[:2]
    if found.shape != (m, n, m, n) or m > n:
        raise InvalidProblem(
            "cost", f"has shape {found.shape}; expected (m, n, m, n) of m facilities and n places, m at most n"
        )
    if n > LARGEST_N:
        raise InvalidProblem("cost", f"has {n} places; expected at most {LARGEST_N}")
    cost: Amounts = np.array(found, dtype=np.int64 if found.dtype.kind == "i" else np.float64)
    never = never_paid(m, n)
    if cost.dtype.kind == "f":
        cost[never & np.isinf(cost)] = 0
    finite("cost", cost)
    cost[never] = 0
    return cost


def never_paid(m: int, n: int) -> Mask:
    """(m, n, m, n) bool: one facility at two places, or two facilities at one place."""
    same_facility, same_place = np.eye(m, dtype=bool)[:, None, :, None], np.eye(n, dtype=bool)[None, :, None, :]
    return np.asarray(same_facility != same_place)


def _refuse_overflow(cost: Amounts) -> None:
    """The sum over pairs of facilities of the dearest cost must be in range."""
    if cost.dtype.kind == "i":
        pairs = zip(cost.max(axis=(1, 3)).ravel().tolist(), cost.min(axis=(1, 3)).ravel().tolist(), strict=True)
        reach = sum(max(most, -least) for most, least in pairs)
        if reach > LARGEST_OBJECTIVE:
            raise InvalidProblem(
                "cost", f"could reach an objective of {reach}; expected at most {LARGEST_OBJECTIVE} (2^61)"
            )
        return
    with np.errstate(over="ignore"):
        found = float(np.abs(cost).max(axis=(1, 3)).sum())
    if not found <= LARGEST_FLOAT:
        raise InvalidProblem("cost", f"could reach an objective of {found}; expected at most {LARGEST_FLOAT:g}")


def _fixed(fixed: Mapping[int, int], n: int) -> dict[int, int]:
    for facility, place in fixed.items():
        if not (0 <= facility < n and 0 <= place < n):
            raise InvalidProblem("fixed", f"sends {facility} to {place}; expected indices in [0, {n})")
    if len(set(fixed.values())) < len(fixed):
        raise InvalidProblem("fixed", "sends two facilities to one place; expected each place once at most")
    return dict(sorted(fixed.items()))


def _permutation(inputs: Inputs, facilities: int, n: int, fixed: Mapping[int, int]) -> Indices | None:
    """The permutation given, facilities without costs after the others; fixed ones change places with who is there."""
    array = inputs.get("permutation0")
    if array is None:
        return None
    if isinstance(array, Csr):
        raise InvalidProblem("permutation0", "is sparse; expected n integers")
    given = numeric("permutation0", array, ndim=(1,))
    if given.dtype.kind == "i" and given.shape == (facilities,) and facilities < n:
        given = np.concatenate((given, np.setdiff1d(np.arange(n), given)))
    if given.dtype.kind != "i" or given.shape != (n,) or sorted(given.tolist()) != list(range(n)):
        raise InvalidProblem("permutation0", f"expected each of 0 to {n - 1} once, as integers")
    start = given.astype(np.int64)
    for facility, place in fixed.items():
        there = int(np.flatnonzero(start == place)[0])
        start[there], start[facility] = start[facility], place
    return start
