"""Allot's numerical library: problems, solvers and certificates, usable without the service.

>>> from kernels import SOLVERS, Deadline
>>> card = SOLVERS["lap"]
>>> options = card.options()
>>> problem = card.build({"cost": np.array([[4, 1], [2, 0]])}, options)
>>> solution = card.solve(problem, options, Deadline())
>>> card.certify(problem, solution).gap_abs
0
"""

from kernels.ahead import Ahead
from kernels.arriving import TYPES, Glance, glance, together
from kernels.card import Bundle, Companion, Device, Estimate, InputSpec, Options, OptionsOf, Problem, Solver
from kernels.certificates.exact.statement import Claim, Statement
from kernels.certificates.gpu.checksum import InputChanged
from kernels.deadline import Deadline, Phase, Progress
from kernels.demonstration import Demonstration, WrongAnswer
from kernels.locked import ANSWERS, Locked, page_lock
from kernels.on_device import disagreement
from kernels.outline import stand_in
from kernels.pace import pace as pace_here
from kernels.pages import FOUND, READ, advise
from kernels.problems import FORBIDDEN, UNASSIGNED, Array, Csr, Inputs, InvalidProblem
from kernels.problems.arrays import Bytes, Floats, Indices, Integers
from kernels.problems.derived import deriving
from kernels.problems.made import TooMuch, asking, at_most
from kernels.problems.seen import Seen, note, seen_of
from kernels.proving import Asker, solve_and_prove
from kernels.rechecking import recheck
from kernels.registry import SOLVERS
from kernels.shelf import keep_cubins
from kernels.solution import Certificate, Number, Solution, Termination
from kernels.warming import solve_each_form

__all__ = [
    "ANSWERS",
    "FORBIDDEN",
    "FOUND",
    "READ",
    "SOLVERS",
    "TYPES",
    "UNASSIGNED",
    "Ahead",
    "Array",
    "Asker",
    "Bundle",
    "Bytes",
    "Certificate",
    "Claim",
    "Companion",
    "Csr",
    "Deadline",
    "Demonstration",
    "Device",
    "Estimate",
    "Floats",
    "Glance",
    "Indices",
    "InputChanged",
    "InputSpec",
    "Inputs",
    "Integers",
    "InvalidProblem",
    "Locked",
    "Number",
    "Options",
    "OptionsOf",
    "Phase",
    "Problem",
    "Progress",
    "Seen",
    "Solution",
    "Solver",
    "Statement",
    "Termination",
    "TooMuch",
    "WrongAnswer",
    "advise",
    "asking",
    "at_most",
    "deriving",
    "disagreement",
    "glance",
    "keep_cubins",
    "note",
    "pace_here",
    "page_lock",
    "recheck",
    "seen_of",
    "solve_and_prove",
    "solve_each_form",
    "stand_in",
    "together",
]
