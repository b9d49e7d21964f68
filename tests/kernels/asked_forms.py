"""Every form that a job on a GPU asks for.

The functions that choose a launch's geometry are those of the solvers, asked for each kind of GPU that cubins are
compiled for, without having one. `python -m tests.kernels.asked_forms` adds what is missing to kernels/forms.txt.
"""

from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from kernels import shelf
from kernels.certificates.metrics import gpu_sweep
from kernels.lap.batched import gpu_batched
from kernels.papers.hungarian.gpu import OURS, VERSIONS
from kernels.problems.points import METRICS
from kernels.qap.memetic import gpu_memetic
from kernels.qap.memetic.gpu_geometry import MemeticForm
from kernels.qap.multistart import gpu_multistart
from kernels.qap.multistart.gpu_geometry import C_TYPES, TILES, lay
from kernels.qap.multistart.gpu_geometry import defines as search_defines
from kernels.shelf import Form
from kernels.uot.batch import suited
from kernels.uot.iteration import gpu_launch
from tests.kernels.asked_transport import WITH_CLUSTERS, between, usual

OF_BLOCK, OF_PROCESSOR = "MaxSharedMemoryPerBlockOptin", "MaxSharedMemoryPerMultiprocessor"
SHARED_KIB = {"80": (163, 164), "86": (99, 100), "89": (99, 100), "90": (227, 228), "100": (227, 228), "120": (99, 100)}
"""Of a block at most, and of a multiprocessor, by architecture."""
PAIRS = {"double": "double", "float": "double", "int": "long long", "long long": "long long"}
"""Types of costs, and of the duals that go with them."""
QAPLIB = (
    *(12, 14, 15, 16, 17, 18, 20, 21, 22, 24, 25, 26, 27, 28, 30, 32),
    *(35, 36, 40, 42, 49, 50, 56, 60, 64, 70, 72, 80, 81, 90, 100),
)
"""Sizes of its instances up to 100."""
FINE = (*range(10, 42, 2), *range(44, 104, 4), 108, 116, 124, 132, 140, 148, 156, 164, 176, 188, 200, 212, 224, 240,
        256, 272, 288, 304, 324, 344, 364, 388, 412, 436, 464, 492, 512)  # fmt: skip
COARSE = (*range(10, 22, 2), *range(24, 44, 4), *range(48, 96, 8), 100, 112, 124, 140, 156, 176, 196, 220, 248, 276,
          308, 344, 384, 428, 476, 512)  # fmt: skip
COARSER = (10, 12, 16, 20, 24, 28, 36, 44, 56, 68, 84, 104, 128, 160, 200, 248, 308, 384, 476, 512)
"""Sizes of a population: each n is searched in the next larger one, which costs about the square of their ratio."""
POPULATIONS = (
    ("float", False, FINE), ("int", False, COARSE), ("double", False, COARSE), ("long long", False, COARSER),
    ("int", True, COARSER), ("double", True, COARSER), ("long long", True, COARSER),
)  # fmt: skip
"""Sizes by the type of an exchange and by whether both matrices are asymmetric: finer where more problems are."""
SEARCHED = (*range(10, 130), *range(130, 600, 3), *range(600, 2049, 24))
"""Facilities of a problem that is searched, or as good as all of them."""
STRIPS = tuple(2**k for k in range(7))
"""Of 32 columns that a block of the forest holds: the memory of no multiprocessor has room for more."""
CTYPES = {"float64": "double", "float32": "float", "int32": "int", "int64": "long long"}


def asked() -> dict[Form, frozenset[str]]:
    """All of them, each with the architectures that ask for it; none are all."""
    found = {form_of(path, defines): frozenset[str]() for path, defines in everywhere()}
    found |= dict.fromkeys(_searches(), frozenset[str]()) | dict.fromkeys(_populations(), frozenset[str]())
    sweeps = usual()
    found |= dict.fromkeys((*sweeps, *between(sweeps)), frozenset(WITH_CLUSTERS))
    return found


def form_of(path: str, defines: dict[str, Any]) -> Form:
    return Form(path, tuple(f"-D{name}={value}" for name, value in defines.items()))


def everywhere() -> Iterator[tuple[str, dict[str, Any]]]:
    """What jobs ask for on any GPU, but for searches of a quadratic assignment."""
    for path, told in (("lap/auto/bid.cu", "VALUE"), ("lap/proof/certify.cu", "VALUE"), ("lap/auto/start.cu", "VALUE"),
                       ("lap/auto/seats.cu", "VALUE"), ("lap/columns/price.cu", "VALUE"),
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
                for team, slots, fits in _shapes(np.dtype(name).itemsize):
                    told = {"COST": cost, "VALUE": PAIRS[cost], "TEAM": team, "SLOTS": slots}
                    yield "lap/batched/batched.cu", told | {"MATRIX_SHARED": int(fits)}


def _shapes(itemsize: int) -> set[tuple[int, int, bool]]:
    return {
        gpu_batched.shape_of(shorter, longer, itemsize)[:3]
        for longer in range(1, gpu_batched.LONGEST + 1)
        for shorter in {1, longer, *range(1, longer, 1 + longer // 16)}
    }


def _forest() -> Iterator[tuple[str, dict[str, Any]]]:
    for cost, dual in PAIRS.items():
        for count in STRIPS:
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
    yield from (("certificates/metrics/sweep.cu", {"KIND": kind}) for kind in range(len(gpu_sweep.KINDS)))


def _transport() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from (("uot/iteration/clusters.cu", {"CS": cluster}) for cluster in gpu_launch.CLUSTERS)
    names = ("WARPS", "ROWS", "COLS", "HELD", "BLOCKS")
    yield from (("uot/batch/batch.cu", dict(zip(names, shape[2:], strict=True))) for shape in suited.SHAPES)
    yield "papers/map_uot/map_uot.cu", {}


def _searches() -> set[Form]:
    """Independent searches of any n, by any number of threads that is asked for."""
    found = set()
    limits = [{OF_BLOCK: most << 10, OF_PROCESSOR: all_of_it << 10} for most, all_of_it in set(SHARED_KIB.values())]
    for name, symmetric, n in product(C_TYPES, (True, False), SEARCHED):
        form: Any = SimpleNamespace(n=n, dtype=np.dtype(name), symmetric=symmetric)
        for tile, device in product(TILES, limits):
            if laid := lay(form, tile, device):
                found |= {Form(gpu_multistart.SOURCE, search_defines(form, laid, pairs)) for pairs in (False, True)}
    return found


def _populations() -> Iterator[Form]:
    """QAPLIB's sizes as they are, and sizes that others are searched in."""
    asked = [MemeticForm(n, "float", skew=False, linear=False) for n in QAPLIB]
    asked += [MemeticForm(n, entry, skew, linear=True) for entry, skew, sizes in POPULATIONS for n in sizes]
    return (Form(gpu_memetic.SOURCE, form.defines) for form in asked)


if __name__ == "__main__":
    found = asked()
    print(f"{shelf.record(found, found)} new forms")
