"""Checks a quadratic assignment: the objective exactly, each bound from its own evidence, n <= 8 by enumeration.

What is proved. The objective is the exact sum: integers as they are, floats rounded up once. `bound` is the best lower
bound that holds whatever the evidence is (quadratic_bounds.py, quadratic_spectrum.py), or the true optimum of n <= 8
(quadratic_exact.py). Integers, and floats that are few enough bits times a power of two, are exact; other floats are
rounded down.

`optimal` on integers means a gap of 0, and for n <= 8 that no permutation is better. On other floats it means a gap of
at most 2^-50 times the sum of the absolute values of the products and linear costs that the answer pays, and of at most
1e-9 max(|objective|, S). S adds up, over the facilities, the smallest non-zero |flow| of its row times the smallest
non-zero |distance|, or its smallest non-zero permitted |linear| where that is less: from the data alone, so that no
evidence can loosen it.

`facts["verified"]` is true exactly where the bound closes the gap in that sense. A branch and bound that says to have
ended is not checked: its answer stays `optimal` with `verified` false, `claimed_bound` is its word, and `bound` and the
gap are what was checked. Any other optimum whose gap is open is `converged`.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from kernels.certificates import rounded
from kernels.certificates.quadratic_bounds import gilmore_lawler, rlt1, rlt1_rounded
from kernels.certificates.quadratic_exact import ENUMERATED, Every, Whole, objective_up, whole
from kernels.certificates.quadratic_spectrum import projection
from kernels.problems import Array, QuadraticAssignment
from kernels.solution import Certificate, Number, Solution, Termination, unheard

CLOSE, CLOSE_BY_DATA = 2.0**-50, 1e-9
BY_ROWS, BY_COLUMNS = "gilmore-lawler", "gilmore-lawler by columns"


def certify(
    problem: QuadraticAssignment, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    """Recompute objective and bounds; hold the termination to what they prove.

    Complexity: n <= 8: n! permutations. Else O(n^3) for each bound of `facts["bounds"]`, O(n^4) for `rlt1`.
    """
    if solution.termination is Termination.INFEASIBLE:
        return _infeasible(problem, solution)
    n, permutation = problem.n, solution.arrays.get("permutation")
    readable = permutation is not None and permutation.shape == (n,) and permutation.dtype.kind == "i"
    if permutation is None or not readable or sorted(permutation.tolist()) != list(range(n)):
        return Certificate(None, None, None, None, n, False, "not a permutation", {"verified": False})
    unmet = 0 if problem.forbidden is None else int(problem.forbidden[np.arange(n), permutation].sum())
    if unmet:
        why = "a forbidden pair is used"
        return Certificate(None, None, None, None, unmet, False, why, {"verified": False, "forbidden_used": unmet})
    data = whole(problem)
    every = Every(problem) if n <= ENUMERATED else None
    objective = _objective(problem, data, permutation) if every is None else _unit(every, every.price(permutation))
    checked = _checked(problem, data, list(_claims(solution)), solution.evidence, progress)
    if every is not None:
        least = every.least()
        assert least is not None  # the answer itself is permitted
        checked["enumeration"] = _unit(every, least)
    elif not checked:  # prices of our own: there is always a bound
        checked = _checked(problem, data, [BY_ROWS], {}, progress)
    progress(1.0)
    return _concluded(problem, solution, permutation, objective, checked, data is not None)


def _claims(solution: Solution) -> dict[str, Number]:
    """The bounds that the solver says it has, by name; what is no number is left out."""
    said = solution.facts.get("bounds")
    pairs = said.items() if isinstance(said, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(value, int | float) and math.isfinite(value)}


def _concluded(
    problem: QuadraticAssignment, solution: Solution, permutation: Array, exact: Fraction,
    checked: Mapping[str, Fraction], integers: bool,
) -> Certificate:  # fmt: skip
    """Objective, bound and gap in the problem's own numbers, and the word that they earn."""
    name = max(checked, key=lambda key: checked[key], default=None)
    objective: Number = int(exact) if problem.integer else rounded.up(exact)
    bound = None if name is None else _lowered(problem, checked[name])
    gap = None if bound is None else _gap(objective, bound)
    relative = None if gap is None else rounded.share_up(gap, objective, bound)
    met = name is not None and checked[name] == exact
    rounded_alone = not problem.integer and name != "enumeration"  # which tells every two permutations apart
    verified = met or (gap is not None and rounded_alone and _closes(problem, permutation, objective, gap))
    says_optimal = solution.termination is Termination.OPTIMAL
    tree = says_optimal and bool(solution.facts.get("proved")) and not verified
    facts: dict[str, object] = {
        "verified": verified,
        "bounds_checked": {key: _lowered(problem, value) for key, value in checked.items()},
        "forbidden_used": 0,
    }
    claimed = [*_claims(solution).values(), *([objective] if tree else [])]
    if tree or any(bound is None or claim > bound for claim in claimed):
        facts["claimed_bound"] = max(claimed)
    if problem.best_known is not None:
        facts |= {"best_known": problem.best_known, "above_best_known": objective - problem.best_known}
    word = None
    if says_optimal and not verified and not tree:
        word = Termination.CONVERGED
    elif verified and solution.termination not in (Termination.OPTIMAL, Termination.STOPPED):
        word = Termination.OPTIMAL
    elif solution.termination is Termination.GAP_REACHED and (problem.target is None or objective > problem.target):
        word = Termination.CONVERGED
    proved = _proved(problem.n, name, integers, verified, tree)
    return Certificate(objective, bound, gap, relative, 0, True, proved, facts, word)


