"""A matrix beyond the forest's size, priced on one GPU, or on several where one has no room for it."""

import time
from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from kernels.deadline import Deadline
from kernels.gpu_room import bytes_free
from kernels.lap.columns import solver
from kernels.lap.columns.gpu_dense import DeviceSearch, HeldRows
from kernels.lap.points.gpu_points import uploaded
from kernels.problems import UNASSIGNED, InvalidProblem
from kernels.problems.arrays import Costs
from kernels.solution import OnDevice, Solution

LINE_BYTES = 1024
"""Of a row's lists and a column's minima on a device, at most."""


def solve(weights: Costs, maximize: bool, round_limit: int | None, deadline: Deadline) -> Solution:
    """Solve one problem of any shape; as `kernels.lap.columns.solver.solve` otherwise.

    Complexity: the matrix in device memory, twice where it is turned (n_rows > n_cols), and LINE_BYTES a line.
    Errors: InvalidProblem where no devices have room, and for integers of more than MOST_INTEGER.
    """
    since = time.perf_counter()
    turned = weights.shape[0] > weights.shape[1]
    parts = parts_of(weights, turned, devices_for(weights, turned))
    for part in parts:
        with cupy.cuda.Device(part.device):
            cupy.cuda.get_current_stream().synchronize()
    h2d_ms, since = 1e3 * (time.perf_counter() - since), time.perf_counter()
    search = DeviceSearch(parts, maximize)
    if weights.dtype == np.int64 and (largest := search.largest()) > solver.MOST_INTEGER:
        raise InvalidProblem(
            "cost", f"has integers up to {largest}; on a GPU of so many rows expected at most {solver.MOST_INTEGER}"
        )
    solution = solver.solve(search, maximize, deadline, round_limit)
    solution.timings_ms = {"h2d": h2d_ms, "solve": 1e3 * (time.perf_counter() - since), "d2h": 0.0}
    solution.facts["devices"] = len({part.device for part in parts})
    if len(parts) == 1 and not turned:
        solution.uploads = [OnDevice(weights, parts[0].cost)]
    return turned_back(solution, weights.shape) if turned else solution


def devices_for(weights: Costs, turned: bool) -> list[int]:
    """The current device where it has room for the whole; else all that are visible, this one first.

    Raises:
        InvalidProblem: they have no room either.
    """
    needed, here = _bytes(weights, turned), cupy.cuda.Device().id
    free = {here: bytes_free()}
    if needed <= free[here]:
        return [here]
    others = [] if turned else [one for one in range(cupy.cuda.runtime.getDeviceCount()) if one != here]
    for one in others:
        with cupy.cuda.Device(one):
            free[one] = bytes_free()
    if needed > len(free) * min(free.values()):
        raise InvalidProblem("cost", f"needs {needed} bytes of device memory; {sum(free.values())} bytes are free")
    return list(free)


def _bytes(weights: Costs, turned: bool) -> int:
    return int(weights.nbytes * (2 if turned else 1) + LINE_BYTES * sum(weights.shape))


def parts_of(weights: Any, turned: bool, devices: Sequence[int]) -> list[HeldRows]:
    """The matrix, rows for the shorter side, in as many parts as there are devices (which may name one twice)."""
    if turned or len(devices) == 1:
        with cupy.cuda.Device(devices[0]):
            whole = uploaded(weights)
            return [HeldRows(devices[0], 0, cupy.ascontiguousarray(whole.T) if turned else whole)]
    ends = np.linspace(0, len(weights), len(devices) + 1).astype(int).tolist()
    parts = []
    for device, first, end in zip(devices, ends, ends[1:], strict=False):
        with cupy.cuda.Device(device):
            parts.append(HeldRows(device, first, cupy.asarray(weights[first:end])))
    return [part for part in parts if len(part.cost)]


def turned_back(solution: Solution, shape: tuple[int, ...]) -> Solution:
    """The answer of the problem whose rows were taken for columns."""
    arrays, (m, n) = solution.arrays, shape
    if "hall_rows" in arrays:  # of the shorter side, which are columns here: the rows left over have too few of them
        rows, cols = np.setdiff1d(np.arange(m), arrays["hall_cols"]), np.setdiff1d(np.arange(n), arrays["hall_rows"])
        solution.arrays = {"hall_rows": rows, "hall_cols": cols}
        return solution
    back, taken = np.full(m, UNASSIGNED, np.int64), arrays["assignment"]
    some = np.flatnonzero(taken >= 0)
    back[taken[some]] = some
    solution.arrays = {"assignment": back, "u": arrays["v"], "v": arrays["u"]}
    return solution
