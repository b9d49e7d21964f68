"""The certificate of dense auctions on the device: prices bound the optimum from above.

Benefits b, prices p >= 0 and reject prices become the assignment problem of costs -b with column prices -p, whose
columns may all stay free. As the CPU's certificate it says which word is earned. It says nothing (None) of graphs, of
points, of integers whose prices are not whole, of infeasible auctions, of answers that are none, and where a claimed
word is not earned: there the CPU's certificate has the word.
"""

from fractions import Fraction
from typing import Any

import cupy
import numpy as np

from kernels.certificates.gpu.checksum import Pending
from kernels.certificates.gpu.gpu_arrays import compare, on_device
from kernels.certificates.gpu.gpu_assignment import ENTRIES_A_SECOND, FEWEST, NEXT_TO_NONE_S, closes
from kernels.certificates.gpu.gpu_lines import Lines, Weighed, weigh
from kernels.certificates.gpu.outward import difference_up
from kernels.problems import Array, Csr
from kernels.problems.sparse import Auction
from kernels.solution import Certificate, Number, Solution, Termination

CLAIMS = (Termination.OPTIMAL, Termination.GAP_REACHED)
EXACT_INTEGER = 2**53
"""Integers up to this are float64."""
LARGEST_EPSILON = 1e300
"""What is not below it was asked for by nobody."""


def inputs(problem: Auction) -> list[Array] | None:
    """`arrays`, where the problem is large enough; None where the CPU's certificate is to be used."""
    return arrays(problem) if suits(problem) and arrays(problem)[0].size >= FEWEST else None


def seconds(problem: Auction) -> float:
    """About what a certificate takes at most, on any device that is in use."""
    return NEXT_TO_NONE_S + arrays(problem)[0].size / ENTRIES_A_SECOND


def suits(problem: Auction) -> bool:
    """Whether this certificate is for the problem: dense, and its reject prices in the arithmetic of its benefits."""
    weights = problem.weights
    if isinstance(weights, Csr) or not weights.size or not weights.flags.c_contiguous:
        return False  # the matrix of an auction of points is empty
    return _reject(problem) is not False


def arrays(problem: Auction) -> list[Array]:
    """The arrays whose checksums `certify` asks for."""
    assert not isinstance(problem.weights, Csr)
    return [problem.weights]


def certify(problem: Auction, solution: Solution, checksums: Pending) -> Certificate | None:
    """Recompute the objective and the prices' bound from the benefits on the device.

    Raises:
        InputChanged: the benefits there are not those that arrived.
    """
    weights = problem.weights
    if isinstance(weights, Csr) or not _shaped(weights, solution):
        return None
    found = weigh(_lines(problem, weights, solution), (True, False))
    compare([weights], [found.checksum], checksums)
    facts = found.facts
    if facts["fault"].any() or facts["without"].any():
        return None
    missing = int(facts["missing"][0])
    if missing and solution.termination in CLAIMS:
        return None
    return _certificate(problem, solution, found, missing)


def _reject(problem: Auction) -> Any:
    """What a row without a column costs, in the arithmetic of the benefits; None where there is none, False where
    it has another arithmetic."""
    reject, weights = problem.reject, problem.weights
    assert not isinstance(weights, Csr)
    if reject is None:
        return None
    if weights.dtype.kind == "i":
        return -reject.astype(np.int64) if reject.dtype.kind == "i" else False
    if reject.dtype.kind == "i" and int(abs(reject).max()) > EXACT_INTEGER:
        return False
    return -reject.astype(np.float64)


def _shaped(weights: Array, solution: Solution) -> bool:
    arrays, (rows, cols) = solution.arrays, weights.shape
    kinds = "i" if weights.dtype.kind == "i" else "iuf"
    if solution.termination is Termination.INFEASIBLE:
        return False
    wanted = {"assignment": (rows, "i"), "prices": (cols, kinds), "profits": (rows, kinds)}
    return all(
        name in arrays and arrays[name].shape == (extent,) and arrays[name].dtype.kind in kind
        for name, (extent, kind) in wanted.items()
    )


