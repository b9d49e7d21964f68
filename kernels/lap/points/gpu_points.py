"""Costs of points on the GPU: the matrix is worked out there from the coordinates and is never sent.

Differences are taken coordinate by coordinate, so that a cost keeps its digits however far from the origin its points
lie. Directions are brought to length 1 on the host, and are half a squared distance then; inner products are one
matrix product.
"""

import time
from typing import Any, cast

import cupy
import numpy as np

from kernels import gpu_locked
from kernels.cuda import kernel
from kernels.lap import gpu_memory
from kernels.lap.auto.gpu_forest import MOST_ROWS
from kernels.lap.points.layout import ACROSS, DISTANCES_ARGS, OVERLAPS_ARGS, ROWS, THREADS
from kernels.problems import Array, InvalidProblem
from kernels.problems.arrays import Floats
from kernels.problems.metrics import DIRECTIONS, METRICS, prepared
from kernels.problems.points import PointAssignment


class DeviceMatrix:
    """A matrix on the device that looks like one on the host: what is asked for is copied, and nothing else."""

    def __init__(self, matrix: Any) -> None:
        self.device = matrix
        self.shape, self.dtype, self.ndim = matrix.shape, matrix.dtype, matrix.ndim
        self.size, self.nbytes, self.itemsize = matrix.size, matrix.nbytes, matrix.itemsize

    @property
    def T(self) -> "DeviceMatrix":  # NumPy's name
        """Turned."""
        return DeviceMatrix(self.device.T)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> Floats:
        return np.asarray(cupy.asnumpy(self.device[index]))

    def reshape(self, *shape: int) -> Any:
        """On the device as well."""
        return DeviceMatrix(self.device.reshape(*shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(cupy.asnumpy(self.device), dtype)


def uploaded(weights: Any) -> Any:
    """A matrix in device memory, where it may be already; else as `gpu_locked.uploaded`."""
    return weights.device if isinstance(weights, DeviceMatrix) else gpu_locked.uploaded(weights)


def costs_on_device(problem: PointAssignment) -> tuple[Floats, float]:
    """The costs (m, n) in float64, in device memory behind the face of a host array, and milliseconds to make them."""
    start = time.perf_counter()
    points, (m, n) = problem.points, problem.shape
    if max(m, n) > MOST_ROWS:
        raise InvalidProblem("x", f"and y are {m} x {n} points; on a GPU expected at most {MOST_ROWS} of each")
    gpu_memory.require(8 * m * n + 3 * 8 * (m + n) * points.x.shape[1])
    x, y = (cupy.asarray(prepared(cloud, points.metric, np.float64)) for cloud in (points.x, points.y))
    cost = cupy.empty((m, n))
    if points.metric == "inner":
        cupy.matmul(x, y.T, out=cost)
        cupy.negative(cost, out=cost)
    elif points.metric == "iou":
        _launch_overlaps(x, cupy.ascontiguousarray(y.T), cost)
    else:
        _launch_distances(x, cupy.ascontiguousarray(y.T), points.metric, cost)
    cupy.cuda.get_current_stream().synchronize()
    return cast(Floats, DeviceMatrix(cost)), 1e3 * (time.perf_counter() - start)


def _launch_distances(x: Any, turned: Any, metric: str, cost: Any) -> None:
    """A thread has some rows and some columns: a coordinate is read once for all pairs of it."""
    kind = METRICS.index("sqeuclidean" if metric in DIRECTIONS else metric)
    launch = kernel("lap/points/distances.cu", "distances", cooperative=False)
    (m, n), halved = cost.shape, metric in DIRECTIONS
    clouds = {"x": x, "turned": turned, "cost": cost, "m": m, "n": n}
    launch(_grid(cost), (THREADS,), DISTANCES_ARGS.packed(**clouds, d=x.shape[1], kind=kind, halved=halved))


def _launch_overlaps(x: Any, turned: Any, cost: Any) -> None:
    """The same for boxes."""
    launch = kernel("lap/points/distances.cu", "overlaps", cooperative=False)
    m, n = cost.shape
    launch(_grid(cost), (THREADS,), OVERLAPS_ARGS.packed(x=x, turned=turned, cost=cost, m=m, n=n))


def _grid(cost: Any) -> tuple[int, int]:
    m, n = cost.shape
    return -(-m // ROWS), -(-n // (THREADS * ACROSS))