def _proved(n: int, name: str | None, integers: bool, verified: bool, tree: bool) -> str:
    if name is None:
        return "no bound"
    if name == "enumeration":
        every = f"the least of all permutations of {n} ({math.factorial(n)}), priced in exact integers"
        return f"optimal: {every}" if verified else f"lower bound: {every}"
    arithmetic = "exact integers" if integers and name != "projection" else "float64, rounded down"
    if verified:
        return f"optimal: meets the lower bound {name}, recomputed in {arithmetic}"
    said = "; the solver's branch and bound says optimal, which is not checked here" if tree else ""
    return f"lower bound: {name}, recomputed in {arithmetic}{said}"


def _checked(
    problem: QuadraticAssignment, data: Whole | None, names: list[str], evidence: Mapping[str, Array],
    progress: Callable[[float], None],
) -> dict[str, Fraction]:  # fmt: skip
    """Each bound's value as proved here; those whose evidence proves nothing are left out."""
    found: dict[str, Fraction] = {}
    for at, name in enumerate(names):
        own = {key.removeprefix(f"{name}:"): value for key, value in evidence.items() if key.startswith(f"{name}:")}

        def heard(fraction: float, at: int = at) -> None:
            progress((at + fraction) / len(names))

        value: Number | None = None
        if name in (BY_ROWS, BY_COLUMNS):
            value = gilmore_lawler(problem, data, name == BY_COLUMNS, own.get("v"), heard)
        elif name == "projection":
            value = projection(problem, data, own)
        elif name == "rlt1" and "exponents" in own and not problem.integer:
            exact = rlt1_rounded(problem, own)
            found |= {} if exact is None else {name: exact}
        elif name == "rlt1" and data is not None:
            value = rlt1(problem, data, own)
        heard(1.0)
        if value is not None:
            found[name] = Fraction(value) if data is None else data.number(int(value))
    return found


def _objective(problem: QuadraticAssignment, data: Whole | None, permutation: Array) -> Fraction:
    """The exact objective; of floats that are not `Whole`, the float64 at or just above it."""
    if data is None:
        return Fraction(objective_up(problem, permutation))
    pairs = data.flow * data.distance[np.ix_(permutation, permutation)]
    return data.number(int(pairs.sum()) + int(data.linear[np.arange(problem.n), permutation].sum()))


def _unit(every: Every, price: int) -> Fraction:
    return Fraction(price) * Fraction(2) ** every.exponent


def _lowered(problem: QuadraticAssignment, value: Fraction) -> Number:
    return int(value) if problem.integer else rounded.down(value)


def _gap(objective: Number, bound: Number) -> Number:
    both_whole = isinstance(objective, int) and isinstance(bound, int)
    return objective - bound if both_whole else float(rounded.sub_up(float(objective), float(bound)))


def _closes(problem: QuadraticAssignment, permutation: Array, objective: Number, gap: Number) -> bool:
    """True when a gap of floats is small enough to say `optimal`."""
    flow, distance = np.abs(problem.flow), np.abs(problem.distance)
    linear = np.zeros_like(flow) if problem.linear is None else np.abs(problem.linear)
    if problem.forbidden is not None:
        linear = np.where(problem.forbidden, 0.0, linear)
    paid = float((flow * distance[np.ix_(permutation, permutation)]).sum())
    paid += float(linear[np.arange(problem.n), permutation].sum())
    least = [np.where(m > 0, m, np.inf).min(axis=1) for m in (flow, linear)]
    entries = np.minimum(least[0] * np.where(distance > 0, distance, np.inf).min(), least[1])
    by_data = float(np.where(np.isfinite(entries), entries, 0.0).sum())
    return 0 <= gap <= min(CLOSE * paid, CLOSE_BY_DATA * max(abs(objective), by_data))


def _infeasible(problem: QuadraticAssignment, solution: Solution) -> Certificate:
    """Hall's theorem: facilities whose permitted locations are fewer than they are. Else a matching of our own."""
    n = problem.n
    permitted = np.ones((n, n), bool) if problem.forbidden is None else ~problem.forbidden
    rows = solution.arrays.get("hall_rows", np.empty(0, np.int64)).ravel()
    inside = rows.dtype.kind == "i" and bool(((rows >= 0) & (rows < n)).all()) and np.unique(rows).size == rows.size
    if inside and rows.size and (open_to := int(permitted[rows].any(axis=0).sum())) < rows.size:
        why = f"infeasible: {rows.size} facilities are permitted at {open_to} locations only"
        return Certificate(None, None, None, None, rows.size - open_to, True, why, {"verified": True})
    unmet = n - int((maximum_bipartite_matching(csr_array(permitted), perm_type="column") >= 0).sum())
    why = "infeasible: every permutation uses a forbidden pair" if unmet else "a permitted permutation exists"
    return Certificate(None, None, None, None, unmet, unmet > 0, why, {"verified": unmet > 0})
