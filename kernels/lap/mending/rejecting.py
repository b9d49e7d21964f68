"""What is tried where lines may be left and a claimed optimum in floats is not proved: arithmetic without rounding.

Small problems are solved in Python's integers, as `mend.py` does it. Of larger ones whose columns cost nothing to leave
the ordinary form (`extended.py`) is mended.
"""

from dataclasses import replace

import numpy as np

from kernels.deadline import Deadline
from kernels.lap.mending import exact
from kernels.lap.mending.mend import LARGEST, SMALL, mend_one
from kernels.problems import UNASSIGNED, Array, Rejecting
from kernels.problems.arrays import AnyFloats, Floats, Indices
from kernels.problems.selected import Selected
from kernels.solution import Certificate, Solution, Termination

Found = tuple[Indices, Floats, Floats]
"""The column of each line, the duals of the lines, and the prices of the others in words: in min form."""


def mend_rejecting(
    problem: Rejecting, solution: Solution, certificate: Certificate, deadline: Deadline
) -> Solution | None:
    """A better founded answer; None where nothing helped or no time is left."""
    if problem.row_prices.dtype.kind == "i" or not certificate.holds:
        return None
    listed = certificate.facts.get("problems", {}).get("terminations", [(certificate.termination or "")])
    loose = [k for k, word in enumerate(listed) if word == Termination.CONVERGED]
    flat = {name: _flat(problem, name, solution.arrays[name]) for name in ("assignment", "u", "v")}
    finer: dict[str, list[Floats]] = {"u_finer": [], "v_finer": []}
    mended = 0
    for k in loose:
        found = None if deadline.expired() else _mended(problem, k, flat, deadline)
        if found is not None:
            _write(problem, k, found, flat, finer)
            mended += 1
    if not mended:
        return None
    arrays = {name: problem.shaped(name, array) for name, array in flat.items()}
    for name, words in finer.items():
        if words:
            arrays[name] = np.stack([problem.shaped(name, word) for word in words])
    return replace(solution, arrays=arrays, facts=solution.facts | {"mended": mended})


def mend_selected(problem: Selected, solution: Solution, deadline: Deadline) -> Solution | None:
    """Prices of exactly so many pairs, rebuilt in whole numbers at the level that the search ended with."""
    weights = problem.weights
    n, m = weights.shape
    if problem.objective != "sum" or weights.dtype.kind == "i" or n * n * (n + m) > LARGEST or deadline.expired():
        return None
    sign = -1.0 if problem.maximize else 1.0
    level, level_as_given = sign * float(solution.arrays["level"][0]), solution.arrays["level"]
    cost = sign * weights.astype(np.float64)
    found = _exactly(cost, np.full(n, level), np.zeros(m), deadline)
    if found is None:
        return None
    column, lines, words = found
    arrays = solution.arrays | {"u": sign * lines, "v": sign * words[0], "level": level_as_given}
    if (column != UNASSIGNED).sum() == problem.pairs:
        arrays["assignment"] = column
    if len(words) > 1:
        arrays["v_finer"] = sign * words[1:]
    return replace(solution, arrays=arrays, facts=solution.facts | {"mended": 1})


def _flat(problem: Rejecting, name: str, array: Array) -> Array:
    return array[problem.inside(int(name == "v"))] if problem.form == "batch" else array.copy()


def _slices(problem: Rejecting, k: int) -> tuple[slice, slice, bool]:
    starts = problem.starts
    turned = bool(problem.sizes[k, 0] > problem.sizes[k, 1])
    return slice(starts[k, 1], starts[k + 1, 1]), slice(starts[k, 2], starts[k + 1, 2]), turned


def _mended(problem: Rejecting, k: int, flat: dict[str, Array], deadline: Deadline) -> Found | None:
    sign = -1.0 if problem.maximize else 1.0
    rows, cols, turned = _slices(problem, k)
    matrix = sign * problem.matrix(k).astype(np.float64)
    out, caps = sign * problem.row_prices[rows], sign * problem.col_prices[cols]
    if turned:
        matrix, out, caps = np.ascontiguousarray(matrix.T), caps, out
    n, m = matrix.shape
    if n * n * (n + m) <= SMALL or (n * n * (n + m) <= LARGEST and caps.any()):
        return _exactly(matrix, out, caps, deadline)
    if caps.any() or not np.isfinite(out).all():
        return None
    extended = np.concatenate([matrix, np.repeat(out[:, None], n, axis=1)], axis=1)
    old = {"assignment": np.full(n, UNASSIGNED), "u": np.zeros(n), "v": np.zeros(m + n)}
    old["v"][:m] = sign * flat["u" if turned else "v"][rows if turned else cols]
    given = flat["assignment"][rows]
    pairs = np.flatnonzero(given != UNASSIGNED)
    line, other = (given[pairs], pairs) if turned else (pairs, given[pairs])
    old["assignment"][line] = other
    alone = np.flatnonzero(old["assignment"] == UNASSIGNED)
    old["assignment"][alone] = m + np.arange(len(alone))
    new = mend_one(extended, False, old, deadline)
    if new is None:
        return None
    words = np.concatenate([new["v"][None], new.get("v_finer", np.zeros((0, n + m)))])[:, :m]
    return np.where(new["assignment"] < m, new["assignment"], UNASSIGNED), new["u"], words


def _exactly(matrix: AnyFloats, out: AnyFloats, caps: AnyFloats, deadline: Deadline) -> Found | None:
    """In Python's integers; `out` may be inf (a line that must be paired), `caps` where there are as many of both."""
    n, m = matrix.shape
    strict = bool(np.isinf(out).any())
    caps = np.where(np.isinf(caps), 0.0, caps)
    bordered = np.full((n + 1, m + 1), np.inf)
    bordered[:n, :m], bordered[:n, m], bordered[n, :m] = matrix, out, caps
    whole, exponent = exact.integers(bordered)
    much = 4 * whole[n, m] if not strict else whole[n, m]
    entries = np.where(np.isfinite(matrix), whole[:n, :m] - whole[n, :m], much)
    ways_out = np.repeat(whole[:n, m:], 0 if strict else n, axis=1)
    found = exact.paths(np.concatenate([entries, ways_out], axis=1), deadline)
    if found is None:
        return None
    row_of, u, v = found
    column = np.full(n, UNASSIGNED)
    taken = np.flatnonzero(row_of[:m] >= 0)
    column[row_of[taken]] = taken
    prices = [price + cap for price, cap in zip(v[:m], whole[n, :m].tolist(), strict=True)]
    return column, exact.words(u, exponent)[0], exact.words(prices, exponent)


def _write(problem: Rejecting, k: int, found: Found, flat: dict[str, Array], finer: dict[str, list[Floats]]) -> None:
    """Put one problem's arrays in their place, in the sense of the problem."""
    sign = -1.0 if problem.maximize else 1.0
    rows, cols, turned = _slices(problem, k)
    column, lines, words = found
    if turned:
        own = np.full(rows.stop - rows.start, UNASSIGNED)
        paired = np.flatnonzero(column != UNASSIGNED)
        own[column[paired]] = paired
        flat["assignment"][rows], flat["u"][rows], flat["v"][cols] = own, sign * words[0], sign * lines
    else:
        flat["assignment"][rows], flat["u"][rows], flat["v"][cols] = column, sign * lines, sign * words[0]
    name, place = ("u_finer", rows) if turned else ("v_finer", cols)
    while len(finer[name]) < len(words) - 1:
        finer[name].append(np.zeros(len(flat[name[0]])))
    for word, values in zip(finer[name], words[1:], strict=False):
        word[place] = sign * values
