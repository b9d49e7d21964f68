"""Which transport problems the certificate on the device is for: one, or a batch with the same strengths."""

from typing import Any

from kernels.certificates.gpu import gpu_transport
from kernels.certificates.gpu.checksum import Pending
from kernels.certificates.several.places import shows
from kernels.certificates.several.stated import misstated
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, Solution


def inputs(problem: Any) -> list[Array] | None:
    """The arrays whose checksums `certify` asks for; None where the CPU's certificate is to be used."""
    return gpu_transport.inputs(problem) if isinstance(problem, UnbalancedTransport) else None


def suits(problem: Any) -> bool:
    """Whether the certificate on the device is for the problem, however small."""
    return isinstance(problem, UnbalancedTransport) and gpu_transport.suits(problem)


def arrays(problem: UnbalancedTransport) -> list[Array]:
    """The arrays whose checksums `certify` asks for."""
    return gpu_transport.arrays(problem)


def seconds(problem: UnbalancedTransport) -> float:
    """About what a certificate on the device takes at most."""
    return gpu_transport.seconds(problem)


def certify(problem: UnbalancedTransport, solution: Solution, checksums: Pending) -> Certificate | None:
    """As `gpu_transport.certify`; None as well where the answer says another reg, or where its rows go."""
    if misstated(problem, solution.facts) or shows(solution.arrays):
        return None
    return gpu_transport.certify(problem, solution, checksums)
