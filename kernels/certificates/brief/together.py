"""The certificate of a batch of small dense assignments: the proof of `brief` for each problem, in one compiled loop.

Problems whose answer is not of the common form, or of which the loop is not sure, are proved by `assignment.py`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kernels.certificates import assignment as dense
from kernels.certificates.assignment_bound import LARGEST_PRICE
from kernels.certificates.assignment_groups import misshapen
from kernels.certificates.threads import cut, in_threads
from kernels.problems import Array, Assignment
from kernels.problems.arrays import untouched
from kernels.solution import Certificate, Solution, Termination, unheard

A_THREAD = 1 << 16
"""Entries that are worth a thread."""
LARGEST = 1 << 13
"""Rows of a problem: a sum of three numbers for each, in working precision, has the share that `brief.SURE` names."""


def certify(problem: Assignment, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """As `certify_dense`, of a batch."""
    if not _suits(problem, solution):
        return dense.certify_dense(problem, solution, progress)
    weights, arrays = problem.weights, solution.arrays
    assert isinstance(weights, np.ndarray)
    again = np.zeros(len(weights), bool)
    if "v_finer" in arrays:
        again |= (arrays["v_finer"] != 0).any(axis=(0, 2))
    if "ended" in solution.evidence:
        again |= solution.evidence["ended"] != list(Termination).index(Termination.OPTIMAL)
    proofs = _proofs(problem, arrays["assignment"], arrays["u"], arrays["v"], again)
    some = np.flatnonzero([proof is None for proof in proofs])
    if len(some):
        picked = {name: array[:, some] if name == "v_finer" else array[some] for name, array in arrays.items()}
        ended = {name: array[some] for name, array in solution.evidence.items() if name == "ended"}
        part = replace(solution, arrays=picked, evidence=ended)
        others = dense.proofs_of(replace(problem, weights=weights[some]), part, progress)
        for k, proof in zip(some.tolist(), others, strict=True):
            proofs[k] = proof
    progress(1.0)
    return dense._certificate(problem, solution, [proof for proof in proofs if proof is not None], True)


def _suits(problem: Assignment, solution: Solution) -> bool:
    """Whether problems are of one shape, and arrays of the types that the loops are compiled for."""
    weights, arrays = problem.weights, solution.arrays
    if not isinstance(weights, np.ndarray) or problem.sizes is not None or not len(weights):
        return False
    if weights.shape[1] > min(weights.shape[2], LARGEST) or not weights.flags.c_contiguous:
        return False
    if solution.termination is Termination.INFEASIBLE or misshapen(problem, solution):
        return False
    if "ended" not in solution.evidence and solution.termination is not Termination.OPTIMAL:
        return False
    finer = arrays.get("v_finer")
    if not arrays.keys() <= {"assignment", "u", "v", "v_finer"}:
        return False
    if finer is not None and (finer.ndim != 3 or finer.shape[1:] != arrays["v"].shape):
        return False
    wide = np.int64 if weights.dtype.kind == "i" else np.float64
    return arrays["assignment"].dtype == np.int64 and arrays["u"].dtype == arrays["v"].dtype == wide


def _proofs(problem: Assignment, assignment: Array, u: Array, v: Array, again: Array) -> "list[dense._Proof | None]":
    """The proof of each problem, None where `assignment.py` is to be asked."""
    from kernels.certificates import brief
    from kernels.certificates.brief import loops

    weights = problem.weights
    assert isinstance(weights, np.ndarray)
    kind, count = weights.dtype.kind, len(weights)
    found: Array = np.zeros((count, 5), np.int64 if kind == "i" else np.float64)
    known = np.zeros(count, bool)
    given = tuple(untouched(np.ascontiguousarray(array)) for array in (weights, assignment, u, v))
    prove = loops.prove_batch_of_integers if kind == "i" else loops.prove_batch_of_floats
    in_threads(
        prove, cut(count, weights.size, A_THREAD), (problem.maximize, *given, LARGEST_PRICE[kind], again, known, found)
    )
    sign: int = -1 if problem.maximize else 1
    proofs: list[dense._Proof | None] = []
    for is_known, told in zip(known.tolist(), found.tolist(), strict=True):
        if not is_known:
            proofs.append(None)
        elif kind == "i":
            pairs, rest, dual, more, over = told
            objective, bound = (pairs << 32) + rest, sign * ((dual << 32) + more)
            closed = objective == bound
            proofs.append(dense._Proof(Termination.OPTIMAL, objective, bound, 0, over) if closed else None)
        else:
            upper, lower, gap, over, size = told
            closed = brief._is_closed(gap, upper, size)
            objective, bound = sign * upper + 0, sign * lower + 0
            proofs.append(dense._Proof(Termination.OPTIMAL, objective, bound, gap, over) if closed else None)
    return proofs
