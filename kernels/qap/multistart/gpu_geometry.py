"""How the searches of multistart.cu lie on a device, and the form of its source that they ask for. Needs no CUDA."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.qap.form import SearchForm

C_TYPES = {"int32": "int", "int64": "long long", "float64": "double"}
TILES = ((4, 5), (2, 5), (4, 3), (4, 10), (8, 16), (16, 32), (32, 64))
"""Exchanges per thread as rows x distances; each gives another number of threads per block.

(8, 16) reaches n = 512; the last two lie in local memory and reach n = 1024 and 2048."""
MOST_THREADS = 1024
BOUNDS = {
    (4, 5): (512, 640, 768, 896), (2, 5): (640, 768), (4, 3): (640, 768), (4, 10): (384, 512, 640, 768, 896),
    (8, 16): (256, 384, 512),
}  # fmt: skip
"""Threads that the compiler finds registers for, by tile, and MOST_THREADS for each. The code of a search depends on no
other number of threads, and up to the least of a tile it takes nearly all the registers that it wants."""
BOUNDS_OF_WIDE, BOUNDS_OF_PAIRS = {(8, 16): (512,)}, {(4, 5): (512,), (4, 10): (512,)}
"""The same for entries of 8 bytes, where others are worth compiling, and for recency of pairs."""


@dataclass(frozen=True)
class Layout:
    """How one search lies on the device. `streamed`: 0 all in shared memory, 1 without `until`, 2 without `partial`."""

    tile: tuple[int, int]
    threads: int
    blocks: int
    shared_bytes: int
    streamed: int
    stream_bytes: int
    matrices: bool


def lay(form: SearchForm, tile: tuple[int, int], device: Mapping[str, int], matrices: bool = False) -> Layout | None:
    """The layout of `form` with that tile on a device with these attributes, None where it does not fit.

    `matrices` puts flow and distance into shared memory as well, as the faster 2-opt of Novoa and Qasem (2019) does.
    """
    n, size = form.n, form.dtype.itemsize
    threads = -(-(-(-n // tile[0]) * -(-(n // 2) // tile[1])) // 32) * 32
    if threads > MOST_THREADS or n < 2 * tile[1]:
        return None
    lanes, twice = 16 // size, 1 if form.symmetric else 2
    stride = -(-n // lanes) * lanes
    stride += lanes if stride % (128 // size) == 0 else 0
    partial, until = n * stride * size, -(-n * n // 4) * 16
    reach = n + n // 2 + tile[0] + 2 * tile[1] + 2
    rest = twice * (stride + 2 * reach) * size + 32 * 16 + 2 * n * size + 4 * n * 4
    rest += 16 + 2 * twice * n * n * size if matrices else 0
    for streamed, off in ((0, 0), (1, until), (2, until + partial)):
        shared = partial + until + rest - off
        if shared <= device["MaxSharedMemoryPerBlockOptin"] - 64:
            registers = 65536 // (threads * (80 if size == 4 else 128))
            blocks = min(device["MaxSharedMemoryPerMultiprocessor"] // (shared + 1024), registers, 2048 // threads, 16)
            return Layout(tile, threads, max(1, blocks), shared, streamed, -(-off // 16) * 16, matrices)
    return None


def defines(form: SearchForm, layout: Layout, pairs: bool) -> tuple[str, ...]:
    """What multistart.cu is compiled with; `pairs`: recency by exchanged pairs.

    Registers are found for all threads that are to be on a multiprocessor at once, rounded up to one of a few numbers,
    so that a few forms serve all n.
    """
    bounds = BOUNDS_OF_PAIRS if pairs else BOUNDS | (BOUNDS_OF_WIDE if form.dtype.itemsize == 8 else {})
    needed = layout.threads * layout.blocks
    names = {
        "VALUE": C_TYPES[str(form.dtype)], "SYMMETRIC": int(form.symmetric), "MATRICES": int(layout.matrices),
        "TU": layout.tile[0], "TD": layout.tile[1],
        "THREADS": next((bound for bound in bounds.get(layout.tile, ()) if bound >= needed), MOST_THREADS),
        "RECENCY_PAIRS": int(pairs),
    }  # fmt: skip
    return tuple(f"-D{name}={value}" for name, value in names.items())
