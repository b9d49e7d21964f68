"""The certificate of assignments between points on a device: its sweep, and the host's arithmetic."""

from kernels.certificates.metrics.assignment import certify_assignment
from kernels.certificates.metrics.gpu_sweep import near_least
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
    found = certify_assignment(problem, solution, sweep=near_least)
    found.facts["certified_on"] = "gpu"
    return found


def _coordinates(problem: PointAssignment) -> int:
    m, n = problem.shape
    return m * n * int(problem.points.x.shape[1])
