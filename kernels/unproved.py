"""Answers for which no certificate was asked: nothing is proved, and no word may say that something was."""

import math

from kernels.card import Problem, Solver
from kernels.solution import Certificate, Solution, Termination

PROVED = "nothing: no certificate was asked for, and the objective is the solver's own"
EARNED_BY_PROOF = (Termination.OPTIMAL, Termination.GAP_REACHED)


def unproved(card: Solver[Problem], problem: Problem, solution: Solution) -> Certificate:
    """A certificate that states nothing, with the objective as the solver has it.

    The words of `solution` that only a proof earns become "converged": its own, and those of a batch's problems.
    """
    solution.termination = _without_proof(solution.termination)
    listed = solution.facts.get("terminations")
    if listed is not None:
        solution.facts["terminations"] = [str(_without_proof(Termination(word))) for word in listed]
    objective = None if card.claimed is None else card.claimed(problem, solution)
    return Certificate(objective, None, None, None, math.nan, None, PROVED)


def _without_proof(word: Termination) -> Termination:
    return Termination.CONVERGED if word in EARNED_BY_PROOF else word
