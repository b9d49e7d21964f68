"""How a sweep is cut: which blocks, threads and slots of shared memory a matrix or two point clouds get."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from kernels.uot.iteration.layout import ALL_SUMS, LINES

STORAGE = {"float32": (0, 4), "float16": (1, 2), "bfloat16": (2, 2)}  # ELEM and bytes of an entry
SHARED_BYTES = 232448  # that one block may have on sm_90
STATIC_BYTES = 2560  # of it, what the kernel declares by itself, rounded up
SENDERS = 64  # threads that pass row sums on
GROUP_BYTES = 29000  # of a row group, at most
FLIGHT_BYTES = 98304  # of copies under way at a time: twice what the memory's latency asks for
MOST_SLOTS = 64
DEPTHS = (4, 8)  # of a ring of sums
SPARE = (
    1.02  # times as long as a cut that looks for no end where there is none, or whose ring is no longer than it need be
)
OWN_HISTORY = 320  # columns of a block up to which the acceleration's vectors stay in shared memory
ALIKE = 4 / 3
"""For nearly every size, what is compiled ahead has a cut within so many times the estimate of the best."""
NAMES = ("ELEM", "Q", "LANES", "RR", "CS", "THREADS", "SENDERS", "RECEIVERS", "KEEPS", "DEPTH", "LAG", "FILLS")
Forms = frozenset[tuple[str, ...]]
NONE: Forms = frozenset()


@dataclass(frozen=True)
class Geometry:
    """How a matrix is cut: `cluster` blocks share a row; `threads` compute, `lanes` of them along a row."""

    element: int
    threads: int
    lanes: int
    pieces: int
    rows: int  # of a thread in a group
    cluster: int
    lag: int  # groups between a sum and its weight's return
    width: int
    keeps: bool  # all groups stay in shared memory
    slots: int
    flight: int
    count: int
    teams: int
    own_history: bool
    shared: int
    checks: bool  # that no lane is outside of the row
    depth: int  # groups whose sums may be on their way between blocks

    @property
    def blocks(self) -> int:
        """Blocks of the grid, all on the device at once."""
        return self.teams * self.cluster

    @property
    def ld(self) -> int:
        """Columns with padding."""
        return self.width * self.cluster

    @property
    def group(self) -> int:
        """Rows of a group."""
        return self.threads // self.lanes * self.rows

    @property
    def receivers(self) -> int:
        """Threads that weigh rows: most of a group's rows at once, and as many warps as leave 96 registers a thread."""
        return 32 if self.group <= 32 or not self.keeps else min(160, -(-self.group // 32) * 32)

    @property
    def block_threads(self) -> int:
        """Threads of a block: those that compute, those that weigh, and the warp that feeds them."""
        return self.threads + SENDERS + self.receivers + 32

    @property
    def defines(self) -> tuple[str, ...]:
        """Compile-time constants of this geometry."""
        shape = self.element, self.pieces, self.lanes, self.rows, self.cluster, self.threads
        passing = SENDERS, self.receivers
        return _defines(*shape, *passing, int(self.keeps), self.depth, self.lag, int(not self.checks))


@functools.cache
def _defines(*values: int) -> tuple[str, ...]:
    """Kept: a choice among what is compiled asks hundreds of cuts, and few differ in these."""
    return tuple(f"-D{name}={value}" for name, value in zip(NAMES, values, strict=True))


def _size(element: int) -> int:
    return 4 if element == 0 else 2


def fixed_bytes(shape: tuple[int, int, int], cluster: int, width: int, count: int, depth: int, points: bool) -> int:
    """Bytes of shared memory besides the slots, as lay_out in block.cuh takes them; `shape` is threads, lanes, rows."""
    threads, lanes, rows = shape
    group = threads // lanes * rows
    padded = -(-group // 4) * 4
    folds = threads // 32 if lanes < 32 else threads // lanes
    floats = padded * (4 * max(1, lanes // 32) + 4 + depth * cluster) + (folds + 1) * width
    floats += 2 * cluster * (threads // 32 * 4 + ALL_SUMS - 4) + 8 + (1 if points else 2) * count * group
    return 8 * (4 + 4 + depth + 4) + 4 * floats + 128  # slots begin at a multiple of 128


def _shapes(chunks: int, vector: int) -> Iterator[tuple[int, int, int]]:
    """Pieces, lanes and threads that can hold a row of `chunks` pieces of 16 bytes.

    Of a thread's pieces only the last may lie outside of the row: sweep.cuh looks at no other. With lanes that are a
    power of two, more than a row needs, a form serves more rows.
    """
    for pieces in range(1, 24 // vector + 1):
        least = -(-chunks // pieces)
        power = 1 << (least - 1).bit_length()
        for lanes in dict.fromkeys((power if least <= 32 else -(-least // 32) * 32, power)):
            if (pieces - 1) * lanes < chunks:
                for most in (512, 256, 128):
                    if lanes <= most:
                        yield pieces, lanes, most // lanes * lanes


@dataclass(frozen=True)
class MatrixSize:
    """What is to be cut: rows, columns, storage, for so many teams of so many blocks."""

    m: int
    n: int
    storage: str
    teams: int
    cluster: int
    stores: bool
    points: bool
    group_bytes: int = GROUP_BYTES

    @property
    def lags(self) -> tuple[int, ...]:
        """Groups between a sum and its weight's return: between points steps are long, and their terms take room."""
        return (1, 2) if self.points else (3,) if self.cluster > 1 else (2,)

    def cuts(self) -> Iterator[tuple[float, Geometry]]:
        """Every way that fits, with about the time that a sweep takes (ns)."""
        vector = 16 // STORAGE[self.storage][1]
        width = -(-self.n // (self.cluster * vector)) * vector
        for pieces, lanes, threads in _shapes(width // vector, vector):
            for rows in (1, 2, 3, 4, 5, 6, 7, 8):
                if 1 << (rows - 1).bit_length() <= min(lanes, 32):
                    for lag, depth in product(self.lags, DEPTHS):
                        cut = self._cut(width, pieces, (threads, lanes, rows), lag, depth)
                        if cut:
                            time = self._time(cut) * (SPARE if depth > DEPTHS[0] and cut.count <= DEPTHS[0] else 1.0)
                            yield time, cut
                            if not cut.checks:
                                yield SPARE * time, replace(cut, checks=True)

    def _cut(self, width: int, pieces: int, shape: tuple[int, int, int], lag: int, depth: int) -> Geometry | None:
        """`depth`: the least that has room for all groups of a team, or more, where a form may serve more sizes."""
        threads, lanes, rows = shape
        element, size = STORAGE[self.storage]
        group = threads // lanes * rows
        groups, group_bytes = -(-self.m // group), group * width * size
        teams = min(self.teams, groups)
        count = -(-groups // teams)
        if depth < min(count, DEPTHS[-1]):
            return None
        history = LINES * width * 4 if width <= OWN_HISTORY else 0
        fixed = fixed_bytes(shape, self.cluster, width, count, depth, self.points) + history
        slots = (SHARED_BYTES - STATIC_BYTES - fixed) // (group_bytes + 16)
        keeps = count <= slots and not self.stores
        if slots < lag + 1 and not keeps:
            return None
        if self.points or keeps:
            slots = lag + 1 if self.points else count
        elif group_bytes > self.group_bytes and rows > 1:
            return None
        slots = min(slots, max(lag + 1, count), MOST_SLOTS)
        flight = max(1, min(slots, FLIGHT_BYTES // group_bytes))
        return Geometry(
            element,
            threads,
            lanes,
            pieces,
            rows,
            self.cluster,
            lag,
            width,
            keeps,
            slots,
            flight,
            count,
            teams,
            history > 0,
            slots * (group_bytes + 16) + fixed,
            pieces * lanes * (16 // size) != width,
            depth,
        )

    def _time(self, cut: Geometry) -> float:
        if self.points:
            return _points_time(cut)
        size = STORAGE[self.storage][1]
        entry = (12.0 if size == 4 else 37.0) + (6 if self.stores else 0)  # instructions a piece
        instructions = cut.rows * (cut.pieces * entry + 6) + 60
        step = 1.3 * (instructions * max(cut.threads / 128, 3.0) / 1.7 + 300)  # with waits between the warps, each step
        if not cut.keeps:
            ahead = min(cut.flight, cut.slots - cut.lag - 0.5) * cut.group * cut.width * size
            step = max(step, cut.group * cut.width * size / 41 / min(1.0, ahead / 64_000))
        return (cut.count + cut.lag) * step


def _points_time(cut: Geometry) -> float:
    """About the time of a sweep between points (ns), fitted to those of 12 cuts at n = 10240 and 20480."""
    instructions = cut.rows * (cut.pieces * 58 + 8) + 80
    step = instructions * max(cut.threads / 128, 2.0) + (1480 if cut.lag == 1 else 700)
    registers = 20 * cut.pieces + 4 * cut.rows + 45  # of a thread; what does not fit goes through memory
    spilt = registers > 65536 // cut.block_threads
    return (cut.count + cut.lag) * step * (1.4 if spilt else 1.0) / 1.98


class NoGeometry(ValueError):
    """A row, or what must be remembered of the rows, is too long for shared memory."""


def geometry(m: int, n: int, storage: str, teams: int, cluster: int, *, stores: bool, ahead: Forms = NONE) -> Geometry:
    """Cut an m x n matrix for `teams` clusters of `cluster` blocks.

    Args:
        stores: as in log.cu (then nothing is kept).
        ahead: `defines` that are compiled already. The fastest of these is taken where one fits: NVRTC takes seconds.
    """
    return _best(MatrixSize(m, n, storage, teams, cluster, stores, False), ahead)


def points_geometry(m: int, n: int, teams: int, cluster: int, ahead: Forms = NONE) -> Geometry:
    """Cut m x n point pairs: the terms of LAG + 1 groups lie in shared memory. `ahead` as of `geometry`."""
    return _best(MatrixSize(m, n, "float32", teams, cluster, True, True, SHARED_BYTES), ahead)


def costs_geometry(m: int, n: int, teams: int, cluster: int, ahead: Forms, storing: Forms) -> Geometry:
    """Cut m x n costs for log.cu: kept in shared memory for all sweeps where that is the fastest, else read in each.

    Args:
        ahead, storing: `defines` that are compiled already, of cuts that keep the costs and of those that do not.
    """
    found = _of_costs(MatrixSize(m, n, "float32", teams, cluster, False, False), ahead, storing)
    if found is None:
        raise NoGeometry(f"{m} x {n}: row groups do not fit shared memory")
    return found


def _best(matrix: MatrixSize, ahead: Forms) -> Geometry:
    found = _least(matrix, ahead)
    if found is None:
        raise NoGeometry(f"{matrix.m} x {matrix.n}: row groups do not fit shared memory")
    return found


@functools.lru_cache(maxsize=512)
def _least(matrix: MatrixSize, ahead: Forms) -> Geometry | None:
    """The fastest cut. To go through hundreds of them takes milliseconds, so that of each size is kept."""
    found = _sorted(matrix)
    return next((cut for _, cut in found if cut.defines in ahead), found[0][1] if found else None)


@functools.lru_cache(maxsize=512)
def _of_costs(matrix: MatrixSize, ahead: Forms, storing: Forms) -> Geometry | None:
    kept, stored = _sorted(matrix), replace(matrix, stores=True)
    if not kept or not kept[0][1].keeps:
        return _least(stored, storing)
    own = [(time, cut) for time, cut in kept if cut.keeps and cut.defines in ahead]
    if own and own[0][0] <= ALIKE * kept[0][0]:
        return own[0][1]
    own += [(time, cut) for time, cut in _sorted(stored) if cut.defines in storing]
    return min(own, key=lambda one: one[0])[1] if own else kept[0][1]


def _sorted(matrix: MatrixSize) -> list[tuple[float, Geometry]]:
    return sorted(matrix.cuts(), key=lambda one: one[0])
