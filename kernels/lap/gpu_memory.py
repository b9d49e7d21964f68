"""What fits on the current device, said before anything is copied there."""

from kernels.gpu_room import bytes_free, bytes_unused
from kernels.problems import InvalidProblem


def require(needed: int) -> None:
    """Refuse a problem that takes `needed` bytes where fewer are free. Raises: InvalidProblem."""
    if needed > bytes_unused() and needed > (free := bytes_free()):
        raise InvalidProblem("cost", f"needs {needed} bytes of device memory; {free} bytes are free")
