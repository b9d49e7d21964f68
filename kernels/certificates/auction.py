"""What an auction's answer proves: prices bound the optimum from above, a Hall violator proves that there is none.

For prices p >= 0, u_i = max(reject_i, max_j b_ij - p_j) and any assignment a: sum_i b[i, a(i)] <= sum u + sum p. That
holds whatever the prices are, so they are all that is taken from the solver; prices below 0 count as 0. The bound is
exact where benefits and reject prices are integers (`auction_integers.py`), and rounded up where they are floats
(`auction_floats.py`) or distances of points (`auction_points.py`).
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from kernels.certificates import auction_floats, auction_integers
from kernels.certificates.auction_points import Distances, named, nearest
from kernels.certificates.auction_rows import Proof, fault_of
from kernels.certificates.rounded import share_up
from kernels.certificates.told import number_of
from kernels.problems import UNASSIGNED, Array, Csr
from kernels.problems.points import PointAuction
from kernels.problems.sparse import Auction
from kernels.solution import Certificate, Number, Solution, Termination, unheard

CLAIMS = (Termination.OPTIMAL, Termination.GAP_REACHED)


def auction(problem: Auction, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute the objective and the dual bound from the prices; say which termination their gap earns.

    `holds` is False where this is no answer: no valid assignment, a forbidden pair, arrays of the wrong shape.
    `max_violation` is in units of benefit: how far reported profits fall short of b - p, or prices of 0.
    """
    if not isinstance(problem, PointAuction):
        return _certify(problem, None, solution, progress)
    names = solution.arrays.get("neighbours")
    if problem.points.neighbours is None:
        return _certify(problem, Distances(problem.points, None), solution, progress)
    if names is None or not named(problem.points, names):
        return _refused("the neighbours are not so many different columns of every row")
    found = _certify(problem, Distances(problem.points, names), solution, progress)
    return _among_neighbours(problem, solution, names, found)


def _certify(
    problem: Auction, points: Distances | None, solution: Solution, progress: Callable[[float], None]
) -> Certificate:
    if solution.termination is Termination.INFEASIBLE:
        return _violator(problem, points, solution.arrays.get("hall_rows"))
    arrays = solution.arrays
    if fault := _misshapen(arrays, problem.shape) or fault_of(arrays["assignment"], problem.shape):
        return _refused(fault)
    exact = points is None and is_integral(problem)
    if exact:
        proof = auction_integers.prove(problem, arrays, progress)
    else:
        benefits = points or auction_floats.Matrix(problem.weights)
        proof = auction_floats.prove(benefits, problem.reject, arrays, progress)
    if isinstance(proof, str):
        return _refused(proof)
    missing = 0 if problem.reject is not None else int((arrays["assignment"] == UNASSIGNED).sum())
    if missing and solution.termination in CLAIMS:
        return _refused(f"not an assignment: {missing} of {problem.shape[0]} rows are unassigned")
    below = np.nan_to_num(-arrays["prices"].astype(np.float64).min(), nan=0.0)
    return _judge(solution, proof, exact, problem.shape[0], missing, max(proof.short, 0, float(below)))


def _judge(solution: Solution, proof: Proof, exact: bool, n_rows: int, missing: int, violation: Number) -> Certificate:
    """Hold the claim against what was proved."""
    gap = None if missing else proof.gap
    word, proved = _word(solution, proof, exact, n_rows, gap)
    if missing:
        proved = f"{missing} of {n_rows} rows are unassigned; {proved}"
    elif proof.bound is None:
        proved = f"a row has no entry, so that prices bound nothing; {proved}"
    return Certificate(
        objective=None if missing else proof.objective,
        bound=proof.bound,
        gap_abs=gap,
        gap_rel=None if gap is None else share_up(gap, proof.objective, proof.bound),
        max_violation=violation,
        holds=True,
        proved=proved,
        facts={"partial_objective": proof.objective, "unassigned": missing} if missing else {},
        termination=None if word is solution.termination else word,
    )


