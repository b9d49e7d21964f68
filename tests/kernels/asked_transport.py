"""The forms of transport on GPUs whose blocks can share a row: the cut of a sweep, which follows from its size.

Few cuts serve many sizes. What a list of them must have, for each kind of transport, is a cut near the best for sizes
that are met often, and one that fits for any other size at all.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from kernels.problems.transport import METRICS
from kernels.shelf import Form
from kernels.uot.iteration import gpu_launch
from kernels.uot.iteration.gpu_geometry import (
    ALIKE,
    SHARED_BYTES,
    STORAGE,
    MatrixSize,
    NoGeometry,
    geometry,
    points_geometry,
)

WITH_CLUSTERS = ["90", "100"]
CLUSTER, TEAMS = 16, (8, 7, 6)
"""Blocks that share a row, and how many such clusters a GPU of 132 to 148 multiprocessors runs at once."""
SIDES = (1000, 1024, 2000, 2048, 4096, 5000, 8192, 10_000, 10_240, 16_384, 20_000)
"""Rows, and as many columns, of transport."""
SPREAD, DEVICES = (24_576, 30_000, 32_768, 40_000, 50_000, 60_000, 65_536), (2, 4, 8)
"""Of transport whose rows are divided among so many GPUs."""
BETWEEN = tuple(int(200 * 1.055**k) for k in range(91))
"""Columns of transport of any size, to 25,000; of rows there are half as many, as many, and twice as many."""
ANY_ROWS, ANY_TEAMS = tuple(4**k for k in range(11)), (1, 3, 8)
ANY_COLUMNS = (*(int(2 ** (k / 2)) for k in range(32)), *(int(40_000 * 1.07**k) for k in range(24)))
"""Rows and columns of transport of any shape, in all pairs, to the longest rows that shared memory holds; and teams of
any GPU, or of a part of one."""
TALL = tuple(int(70_000 * 1.25**k) for k in range(12))
"""Rows beyond which a team can remember none, of transport with few columns or many."""
SMALL = 1 << 12
"""Entries below which a problem is swept in float64."""
SELDOM, EXTREME = 1.6, 4.0
"""A cut that is listed for kinds and for shapes that are seldom met takes so many times the estimate of the best."""
KEEPS = "-DKEEPS=1"
Ways = dict[tuple[str, ...], float]
"""What may be compiled for a size: its time, in times of the best."""


@dataclass(frozen=True)
class Kind:
    """One kind of transport: how it is swept, what it is compiled with beside its cut, and what is taken for near."""

    method: str
    storage: str = "float32"
    mores: tuple[tuple[str, ...], ...] = ((),)
    near: float = ALIKE

    @property
    def path(self) -> str:
        return gpu_launch.SOURCES[self.method]

    def ways(self, m: int, n: int, teams: int) -> Ways:
        """All cuts of m x n, as `gpu_launch.Dense` and `gpu_clouds.PointClouds` choose among them."""
        size = MatrixSize(m, n, self.storage, teams, CLUSTER, False, False)
        if self.method == "points":
            return _of_size(replace(size, stores=True, points=True, group_bytes=SHARED_BYTES))
        if self.method == "fused":
            return _of_size(size)
        found = _of_size(size)
        if found and KEEPS in min(found, key=lambda way: found[way]):
            return {way: time for way, time in found.items() if KEEPS in way}
        return {(*way, *gpu_launch.STORES): time for way, time in _of_size(replace(size, stores=True)).items()}


@lru_cache(maxsize=1 << 14)
def _of_size(size: MatrixSize) -> Ways:
    """Kept: kinds are asked for the same sizes."""
    found: Ways = {}
    for time, cut in size.cuts():
        way = cut.defines
        found[way] = min(time, found.get(way, time))
    least = min(found.values(), default=1.0)
    return {way: time / least for way, time in found.items()}


def _points(metric: int) -> tuple[tuple[str, ...], ...]:
    return tuple((f"-DMETRIC={metric}", f"-DFLAT={flat}") for flat in (0, 1))


KINDS = (
    Kind("log"),
    Kind("points", mores=_points(0)),
    Kind("points", mores=(*_points(1), *_points(2)), near=SELDOM),
    *(Kind("fused", storage, near=SELDOM) for storage in STORAGE),
)
assert len(METRICS) == 3


def usual() -> set[Form]:
    """What squares of usual sizes ask for, best cuts all of them, on one GPU and divided among several."""
    found = set()
    for n, teams in product(SIDES, TEAMS):
        kept = geometry(n, n, "float32", teams, CLUSTER, stores=False)
        cut = kept if kept.keeps else geometry(n, n, "float32", teams, CLUSTER, stores=True)
        found.add(Form(KINDS[0].path, cut.defines if cut.keeps else (*cut.defines, *gpu_launch.STORES)))
        with suppress(NoGeometry):
            cloud = points_geometry(n, n, teams, CLUSTER).defines
            found |= {Form(KINDS[1].path, (*cloud, *more)) for more in KINDS[1].mores}
    for n, devices, teams in product(SPREAD, DEVICES, TEAMS):
        cut = geometry(n // devices, n, "float32", teams, CLUSTER, stores=True)
        found.add(Form(KINDS[0].path, (*cut.defines, *gpu_launch.STORES)))
    return found


def between(known: set[Form]) -> Iterator[Form]:
    """What is missing beside `known`: sizes that are met often first, then any other, which may share their forms."""
    for kind in KINDS:
        served = {way[: len(way) - len(more)] for more in kind.mores for way in _of(known, kind.path)
                  if way[len(way) - len(more) :] == more}  # fmt: skip
        columns, teams_of = (BETWEEN, TEAMS) if kind.near == ALIKE else (BETWEEN[::2], TEAMS[:1])
        often = (kind.ways(m, n, teams) for n in columns for m in (n // 2, n, 2 * n) for teams in teams_of)
        chosen = _few(often, served, kind.near)
        shapes = (*product(ANY_ROWS, ANY_COLUMNS, ANY_TEAMS), *product(TALL, ANY_COLUMNS[::4], TEAMS[:1]))
        seldom = (kind.ways(m, n, teams) for m, n, teams in shapes if m * n >= SMALL)
        chosen |= _few(seldom, served | chosen, EXTREME)
        yield from (Form(kind.path, (*way, *more)) for way in sorted(chosen) for more in kind.mores)


def _of(known: set[Form], path: str) -> Iterator[tuple[str, ...]]:
    return (form.defines for form in known if form.path == path)


def _few(sizes: Iterable[Ways], served: set[tuple[str, ...]], near: float) -> set[tuple[str, ...]]:
    """Ways of which each size has one that is `near` its best, where none that is served already is."""
    wanted = ({way for way, time in ways.items() if time <= near} for ways in sizes)
    left = [ways for ways in wanted if ways and not ways & served]
    chosen: set[tuple[str, ...]] = set()
    while left:
        often: Counter[Any] = Counter(way for ways in left for way in ways)
        best = max(sorted(often), key=lambda way: often[way])
        chosen.add(best)
        left = [ways for ways in left if best not in ways]
    return chosen
