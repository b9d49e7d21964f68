"""Proofs for assignments: the dual bound, recomputed from the weights, or a Hall violator.

The proof takes nothing but prices from the solver, and any prices give a bound (assignment_bound.py). The objective is
summed exactly and rounded to its weak side, so that objective - bound is never less than what the answer may be off.

A claimed optimum is `optimal` when the gap is 0 (integers), or for floats when

    gap <= 2^-50 * sum over the pairs of |c_ij| + |u_i| + |v_j|    and    gap <= 1e-9 * max(|objective|, S)

with u_i = min_j (c_ij - v_j) as recomputed and S from the data alone (`natural_scale`). Else it is `converged`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.certificates import assignment_bound as dual
from kernels.certificates.assignment_groups import WORST, Group, groups, misshapen
from kernels.certificates.assignment_hall import Violator, check
from kernels.certificates.rounded import share_up, sum_down, sum_up
from kernels.problems import UNASSIGNED, Array, Assignment, Csr
from kernels.problems.arrays import permitted
from kernels.solution import Certificate, Number, Solution, Termination, unheard

OF_PAIRS, OF_DATA = 50, 1e-9
"""The gap of an optimum in floats is at most 2^-OF_PAIRS of its pairs' sizes, and OF_DATA of the data's."""
TOO_MUCH = 2.0**970
"""2^50 times this is beyond float64, and so beyond what any pairs' sizes add up to."""


@dataclass
class _Proof:
    """One problem's part of the certificate; `why` says what is wrong where the answer is none."""

    ended: Termination
    objective: Number | None = None
    bound: Number | None = None
    gap: Number | None = None
    violation: Number = 0
    unassigned: int = 0
    why: str = ""
    violator: Violator | None = None


