"""Proofs for exactly k pairs, and for the least largest cost of k pairs.

Sum. For any number t and any v <= 0, with u_i = min(t, min_j c_ij - v_j),

    sum_i u_i + sum_j v_j - (n_rows - k) t

is at most the cost of any k pairs: n_rows - k rows are left, for each of which u_i <= t. It is computed as the bound of
`rejecting`, with t as the price of each row, and the last term added before the one rounding.

Largest cost. For any rows R and columns C with |R| - |C| > n_rows - k: of k pairs at least |R| - (n_rows - k) > |C|
have a row of R, so that one of them lies in R and outside C. So the least permitted entry there is a bound, and where
there is none no k pairs can be formed. Nothing is rounded.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from kernels.certificates.assignment_bound import natural_scale
from kernels.certificates.assignment_groups import WORST
from kernels.certificates.rejecting import bound as dual
from kernels.certificates.rounded import down, share_up, sum_down, sum_up
from kernels.problems import UNASSIGNED, Array
from kernels.problems.arrays import permitted
from kernels.problems.selected import Selected
from kernels.solution import Certificate, Number, Solution, Termination, unheard

OF_PAIRS, OF_DATA = Fraction(1, 2**50), Fraction(1, 10**9)


def certify(problem: Selected, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective and bound; `holds` is False where this is no answer."""
    if solution.termination not in WORST:
        return _refused(f"an assignment does not end with {solution.termination.value}")
    sign = -1 if problem.maximize else 1
    cut = _cut(problem, solution)
    if solution.termination is Termination.INFEASIBLE:
        rows, cols = cut if cut is not None else (np.zeros(0, int), np.zeros(0, int))
        proved = f"infeasible: {len(rows)} rows have permitted entries in {len(cols)} columns only, "
        proved += f"so that {problem.pairs} pairs cannot be formed"
        holds = cut is not None and _least_outside(problem, sign, *cut) is None
        return Certificate(None, None, None, None, 0, holds, proved if holds else f"not shown: {proved}")
    taken = _taken(problem, solution)
    if isinstance(taken, str):
        return _refused(taken)
    missing = problem.pairs - len(taken)
    if missing and solution.termination is Termination.OPTIMAL:
        return _refused(f"called optimal with {len(taken)} of {problem.pairs} pairs")
    bottleneck = problem.objective == "bottleneck"
    if bottleneck:
        objective: Number | None = None if missing else (sign * taken).max().item()
        bound: Number | None = _largest(problem, sign, cut)
    else:
        objective = None if missing else _sum(sign * taken)
        bound = _least_sum(problem, solution, sign)
    return _judged(problem, solution, taken, objective, bound)


def _refused(why: str) -> Certificate:
    return Certificate(None, None, None, None, 0, False, why)


def _taken(problem: Selected, solution: Solution) -> Array | str:
    """The weights of the pairs as int64 or float64, or what is wrong with the assignment."""
    weights, given = problem.weights, solution.arrays.get("assignment")
    if given is None or given.shape != weights.shape[:1] or given.dtype.kind != "i":
        return "assignment has the wrong shape or dtype"
    rows = np.flatnonzero(given != UNASSIGNED)
    cols = given[rows]
    if len(cols) and (cols.min() < 0 or cols.max() >= weights.shape[1] or np.bincount(cols).max() > 1):
        return "a column is out of range or assigned twice"
    taken = weights[rows, cols]
    if not permitted(taken).all():
        return "a forbidden entry is assigned"
    if len(rows) > problem.pairs:
        return f"{len(rows)} pairs are formed; {problem.pairs} were asked for"
    return taken.astype(np.int64 if weights.dtype.kind == "i" else np.float64)


def _sum(values: Array) -> Number | None:
    """The sum, exact or rounded up; None beyond float64."""
    if values.dtype.kind == "i":
        return int(sum(values.tolist()))
    total = sum_up(values)
    return total if np.isfinite(total) else None


def _duals(problem: Selected, solution: Solution) -> tuple[Array, Array] | None:
    """`v` and `level` as given, in the dtype of the sums; None where they have not the form."""
    kind = np.dtype(np.int64 if problem.weights.dtype.kind == "i" else np.float64)
    found = [solution.arrays.get(name) for name in ("v", "level")]
    shapes = ((problem.weights.shape[1],), (1,))
    for array, shape in zip(found, shapes, strict=True):
        if array is None or array.shape != shape or array.dtype.kind != kind.kind:
            return None
    return np.asarray(found[0]).astype(kind), np.asarray(found[1]).astype(kind)


def _side(problem: Selected, v: Array, level: Array, sign: int) -> dual.Side:
    n, m = problem.weights.shape
    cap = np.zeros(m, v.dtype)
    top = np.full(n, dual.usable(sign * level, np.zeros(1, v.dtype) + _largest_of(v.dtype))[0], v.dtype)
    return dual.Side(problem.weights, top, cap, dual.usable(sign * v, cap))


def _largest_of(dtype: np.dtype[np.generic]) -> Number:
    return dual.TOP if dtype.kind == "i" else float(np.inf)


def _least_sum(problem: Selected, solution: Solution, sign: int) -> Number | None:
    """The bound of the sum, in min form, rounded down."""
    duals = _duals(problem, solution)
    if duals is None:
        return None
    side = _side(problem, *duals, sign)
    left = len(side.top) - problem.pairs
    high, low = dual.smallest([side], sign)
    level = side.top[0].item()
    if side.price.dtype.kind == "i":
        return int(sum(high.tolist()) + sum(side.price.tolist()) - left * int(level))
    total = sum_down(np.concatenate([high, low, side.price, np.full(left, -level)]))
    finer = solution.arrays.get("v_finer")
    if finer is not None and finer.dtype == np.float64 and finer.shape[1:] == side.price.shape:
        words = np.concatenate([sign * duals[0][None], sign * finer])
        other = _rational(side, sign, words, left)
        total = max(total, other) if other is not None else total
    return total if np.isfinite(total) else None


