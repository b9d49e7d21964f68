"""How much memory this machine has, for solvers: a worker asks for itself, before any of this package is loaded."""

import os
from pathlib import Path

MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")


def host_bytes() -> int:
    """Memory of this machine, or what its container may use."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(total, int(MEMORY_LIMIT.read_text()))
    except (OSError, ValueError):  # no cgroup v2, or "max"
        return total
