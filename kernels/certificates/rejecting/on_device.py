"""Which assignments a GPU certifies: ordinary dense ones. The CPU certifies points, and lines that may be left."""

from importlib import import_module
from typing import Any

from kernels.problems import Array, Rejecting
from kernels.problems.points import PointAssignment
from kernels.problems.ranked import Ranked
from kernels.problems.selected import Selected
from kernels.solution import Certificate, Solution

DENSE = "kernels.certificates.gpu.gpu_assignment"
import_module(DENSE)  # a machine without CUDA hears of it when this is imported


def inputs(problem: Any) -> list[Array] | None:
    """The arrays that a certificate on the device reads; None where the CPU's is to be used."""
    return (
        None
        if isinstance(problem, Rejecting | Selected | Ranked | PointAssignment)
        else import_module(DENSE).inputs(problem)
    )


def seconds(problem: Any) -> float:
    """About what it takes."""
    return float(import_module(DENSE).seconds(problem))


def suits(problem: Any) -> bool:
    """Whether there is one for the problem."""
    return not isinstance(problem, Rejecting | Selected | Ranked | PointAssignment) and bool(
        import_module(DENSE).suits(problem)
    )


def arrays(problem: Any) -> list[Array]:
    """The arrays whose checksums `certify` asks for."""
    return list(import_module(DENSE).arrays(problem))


def certify(problem: Any, solution: Solution, checksums: Any) -> Certificate | None:
    """See `kernels.card.Solver.device_certificate`."""
    found: Certificate | None = import_module(DENSE).certify(problem, solution, checksums)
    return found
