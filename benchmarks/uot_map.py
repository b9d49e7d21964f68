"""MAP-UOT on the CPU as its paper measures it, our sweeps beside it: python -m benchmarks.uot_map [--sizes 4096,10240].

One row per method and number of threads (each in a process of its own): milliseconds of an iteration, times POT's
numpy iteration in the same process, the paper's throughput (2 m n operations a half iteration, over the time), peak
bytes that a whole solve takes over its inputs and its plan (numpy's, by tracemalloc), and the plan's L1 error against
float64. The published rule is damped balanced Sinkhorn: its error says how far its limit is from the unbalanced plan.
"""

import argparse
import os
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np

from benchmarks import instances
from benchmarks.rows import Rows, alternate
from benchmarks.uot import error, exact_plan, options, pot_per_iteration
from kernels import SOLVERS, Deadline
from kernels.papers.map_uot import cpu as published
from kernels.uot.cpu.sweeps import FusedSweeps, LogSweeps
from kernels.uot.cpu.threads import summed

UOT = SOLVERS["uot"]
METHODS: dict[str, dict[str, Any]] = {
    "map-uot, published": {"method": "map-uot", "rule": "published", "iterations": 200},
    "map-uot, corrected": {"method": "map-uot", "rule": "corrected"},
    "fused": {"method": "fused"},
    "log": {"method": "log"},
}


def measure(rows: Rows, n: int, threads: int, reg: float = 0.05, reg_m: float = 1.0) -> None:
    """All rows of one size with the threads that this process has."""
    cost, a, b = instances.uot(n)
    plain = options(reg=reg, reg_m=reg_m, storage="float32", acceleration=False)
    problem = UOT.build({"cost": cost, "a": a, "b": b}, plain)
    fused, log = (kind(problem, np.dtype(np.float32)) for kind in (FusedSweeps, LogSweeps))
    g, ones, scale = np.zeros(n), np.ones(n), np.ones(n, np.float32)
    for sweeps in (fused, log):
        sweeps.start(reg)
        sweeps.sweep(g)

    kernel = fused.kernel

    def rescale() -> None:
        summed(n, n, lambda i, j, best, total: published.rescale(i, j, kernel, scale, ones, ones, 0.9, best, total))

    ms = alternate({"fused": lambda: fused.sweep(g), "log": lambda: log.sweep(g)}, 9)
    rescale()
    ms |= alternate({"map-uot": rescale}, 9)  # last: it rewrites the kernel
    pot_ms = float(np.median([pot_per_iteration(cost, a, b, reg, reg_m) for _ in range(7)]))
    wanted = exact_plan(cost, a, b, reg, reg_m)
    for name, given in METHODS.items():
        taken = ms[given["method"]]
        chosen = options(reg=reg, reg_m=reg_m, storage="float32", **given)
        tracemalloc.start()
        plan = UOT.solve(problem, chosen, Deadline()).arrays["plan"]
        peak = tracemalloc.get_traced_memory()[1] - plan.nbytes
        tracemalloc.stop()
        rows.add(
            kind="map-uot",
            n=n,
            threads=threads,
            method=name,
            ms=taken,
            times_pot=pot_ms / taken,
            gflops=4e-6 * n * n / taken,
            peak_over_input=peak / cost.nbytes,
            plan_error=error(plan, wanted),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="4096,10240")
    parser.add_argument("--threads", type=int, help="of this process; without it, one process for each number")
    arguments = parser.parse_args()
    if arguments.threads is None:
        for threads in range(1, (os.cpu_count() or 1) + 1):
            command = [
                sys.executable,
                "-m",
                "benchmarks.uot_map",
                "--sizes",
                arguments.sizes,
                "--threads",
                str(threads),
            ]
            names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
            subprocess.run(command, check=True, env=os.environ | dict.fromkeys(names, str(threads)))
        return
    rows = Rows("uot_map")
    UOT.warm_up("cpu")
    for n in map(int, arguments.sizes.split(",")):
        measure(rows, n, arguments.threads)


if __name__ == "__main__":
    main()
