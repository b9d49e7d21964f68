"""Solve and certificate beside each other: python -m benchmarks.certificates [--device gpu] [--only u1024,batch].

Of each problem: the solve on the device, the certificate on the device (the input handed over by the solver, as in a
job), the checksum of the host's bytes, which runs beside the solve, and the CPU's certificate of the same answer.
`share` is the device's certificate over the solve. The inputs are page-locked, as a worker stages them. Medians.
"""

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import instances
from benchmarks.rows import Rows
from kernels import SOLVERS, Certificate, Deadline, Solution, Solver, disagreement
from kernels.certificates.gpu.checksum import Pending, checksum
from kernels.problems import Array

Made = tuple[str, dict[str, Array], dict[str, Any]]


def lap(n: int) -> Made:
    """Uniform floats."""
    return "lap", {"cost": instances.lap("u", n).astype(np.float64)}, {}


def batch() -> Made:
    """1000 small problems."""
    return "lap", {"cost": np.random.default_rng(0).random((1000, 64, 64), dtype=np.float32)}, {}


def points(n: int) -> Made:
    """Two clouds, potentials alone."""
    rng = np.random.default_rng(1)
    clouds = {name: rng.random((n, 3), dtype=np.float32) for name in ("x", "y")}
    return "uot", clouds, {"output": "potentials"}


def costs(n: int) -> Made:
    """A matrix in float32, the plan too."""
    return "uot", {"cost": np.random.default_rng(2).random((n, n), dtype=np.float32)}, {}


CASES: dict[str, Callable[[], Made]] = {
    "u1024": lambda: lap(1024),
    "u4096": lambda: lap(4096),
    "u8192": lambda: lap(8192),
    "batch": batch,
    "points4096": lambda: points(4096),
    "points20000": lambda: points(20_000),
    "cost10240": lambda: costs(10_240),
}


def page_locked(inputs: dict[str, Array]) -> dict[str, Array]:
    """The same in page-locked memory."""
    import cupyx

    staged = {}
    for name, array in inputs.items():
        staged[name] = cupyx.empty_pinned(array.shape, array.dtype)
        staged[name][...] = array
    return staged


def timed(call: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Median milliseconds of `repeat` calls after one, and the last result."""
    call()
    taken, found = [], None
    for _ in range(repeat):
        begun = time.perf_counter()
        found = call()
        taken.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(taken), found


def measure(label: str, device: Any, repeat: int, cpu: bool) -> dict[str, Any]:
    """One row."""
    solver, inputs, given = CASES[label]()
    card = SOLVERS[solver]
    options = card.options(**given)
    problem = card.build(page_locked(inputs) if device == "gpu" else inputs, options)
    solve_ms, solution = timed(lambda: card.solve(problem, options, Deadline(600), device), repeat)
    row: dict[str, Any] = {"case": label, "solver": solver, "device": device, "solve_ms": solve_ms}
    row["termination"] = solution.termination.value
    found = None
    if device == "gpu":
        parts, found = on_device(card, problem, solution, repeat)
        row |= parts | {"share": parts["certify_ms"] / solve_ms}
    if cpu:
        begun = time.perf_counter()
        other = card.certify(problem, solution)
        row |= {"cpu_certify_ms": 1e3 * (time.perf_counter() - begun), "gap_rel": other.gap_rel, "holds": other.holds}
        if found is not None:
            row["disagreement"] = disagreement(found, other, bool(getattr(problem, "maximize", False)))
    return row


def on_device(card: Solver, problem: Any, solution: Solution, repeat: int) -> tuple[dict[str, Any], Certificate | None]:
    """The certificate on the device with the checksums known, and what these take on the host."""
    module = importlib.import_module(card.device_certificate)
    arrays = module.arrays(problem)
    begun = time.perf_counter()
    sums = [checksum(array) for array in arrays]
    checksum_ms = 1e3 * (time.perf_counter() - begun)
    ready = Pending(arrays)
    assert [ready.of(array) for array in arrays] == sums
    certify_ms, found = timed(lambda: module.certify(problem, solution, ready), repeat)
    said: dict[str, Any] = {"certify_ms": certify_ms, "checksum_ms": checksum_ms, "handed_over": len(solution.uploads)}
    said["certified"] = "gpu" if found is not None else "left to the CPU"
    said["device_gap_rel"] = None if found is None else found.gap_rel
    return said, found


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-cpu", action="store_true", help="leave out the CPU's certificate, which takes seconds")
    args = parser.parse_args()
    rows = Rows("certificates")
    for label in args.only.split(","):
        rows.add(**measure(label, args.device, args.repeat, not args.no_cpu))


if __name__ == "__main__":
    main()
