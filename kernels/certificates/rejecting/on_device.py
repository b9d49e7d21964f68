"""Which assignments a GPU certifies: ordinary dense ones. The CPU certifies points, and lines that may be left."""

from typing import Any

from kernels.certificates.gpu import gpu_assignment as dense
from kernels.problems import Array, Rejecting
from kernels.problems.points import PointAssignment
from kernels.problems.ranked import Ranked
from kernels.problems.selected import Selected
from kernels.solution import Certificate, Solution

ON_THE_CPU = Rejecting | Selected | Ranked | PointAssignment


def inputs(problem: Any) -> list[Array] | None:
    """The arrays that a certificate on the device reads; None where the CPU's is to be used."""
    return None if isinstance(problem, ON_THE_CPU) else dense.inputs(problem)


def seconds(problem: Any) -> float:
    """About what it takes."""
    return dense.seconds(problem)


def suits(problem: Any) -> bool:
    """Whether there is one for the problem."""
    return not isinstance(problem, ON_THE_CPU) and dense.suits(problem)


def arrays(problem: Any) -> list[Array]:
    """The arrays whose checksums `certify` asks for."""
    return dense.arrays(problem)


def certify(problem: Any, solution: Solution, checksums: Any) -> Certificate | None:
    """See `kernels.card.Solver.device_certificate`."""
    return dense.certify(problem, solution, checksums)
