"""One pass over the entries: what the bounds of a transport certificate need of P(f, g) and of the plan.

With P the plan, Q = P(f, g), R the reference and lambda = log(P / Q), the entrywise part of the primal value is

    <C, P> + reg Omega(P) = <f, P 1> + <g, P' 1> + reg sum_ij phi(P_ij, Q_ij) - reg sum_ij (Q_ij - R_ij)

where phi(p, q) = p log(p / q) - p + q (transport_divergence.py), and for the uniform reference the last sum is that of
Q alone: log Q is a sum, so no entry needs a logarithm, and the last sum stands in the dual value too.

Sums: k terms of one sign in any order are off by (k - 1) u, relative (N. J. Higham, "Accuracy and Stability of
Numerical Algorithms", 2002, section 4.2); rows are summed in chunks, columns over blocks by TwoSum.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.certificates.rounded import sum_down, sum_up, two_sum
from kernels.certificates.transport_answer import FLOOR, Answer, Exponents
from kernels.certificates.transport_divergence import WEIGHTS, of_entries
from kernels.certificates.transport_elementary import (
    EXP_ERROR,
    EXPM1_ERROR,
    HIGHEST,
    TINIEST,
    UNIT,
    exp_pair,
)
from kernels.certificates.transport_fine import correction
from kernels.certificates.transport_points import SLACK
from kernels.certificates.transport_shown import Shown
from kernels.problems.arrays import Array

CHUNK = 32  # or the root of the row: so many, and as many sums of them, keep the error smallest
TAIL = UNIT * 2.0**-50  # of w v exp(t): what an entry below exp(t - NEAR) w v may be off by
LEAST = 3e-261  # above exp(FLOOR), which stands for whatever is below it
TOLD = 16  # blocks between two words about the progress


@dataclass(frozen=True, eq=False)
class Sums:
    """Bounds: of the plan's marginals, of sum (Q - R) or sum Q, and of sum phi.

    `valid`: a plan; `finite`: Q is, and so are its sums.
    """

    rows: tuple[Array, Array]
    columns: tuple[Array, Array]
    excess: tuple[float, float]
    divergence: float
    valid: bool
    finite: bool


@dataclass(eq=False)
class Tally:
    """Sums of entries by line, and the absolute errors of these sums."""

    values: Array
    errors: Array

    def bounds(self, terms: int) -> tuple[Array, Array]:
        """Lower and upper bounds of the exact sums of `terms` entries each."""
        with np.errstate(invalid="ignore"):
            error = SLACK * (self.errors + 4 * UNIT * abs(self.values)) + terms * TINIEST
            return self.values - error, self.values + error


def measure(answer: Answer, shown: Shown, progress: Callable[[float], None]) -> Sums:
    """Read every entry once."""
    return _Pass(answer, shown).run(progress)


def row_sums(entries: Array, weights: Array) -> tuple[Array, float]:
    """entries @ weights, and the relative error of its rounding where the terms are of one sign."""
    n = entries.shape[1]
    chunk = max(CHUNK, math.isqrt(n))
    parts = np.stack([entries[:, k : k + chunk] @ weights[k : k + chunk] for k in range(0, n, chunk)])
    return parts.sum(axis=0), SLACK * (min(n, chunk) + len(parts)) * UNIT


def _held(bounds: tuple[Array, Array], weights: Array) -> tuple[Array, Array]:
    """Bounds of sums of entries >= 0, which are 0 on lines without weight (or the plan is not valid)."""
    low, high = bounds
    return np.where(weights > 0, np.maximum(low, 0), 0.0), np.where(weights > 0, high, 0.0)


def _moved(error: Array) -> Array:
    """The relative error of exp(z) for an error of z; inf where that is no small one."""
    return np.where(error <= 0.5, error * (1 + error), np.inf)


class _Pass:
    """What is being added up."""

    def __init__(self, answer: Answer, shown: Shown) -> None:
        self.answer, self.shown = answer, shown
        m, n = answer.problem.shape
        self.ones = np.ones(n)
        self.total_v = float(answer.v.sum()) * SLACK
        self.rows, self.excess = (Tally(np.zeros(m), np.zeros(m)) for _ in range(2))
        self.columns = Tally(np.zeros(n), np.zeros(n))
        self.rounding = np.zeros(n)  # of the columns' sums so far
        self.divergences: list[float] = [0.0]
        self.finite = True
        self.valid = answer.placed and all(
            bool((array >= 0).all() and np.isfinite(array).all()) for array in answer.beside
        )

    def run(self, progress: Callable[[float], None]) -> Sums:
        """Take block after block."""
        m, n = self.answer.problem.shape
        for number, part in enumerate(self.answer.blocks()):
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                self._block(part)
            if number % TOLD == TOLD - 1:
                progress(part.stop / m)
        progress(1.0)
        self.columns.values += self.rounding
        rows, columns, excess = self.rows.bounds(n), self.columns.bounds(m), self.excess.bounds(n)
        finite = self.finite and all(bool(np.isfinite(bound).all()) for bound in excess)
        valid = self.valid and self._inside()
        rows, columns = _held(rows, self.answer.w), _held(columns, self.answer.v)
        if self.answer.massless:  # a plan that is valid is 0, and so are all terms
            none_a, none_b = np.zeros(m), np.zeros(n)
            return Sums((none_a, none_a), (none_b, none_b), (0.0, 0.0), 0.0, valid, True)
        divergence = sum_up(self.divergences) if np.isfinite(self.divergences).all() else np.inf
        both = (sum_down(excess[0]), sum_up(excess[1])) if finite else (-np.inf, np.inf)
        return Sums(rows, columns, both, divergence, valid, finite)

    def _inside(self) -> bool:
        """False where lines without mass carry some."""
        answer = self.answer
        return not (self.rows.values[answer.w == 0].any() or self.columns.values[answer.v == 0].any())

    def _block(self, part: slice) -> None:
        answer, at = self.answer, self.answer.exponents(part)
        if not at.top <= HIGHEST:
            self.finite = False
            np.minimum(at.z, HIGHEST, out=at.z)
        exp, expm1 = exp_pair(np.maximum(at.z, FLOOR))
        if at.low is not None:
            more = exp * correction(at.low)
            exp += more
            expm1 += more
        w, moved = answer.w[part], _moved(at.near)
        total, rounding = row_sums(exp, answer.v)
        total *= w
        with np.errstate(invalid="ignore"):
            shift = SLACK * total * moved + (TAIL * exp.max(axis=1) + LEAST) * self.total_v * w
        self._excess(part, expm1, total, rounding, shift)
        off = EXP_ERROR + WEIGHTS
        if answer.implicit and not answer.adds:
            self.rows.values[part], self.rows.errors[part] = total, (off + rounding) * total + shift
            self._columns(answer.v * (w @ exp), w, off + float(_moved(at.far).max()))
            if self.shown.entries:
                self.shown.look(part, _weighted(exp, w, answer.v))
            return
        dual = _weighted(exp, w, answer.v)
        plan = self._plan(part, dual, at)
        self.divergences.append(of_entries(answer, part, plan, dual, at, float(total.sum()) * SLACK))
        if self.shown.entries:
            self.shown.look(part, plan)
        if not answer.implicit:
            off, shift = 0.0, np.zeros_like(shift)
        total, rounding = row_sums(plan, self.ones)
        self.rows.values[part], self.rows.errors[part] = total, (off + rounding) * total + shift
        self._columns(plan.sum(axis=0), w, off + float(_moved(at.far).max()) if answer.implicit else 0.0)

    def _excess(self, part: slice, expm1: Array, total: Array, rounding: float, shift: Array) -> None:
        """Add up Q - R, or Q for the uniform reference; `total` are the row sums of Q."""
        if self.answer.problem.reference == "uniform":
            values, error = total, (EXP_ERROR + WEIGHTS + rounding) * total
        else:
            w = self.answer.w[part]
            values = row_sums(expm1, self.answer.v)[0] * w
            largest = max(float(expm1.max()), -float(expm1.min()))
            terms = np.minimum(self.total_v * w * largest, total + self.total_v * w)
            error = (EXPM1_ERROR + WEIGHTS + rounding) * SLACK * terms
        self.excess.values[part], self.excess.errors[part] = values, error + shift

    def _columns(self, sums: Array, w: Array, off: float) -> None:
        """Add a block's column sums, each term off by `off`, relative."""
        self.columns.values, rounding = two_sum(self.columns.values, sums)
        self.rounding += rounding
        self.columns.errors += sums * (off + len(w) * UNIT)
        if self.answer.implicit:
            self.columns.errors += (LEAST * SLACK * float(w.sum())) * self.answer.v

    def _plan(self, part: slice, dual: Array, at: Exponents) -> Array:
        """Some rows of the plan; notes entries that no plan may have."""
        plan, nothing = self.answer.plan, np.zeros(())
        if plan is not None:
            plan = plan[part].astype(np.float64, copy=False)
        else:
            plan, nothing = self.answer.implied(part, dual), dual  # at a forbidden entry stands a bound of exp(-inf)
        if at.forbidden is not None and (plan != nothing)[at.forbidden].any():
            self.valid = False
        if not (plan.min() >= 0 and plan.max() < np.inf):
            self.valid = False
        return plan


def _weighted(exp: Array, w: Array, v: Array) -> Array:
    """Q from exp(z), in its place."""
    exp *= v
    exp *= w[:, None]
    return exp
