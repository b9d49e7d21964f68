"""Launches of sweep.cu: which pairs of points may attain the minimum of their row, by a look at all pairs on a device.

Coordinates are sent from the host, so nothing that a solver could have written is read.
"""

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from kernels.certificates.gpu.gpu_arrays import as_passed
from kernels.certificates.metrics.assignment import Near
from kernels.certificates.metrics.coarsely import Costs
from kernels.certificates.metrics.exactly import DIRECTIONS
from kernels.cuda import kernel
from kernels.problems import Array

SOURCE = "certificates/metrics/sweep.cu"
KINDS = ("sqeuclidean", "euclidean", "cityblock", "inner", "directions", "iou")
"""Metrics in the order of the source's."""
THREADS, ROWS, COLUMNS = 64, 8, 4
MOST_PIECES = 32
"""What a row has of them: enough blocks for a device, few partial minima."""
POINTERS = ("x", "turned", "price", "off", "part", "row", "count", "near", "start", "found")
SWEEP = np.dtype(
    [
        *((name, np.uint64) for name in POINTERS),
        ("relative", np.float64),
        *((name, np.int64) for name in ("m", "n")),
        *((name, np.int32) for name in ("d", "sign", "pieces", "most")),
    ]
)


def near_least(costs: Costs, sign: int, price: Array, most: int) -> Callable[[], Near]:
    """As `assignment.Sweep`."""
    (m, n), pieces = costs.shape, _pieces(costs.shape[1])
    relative, off = costs.by_differences()
    there = {
        "x": cupy.asarray(costs.x),
        "turned": cupy.ascontiguousarray(cupy.asarray(costs.y).T),
        "price": cupy.asarray(price),
        "off": cupy.asarray(off),
        "part": cupy.empty((3, pieces, m)),
        "row": cupy.empty((3, m)),
        "count": cupy.zeros(m, np.int32),
        "near": cupy.empty((m, most), np.int32),
    }
    launch = _Launch(_kind(costs.metric), there, relative=relative, m=m, n=n, d=costs.d, sign=sign)
    launch.given["pieces"], launch.given["most"] = pieces, most
    launch("least_of_rows", (-(-m // ROWS), pieces))
    launch("join", (-(-m // THREADS),))
    launch("near_least", (m, pieces))

    def fetched() -> Near:
        counts = there["count"].get()
        kept = np.where(counts <= most, counts, 0).astype(np.int64)
        ends = np.cumsum(kept)
        found = cupy.empty(max(1, int(ends[-1])), np.int32)
        launch.of(start=cupy.asarray(np.where(kept > 0, ends - kept, -1)), found=found)
        launch("gather", (m,))
        low, widest, _ = there["row"].get()
        return Near(np.repeat(np.arange(m), kept), found.get()[: ends[-1]].astype(np.int64), low, widest)

    return fetched


def _pieces(n: int) -> int:
    """Pieces of a row."""
    return min(MOST_PIECES, -(-n // (THREADS * COLUMNS)))


def _kind(metric: str) -> int:
    return KINDS.index("directions" if metric in DIRECTIONS else metric)


class _Launch:
    """One sweep's arguments. The arrays are kept with it."""

    def __init__(self, kind: int, there: dict[str, Any], **numbers: Any) -> None:
        self._defines, self._kept = (f"-DKIND={kind}",), dict(there)
        self.given = np.zeros((), SWEEP)
        for name, value in numbers.items():
            self.given[name] = value
        self.of(**there)

    def of(self, **arrays: Any) -> None:
        """From now on with these arrays, too."""
        self._kept |= arrays
        for name, array in arrays.items():
            self.given[name] = array.data.ptr

    def __call__(self, name: str, grid: tuple[int, ...]) -> None:
        kernel(SOURCE, name, self._defines, cooperative=False)(grid, (THREADS,), (as_passed(self.given),))
