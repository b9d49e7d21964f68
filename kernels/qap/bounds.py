"""Lower bounds on a quadratic assignment, each with the evidence that its certificate checks.

Gilmore-Lawler: each pair (i, j) costs at least l_ij = linear_ij + F_ii D_jj + the minimal scalar product of row i of F
and row j of D without their diagonals; the assignment of least l is a bound, and so is any feasible dual of it.
Projection (Hadley, Rendl and Wolkowicz 1992): permutation matrices are orthogonal with row and column sums 1.
No bound dominates. Integer objectives round up to the next multiple of the objective's granularity.
"""

from dataclasses import dataclass, field
from math import ceil

import numpy as np

from kernels.problems import Array, QuadraticAssignment
from kernels.qap.lap import assign

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

    Complexity: O(n^3) time, O(n^2) bytes.
    """
    found = []
    for name, turn in zip(NAMES, (False, True), strict=True):
        costs = pair_costs(problem, turn)
        u, v = np.empty(problem.n, costs.dtype), np.empty(problem.n, costs.dtype)
        raw = assign(_barred(problem, costs), u, v, np.empty(problem.n, np.int64))
        value = round_up(problem, int(raw)) if problem.integer else float(raw) - slack(problem)
        found.append(Bound(name, value, raw, {"u": u, "v": v}))
        if turns_alike(problem):
            break
    return max(found, key=lambda bound: bound.value)


def projection(problem: QuadraticAssignment) -> Bound | None:
    """The eigenvalue bound on permutations' affine hull, rounded down; None when neither matrix is symmetric.

    Numerics: eigenvalues err by at most c n eps |A|; `margin` pays for them, for the products and for the assignment.
    Complexity: O(n^3).
    """
    flow, distance = problem.flow.astype(np.float64), problem.distance.astype(np.float64)
    linear = np.outer(np.diagonal(flow), np.diagonal(distance))
    if problem.linear is not None:
        linear = linear + problem.linear
    np.fill_diagonal(flow, 0)
    np.fill_diagonal(distance, 0)
    if not ((flow == flow.T).all() or (distance == distance.T).all()) or problem.n < 2:
        return None
    flow, distance = (flow + flow.T) / 2, (distance + distance.T) / 2
    n = problem.n
    spectra = [np.linalg.eigvalsh(_projected(m)) for m in (flow, distance)]
    sums = flow.sum(axis=1), distance.sum(axis=1)
    costs = linear + (2.0 / n) * np.outer(*sums)
    u, v = np.empty(n), np.empty(n)
    assigned = assign(_barred(problem, costs), u, v, np.empty(n, np.int64))
    value = float(spectra[0] @ spectra[1][::-1]) + assigned - float(sums[0].sum() * sums[1].sum()) / n**2
    size = float(np.linalg.norm(flow) * np.linalg.norm(distance)) * n + float(np.abs(costs).max(axis=1).sum())
    margin = 64 * n * np.finfo(np.float64).eps * size
    lowered = value - margin
    return Bound("projection", round_up(problem, ceil(lowered)) if problem.integer else lowered, value)


def pair_costs(problem: QuadraticAssignment, turn: bool) -> Array:
    """l_ij of Gilmore and Lawler; `turn` takes columns for rows."""
    flow, distance = (m.T if turn else m for m in (problem.flow, problem.distance))
    descending = np.sort(_without_diagonal(flow), axis=1)[:, ::-1]
    ascending = np.sort(_without_diagonal(distance), axis=1)
    costs = descending @ ascending.T + np.outer(np.diagonal(flow), np.diagonal(distance))
    return np.asarray(costs if problem.linear is None else costs + problem.linear)


def round_up(problem: QuadraticAssignment, value: int) -> int:
    """The least value >= `value` that an objective can take, as far as divisibility tells."""
    step = problem.granularity
    return value if step < 2 else -(-value // step) * step


def slack(problem: QuadraticAssignment) -> float:
    """How much a float64 bound is lowered to pay for its rounding."""
    size = float(np.linalg.norm(problem.flow) * np.linalg.norm(problem.distance)) * problem.n
    if problem.linear is not None:
        size += float(np.abs(problem.linear).max(axis=1).sum())
    return 16 * problem.n * float(np.finfo(np.float64).eps) * size


def _without_diagonal(matrix: Array) -> Array:
    n = matrix.shape[0]
    return np.asarray(matrix[~np.eye(n, dtype=bool)].reshape(n, n - 1))


def _barred(problem: QuadraticAssignment, costs: Array) -> Array:
    if problem.forbidden is None:
        return np.ascontiguousarray(costs)
    bar = 2.0 * problem.n * (float(np.abs(costs).max()) + 1)
    if costs.dtype.kind == "i":  # lower is still valid: duals are held to allowed pairs only
        return np.where(problem.forbidden, int(min(bar, 2**62 // (problem.n + 1))), costs)
    return np.where(problem.forbidden, bar, costs)


def turns_alike(problem: QuadraticAssignment) -> bool:
    """True when rows and columns give the same bound: both matrices are symmetric."""
    return all((m == m.T).all() for m in (problem.flow, problem.distance))


def _projected(matrix: Array) -> Array:
    """V' M V, V an orthonormal basis of the vectors that sum to 0, as P M P without its zero eigenvector."""
    n = matrix.shape[0]
    # Householder: H maps e_1 to the constant vector; its other columns are V
    w = np.full(n, 1 / np.sqrt(n))
    w[0] += 1.0
    w /= np.sqrt(w @ w)
    basis = np.eye(n)[:, 1:] - 2 * np.outer(w, w[1:])
    return np.asarray(basis.T @ matrix @ basis)


def allowed_permutation(problem: QuadraticAssignment) -> Array | None:
    """Any permutation that uses no forbidden pair; None when there is none."""
    if problem.forbidden is None:
        return np.arange(problem.n)
    cost = problem.forbidden.astype(np.int64)
    row_of = np.empty(problem.n, np.int64)
    unmet = assign(cost, np.empty(problem.n, np.int64), np.empty(problem.n, np.int64), row_of)
    return None if unmet else np.argsort(row_of)
