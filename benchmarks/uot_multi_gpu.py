"""Unbalanced transport over 1, 2, 4, ... GPUs of this machine: milliseconds a sweep and efficiency, answers checked.

    python -m benchmarks.uot_multi_gpu [--n 40960] [--sweeps 100]

Costs are squared distances between random points, made on each device (each rank makes its own rows). The answer of k
GPUs is compared with that of one: column potentials after the same sweeps, and the certified gap that was reached.
"""

import argparse
from typing import Any

import cupy as cp
import numpy as np

from benchmarks.bandwidth import read_bytes_per_s
from benchmarks.rows import Rows, on_gpu
from kernels.deadline import Deadline
from kernels.problems import UnbalancedTransport
from kernels.uot.dense.gpu_ranks import Rank, on_ranks, partition
from kernels.uot.iteration import gpu_launch as on

REG = 0.05


class Clouds:
    """Stands for a cost matrix: rows are worked out on the device that asks for them."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(n)
        self.x, self.y = rng.random((n, 3), dtype=np.float32), 0.2 + 0.8 * rng.random((n, 3), dtype=np.float32)
        self.shape = n, n

    def __getitem__(self, rows: slice) -> Any:
        x, y = cp.asarray(self.x[rows]), cp.asarray(self.y)
        cost = cp.empty((len(x), len(y)), cp.float32)
        for k in range(0, len(x), 1024):
            cost[k : k + 1024] = sum((x[k : k + 1024, None, d] - y[None, :, d]) ** 2 for d in range(3))
        return cost


def run(n: int, devices: list[int], sweeps: int) -> list[tuple[float, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng([1, n])
    a, b = rng.random(n) + 0.5, rng.random(n) + 0.5
    clouds: Any = Clouds(n)
    problem = UnbalancedTransport(a / a.sum(), 1.3 * b / b.sum(), REG, (1.0, 1.0), cost=clouds)
    parts = partition(n, len(devices))

    def work(rank: int, communicator: Any) -> tuple[float, np.ndarray, np.ndarray]:
        own = Rank(problem, parts[rank], "log", 3.0, communicator)
        own.run(20, -1.0, Deadline())
        before = own.dense.status.get()
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        for _ in range(sweeps):
            own.sweep(-1.0, 1 << 30)
        end.record()
        end.synchronize()
        ms, after = cp.cuda.get_elapsed_time(start, end) / sweeps, own.dense.status.get()
        if after[on.ITERATIONS] - before[on.ITERATIONS] != sweeps:
            raise RuntimeError(f"not every sweep was made: {after}")
        status = own.run(64, 1e-6, Deadline())
        return ms, own.dense.pair(status)[1].get(), status

    return on_ranks(devices, work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=40960)
    parser.add_argument("--sweeps", type=int, default=100)
    chosen = parser.parse_args()
    here, rows = cp.cuda.runtime.getDeviceCount(), Rows(on_gpu("uot"))
    alone, g_alone = 0.0, np.empty(0)
    for size in (k for k in (1, 2, 4, 8) if k <= here):
        answers = run(chosen.n, list(range(size)), chosen.sweeps)
        ms, g, status = max(a[0] for a in answers), answers[0][1], answers[0][2]
        gap = status[on.GAP] / abs(status[on.PRIMAL])
        if size == 1:
            alone, g_alone = ms, g
        apart = float(abs(g - g_alone).max())
        right = gap <= 1e-6 and apart <= 1e-4
        rows.add(
            bench="multi-gpu",
            n=chosen.n,
            gpus=size,
            ms_per_sweep=ms if right else None,
            efficiency=alone / ms / size if right else None,
            bandwidth_share=chosen.n**2 * 4 / size / (ms * 1e-3) / read_bytes_per_s() if right else None,
            gap=gap,
            g_apart=apart,
        )


if __name__ == "__main__":
    main()
