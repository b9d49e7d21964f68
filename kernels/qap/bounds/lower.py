"""Lower bounds on a quadratic assignment, each with the evidence that its certificate checks.

Gilmore-Lawler: each pair (i, j) costs at least l_ij = linear_ij + F_ii D_jj + the minimal scalar product of row i of F
and row j of D without their diagonals; the assignment of least l is a bound, and so is any feasible dual of it.
Projection (Hadley, Rendl and Wolkowicz 1992): permutation matrices are orthogonal with row and column sums 1.
No bound dominates. Integer objectives round up to the next multiple of the objective's granularity.
"""

from dataclasses import dataclass, field
from math import ceil, fsum

import numpy as np

from kernels.problems import Array, QuadraticAssignment
from kernels.problems.arrays import Amounts, Floats, Indices, Integers, Mask
from kernels.problems.quadratic import LARGEST_OBJECTIVE, objective_bound
from kernels.qap.bounds.lap import assign

Number = int | float
NAMES = ("gilmore-lawler", "gilmore-lawler by columns")


@dataclass(frozen=True, eq=False)
class Bound:
    """A proved lower bound. `evidence` holds the arrays that its certificate needs (none when it recomputes all)."""

    name: str
    value: Number
    raw: Number
    evidence: dict[str, Array] = field(default_factory=dict)


def gilmore_lawler(problem: QuadraticAssignment) -> Bound:
    """The best of the bound by rows and the bound by columns (they differ when both matrices are asymmetric).

    Evidence: `v` (n,), prices of the locations.
    Complexity: O(n^3) time, O(n^2) bytes.
    """
    found = []
    for name, turn in zip(NAMES, (False, True), strict=True):
        found.append(from_prices(problem, name, costs := pair_costs(problem, turn), prices(problem, costs)))
        if turns_alike(problem):
            break
    return max(found, key=lambda bound: bound.value)


def prices(problem: QuadraticAssignment, costs: Amounts) -> Amounts:
    """Prices of the locations from an assignment under `costs`: optimal, or nearly so where int64 is too narrow."""
    barred = _barred(problem, costs)
    if barred is None:
        barred = _barred(problem, costs.astype(np.float64))
        assert barred is not None
    u, v = np.empty(problem.n, barred.dtype), np.empty(problem.n, barred.dtype)
    assign(barred, u, v, np.empty(problem.n, np.int64))
    return v if v.dtype == costs.dtype else np.rint(v).clip(-LARGEST_OBJECTIVE, LARGEST_OBJECTIVE).astype(np.int64)


def from_prices(problem: QuadraticAssignment, name: str, costs: Amounts, v: Amounts) -> Bound:
    """The bound that prices v of the locations prove: sum_i min_j (costs_ij - v_j) + sum_j v_j."""
    left = costs - v
    if problem.forbidden is not None:
        left = np.where(problem.forbidden, np.iinfo(np.int64).max if problem.integer else np.inf, left)
    least = left.min(axis=1)
    if problem.integer:
        raw = sum(least.tolist()) + sum(v.tolist())
        return Bound(name, round_up(problem, raw), raw, {"v": v})
    total = fsum(least.tolist() + v.tolist())
    return Bound(name, total - slack(problem), total, {"v": v})


def projection(problem: QuadraticAssignment) -> Bound | None:
    """The eigenvalue bound on permutations' affine hull, rounded down; None when neither matrix is symmetric.

    Evidence: `flow_values` (n - 1,), `flow_vectors` (n, n - 1), the same of the distances, each matrix divided by a
    power of two that leaves its largest entry in [1/2, 1); `v` (n,), prices of the locations.
    Numerics: eigenvalues err by at most c n eps |A|; `margin` pays for them, for the products and for the assignment.
    Complexity: O(n^3).
    """
    raw = [m.astype(np.float64) - np.diag(m.diagonal().astype(np.float64)) for m in (problem.flow, problem.distance)]
    if problem.n < 2 or not any((m == m.T).all() for m in raw):
        return None
    n = problem.n
    exponents = [int(np.frexp(np.abs(m).max())[1]) for m in raw]
    flow, distance = (np.ldexp(m, -e) for m, e in zip(raw, exponents, strict=True))
    flow, distance = (flow + flow.T) / 2, (distance + distance.T) / 2
    linear = np.outer(problem.flow.diagonal().astype(np.float64), problem.distance.diagonal().astype(np.float64))
    linear = np.ldexp(linear if problem.linear is None else linear + problem.linear, -sum(exponents))
    if not np.isfinite(linear).all():
        return None  # flow and distance are nothing beside it
    basis = _basis(n)
    spectra = [np.linalg.eigh(basis.T @ m @ basis) for m in (flow, distance)]
    sums = flow.sum(axis=1), distance.sum(axis=1)
    costs = linear + (2.0 / n) * np.outer(*sums)
    barred, u, v = _barred(problem, costs), np.empty(n), np.empty(n)
    assert barred is not None
    assigned = assign(barred, u, v, np.empty(n, np.int64))
    value = float(spectra[0][0] @ spectra[1][0][::-1]) + assigned - float(sums[0].sum() * sums[1].sum()) / n**2
    size = float(np.linalg.norm(flow) * np.linalg.norm(distance)) * n + float(np.abs(costs).max(axis=1).sum())
    margin = 64 * n * np.finfo(np.float64).eps * size
    lowered, value = (float(np.ldexp(x, sum(exponents))) for x in (value - margin, value))
    evidence = {"v": np.ldexp(v, sum(exponents))}
    for name, (values, vectors) in zip(("flow", "distance"), spectra, strict=True):
        evidence |= {f"{name}_values": values, f"{name}_vectors": basis @ vectors}
    return Bound("projection", round_up(problem, ceil(lowered)) if problem.integer else lowered, value, evidence)


