"""What the service's processes owe each other: to die together, and to share the machine."""

import ctypes
import os
import signal
import sys
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ROOT = Path(__file__).parents[2]
"""Where Allot's packages lie."""
_libc = ctypes.CDLL(None, use_errno=True)


def program(module: str, *arguments: str) -> list[str]:
    """The command of another of the service's processes, which loads the code that this one did.

    Python would look into the folder where the service was started first, and find somebody's own `app` there, or the
    sources that an installed package was made of.
    """
    aside = [] if os.path.samefile(os.curdir, ROOT) else ["-P"]  # also where that folder has been deleted since
    return [sys.executable, *aside, "-m", module, *arguments]


def die_with(parent: int, with_signal: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel to end this process when the thread that started it ends; end now if that has happened."""
    _libc.prctl(PR_SET_PDEATHSIG, with_signal)
    if os.getppid() != parent:
        os._exit(1)


def cpus() -> int:
    """Cores that this process may use: its affinity, and a container's quota."""
    count = len(os.sched_getaffinity(0))
    try:
        quota, period = CPU_QUOTA.read_text().split()
        return max(1, min(count, int(quota) // int(period)))
    except (OSError, ValueError):  # no cgroup v2, or "max"
        return count


def host_bytes() -> int:
    """Memory of this machine, or what its container may use."""
    total = int(psutil.virtual_memory().total)
    try:
        return min(total, int(MEMORY_LIMIT.read_text()))
    except (OSError, ValueError):
        return total


def with_threads(environ: dict[str, str], threads: int) -> dict[str, str]:
    """`environ` in which every numerical library uses `threads`."""
    return environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
