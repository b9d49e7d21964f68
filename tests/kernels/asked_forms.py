"""Every form that a job on a GPU can ask for, as far as it does not depend on the very size of its problem.

The functions that choose a launch's geometry are those of the solvers, asked for each kind of GPU that cubins are
compiled for, without having one. `python -m tests.kernels.asked_forms` adds what is missing to kernels/forms.txt.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest import mock

import cupy
import numpy as np

from kernels import shelf
from kernels.lap.auto import gpu_forest
from kernels.lap.batched import gpu_batched
from kernels.papers.hungarian.gpu import OURS, VERSIONS
from kernels.problems.points import METRICS
from kernels.qap.multistart import gpu_multistart
from kernels.shelf import Form
from kernels.uot.batch import suited
from kernels.uot.iteration import gpu_launch
from kernels.uot.iteration.gpu_geometry import (
    ALIKE,
    SHARED_BYTES,
    Geometry,
    MatrixSize,
    NoGeometry,
    geometry,
    points_geometry,
)

SHARED_KIB = {"80": (163, 164), "86": (99, 100), "89": (99, 100), "90": (227, 228), "100": (227, 228), "120": (99, 100)}
"""Of a block at most, and of a multiprocessor, by architecture."""
PROCESSORS = (20, 58, 72, 84, 108, 114, 132, 142, 148, 170, 188)
"""Multiprocessors of the GPUs with these architectures."""
PAIRS = {"double": "double", "float": "double", "int": "long long", "long long": "long long"}
"""Types of costs, and of the duals that go with them."""
QAPLIB = (
    *(12, 14, 15, 16, 17, 18, 20, 21, 22, 24, 25, 26, 27, 28, 30, 32),
    *(35, 36, 40, 42, 49, 50, 56, 60, 64, 70, 72, 80, 81, 90, 100),
)
"""Sizes of its instances up to 100."""
MEASURED = 4
"""Tiles that are tried on a size that is new to a machine."""
MOST_COLUMNS = 60_000
WITH_CLUSTERS = ["90", "100"]
SIDES = (1000, 1024, 2000, 2048, 4096, 5000, 8192, 10_000, 10_240, 16_384, 20_000)
"""Rows, and as many columns, of transport."""
SPREAD, DEVICES = (24_576, 30_000, 32_768, 40_000, 50_000, 60_000, 65_536), (2, 4, 8)
"""Of transport whose rows are divided among so many GPUs."""
CLUSTER, TEAMS = 16, (8, 7, 6)
"""Blocks that share a row, and how many such clusters a GPU of 132 to 148 multiprocessors runs at once."""
BETWEEN = tuple(int(200 * 1.055**k) for k in range(91))
"""Columns of transport of any size, to 25,000; of rows there are half as many, as many, and twice as many."""
BESIDE = {"uot/dense/log.cu": ((),), "uot/points/points.cu": (("-DMETRIC=0", "-DFLAT=0"), ("-DMETRIC=0", "-DFLAT=1"))}
"""What is compiled of a source beside its geometry."""
CTYPES = {"float64": "double", "float32": "float", "int32": "int", "int64": "long long"}


def asked() -> dict[Form, frozenset[str]]:
    """All of them, each with the architectures that ask for it; none are all."""
    found = {form_of(path, defines): frozenset[str]() for path, defines in _everywhere()}
    for architectures, path, defines in (*_searches(), *_large_transport(), *_spread_transport()):
        form = form_of(path, defines)
        found[form] = found.get(form, frozenset()) | frozenset(architectures)
    for form in _between({form for form, asking in found.items() if WITH_CLUSTERS[0] in asking}):
        found[form] = frozenset(WITH_CLUSTERS)
    return found


def form_of(path: str, defines: dict[str, Any]) -> Form:
    return Form(path, tuple(f"-D{name}={value}" for name, value in defines.items()))


def _everywhere() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, told in (("lap/auto/bid.cu", "VALUE"), ("lap/proof/certify.cu", "VALUE"), ("lap/auto/start.cu", "VALUE"),
                       ("papers/tree/tree.cu", "DUAL")):  # fmt: skip
        yield from ((path, {"COST": cost, told: dual}) for cost, dual in PAIRS.items())
    yield "lap/points/distances.cu", {}
    yield "uot/sparse/soft.cu", {}
    yield from ((f"papers/hungarian/{VERSIONS[OURS]}.cu", {"COST": c, "DUAL": d}) for c, d in PAIRS.items())
    yield from _batched()
    yield from _forest()
    yield from _auction()
    yield from _certificates()
    yield from _transport()
    yield "qap/exact/branch.cu", {}


def _batched() -> Iterator[tuple[str, dict[str, Any]]]:
    for shared, _ in set(SHARED_KIB.values()):
        with mock.patch.object(gpu_batched, "attribute", lambda name, shared=shared: shared << 10):
            for name, cost in CTYPES.items():
                for longer in range(1, gpu_batched.LONGEST + 1):
                    for shorter in {1, longer, *range(1, longer, 1 + longer // 16)}:
                        team, slots, fits, _ = gpu_batched.shape_of(shorter, longer, np.dtype(name).itemsize)
                        told = {"COST": cost, "VALUE": PAIRS[cost], "TEAM": team, "SLOTS": slots}
                        yield "lap/batched/batched.cu", told | {"MATRIX_SHARED": int(fits)}


def _forest() -> Iterator[tuple[str, dict[str, Any]]]:
    strips = set()
    for processors in PROCESSORS[4:]:  # smaller GPUs have no room for the largest
        for n_cols in range(1, MOST_COLUMNS, 32):
            count = 1
            while 32 * count < gpu_forest.slice_width(n_cols, processors):
                count *= 2
            strips.add(count)
    for cost, dual in PAIRS.items():
        for count in strips:
            yield "lap/auto/forest.cu", {"COST": cost, "VALUE": dual, "STRIPS": count, "RESIDENT": 0}
        yield "lap/auto/forest.cu", {"COST": cost, "VALUE": dual, "STRIPS": 1, "RESIDENT": 1}


def _auction() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in ("auction/auction.cu", "auction/paths.cu", "papers/auction_graph/steps.cu"):
        for value in PAIRS:
            fixed = {"VALUE": value, "FIXED_POINT": int(value in ("double", "float"))}
            yield path, fixed
            if fixed["FIXED_POINT"]:
                yield from ((path, {**fixed, "METRIC": k + 1}) for k in range(len(METRICS)))


def _certificates() -> Iterator[tuple[str, dict[str, Any]]]:
    for cost, dual in PAIRS.items():
        yield "certificates/gpu/assignment.cu", {"COST": cost, "VALUE": dual, "FLOATS": int(dual == "double")}
    for cost in ("double", "float"):
        yield from (("certificates/gpu/transport.cu", {"COST": cost, "POINTS": points}) for points in (0, 1))
    yield "certificates/gpu/checksum.cu", {}


def _transport() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from (("uot/iteration/clusters.cu", {"CS": cluster}) for cluster in gpu_launch.CLUSTERS)
    names = ("WARPS", "ROWS", "COLS", "HELD", "BLOCKS")
    yield from (("uot/batch/batch.cu", dict(zip(names, shape[2:], strict=True))) for shape in suited.SHAPES)
    yield "papers/map_uot/map_uot.cu", {}


def _large_transport() -> Iterator[tuple[list[str], str, dict[str, Any]]]:
    """Squares of usual sizes on GPUs whose blocks can share a row; a size between them may share its form."""
    for n in SIDES:
        for teams in TEAMS:
            kept = geometry(n, n, "float32", teams, CLUSTER, stores=False)
            dense = [kept] if kept.keeps else [geometry(n, n, "float32", teams, CLUSTER, stores=True)]
            for cut in dense:
                stores = {} if cut.keeps else {"STORES_TERMS": 1}
                yield WITH_CLUSTERS, "uot/dense/log.cu", _defines(cut) | stores
            with suppress(NoGeometry):
                cloud = _defines(points_geometry(n, n, teams, CLUSTER))
                for flat in (0, 1):
                    yield WITH_CLUSTERS, "uot/points/points.cu", cloud | {"METRIC": 0, "FLAT": flat}


def _spread_transport() -> Iterator[tuple[list[str], str, dict[str, Any]]]:
    """The share of one of several GPUs in such squares."""
    for n, devices, teams in product(SPREAD, DEVICES, TEAMS):
        cut = geometry(n // devices, n, "float32", teams, CLUSTER, stores=True)
        yield WITH_CLUSTERS, "uot/dense/log.cu", _defines(cut) | {"STORES_TERMS": 1}


def _between(known: set[Form]) -> Iterator[Form]:
    """Forms of which one is nearly as fast as the best for any size of transport: few serve many sizes."""
    for path, mores in BESIDE.items():
        sizes = [ways_of(path, m, n, teams) for n in BETWEEN for m in (n // 2, n, 2 * n) for teams in TEAMS]
        served = {form.defines[: len(form.defines) - len(mores[0])] if mores[0] else form.defines
                  for form in known if form.path == path}  # fmt: skip
        left = [ways for ways in sizes if not ways & served]
        while left:
            often = Counter(way for ways in left for way in ways)
            chosen = max(sorted(often), key=lambda way: often[way])
            yield from (Form(path, (*chosen, *more)) for more in mores)
            left = [ways for ways in left if chosen not in ways]


def ways_of(path: str, m: int, n: int, teams: int) -> frozenset[tuple[str, ...]]:
    """What may be compiled for m x n, as `gpu_launch.Dense` and `gpu_clouds.PointClouds` choose it."""
    if path == gpu_launch.SOURCES["points"]:
        return _alike(MatrixSize(m, n, "float32", teams, CLUSTER, True, True, SHARED_BYTES))
    kept = _alike(MatrixSize(m, n, "float32", teams, CLUSTER, False, False))
    if any("-DKEEPS=1" in way for way in kept):
        return frozenset(way for way in kept if "-DKEEPS=1" in way)
    stored = _alike(MatrixSize(m, n, "float32", teams, CLUSTER, True, False))
    return frozenset((*way, *gpu_launch.STORES) for way in stored)


def _alike(size: MatrixSize) -> frozenset[tuple[str, ...]]:
    found = list(size.cuts())
    least = min((time for time, _ in found), default=0.0)
    return frozenset(cut.defines for time, cut in found if time <= ALIKE * least)


def _defines(cut: Geometry) -> dict[str, Any]:
    return dict(define.removeprefix("-D").split("=") for define in cut.defines)


def _searches() -> Iterator[tuple[list[str], str, dict[str, Any]]]:
    for most, all_of_it in set(SHARED_KIB.values()):
        alike = [one for one, limits in SHARED_KIB.items() if limits == (most, all_of_it)]
        limits = {"MaxSharedMemoryPerBlockOptin": most << 10, "MaxSharedMemoryPerMultiprocessor": all_of_it << 10}
        device = mock.Mock(Device=lambda limits=limits: SimpleNamespace(attributes=limits))
        with mock.patch.object(cupy, "cuda", device):
            for n in QAPLIB:
                for symmetric in (True, False):
                    form: Any = SimpleNamespace(n=n, dtype=np.dtype(np.int32), symmetric=symmetric)
                    found = [one for tile in gpu_multistart.TILES if (one := gpu_multistart.layout(form, tile))]
                    for one in found[:MEASURED]:
                        yield alike, "qap/multistart/multistart.cu", {
                            "VALUE": "int", "SYMMETRIC": int(symmetric), "MATRICES": 0, "TU": one.tile[0],
                            "TD": one.tile[1], "THREADS": one.threads, "BLOCKS": one.blocks, "RECENCY_PAIRS": 0,
                        }  # fmt: skip


if __name__ == "__main__":
    found = asked()
    print(f"{shelf.record(found, found)} new forms")
