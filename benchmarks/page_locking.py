"""How fast page-locked memory is found: python -m benchmarks.page_locking [--gib 4]; needs a GPU.

CUDA's own call, CUDA's lock on pages that are there, and `kernels.locked`, each on memory that was new to this process.
What was new to the machine, too, is slower: run it on one that has just begun.
"""

import argparse
import mmap
import time
from collections.abc import Callable

import cupy
import numpy as np

from benchmarks.rows import Rows, on_gpu
from kernels import Locked, page_lock

GIB = 1 << 30


def rate(size: int, step: Callable[[], object]) -> float:
    """GiB a second."""
    start = time.perf_counter()
    step()
    return size / GIB / (time.perf_counter() - start)


def locked(size: int) -> tuple[float, float]:
    """Of memory that is new, and of memory whose pages were found before."""
    memory = Locked(size)
    first = rate(size, lambda: memory.ready(size))
    memory.let_go()
    return first, rate(size, lambda: memory.ready(size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=int, default=4)
    size = parser.parse_args().gib * GIB
    rows = Rows(on_gpu("page_locking"))
    cupy.cuda.Device().synchronize()
    for what, gib_per_s in zip(("Locked, fresh", "Locked, its pages are there"), locked(size), strict=True):
        rows.add(what=what, gib=size / GIB, gib_per_s=gib_per_s)
    rows.add(what="cudaHostAlloc", gib=size / GIB, gib_per_s=rate(size, lambda: cupy.cuda.PinnedMemory(size)))
    pages = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    pages[:: mmap.PAGESIZE] = 1
    let_go = []
    found = rate(size, lambda: let_go.append(page_lock(pages.ctypes.data, size)))
    rows.add(what="cudaHostRegister of pages that are there", gib=size / GIB, gib_per_s=found)
    rows.add(what="cudaHostUnregister", gib=size / GIB, gib_per_s=rate(size, let_go[0]))


if __name__ == "__main__":
    main()
