"""How much of the current device's memory this process may still take."""

import cupy


def bytes_free() -> int:
    """What is free there or unused in CuPy's pool, as far as the pool's limit allows."""
    pool = cupy.get_default_memory_pool()
    free = int(cupy.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
    limit = int(pool.get_limit())
    return max(0, min(free, limit - int(pool.used_bytes()))) if limit else free


def bytes_unused() -> int:
    """What is unused in CuPy's pool, for which the driver is not asked: it takes as long over it as over a kernel."""
    return int(cupy.get_default_memory_pool().free_bytes())
