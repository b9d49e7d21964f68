"""An answer in flat arrays, after checking that its arrays have the form that the problem asks for."""

import numpy as np

from kernels.certificates.assignment_groups import WORST
from kernels.certificates.rejecting.proof import Answer
from kernels.problems import Array, Rejecting
from kernels.solution import Solution, Termination

WORDS = {code: word for code, word in enumerate(Termination) if word in WORST}
"""By their codes."""


def endings(problem: Rejecting, solution: Solution) -> list[Termination] | str:
    """How each problem ended, or what is wrong with these words."""
    count, codes = len(problem.sizes), solution.evidence.get("ended")
    if codes is None:
        known = solution.termination in WORST
        return [solution.termination] * count if known else f"an assignment does not end with {solution.termination}"
    if codes.shape != (count,) or codes.dtype.kind not in "iu":
        return "the problems' endings have the wrong shape or dtype"
    given = codes.tolist()
    if given and given.count(given[0]) == count:
        return [WORDS[given[0]]] * count if given[0] in WORDS else "a problem's ending is none"
    if not WORDS.keys() >= set(given):
        return "a problem's ending is none"
    return [WORDS[code] for code in given]


def answer_of(problem: Rejecting, solution: Solution) -> Answer | str:
    """The flat arrays, or what is wrong with their form."""
    kind = problem.row_prices.dtype.kind
    flat: list[Array] = []
    for name, side, wanted in (("assignment", 0, "i"), ("u", 0, kind), ("v", 1, kind)):
        array = solution.arrays.get(name)
        if array is None or array.dtype.kind != wanted or array.shape != _shape(problem, side):
            return f"{name} has the wrong shape or dtype"
        flat.append(array[problem.inside(side)] if problem.form == "batch" else array)
    finer = [_words(problem, solution.arrays.get(name), side) for side, name in enumerate(("u_finer", "v_finer"))]
    wide = np.int64 if kind == "i" else np.float64
    return Answer(flat[0], flat[1].astype(wide, copy=False), flat[2].astype(wide, copy=False), finer[0], finer[1])


def _shape(problem: Rejecting, side: int) -> tuple[int, ...]:
    if problem.form == "batch":
        return len(problem.sizes), problem.extents[side]
    return (int(problem.starts[-1, side + 1]),)


def _words(problem: Rejecting, finer: Array | None, side: int) -> Array | None:
    """Further words of duals, (n_words, lines); None where they have not that form."""
    if finer is None or finer.dtype != np.float64 or finer.shape[1:] != _shape(problem, side):
        return None
    return finer[:, problem.inside(side)] if problem.form == "batch" else finer