def certify_dense(problem: Assignment, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective, bound and violation of a dense problem, or of every problem of a batch.

    `holds` is False only where the answer is none: a column used twice, a forbidden entry, an optimum with pairs
    missing, no Hall violator where infeasibility is claimed. Duals never decide that: those that are no numbers, or
    beyond use, count as 0, and the gap says what they are worth. A batch's `facts["problems"]` hold `terminations`,
    `objectives`, `bounds` and `gaps`, one an entry; its objective and bound are sums over the problems that have both.
    """
    assert not isinstance(problem.weights, Csr)
    if broken := misshapen(problem, solution):
        return Certificate(None, None, None, None, 0, False, broken)
    return _certificate(problem, solution, proofs_of(problem, solution, progress), problem.weights.ndim == 3)


def proofs_of(problem: Assignment, solution: Solution, progress: Callable[[float], None]) -> list[_Proof]:
    """The proof of each problem, of arrays that have the right shapes."""
    assert not isinstance(problem.weights, Csr)
    batch = problem.weights.ndim == 3
    proofs: list[_Proof] = [_Proof(Termination.INFEASIBLE)] * (len(problem.weights) if batch else 1)
    done = 0
    for group in groups(problem, solution):
        share, before = len(group.members) / len(proofs), done / len(proofs)
        for k, proof in zip(
            group.members.tolist(), _prove(group, problem, _part(progress, before, share)), strict=True
        ):
            proofs[k] = proof
        done += len(group.members)
    for k, proof in enumerate(proofs):
        if proof.ended is Termination.INFEASIBLE:
            proofs[k] = _infeasible(problem, solution, k)
    return proofs


def _part(progress: Callable[[float], None], before: float, share: float) -> Callable[[float], None]:
    return lambda fraction: progress(before + share * fraction)


def _prove(group: Group, problem: Assignment, heard: Callable[[float], None]) -> Iterator[_Proof]:
    """The proof of each problem of a group."""
    weights, sign = group.weights, -1 if problem.maximize else 1
    batch, n_rows, n_cols = weights.shape
    by_rows = n_rows > n_cols
    wide = np.int64 if weights.dtype.kind == "i" else np.float64
    u, v = (sign * side.astype(wide, copy=False) for side in (group.u, group.v))
    given, claimed = (u, v) if by_rows else (v, u)
    price = dual.usable(given, n_rows != n_cols)
    lines = dual.smallest(weights, sign, price, heard)
    violations = dual.violations(lines, claimed, given, n_rows != n_cols)
    for k in range(batch):
        proof = _pairing(weights[k], group.assignment[k], sign, group.ended[k])
        if not proof.why:
            proof.violation = violations[k].item()
            proof.bound = dual.bound(lines, price, k)
            if group.finer is not None and group.finer[:, k].any():
                words = np.concatenate([dual.usable(given[None, k], False), sign * group.finer[:, k]])
                proof.bound = _better(proof.bound, dual.finer_bound(weights[k], sign, words, n_rows != n_cols, heard))
            _judge(proof, weights[k], group.assignment[k], sign, lines.high[k], price[k])
        yield proof


def _better(bound: Number | None, other: Number | None) -> Number | None:
    return max((value for value in (bound, other) if value is not None), default=None)


def _pairing(weights: Array, assignment: Array, sign: int, ended: Termination) -> _Proof:
    """Whether the assignment is one, and its objective in min form, rounded up."""
    pairs = min(weights.shape)
    rows = np.flatnonzero(assignment != UNASSIGNED)
    cols = assignment[rows]
    proof = _Proof(ended, unassigned=pairs - len(rows))
    if len(cols) and (cols.min() < 0 or cols.max() >= weights.shape[1] or np.bincount(cols).max() > 1):
        proof.why = "a column is out of range or assigned twice"
    elif not permitted(taken := weights[rows, cols]).all():
        proof.why = "a forbidden entry is assigned"
    elif ended is Termination.OPTIMAL and proof.unassigned:
        proof.why = f"called optimal with {proof.unassigned} pairs missing"
    elif not proof.unassigned:
        exact = taken.dtype.kind == "i"
        proof.objective = sign * dual.exact_sum(taken.astype(np.int64)) if exact else sum_up(sign * taken)
    return proof


def _judge(proof: _Proof, weights: Array, assignment: Array, sign: int, high: Array, price: Array) -> None:
    """The gap and the word it earns; then objective and bound in the sense of the problem."""
    objective, bound = proof.objective, proof.bound
    if objective is not None and bound is not None:
        proof.gap = objective - bound if isinstance(bound, int) else sum_up([objective, -bound])
    if proof.ended is Termination.OPTIMAL and not _is_closed(proof, weights, assignment, high, price):
        proof.ended = Termination.CONVERGED
    proof.objective = None if objective is None else sign * objective + 0  # a sum of zeros is 0, never -0
    proof.bound = None if bound is None else sign * bound + 0


def _is_closed(proof: _Proof, weights: Array, assignment: Array, high: Array, price: Array) -> bool:
    """Whether the gap is what rounding alone may leave."""
    if proof.gap is None or weights.dtype.kind == "i" or proof.gap <= 0:
        return proof.gap == 0
    rows = np.flatnonzero(assignment != UNASSIGNED)
    cols = assignment[rows]
    line, other = (cols, rows) if weights.shape[0] > weights.shape[1] else (rows, cols)
    sizes = np.abs([weights[rows, cols].astype(np.float64), high[line], price[other]])
    if proof.gap > TOO_MUCH or math.ldexp(proof.gap, OF_PAIRS) > sum_down(sizes):  # scaled without rounding
        return False
    size = abs(proof.objective or 0.0)
    return proof.gap <= _share(size) or proof.gap <= _share(dual.natural_scale(weights))


def _share(size: float) -> float:
    """OF_DATA of a size, not rounded up."""
    return math.nextafter(OF_DATA * size, 0.0)


def _infeasible(problem: Assignment, solution: Solution, k: int) -> _Proof:
    """The proof that problem k has no answer."""
    weights = problem.weights
    assert not isinstance(weights, Csr)
    sides = [solution.arrays.get(name) for name in ("hall_rows", "hall_cols")]
    proof = _Proof(Termination.INFEASIBLE, unassigned=0)
    if sides[0] is None or sides[1] is None:
        proof.why = "the Hall violator is missing"
        return proof
    hall_rows, hall_cols = sides[0], sides[1]
    if weights.ndim == 3:
        rows, cols = weights.shape[1:] if problem.sizes is None else problem.sizes[k].tolist()
        if hall_rows.shape != weights.shape[:2] or hall_cols.shape != (len(weights), weights.shape[2]):
            proof.why = "the Hall violator has the wrong shape"
            return proof
        weights = weights[k, :rows, :cols]
        hall_rows, hall_cols = np.flatnonzero(hall_rows[k, :rows]), np.flatnonzero(hall_cols[k, :cols])
        proof.unassigned = min(rows, cols)
    proof.violator = check(weights, hall_rows, hall_cols)
    proof.why = "" if proof.violator.holds else proof.violator.proved
    return proof


def _certificate(problem: Assignment, solution: Solution, proofs: list[_Proof], batch: bool) -> Certificate:
    exact = problem.weights.dtype.kind == "i"  # type: ignore[union-attr]
    solved = [proof for proof in proofs if proof.objective is not None] if batch else proofs
    sign = -1 if problem.maximize else 1
    objective = _total([proof.objective for proof in solved], exact, sign)
    bound = _total([proof.bound for proof in solved], exact, -sign)
    gap: Number | None = None
    if objective is not None and bound is not None:
        gap = abs(objective - bound) if exact else sum_up([sign * objective, -sign * bound])
    worst = max((proof.ended for proof in proofs), key=WORST.index)
    broken = next((f"problem {k}: {p.why}" if batch else p.why for k, p in enumerate(proofs) if p.why), "")
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=None if gap is None else share_up(gap, objective, bound),
        max_violation=max(proof.violation for proof in proofs),
        holds=not broken,
        proved=broken or _claim(proofs, exact, batch),
        facts=_facts(proofs, batch),
        termination=None if worst is solution.termination else worst,
        loose=any(proof.ended is Termination.CONVERGED for proof in proofs),
    )


def _total(values: list[Number | None], exact: bool, side: int) -> Number | None:
    """The sum, rounded to `side` (floats); None where a value is missing or the sum leaves float64."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    if exact:
        return sum(known)
    total = sum_up(known) if side > 0 else sum_down(known)
    return total if math.isfinite(total) else None


def _claim(proofs: list[_Proof], exact: bool, batch: bool) -> str:
    """What is proved, in one line."""
    refuted = [(k, proof.violator) for k, proof in enumerate(proofs) if proof.violator is not None]
    arithmetic = "in exact integers" if exact else "without rounding but of the last sums, outward"
    if len(refuted) == len(proofs) == 1 and not batch:
        return refuted[0][1].proved
    unassigned = sum(proof.unassigned for proof in proofs if proof.violator is None)
    words = {proof.ended for proof in proofs}
    if words == {Termination.INFEASIBLE} and refuted:
        return f"problem 0: {refuted[0][1].proved}" + (f", and {len(refuted) - 1} more" if len(refuted) > 1 else "")
    claim = "optimal by duals" if words == {Termination.OPTIMAL} else "a valid pairing and a dual bound"
    claim = f"a valid pairing with {unassigned} pairs missing, and a dual bound" if unassigned else claim
    also = "".join(f"; problem {k}: {violator.proved}" for k, violator in refuted[:1])
    also += f", and {len(refuted) - 1} more" if len(refuted) > 1 else ""
    return f"{claim}, recomputed {arithmetic}{also}"


def _facts(proofs: list[_Proof], batch: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"unassigned": sum(proof.unassigned for proof in proofs)}
    if batch:
        facts["problems"] = {
            "terminations": [proof.ended.value for proof in proofs],
            "objectives": [proof.objective for proof in proofs],
            "bounds": [proof.bound for proof in proofs],
            "gaps": [proof.gap for proof in proofs],
        }
    return facts
