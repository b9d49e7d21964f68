"""Which assignments a GPU certifies: ordinary ones, dense or between points. Lines that may be left are the CPU's."""

from typing import Any

from kernels.certificates.gpu import gpu_assignment as dense
from kernels.certificates.metrics import gpu_points as points
from kernels.problems import Array, Rejecting
from kernels.problems.points import PointAssignment
from kernels.problems.ranked import Ranked
from kernels.problems.selected import Selected
from kernels.solution import Certificate, Solution

ON_THE_CPU = Rejecting | Selected | Ranked


def inputs(problem: Any) -> list[Array] | None:
    """The arrays that a certificate on the device reads; None where the CPU's is to be used."""
    if isinstance(problem, ON_THE_CPU):
        return None
    return points.inputs(problem) if isinstance(problem, PointAssignment) else dense.inputs(problem)


def seconds(problem: Any) -> float:
    """About what it takes."""
    return points.seconds(problem) if isinstance(problem, PointAssignment) else dense.seconds(problem)


def suits(problem: Any) -> bool:
    """Whether there is one for the problem."""
    if isinstance(problem, ON_THE_CPU):
        return False
    return isinstance(problem, PointAssignment) or dense.suits(problem)


def arrays(problem: Any) -> list[Array]:
    """The arrays whose checksums `certify` asks for."""
    return points.arrays(problem) if isinstance(problem, PointAssignment) else dense.arrays(problem)


def certify(problem: Any, solution: Solution, checksums: Any) -> Certificate | None:
    """See `kernels.card.Solver.device_certificate`. Points are read from the host, so there is nothing to compare."""
    if isinstance(problem, PointAssignment):
        return points.certify(problem, solution)
    return dense.certify(problem, solution, checksums)
