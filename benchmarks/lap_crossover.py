"""From which size a GPU answers a whole call sooner than the CPU twin: python -m benchmarks.lap_crossover.

Whole calls of `solve`, in milliseconds: transfers, proof on the device and answer included. Inputs lie in page-locked
memory, where a GPU worker has them. Both devices run in this process, one after the other, and every answer is checked.
"""

import argparse
import statistics
import time
from typing import Any

import cupyx
import numpy as np

from benchmarks import instances
from benchmarks.rows import Rows, on_gpu
from kernels import SOLVERS, Deadline, Device

LAP = SOLVERS["lap"]
SINGLE = (("u", "float64"), ("u", "float32"), ("r1", "int32"), ("sqeuclid", "float64"), ("clustered", "float64"))
SIZES = (32, 64, 128, 192, 256, 384, 512, 768, 1024)
BATCHES = tuple((count, n) for n in (16, 32, 64, 128, 256) for count in (10, 100, 1000) if count * n <= 128_000)
SPENT_S = 0.15
"""Seconds of repeats of one case on one device, at most."""


def pinned(host: instances.Array) -> Any:
    array = cupyx.empty_pinned(host.shape, host.dtype)
    array[...] = host
    return array


def whole_call(cost: Any, device: Device) -> tuple[float, bool]:
    """Median milliseconds of 3 to 30 calls, and whether the certificate holds."""
    options = LAP.options()
    problem = LAP.build({"cost": cost}, options)
    holds = LAP.certify(problem, LAP.solve(problem, options, Deadline(), device)).holds is True
    times: list[float] = []
    while len(times) < 3 or (sum(times) < 1e3 * SPENT_S and len(times) < 30):
        start = time.perf_counter()
        LAP.solve(problem, options, Deadline(), device)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), holds


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows = Rows(on_gpu("lap_crossover"))
    LAP.warm_up("cpu")
    LAP.warm_up("gpu")
    cases = [
        (f"{family} {dtype}", 1, n, instances.lap(family, n).astype(dtype)) for family, dtype in SINGLE for n in SIZES
    ]
    for dtype in ("float32", "float64"):
        cases += [(f"batch {dtype}", b, n, instances.lap_batch(b, n).astype(dtype)) for b, n in BATCHES]
    for family, count, n, host in cases:
        cost = pinned(np.ascontiguousarray(host))
        (cpu_ms, cpu_holds), (gpu_ms, gpu_holds) = whole_call(cost, "cpu"), whole_call(cost, "gpu")
        rows.add(family=family, batch=count, n=n, cpu_ms=cpu_ms, gpu_ms=gpu_ms, holds=cpu_holds and gpu_holds)


if __name__ == "__main__":
    main()
