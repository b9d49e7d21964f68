"""Proofs for assignments whose lines may be left at a price, and for problems of different sizes without padding.

The bound is that of bound.py: any prices give one. The objective is summed exactly and rounded to its weak side. An
optimum is `optimal` when the gap is 0 (integers), or for floats when

    gap <= 2^-50 * (sum over the pairs of |c_ij| + |u_i| + |v_j| + sum over the lines left of |price| + |dual|)
    gap <= 1e-9 * max(|objective|, S)

with u as recomputed and S from the data alone: the sum over the rows of the smallest non-zero permitted size among the
row's entries and its price, or the same of the columns, whichever is less. Else it is `converged`.

Between points the costs are those of `between.py`, worked out from the points again.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernels.certificates.assignment_hall import check
from kernels.certificates.rejecting.between import written
from kernels.certificates.rejecting.many import judged_together
from kernels.certificates.rejecting.proof import Answer, Proof
from kernels.certificates.rejecting.reading import answer_of, endings
from kernels.certificates.rejecting.table import Table
from kernels.certificates.rejecting.whole import certificate, refused
from kernels.problems import Rejecting
from kernels.problems.clouds import PointRejecting
from kernels.solution import Certificate, Solution, Termination, unheard

__all__ = ["certify"]

COSTS = "costs of the given points in float64, each step rounded to nearest"


def certify(problem: Rejecting, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective, bound and gap of every problem.

    `holds` is False only where the answer is none: a column used twice, a forbidden entry, an optimum with lines left
    that must be paired, no Hall violator where infeasibility is claimed.
    """
    found = _certified(problem, solution, progress)
    if isinstance(problem, PointRejecting) and found.holds:
        return replace(found, proved=f"{found.proved}; {COSTS} ({problem.points.metric})")
    return found


def _certified(problem: Rejecting, solution: Solution, progress: Callable[[float], None]) -> Certificate:
    ended = endings(problem, solution)
    if isinstance(ended, str):
        return refused(ended)
    if problem.form == "one" and ended[0] is Termination.INFEASIBLE:
        return certificate(problem, solution, Table.of([_infeasible(written(problem), solution, 0)]))
    answer = answer_of(problem, solution)
    if isinstance(answer, str):
        return refused(answer)
    proofs = judged_together(problem, answer, ended, progress)
    if Termination.INFEASIBLE in set(ended):
        problem = written(problem)
        for k, word in enumerate(ended):
            if word is Termination.INFEASIBLE:
                proofs[k] = _infeasible(problem, solution, k, answer)
    return certificate(problem, solution, proofs)


def _infeasible(problem: Rejecting, solution: Solution, k: int, found: Answer | None = None) -> Proof:
    """The proof that problem k has no answer: only lines that must be paired can leave one without."""
    proof = Proof(Termination.INFEASIBLE)
    sides = [solution.arrays.get(name) for name in ("hall_rows", "hall_cols")]
    if sides[0] is None or sides[1] is None or not problem.strict:
        proof.why = (
            "the Hall violator is missing" if problem.strict else "lines may be left, so that there is an answer"
        )
        return proof
    rows, cols = sides[0], sides[1]
    if problem.form != "one":
        starts = problem.starts
        flat = [side[problem.inside(n)] if problem.form == "batch" and side.ndim == 2 else side
                for n, side in enumerate((rows, cols))]  # fmt: skip
        if any(side.shape != (starts[-1, n],) or side.dtype != bool for n, side in enumerate(flat, 1)):
            proof.why = "the Hall violator has the wrong shape"
            return proof
        rows, cols = (np.flatnonzero(side[starts[k, n] : starts[k + 1, n]]) for n, side in enumerate(flat, 1))
    matrix = problem.matrix(k)
    if not matrix.size or rows.ndim != 1 or cols.ndim != 1:
        proof.why = "the Hall violator has the wrong shape"
        return proof
    violator = check(matrix, rows, cols)
    proof.claim = violator.proved
    proof.why = "" if violator.holds else violator.proved
    return proof
