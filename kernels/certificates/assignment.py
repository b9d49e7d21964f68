"""Proofs for assignments: the dual bound, recomputed from the weights, or a Hall violator.

Given prices v of the columns, the best dual solution has u_i = min_j (c_ij - v_j), so sum u + sum v is a bound on
every assignment whatever v is, provided v_j <= 0 where columns may stay free. The proof takes nothing but v (and
the claimed u, to measure how far it is off) from the solver. Sums of floats are exact (math.fsum).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.problems import UNASSIGNED, Array, Assignment, Csr
from kernels.solution import Certificate, Number, Solution, Termination, unheard

BLOCK_BYTES = 1 << 22
PARTIAL = (Termination.TIME_LIMIT, Termination.ITERATION_LIMIT, Termination.STOPPED)


@dataclass
class _Proof:
    """One problem's part of the certificate; a batch adds them up."""

    holds: bool
    objective: Number | None
    bound: Number | None
    violation: Number
    tolerance: float
    unassigned: int
    why: str = ""


def certify_dense(problem: Assignment, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective, bound and violations of a dense problem or of every problem of a batch.

    For integers everything is exact and an optimal answer must have gap and violation 0. For floats the duals may be
    violated by at most 4 eps (n_rows + n_cols) max |weight| with eps = 2^-52, and the gap of an optimal
    answer must be within min(n_rows, n_cols) times that. A partial answer is held to a valid pairing and its bound.
    """
    assert not isinstance(problem.weights, Csr)
    if solution.termination is Termination.INFEASIBLE:
        return _certify_infeasible(problem, solution)
    proofs = [_prove(*part, problem.maximize, solution.termination) for part in _parts(problem, solution)]
    partial = solution.termination in PARTIAL
    objective = _total([proof.objective for proof in proofs])
    bound = _total([proof.bound for proof in proofs])
    gap = None if objective is None or bound is None else abs(objective - bound)
    scale = max(abs(objective or 0), abs(bound or 0))
    gap_rel = None if gap is None else float(gap / scale) if scale else 0.0
    unassigned = sum(proof.unassigned for proof in proofs)
    exact = problem.weights.dtype.kind == "i"
    arithmetic = "exact integers" if exact else f"float64, violations up to {max(p.tolerance for p in proofs):.3g}"
    claim = f"a valid pairing with {unassigned} pairs missing, and a dual bound" if partial else "optimal by duals"
    broken = next((proof.why for proof in proofs if not proof.holds), "")
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=gap_rel,
        max_violation=max(proof.violation for proof in proofs),
        holds=not broken,
        proved=broken or f"{claim}, recomputed in {arithmetic}",
        facts={"unassigned": unassigned, "problems": len(proofs)},
    )


def _parts(problem: Assignment, solution: Solution) -> list[tuple[Array, Array, Array, Array]]:
    """(weights, assignment, u, v) of each problem, without padding."""
    weights = problem.weights
    assert not isinstance(weights, Csr)
    answer = [solution.arrays[name] for name in ("assignment", "u", "v")]
    if weights.ndim == 2:
        return [(weights, answer[0], answer[1], answer[2])]
    parts = []
    for k in range(len(weights)):
        rows, cols = weights.shape[1:] if problem.sizes is None else problem.sizes[k].tolist()
        parts.append((weights[k, :rows, :cols], answer[0][k, :rows], answer[1][k, :rows], answer[2][k, :cols]))
    return parts


def _total(values: list[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return sum(known) if all(isinstance(value, int) for value in known) else math.fsum(known)


def _sum(values: Array) -> Number:
    """Exact: integers as Python's, floats by fsum."""
    return sum(values.tolist()) if values.dtype.kind == "i" else math.fsum(values.tolist())


def _prove(weights: Array, assignment: Array, u: Array, v: Array, maximize: bool, ended: Termination) -> _Proof:
    n_rows, n_cols = weights.shape
    pairs = min(n_rows, n_cols)
    wide = np.int64 if weights.dtype.kind == "i" else np.float64
    shapes = assignment.shape == (n_rows,) and u.shape == (n_rows,) and v.shape == (n_cols,)
    if not shapes or u.dtype.kind != np.dtype(wide).kind or v.dtype.kind != np.dtype(wide).kind:
        return _Proof(False, None, None, 0, 0.0, pairs, "the answer has the wrong shape or dtype")
    chosen = np.flatnonzero(assignment != UNASSIGNED)
    cols = assignment[chosen]
    inside = bool(((cols >= 0) & (cols < n_cols)).all())
    if not inside or len(np.unique(cols)) < len(cols):
        return _Proof(False, None, None, 0, 0.0, pairs, "a column is out of range or assigned twice")
    taken = weights[chosen, cols].astype(wide)
    if not np.isfinite(taken).all():
        return _Proof(False, None, None, 0, 0.0, pairs, "a forbidden entry is assigned")
    sign = -1 if maximize else 1
    bound, violation, largest = _dual_bound(weights, sign, sign * u.astype(wide), sign * v.astype(wide))
    objective = _sum(taken) if len(chosen) == pairs else None
    tolerance = 0.0 if wide is np.int64 else 4 * 2.0**-52 * (n_rows + n_cols) * largest
    proof = _Proof(True, objective, None if bound is None else sign * bound, violation, tolerance, pairs - len(chosen))
    if ended not in PARTIAL:
        closed = objective is not None and proof.bound is not None and abs(objective - proof.bound) <= pairs * tolerance
        proof.holds = closed and violation <= tolerance
        proof.why = "" if proof.holds else f"not optimal: objective {objective}, bound {proof.bound}"
    return proof


def _dual_bound(weights: Array, sign: int, u: Array, v: Array) -> tuple[Number | None, Number, float]:
    """Best bound given the prices of the longer side, the largest violation by (u, v), the largest |weight|.

    Prices of a side that may stay unassigned are clipped to <= 0, which keeps the bound valid. None when a line has
    no permitted entry (its dual is unbounded).
    """
    by_columns = weights.shape[0] > weights.shape[1]
    price, claimed = (u, v) if by_columns else (v, u)
    violation: Number = 0
    if weights.shape[0] != weights.shape[1]:
        violation = max(0, price.max().item())
        price = np.minimum(price, 0)
    best, largest = _reduced_minima(weights, sign, price, by_columns)
    with np.errstate(invalid="ignore"):
        violation = max(violation, np.max(claimed - best).item(), 0)
    if best.dtype.kind == "f" and not np.isfinite(best).all():
        return None, violation, largest
    return _sum(best) + _sum(price), violation, largest


def _reduced_minima(weights: Array, sign: int, price: Array, by_columns: bool) -> tuple[Array, float]:
    """min over the other index of sign * weight - price, and the largest finite |weight|, block of rows by block."""
    n_rows, n_cols = weights.shape
    best = np.full(n_cols if by_columns else n_rows, _TOP[price.dtype.kind], dtype=price.dtype)
    largest = 0.0
    step = max(1, BLOCK_BYTES // (8 * n_cols))
    for first in range(0, n_rows, step):
        block = weights[first : first + step].astype(price.dtype)
        if sign < 0:
            np.negative(block, out=block)
        largest = max(largest, _largest_finite(block))
        if by_columns:
            block -= price[first : first + step, None]
            np.minimum(best, block.min(axis=0), out=best)
        else:
            block -= price
            best[first : first + step] = block.min(axis=1)
    return best, largest


_TOP: dict[str, Any] = {"f": np.inf, "i": np.iinfo(np.int64).max}


def _largest_finite(block: Array) -> float:
    low, high = float(block.min()), float(block.max())
    if np.isfinite(high):
        return max(-low, high)
    permitted = block[np.isfinite(block)]
    return float(np.abs(permitted).max()) if permitted.size else 0.0


def _certify_infeasible(problem: Assignment, solution: Solution) -> Certificate:
    """Check the Hall violator: the permitted entries of `hall_rows` lie in `hall_cols`, which are too few."""
    weights = problem.weights
    assert not isinstance(weights, Csr)
    k = int(solution.facts.get("problem", 0))
    if weights.ndim == 3:
        rows, cols = weights.shape[1:] if problem.sizes is None else problem.sizes[k].tolist()
        weights = weights[k, :rows, :cols]
    n_rows, n_cols = weights.shape
    hall_rows, hall_cols = np.unique(solution.arrays["hall_rows"]), np.unique(solution.arrays["hall_cols"])
    elsewhere = np.setdiff1d(np.arange(n_cols), hall_cols)
    barred = True
    for first in range(0, len(hall_rows), step := max(1, BLOCK_BYTES // (8 * n_cols))):
        barred &= not np.isfinite(weights[np.ix_(hall_rows[first : first + step], elsewhere)]).any()
    spare = n_rows - min(n_rows, n_cols)  # rows that may stay unassigned
    holds = bool(barred) and len(hall_rows) > len(hall_cols) + spare
    inside = bool(len(hall_rows)) and hall_rows[0] >= 0 and hall_rows[-1] < n_rows
    where = f"problem {k}: " if problem.weights.ndim == 3 else ""  # type: ignore[union-attr]
    return Certificate(
        objective=None,
        bound=None,
        gap_abs=None,
        gap_rel=None,
        max_violation=0,
        holds=holds and bool(inside),
        proved=f"{where}infeasible: {len(hall_rows)} rows have permitted entries in {len(hall_cols)} columns only"
        + (f", and at most {spare} rows may stay unassigned" if spare else ""),
        facts={"problem": k},
    )
