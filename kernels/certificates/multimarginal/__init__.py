"""Proof for transport among three measures: what a plan with the right marginals costs, and what none goes below.

`entropic.py` has the proof where there is an entropic term, `exact.py` that where there is none. `slow.py` checks both
again in many digits. None shares code with a solver.
"""

from collections.abc import Callable

from kernels.certificates.multimarginal import entropic, exact
from kernels.problems.multimarginal import Multimarginal
from kernels.solution import Certificate, Solution, unheard


def certify(problem: Multimarginal, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Recompute objective and bound."""
    prove = entropic.certify if problem.reg else exact.certify
    return prove(problem, solution, progress)
