"""What is to be certified of an assignment: the problems of a batch by shape, without padding, with their answers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernels.problems import Array, Assignment, Csr
from kernels.solution import Solution, Termination

WORST = (
    Termination.OPTIMAL,
    Termination.CONVERGED,
    Termination.ITERATION_LIMIT,
    Termination.TIME_LIMIT,
    Termination.STOPPED,
    Termination.INFEASIBLE,
)
"""From the best word to the worst; a batch has its worst problem's. An assignment ends with no other."""


@dataclass(frozen=True)
class Group:
    """Problems of one shape: `members` are their places in the batch; arrays without padding, a problem a row."""

    members: Array
    weights: Array
    assignment: Array
    u: Array
    v: Array
    ended: list[Termination]
    finer: Array | None
    """Further words of the longer side's duals, (n_words, n_problems, longer side)."""


def misshapen(problem: Assignment, solution: Solution) -> str:
    """What is wrong with the form of the arrays, or nothing."""
    weights = problem.weights
    assert not isinstance(weights, Csr)
    if wrong := _no_ending(weights, solution):
        return wrong
    if weights.ndim == 2 and solution.termination is Termination.INFEASIBLE:
        return "" if {"hall_rows", "hall_cols"} <= solution.arrays.keys() else "the Hall violator is missing"
    kind = "i" if weights.dtype.kind == "i" else "f"
    rows, cols = weights.shape[:-1], (*weights.shape[:-2], weights.shape[-1])
    for name, shape, wanted in (("assignment", rows, "i"), ("u", rows, kind), ("v", cols, kind)):
        array = solution.arrays.get(name)
        if array is None or array.shape != shape or array.dtype.kind != wanted:
            return f"{name} has the wrong shape or dtype"
    return ""


def _no_ending(weights: Array, solution: Solution) -> str:
    """What is wrong with the words that the solver ended with, or nothing."""
    codes = solution.evidence.get("ended")
    if codes is None:
        return "" if solution.termination in WORST else f"an assignment does not end with {solution.termination.value}"
    shape, words = weights.shape[:1] if weights.ndim == 3 else (1,), tuple(Termination)
    if codes.shape != shape or codes.dtype.kind not in "iu":
        return "the problems' endings have the wrong shape or dtype"
    known = all(0 <= code < len(words) and words[code] in WORST for code in codes.tolist())
    return "" if known else "a problem's ending is none"


def groups(problem: Assignment, solution: Solution) -> Iterator[Group]:
    """The problems by shape, those called infeasible left out."""
    weights = problem.weights
    assert not isinstance(weights, Csr)
    if weights.ndim == 2 and solution.termination is Termination.INFEASIBLE:
        return
    answer, u, v = (solution.arrays[name] for name in ("assignment", "u", "v"))
    if weights.ndim == 2:
        weights, answer, u, v = weights[None], answer[None], u[None], v[None]
    codes = solution.evidence.get("ended")
    words = tuple(Termination)
    ended = [solution.termination] * len(weights) if codes is None else [words[code] for code in codes.tolist()]
    open_ended = np.array([word is not Termination.INFEASIBLE for word in ended])
    shape = weights.shape[1:]
    sizes = np.broadcast_to(np.array(shape), (len(weights), 2)) if problem.sizes is None else problem.sizes
    for rows, cols in np.unique(sizes[open_ended], axis=0).tolist():
        members = np.flatnonzero(open_ended & (sizes == (rows, cols)).all(axis=1))
        every = slice(None) if len(members) == len(weights) else members
        finer = solution.arrays.get("u_finer" if rows > cols else "v_finer")
        if finer is not None:
            finer = _words(finer, problem, u if rows > cols else v)
        yield Group(
            members,
            weights[every, :rows, :cols],
            answer[every, :rows],
            u[every, :rows],
            v[every, :cols],
            [ended[k] for k in members.tolist()],
            None if finer is None else finer[:, every, : max(rows, cols)],
        )


def _words(finer: Array, problem: Assignment, side: Array) -> Array | None:
    """Further words of duals as (n_words, n_problems, extent); None where they have not that form."""
    finer = finer[:, None] if problem.weights.ndim == 2 and finer.ndim == 2 else finer  # type: ignore[union-attr]
    return finer if finer.ndim == 3 and finer.shape[1:] == side.shape and finer.dtype == np.float64 else None
