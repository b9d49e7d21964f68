"""How a sweep is cut: which blocks, threads and slots of shared memory a matrix or two point clouds get."""

import math
from dataclasses import dataclass

STORAGE = {"float32": (0, 4), "float16": (1, 2), "bfloat16": (2, 2)}  # ELEM and bytes of an entry
SHARED_BYTES = 232448  # that one block may have on sm_90
COLUMN_REGISTERS = {4: 20, 2: 24}  # columns of a thread, by bytes of an entry: values and sums stay in registers
GROUP_BYTES = {4: 32768, 2: 45056}  # of a row group, by bytes of an entry: five or six groups fit shared memory
MEMORY = 5  # differences that Anderson keeps, as in marginals.cuh


@dataclass(frozen=True)
class Geometry:
    """How a matrix is cut: `cluster` blocks of `threads` + 32 threads share a row, `rows` rows make a group."""

    element: int
    threads: int
    pieces: int
    rows: int
    cluster: int
    width: int
    kept: int
    ring: int
    count: int
    blocks: int
    lanes: int
    shared: int

    @property
    def ld(self) -> int:
        """Columns with padding."""
        return self.width * self.cluster

    @property
    def padded_rows(self) -> int:
        """Rows that the groups of all teams cover."""
        return self.blocks // self.cluster * self.count * self.rows

    @property
    def defines(self) -> tuple[str, ...]:
        """Compile-time constants of this geometry."""
        names = {"ELEM": self.element, "Q": self.pieces, "R": self.rows, "CS": self.cluster, "THREADS": self.threads}
        return tuple(f"-D{name}={value}" for name, value in names.items())


def geometry(
    m: int, n: int, storage: str, processors: int, *, stores: bool, cluster: int = 0, rows: int = 0
) -> Geometry:
    """Cut an m x n matrix for `processors` multiprocessors; `stores` as in log.cu (then nothing is kept)."""
    element, size = STORAGE[storage]
    vector = 16 // size
    threads, limit = 512, COLUMN_REGISTERS[size] // vector
    cut = cluster or 1
    while not cluster and -(-n // (cut * vector * threads)) > limit:
        cut *= 2
    width = -(-n // (cut * vector)) * vector
    if width <= threads // 2 * vector:
        threads //= 2
    rows = rows or max(1, min(8, GROUP_BYTES[size] // (width * size)))
    blocks = min(processors // cut, -(-m // rows)) * cut
    count = math.ceil(math.ceil(m / rows) / (blocks // cut))
    lag = 3 if cut > 1 else 2
    fixed = 64 * 8 + 32 + 16 * rows * (threads // 32 + 1 + cut) + count * rows * 8
    static = threads * 4 + threads // 32 * (8 + 2 + 2 * MEMORY) * 4 + 1536
    group = rows * width * size
    slots = min(64, (SHARED_BYTES - static - fixed) // group)
    if slots < lag + 2:
        raise ValueError(f"no geometry for {m} x {n}: {slots} row groups fit, {lag + 2} are needed")
    kept = 0
    if count <= slots - 1 and not stores:
        kept = count
    elif not stores and m * n * size < 1 << 27:
        kept = max(0, slots - lag - 3)
    ring = 1 if kept == count else min(slots - kept, max(lag + 2, count))
    slice_ = -(-n // blocks)
    lanes = min(threads, max(8, 1 << (slice_ - 1).bit_length()))
    shared = (kept + ring) * group + fixed
    pieces = -(-width // (threads * vector))
    return Geometry(element, threads, pieces, rows, cut, width, kept, ring, count, blocks, lanes, shared)


def points_geometry(m: int, n: int, metric: str, processors: int, rows: int = 2) -> Geometry:
    """Cut m x n point pairs: 12 columns of a thread with their coordinates, terms of LAG + 1 groups in shared."""
    threads, vector, pieces = 480, 4, 3
    cut = 1
    while -(-n // (cut * vector * threads)) > pieces:
        cut *= 2
    if cut > 8:
        raise ValueError(f"no geometry for {m} x {n} points: more than 8 blocks would share a row")
    if cut > 2:
        processors = processors // 16 * 16
    width = -(-n // (cut * vector)) * vector
    lag = 3 if cut > 1 else 2
    blocks = min(processors // cut, -(-m // rows)) * cut
    count = math.ceil(math.ceil(m / rows) / (blocks // cut))
    fixed = 64 * 8 + 32 + 16 * rows * (threads // 32 + 1 + cut) + count * rows * 24
    slice_ = -(-n // blocks)
    lanes = min(256, max(8, 1 << (slice_ - 1).bit_length()))
    shared = (lag + 1) * rows * width * 4 + fixed
    return Geometry(
        0, threads, -(-width // (threads * vector)), rows, cut, width, lag + 1, 0, count, blocks, lanes, shared
    )
