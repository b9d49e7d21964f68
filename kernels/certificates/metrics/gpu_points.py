"""The certificate of assignments between points on a device: the same sweep and the same words, with CuPy's arrays.

Points are sent from the host once more, so nothing that a solver could have written is read. CuPy's operations round
each result as IEEE 754 says. A cuBLAS that emulates products of float64 has another error than `coarsely.py` proves:
whoever starts a process that certifies here leaves that off, as it is unless the environment asks for it.
"""

import cupy

from kernels.certificates.metrics.assignment import certify_assignment
from kernels.problems import Array
from kernels.problems.points import PointAssignment
from kernels.solution import Certificate, Solution

FEWEST = 1 << 22
"""Coordinates of all pairs below which the CPU has worked them out before a device was told what to do."""
NEXT_TO_NONE_S, COORDINATES_A_SECOND = 0.05, 1e11


def inputs(problem: PointAssignment) -> list[Array] | None:
    """`arrays`, where the problem is large enough; None where the CPU's certificate is to be used."""
    return arrays(problem) if _coordinates(problem) >= FEWEST else None


def seconds(problem: PointAssignment) -> float:
    """About what it takes at most, on any device that is in use."""
    return NEXT_TO_NONE_S + _coordinates(problem) / COORDINATES_A_SECOND


def arrays(problem: PointAssignment) -> list[Array]:
    """The points."""
    return [problem.points.x, problem.points.y]


def certify(problem: PointAssignment, solution: Solution) -> Certificate:
    """As `assignment.certify_assignment`."""
    found = certify_assignment(problem, solution, xp=cupy)
    found.facts["certified_on"] = "gpu"
    return found


def _coordinates(problem: PointAssignment) -> int:
    m, n = problem.shape
    return m * n * int(problem.points.x.shape[1])
