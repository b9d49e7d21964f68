"""What fits on the current device, said before anything is copied there."""

import cupy

from kernels.problems import InvalidProblem


def bytes_free() -> int:
    """Free device memory, with what CuPy's pool holds and does not use."""
    free: int = cupy.cuda.Device().mem_info[0] + cupy.get_default_memory_pool().free_bytes()
    return free


def require(needed: int) -> None:
    """Refuse a problem that takes `needed` bytes where fewer are free. Raises: InvalidProblem."""
    if needed > (free := bytes_free()):
        raise InvalidProblem("cost", f"needs {needed} bytes of device memory; {free} bytes are free")
