"""What is solved: three problems as frozen dataclasses of checked arrays.

A problem is built from named input arrays by a solver's card and is valid by construction: whoever holds one may index
it without looking. Nothing here solves anything.
"""

from kernels.problems.arrays import FORBIDDEN, Array, Csr, Inputs, InvalidProblem
from kernels.problems.assignment import UNASSIGNED, Assignment
from kernels.problems.quadratic import QuadraticAssignment
from kernels.problems.rejecting import Rejecting
from kernels.problems.transport import UnbalancedTransport

__all__ = [
    "FORBIDDEN",
    "UNASSIGNED",
    "Array",
    "Assignment",
    "Csr",
    "Inputs",
    "InvalidProblem",
    "QuadraticAssignment",
    "Rejecting",
    "UnbalancedTransport",
]
