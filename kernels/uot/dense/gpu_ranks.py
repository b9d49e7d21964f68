"""One problem over several GPUs, by rows: ranks sweep their own, NCCL adds up the column sums, all update alike.

This is the paper's MPI version. A sweep costs one all-reduce of n floats; row potentials stay with their rows, and the
path is the same with one rank. Translation, no Anderson: its products would need a second all-reduce.
"""

import ctypes
import functools
import importlib.util
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np

from kernels import cuda
from kernels.deadline import Deadline
from kernels.problems.transport import UnbalancedTransport
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.iteration.layout import ADD_TEAMS_ARGS

LOOK = 16  # sweeps between two looks at the status


@functools.cache
def nccl() -> Any:
    """CuPy's binding of NCCL, whose library the nvidia-nccl wheel keeps where the loader does not look.

    Raises:
        RuntimeError: when there is none.
    """
    nvidia = importlib.util.find_spec("nvidia")  # a namespace package: where the CUDA wheels keep their libraries
    for base in (nvidia.submodule_search_locations or []) if nvidia else []:
        for library in sorted(Path(base).glob("nccl/lib/libnccl.so*")):
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    try:
        return importlib.import_module("cupy_backends.cuda.libs.nccl")
    except ImportError as error:
        raise RuntimeError(f"a problem over several GPUs needs NCCL (pip install nvidia-nccl-cu13): {error}") from error


class Rank:
    """The rows [start, stop) of a problem on one device, and its place among the ranks."""

    def __init__(
        self, problem: UnbalancedTransport, rows: slice, method: str, spread: float, communicator: Any
    ) -> None:
        if np.isinf(problem.reg_m[0]):
            raise ValueError("balanced rows: their side of the dual value is not added up between ranks")
        assert problem.cost is not None
        processors = cuda.attribute("MultiProcessorCount")
        own = replace(problem, a=problem.a[rows], cost=problem.cost[rows])
        self.dense = on.Dense(own, method, "float32", spread, processors)
        self.dense.masses = float(problem.a.sum()), float(problem.b.sum())
        self.communicator = communicator
        self.team_sums = cp.zeros((self.dense.cut.teams, self.dense.cut.ld), cp.float32)
        self.column_sums = cp.zeros(self.dense.cut.ld, cp.float32)
        sizes = {"teams": self.dense.cut.teams, "n": self.dense.n, "ld": self.dense.cut.ld}
        self.adds = ADD_TEAMS_ARGS.packed(partial=self.team_sums, sums=self.column_sums, **sizes)
        self.made: dict[tuple[int, float, int, float], tuple[Any, ...]] = {}
        self.add_teams = cuda.kernel(on.SOURCES[method], "add_teams", self.dense._defines())

    def sweep(self, tolerance: float, every: int = LOOK) -> None:
        """One iteration, without waiting for it: sweep, add up here, add up everywhere, update the columns."""
        dense = self.dense
        dense.start(self._arguments(on.SWEEP_ONLY, tolerance, every))
        self.add_teams((-(-dense.n // 256),), (256,), self.adds)
        self._add_up(self.column_sums, dense.n)
        dense.start(self._arguments(on.COLUMNS_ONLY, tolerance, every))

    def _arguments(self, part: int, tolerance: float, every: int) -> tuple[Any, ...]:
        """Put together once for many sweeps: all ranks' threads share one interpreter."""
        key = part, tolerance, every, self.dense.reg
        if key not in self.made:
            self.dense.partial = self.team_sums if part == on.SWEEP_ONLY else self.column_sums
            self.made[key] = self.dense.arguments(1, tolerance, 0.0, every, False, part)
        return self.made[key]

    def _add_up(self, array: Any, count: int) -> None:
        """Replace `count` floats by their sums over the ranks."""
        place, stream = array.data.ptr, cp.cuda.get_current_stream().ptr
        self.communicator.allReduce(place, place, count, nccl().NCCL_FLOAT32, nccl().NCCL_SUM, stream)

    def run(self, sweeps: int, tolerance: float, deadline: Deadline) -> np.ndarray:
        """Sweep until the gap, the limit or the deadline is reached; every rank decides alike but for the deadline.

        Rank 0 alone looks at the deadline: its answer travels with an all-reduce of one float.
        """
        self.dense.begin(self.dense.problem.reg, cp.zeros(self.dense.n))
        late = cp.zeros(1, cp.float32)
        for done in range(1, sweeps + 1):
            self.sweep(tolerance, 1 if done % LOOK == 0 or done == sweeps else 1 << 30)
            if done % LOOK == 0 or done == sweeps:
                late[0] = float(deadline.expired() is not None)
                self._add_up(late, 1)
                status = self.dense.status.get()
                if status[on.REASON] == on.JUMPED:
                    self.dense.refer()
                elif status[on.REASON] != on.RUNNING or float(late[0]) > 0:
                    break
        return np.asarray(self.dense.status.get())


def partition(m: int, size: int) -> list[slice]:
    """Rows of each rank, as even as they come."""
    cuts = [m * k // size for k in range(size + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def on_ranks(devices: Sequence[int], work: Callable[[int, Any], Any]) -> list[Any]:
    """Call work(rank, communicator) in one thread per device, its device current; re-raises what they raised."""
    communicators = _communicators(tuple(devices))
    results: list[Any] = [None] * len(devices)
    errors: list[BaseException] = []

    def target(rank: int) -> None:
        try:
            with cp.cuda.Device(devices[rank]), cp.cuda.Stream(non_blocking=True):
                results[rank] = work(rank, communicators[rank])
                cp.cuda.get_current_stream().synchronize()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=target, args=(rank,)) for rank in range(len(devices))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        _communicators.cache_clear()  # one that was left in the middle answers nobody any more
        raise errors[0]
    return results


@functools.cache
def _communicators(devices: tuple[int, ...]) -> list[Any]:
    """One for each device, kept: to make them takes as long as many sweeps."""
    return list(nccl().NcclCommunicator.initAll(list(devices)))


def solve_ranks(
    problem: UnbalancedTransport,
    sweeps: int,
    tolerance: float,
    deadline: Deadline,
    spread: float,
    devices: Sequence[int],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Potentials f (m,), g (n,) and the status (gpu_launch.STATUS) of a problem spread over `devices`."""
    parts = partition(problem.shape[0], len(devices))

    def work(rank: int, communicator: Any) -> Any:
        own = Rank(problem, parts[rank], "log", spread, communicator)
        status = own.run(sweeps, tolerance, deadline)
        f, g = own.dense.pair(status)
        return f.get(), g.get(), status

    answers = on_ranks(devices, work)
    return np.concatenate([f for f, _, _ in answers]), answers[0][1], answers[0][2]
