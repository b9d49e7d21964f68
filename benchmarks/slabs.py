"""From an upload's slab to the device: python -m benchmarks.slabs [--mib 8] [--repeats 40]; needs a GPU.

An array of the arena, mapped anew each time as a job maps it, until all of it is on the device. In turn: copied into
staging by threads, piece by piece, each sent when it is there; and sent from its slab, page-locked the first time.
"""

import argparse
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from benchmarks.rows import Rows, on_gpu
from kernels.gpu_locked import uploaded
from workers.runtime.gpu_memory import Staging
from workers.store.arena import MARK, Arena
from workers.store.layouts import npy
from workers.store.slab import STEP

MEMORY = "/dev/shm"


def laid(arena: Arena, costs: Any, threads: ThreadPoolExecutor) -> Path:
    """The upload of a matrix."""
    file = io.BytesIO()
    np.save(file, costs)
    slab = arena.take(len(file.getbuffer()), threads)
    assert slab is not None
    for at in range(0, slab.size, STEP):
        slab.ready(at)
    slab.view[:] = file.getbuffer()
    slab.written()
    arena.lay("blob", slab.path)
    slab.close()
    return arena.blobs / "blob"


def there(staging: Staging, mapped: Any) -> Any:
    """The array on the device."""
    found: Any = staging.stage({"cost": mapped}, ("cost",))["cost"]
    return uploaded(found)


def ways(path: Path) -> dict[str, Callable[[], Any]]:
    """How a job may send it."""
    staged, direct = Staging(1 << 30), Staging(1 << 30)

    def copied() -> Any:
        mapped: Any = npy(path, 1 << 30)
        del mapped.inode  # so that it is not known where it lies
        return there(staged, mapped)

    def sent() -> Any:
        return there(direct, npy(path, 1 << 30))

    return {"staged, each piece sent": copied, "sent from the slab": sent}


def main() -> None:
    """Measure both, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=40)
    asked = parser.parse_args()
    rows, costs = Rows(on_gpu("slabs")), np.random.default_rng(0).random((asked.mib << 20) // 8)
    memory = MEMORY if os.path.isdir(MEMORY) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, ThreadPoolExecutor(8) as threads:
        path = laid(Arena(Path(folder) / f"{MARK}bench", 1 << 31), costs, threads)
        taken: dict[str, list[float]] = {}
        known = ways(path)
        for _ in range(asked.repeats + 1):
            for what, way in known.items():
                start = time.perf_counter()
                found = way()
                cupy.cuda.Device().synchronize()
                taken.setdefault(what, []).append(1e3 * (time.perf_counter() - start))
                assert bool((found == cupy.asarray(costs)).all())
        for what, times in taken.items():
            first, *later = times
            rows.add(what=what, mib=asked.mib, ms=statistics.median(later), least_ms=min(later), first_ms=first)


if __name__ == "__main__":
    main()