def pair_costs(problem: QuadraticAssignment, turn: bool) -> Amounts:
    """l_ij of Gilmore and Lawler; `turn` takes columns for rows."""
    flow, distance = (m.T if turn else m for m in (problem.flow, problem.distance))
    descending = np.sort(_without_diagonal(flow), axis=1)[:, ::-1]
    ascending = np.sort(_without_diagonal(distance), axis=1)
    if problem.integer and objective_bound(problem.flow, problem.distance, problem.linear) < 2**53:
        # a float64 product is exact here, and many times as fast as one of integers
        products: Array = (descending.astype(np.float64) @ ascending.T.astype(np.float64)).astype(np.int64)
    else:
        products = descending @ ascending.T
    costs = products + np.outer(np.diagonal(flow), np.diagonal(distance))
    return np.asarray(costs if problem.linear is None else costs + problem.linear)


def round_up(problem: QuadraticAssignment, value: int) -> int:
    """The least value >= `value` that an objective can take, as far as divisibility tells."""
    step = problem.granularity
    return value if step < 2 else -(-value // step) * step


def slack(problem: QuadraticAssignment) -> float:
    """How much a float64 bound is lowered to pay for its rounding."""
    size = float(objective_bound(problem.flow, problem.distance, problem.linear))
    return 16 * problem.n * float(np.finfo(np.float64).eps) * size


def _without_diagonal(matrix: Amounts) -> Amounts:
    n = matrix.shape[0]
    return np.asarray(matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1))


def _barred(problem: QuadraticAssignment, costs: Amounts) -> Amounts | None:
    """The costs with a price on forbidden pairs that no assignment of the others reaches; None beyond int64."""
    n, whole = problem.n, costs.dtype.kind == "i"
    largest = max(int(costs.max()), -int(costs.min())) if whole else float(np.abs(costs).max())
    bar = 2 * n * (largest + 1 if whole else largest or 1.0)
    # paths of shortest augmentation add up n costs and their duals
    if whole and 4 * n * (largest if problem.forbidden is None else bar) >= 2**62:
        return None
    return np.ascontiguousarray(costs if problem.forbidden is None else np.where(problem.forbidden, bar, costs))


def turns_alike(problem: QuadraticAssignment) -> bool:
    """True when rows and columns give the same bound: both matrices are symmetric."""
    return all((m == m.T).all() for m in (problem.flow, problem.distance))


def _basis(n: int) -> Floats:
    """An orthonormal basis of the vectors that sum to 0, (n, n - 1): a Householder reflection but its first column."""
    w = np.full(n, 1 / np.sqrt(n))
    w[0] += 1.0
    w /= np.sqrt(w @ w)
    return np.asarray(np.eye(n)[:, 1:] - 2 * np.outer(w, w[1:]))


def permitted_permutation(problem: QuadraticAssignment) -> Indices | None:
    """Any permutation that uses no forbidden pair; None when there is none."""
    if problem.forbidden is None:
        return np.arange(problem.n)
    row_of, unmet = _matched(problem.forbidden)
    return None if unmet else np.argsort(row_of)


def hall_violator(forbidden: Mask) -> tuple[Integers, Integers]:
    """Facilities, and fewer locations: all that are permitted to any of them. For where no permutation is allowed.

    Reached from a facility without a permitted location along permitted pairs and back along matched ones: a free
    location among those reached would have let the matching grow.
    """
    row_of, _ = _matched(forbidden)
    rows = np.zeros(len(forbidden), bool)
    rows[row_of[np.flatnonzero(forbidden[row_of, np.arange(len(forbidden))])[0]]] = True
    while True:
        columns = ~forbidden[rows].all(axis=0)
        more = rows.copy()
        more[row_of[columns]] = True
        if (more == rows).all():
            return np.flatnonzero(rows), np.flatnonzero(columns)
        rows = more


def _matched(forbidden: Mask) -> tuple[Integers, int]:
    """The row of each column in a matching of as many permitted pairs as can be, and how many pairs are forbidden."""
    n = len(forbidden)
    row_of = np.empty(n, np.int64)
    return row_of, int(assign(forbidden.astype(np.int64), np.empty(n, np.int64), np.empty(n, np.int64), row_of))
