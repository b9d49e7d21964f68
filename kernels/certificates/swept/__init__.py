"""The certificate of one dense assignment in one compiled sweep: what `certify_dense` says, word for word, sooner.

It is for the common answer: an optimum of one matrix, all rows paired, duals that are numbers, no forbidden entry of
integers. Whatever else comes goes to `certify_dense`, which also says what is wrong with an answer. Proof, judgement
and sums are those of `assignment.py`; only the sweep over the matrix is done in other code, by threads where it pays.
"""

from collections.abc import Callable

import numpy as np

from kernels.certificates import assignment as dense
from kernels.certificates import assignment_bound as dual
from kernels.certificates.rounded import sum_down, sum_up
from kernels.certificates.threads import cut, in_threads
from kernels.problems import Array, Assignment
from kernels.problems.arrays import FORBIDDEN, untouched
from kernels.solution import Certificate, Solution, Termination, unheard

A_THREAD = 1 << 22
"""Entries that are worth a thread: 1.4 ms of float64. Who waits for a thread on a busy machine loses by fewer."""
A_REPORT = 1 << 26
"""Entries after which the progress is told: some 25 ms of one core."""
Heard = Callable[[float], None]


def certify(problem: Assignment, solution: Solution, progress: Heard = unheard) -> Certificate:
    """As `certify_dense`."""
    proof = _proof(problem, solution, progress)
    if proof is None:
        return dense.certify_dense(problem, solution, progress)
    progress(1.0)
    return dense._certificate(problem, solution, [proof], False)


def _proof(problem: Assignment, solution: Solution, progress: Heard = unheard) -> "dense._Proof | None":
    """The proof of an answer of the common form, before it is judged; None for any other."""
    weights, arrays = problem.weights, solution.arrays
    if not isinstance(weights, np.ndarray) or weights.ndim != 2:
        return None
    (n_rows, n_cols), exact = weights.shape, weights.dtype.kind == "i"
    if n_rows > n_cols or solution.termination is not Termination.OPTIMAL or "ended" in solution.evidence:
        return None
    wide = np.dtype(np.int64 if exact else np.float64)
    given = [arrays.get(name) for name in ("assignment", "u", "v")]
    forms = [(n_rows, np.dtype(np.int64)), (n_rows, wide), (n_cols, wide)]
    if "v_finer" in arrays or not (weights.flags.c_contiguous and weights.flags.aligned):
        return None
    for array, (extent, dtype) in zip(given, forms, strict=True):
        if array is None or array.shape != (extent,) or array.dtype != dtype or not array.flags.c_contiguous:
            return None
    assignment, u, v = given
    assert assignment is not None
    assert u is not None
    assert v is not None
    return _swept(weights, problem.maximize, assignment, u, v, progress)


def _swept(
    weights: Array, maximize: bool, assignment: Array, u: Array, v: Array, progress: Heard = unheard
) -> "dense._Proof | None":
    """See `_proof`; u and v in the sense of the problem."""
    from kernels.certificates.swept import loops  # numba, which a process that only takes jobs must not load

    (n_rows, n_cols), exact = weights.shape, weights.dtype.kind == "i"
    claimed, price = (-u, -v) if maximize else (u, v)
    highest, lowest = price.max(), price.min()
    most = dual.LARGEST_PRICE["i" if exact else "f"]
    if not (lowest >= -most and highest <= most and claimed.min() >= -most and claimed.max() <= most):
        return None
    if n_rows < n_cols and highest > 0:
        return None
    readable, pairs = untouched(weights), np.empty(n_rows, weights.dtype)
    if not loops.paired(readable, untouched(assignment), np.zeros(n_cols, np.int8), pairs):
        return None
    proof = dense._Proof(Termination.OPTIMAL)
    high, low = sweep(readable, maximize, price, progress)
    if exact:
        if (high == FORBIDDEN).any():
            return None
        proof.objective = (-1 if maximize else 1) * dual.exact_sum(pairs.astype(np.int64))
        proof.bound = dual.exact_sum(high) + dual.exact_sum(price)
    else:
        if not (np.isfinite(high).all() and np.isfinite(pairs).all()):
            return None
        proof.objective = sum_up(-pairs if maximize else pairs)
        bound = sum_down(np.concatenate([high, low, price]))
        proof.bound = bound if np.isfinite(bound) else None
    proof.violation = max((claimed - high).max().item(), 0)
    dense._judge(proof, weights, assignment, -1 if maximize else 1, high, price)
    return proof


def sweep(weights: Array, maximize: bool, price: Array, progress: Heard = unheard) -> tuple[Array, Array]:
    """The least of each row at `price`, in min form: see loops.py. `weights` may not be written to (`untouched`)."""
    from kernels.certificates.swept import loops

    n_rows, price = len(weights), price.copy()
    high, low = np.empty(n_rows, price.dtype), np.empty(n_rows, price.dtype)
    exact = price.dtype.kind == "i"
    work = loops.sweep_integers if exact else loops.sweep_floats
    given = (weights, maximize, price, high) if exact else (weights, maximize, price, high, low)
    step = max(1, A_REPORT // weights.shape[1])
    for first in range(0, n_rows, step):
        last = min(first + step, n_rows)
        ends = cut(last - first, (last - first) * weights.shape[1], A_THREAD)
        in_threads(work, [first + end for end in ends], given)
        progress(last / n_rows)
    return high, low


def warm_up() -> None:
    """Compile the sweep of each type of weights, or load it from numba's cache."""
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        wide = np.int64 if np.dtype(dtype).kind == "i" else np.float64
        _swept(np.zeros((1, 1), dtype), False, np.zeros(1, np.int64), np.zeros(1, wide), np.zeros(1, wide))