def _rational(side: dual.Side, sign: int, words: Array, left: int) -> float | None:
    """As above, at prices that are sums of words, in rational numbers; None where the problem is large."""
    if side.matrix.size > dual.EXACT_ENTRIES or not (np.abs(words) <= dual.LARGEST_PRICE["f"]).all():
        return None
    level = Fraction(side.top[0].item())
    prices = [min(sum(map(Fraction, column), Fraction(0)), Fraction(0)) for column in words.T.tolist()]
    total = sum(prices, Fraction(0)) - left * level
    for line, allowed in zip(side.matrix.tolist(), permitted(side.matrix), strict=True):
        total += min([level, *(sign * Fraction(line[j]) - prices[j] for j in np.flatnonzero(allowed).tolist())])
    bounded = down(total)
    return bounded if np.isfinite(bounded) else None


def _cut(problem: Selected, solution: Solution) -> tuple[Array, Array] | None:
    """Rows R and columns C with |R| - |C| > n_rows - pairs; None where the given ones are none."""
    rows, cols = (solution.arrays.get(name) for name in ("hall_rows", "hall_cols"))
    if rows is None or cols is None or rows.dtype.kind not in "iu" or cols.ndim != 1 or rows.ndim != 1:
        return None
    if cols.size and cols.dtype.kind not in "iu":
        return None
    rows, cols = np.unique(rows), np.unique(cols).astype(np.int64)
    n, m = problem.weights.shape
    inside = all(not len(side) or (side[0] >= 0 and side[-1] < size) for side, size in ((rows, n), (cols, m)))
    return (rows, cols) if inside and len(rows) - len(cols) > n - problem.pairs else None


def _least_outside(problem: Selected, sign: int, rows: Array, cols: Array) -> Number | None:
    """The least permitted entry of `rows` outside `cols`, in min form; None where there is none."""
    elsewhere = np.setdiff1d(np.arange(problem.weights.shape[1]), cols)
    least: Number | None = None
    step = max(1, dual.BLOCK // max(1, len(elsewhere)))
    for first in range(0, len(rows), step):
        block = problem.weights[np.ix_(rows[first : first + step], elsewhere)]
        known = block[permitted(block)]
        if known.size:
            low = known.max().item() if sign < 0 else known.min().item()
            least = sign * low if least is None else min(least, sign * low)
    return least


def _largest(problem: Selected, sign: int, cut: tuple[Array, Array] | None) -> Number | None:
    """The bound of the largest cost: without a cut that of all rows and no columns."""
    whole = np.arange(problem.weights.shape[0]), np.zeros(0, np.int64)
    found = [_least_outside(problem, sign, *whole)]
    found += [] if cut is None else [_least_outside(problem, sign, *cut)]
    return max((value for value in found if value is not None), default=None)


def _judged(
    problem: Selected, solution: Solution, taken: Array, objective: Number | None, bound: Number | None
) -> Certificate:
    """The gap, and the word that it earns."""
    sign, exact = (-1 if problem.maximize else 1), problem.weights.dtype.kind == "i"
    gap: Number | None = None
    if objective is not None and bound is not None:
        gap = objective - bound if exact else sum_up([objective, -bound])
    word = solution.termination
    if word is Termination.OPTIMAL and not (gap == 0 or _is_rounding(problem, solution, taken, gap, objective)):
        word = Termination.CONVERGED
    missing = problem.pairs - len(taken)
    arithmetic = "in exact integers" if exact else "without rounding but of the last sums, outward"
    kind = "rows and columns that need a larger cost" if problem.objective == "bottleneck" else "duals"
    claim = f"optimal by {kind}" if word is Termination.OPTIMAL else f"{len(taken)} valid pairs and a bound by {kind}"
    return Certificate(
        objective=None if objective is None else sign * objective + 0,
        bound=None if bound is None else sign * bound + 0,
        gap_abs=gap,
        gap_rel=None if gap is None else share_up(gap, objective, bound),
        max_violation=0,
        holds=True,
        proved=f"{claim}, recomputed {arithmetic}",
        facts={"unassigned": missing, "pairs": len(taken)},
        termination=None if word is solution.termination else word,
        loose=word is Termination.CONVERGED,
    )


def _is_rounding(
    problem: Selected, solution: Solution, taken: Array, gap: Number | None, objective: Number | None
) -> bool:
    """Whether the gap of a sum of floats is what rounding alone may leave."""
    duals = _duals(problem, solution)
    if gap is None or objective is None or duals is None or taken.dtype.kind == "i" or problem.objective != "sum":
        return False
    side = _side(problem, *duals, -1 if problem.maximize else 1)
    high, _ = dual.smallest([side], -1 if problem.maximize else 1)
    rows = np.flatnonzero(solution.arrays["assignment"] != UNASSIGNED)
    cols = solution.arrays["assignment"][rows]
    size = Fraction(sum_down(np.abs(np.concatenate([taken, high[rows], side.price[cols]]))))
    data = max(abs(Fraction(objective)), Fraction(natural_scale(problem.weights)))
    return Fraction(gap) <= OF_PAIRS * size and Fraction(gap) <= OF_DATA * data
