"""What one job of each solver takes of a worker, by size: seconds, seconds of one core, and bytes at the peak.

    python -m benchmarks.loads [--device gpu] [--solver uot] [--limit-s 20]

Each case runs in a process of its own, after a whole run that compiles and loads what it needs. The
seconds are those of a solve and its certificate, as a worker makes them. Seconds of a core are added over all threads,
so on a CPU they hardly depend on what else the machine does. On a GPU the bytes are the most that were held there.
Rows go to benchmarks/results/loads.jsonl, those of a GPU to a file of its name; `python -m benchmarks.sizing` makes
tables of the latest.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks import instances
from benchmarks.estimates import peak_bytes, pinned, sizes_of
from benchmarks.rows import Rows, on_gpu
from kernels import SOLVERS, Deadline, Device, Inputs
from kernels.proving import solve_and_prove

LIMIT_S = 10.0
SIZES: dict[Device, dict[str, tuple[int, ...]]] = {
    "cpu": {"lap": (500, 1000, 2000), "auction": (500, 1000, 2000), "uot": (500, 1000, 2000), "qap": (20, 40, 80)},
    "gpu": {
        "lap": (2048, 8192, 16384),
        "auction": (2048, 8192, 16384),
        "uot": (2048, 8192, 16384),
        "qap": (40, 80, 150),
    },
}


def lap(n: int) -> tuple[Inputs, dict[str, Any]]:
    return {"cost": instances.uniform_integers(n, n).astype(np.float32)}, {}


def auction(n: int) -> tuple[Inputs, dict[str, Any]]:
    return {"benefit": instances.uniform_integers(n, n).astype(np.float32)}, {}


def uot(n: int) -> tuple[Inputs, dict[str, Any]]:
    cost, a, b = instances.uot(n)
    return {"cost": cost.astype(np.float32), "a": a, "b": b}, {"reg": 0.05, "reg_m": 1.0}


def qap(n: int) -> tuple[Inputs, dict[str, Any]]:
    rng = np.random.default_rng(n)
    made = {name: np.triu(rng.integers(0, 100, (n, n)), 1) for name in ("flow", "distance")}
    return {name: matrix + matrix.T for name, matrix in made.items()}, {}


CASES: dict[str, Callable[[int], tuple[Inputs, dict[str, Any]]]] = {
    "lap": lap,
    "auction": auction,
    "uot": uot,
    "qap": qap,
}


def measure(solver: str, n: int, device: Device, limit_s: float) -> dict[str, Any]:
    """One case in this process, which has done nothing yet."""
    card = SOLVERS[solver]
    made, given = CASES[solver](n)
    inputs, options = made if device == "cpu" else pinned(made), card.options(**given)
    problem = card.build(inputs, options)
    solve_and_prove(card, problem, options, Deadline(limit_s), device)
    grown = peak_bytes(card, inputs, options, device, limit_s)
    begun, cores = time.perf_counter(), time.process_time()
    solution, certificate = solve_and_prove(card, problem, options, Deadline(limit_s), device)
    took, of_cores = time.perf_counter() - begun, time.process_time() - cores
    needs = card.estimate(problem, options, device)
    told = {"solver": solver, "n": n, "device": device, "limit_s": limit_s, "seconds": round(took, 4)}
    told |= {"core_seconds": round(of_cores, 4), "peak_bytes": grown, "input_bytes": sum(sizes_of(inputs))}
    told |= {"estimated_bytes": needs.device_bytes if device == "gpu" else needs.host_bytes}
    return told | {"termination": str(solution.termination), "holds": certificate.holds}


def main() -> None:
    """Measure all, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solver", choices=tuple(CASES), action="append")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S)
    args = parser.parse_args()
    rows, spawn = Rows(on_gpu("loads") if args.device == "gpu" else "loads"), multiprocessing.get_context("spawn")
    for solver in args.solver or CASES:
        for n in SIZES[args.device][solver]:
            with ProcessPoolExecutor(1, mp_context=spawn) as process:
                rows.add(**process.submit(measure, solver, n, args.device, args.limit_s).result())


if __name__ == "__main__":
    main()