def _word(solution: Solution, proof: Proof, exact: bool, n_rows: int, gap: Number | None) -> tuple[Termination, str]:
    """The termination that is earned, and the sentence that is proved."""
    if solution.termination not in CLAIMS:
        return solution.termination, "the prices bound the optimum from above"
    epsilon = number_of(solution.facts.get("epsilon"))
    within = epsilon is not None and gap is not None and Fraction(gap) <= n_rows * Fraction(epsilon)
    reached = f"within n_rows * epsilon = {n_rows * (epsilon or 0):g} of optimal: the prices prove a gap of {gap}"
    closed = gap is not None and proof.closed
    if within and solution.termination is Termination.GAP_REACHED:
        if exact and gap == 0:
            reached = "optimal: no integer lies between the objective and the prices' dual bound"
        return Termination.GAP_REACHED, reached
    if closed and exact:
        return Termination.OPTIMAL, "optimal exactly, in integers: the prices' dual bound meets the objective"
    if closed:
        how = f"the prices prove a gap of {gap:.3g}, where rounding allows {proof.slack:.3g}"
        return Termination.OPTIMAL, f"optimal to float64 rounding: {how}; the bound is rounded up"
    if within:
        return Termination.GAP_REACHED, reached
    return Termination.CONVERGED, f"not proved optimal: the prices prove a gap of {gap}"


def _misshapen(arrays: dict[str, Array], shape: tuple[int, int]) -> str:
    if absent := {"assignment", "prices", "profits"} - arrays.keys():
        return f"{min(absent)} is missing"
    for name, size in (("prices", shape[1]), ("profits", shape[0])):
        if arrays[name].shape != (size,) or arrays[name].dtype.kind not in "iuf":
            return f"{name} are not {size} numbers"
    return ""


def _refused(why: str) -> Certificate:
    return Certificate(None, None, None, None, 0, False, why)


def is_integral(problem: Auction) -> bool:
    """Whether every assignment is worth an integer because all that it adds up are integers."""
    weights = problem.weights
    values = weights.values if isinstance(weights, Csr) else weights
    return values.dtype.kind == "i" and (problem.reject is None or problem.reject.dtype.kind == "i")


def _among_neighbours(problem: PointAuction, solution: Solution, names: Array, found: Certificate) -> Certificate:
    """What was found on the graph of the named neighbours, and how far that is the graph of the nearest."""
    rows, wrong = nearest(problem.points, names)
    m, k = names.shape
    if wrong:
        note = f"on the graph of the named neighbours, which for {wrong} of {rows} rows are not the nearest"
        if solution.termination is Termination.INFEASIBLE:
            return replace(found, holds=False, loose=True, proved=f"{note}: {found.proved}")
        word = Termination.CONVERGED if solution.termination in CLAIMS else None
        return replace(found, proved=f"{note}: {found.proved}", termination=word)
    checked = "all rows" if rows == m else f"{rows} of {m} rows"
    note = f"on the graph of the {k} neighbours named for every row (the nearest, compared for {checked})"
    return replace(found, proved=f"{note}: {found.proved}", facts=found.facts | {"neighbours_compared": rows})


def _violator(problem: Auction, points: Distances | None, rows: Array | None) -> Certificate:
    """Rows that together see fewer columns than they are."""
    n_rows, n_cols = problem.shape
    if rows is None or rows.ndim != 1 or rows.dtype.kind not in "iu" or ((rows < 0) | (rows >= n_rows)).any():
        return _refused("infeasible, but hall_rows are no rows")
    rows = np.unique(rows)
    seen = np.zeros(n_cols, bool)
    weights = problem.weights
    if points is not None:
        seen[slice(None) if points.neighbours is None else points.neighbours[rows].reshape(-1)] = bool(rows.size)
    elif isinstance(weights, Csr):
        named_rows = np.zeros(n_rows, bool)
        named_rows[rows] = True
        seen[weights.indices[np.repeat(named_rows, np.diff(weights.indptr))]] = True
    else:
        for i in rows:
            seen |= np.isfinite(weights[i])
    sees, many = int(seen.sum()), int(rows.size)
    holds = sees < many and problem.reject is None
    proved = f"infeasible: {many} rows (hall_rows) have edges to {sees} columns only"
    return Certificate(None, None, None, None, 0, bool(holds), proved, {"hall_rows": many, "hall_columns": sees})