def _lines(problem: Auction, weights: Array, solution: Solution) -> Lines:
    wide = np.int64 if weights.dtype.kind == "i" else np.float64
    reject = _reject(problem)

    def sent(name: str, dtype: Any) -> Any:
        return cupy.asarray(solution.arrays[name].astype(dtype, copy=False).reshape(1, -1), order="C")

    return Lines(
        cost=on_device(weights, solution).reshape(1, *weights.shape),
        sign=-1,
        u=sent("profits", wide),
        v=sent("prices", wide),
        assignment=sent("assignment", np.int64),
        auction=True,
        reject=None if reject is None else cupy.asarray(reject),
    )


def _certificate(problem: Auction, solution: Solution, found: Weighed, missing: int) -> Certificate | None:
    exact = found.facts["violation"].dtype.kind == "i"
    finite = all(bool(np.isfinite(solution.arrays[name]).all()) for name in ("prices", "profits"))
    gap: Number
    if exact:
        gap = found.objective[0] - found.bound[0]
        closed = gap == 0 and found.facts["off"][0] == 0
    else:
        objective, bound = found.facts["objective"], found.facts["bound"]
        if not (np.isfinite(objective).all() and np.isfinite(bound).all()):
            return None
        gap = difference_up(objective, bound).item()
        allowed = np.ldexp(found.facts["sizes"], -50)
        closed = bool(closes(np.array([gap]), objective, found.facts["sizes"])[0])
        closed = closed and finite and bool(found.facts["off"][0] <= allowed[0])
    rows = problem.shape[0]
    word = _word(solution, gap, rows, closed)
    if word is None and not missing:
        return None
    worth, most = -found.objective[0] + 0, -found.bound[0] + 0
    scale = max(abs(worth), abs(most))
    proved = _claim(word, exact, gap, rows, solution)
    return Certificate(
        objective=None if missing else worth,
        bound=most,
        gap_abs=None if missing else gap,
        gap_rel=None if missing else float(gap / scale) if scale else 0.0,
        max_violation=found.facts["violation"][0].item(),
        holds=True,
        proved=f"{missing} of {rows} rows are unassigned; {proved}" if missing else proved,
        facts={"certified_on": "gpu"} | ({"partial_objective": worth, "unassigned": missing} if missing else {}),
        termination=None if word is None or word is solution.termination else word,
    )


def _word(solution: Solution, gap: Number, rows: int, closed: bool) -> Termination | None:
    """The word that is earned where it is no less than the claim; None where the claim is not earned."""
    claim = solution.termination
    if claim not in CLAIMS:
        return claim
    epsilon = _epsilon(solution)
    within = epsilon is not None and Fraction(gap) <= rows * Fraction(epsilon)
    if within and claim is Termination.GAP_REACHED:
        return claim
    return Termination.OPTIMAL if closed else None


def _epsilon(solution: Solution) -> float | None:
    """What the answer says that it was asked for; None where that is no number."""
    told = solution.facts.get("epsilon")
    if isinstance(told, bool) or not isinstance(told, int | float) or not abs(told) < LARGEST_EPSILON:
        return None
    return float(told)


def _claim(word: Termination | None, exact: bool, gap: Number, rows: int, solution: Solution) -> str:
    where = "recomputed on the device " + ("in exact integers" if exact else "and rounded up")
    if word is Termination.OPTIMAL:
        return f"optimal: the prices prove a gap of {gap}, {where}"
    if word is Termination.GAP_REACHED:
        epsilon = rows * (_epsilon(solution) or 0)
        return f"within n_rows * epsilon = {epsilon:g} of optimal: the prices prove a gap of {gap}, {where}"
    return f"the prices bound the optimum from above, {where}"
