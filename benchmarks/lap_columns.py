"""Dense linear assignment beyond the forest's size, on one GPU: python -m benchmarks.lap_columns.

Costs are drawn on the device: the host would take minutes to draw and send them. `ms` is of the whole solve, data there
already, and `soften_ms` of the soft minima in it. `sweep_ms` is of one pricing of all rows, and `floor_ms` what reading
the matrix must cost. The certificate is the service's code on the device, apart; a wrong answer has no time.
"""

import argparse
import time
from typing import Any

import cupy
import numpy as np

from benchmarks.bandwidth import read_bytes_per_s
from benchmarks.rows import Rows, on_gpu
from kernels import Deadline, Solution, Termination
from kernels.certificates.gpu.gpu_assignment import closes
from kernels.certificates.gpu.gpu_lines import Lines, weigh
from kernels.lap.columns import solver
from kernels.lap.columns.gpu_dense import DeviceSearch, HeldRows
from kernels.lap.columns.level import unlimited

FAMILIES = ("uniform", "integers", "offsets", "places")
LIMIT_S = 40.0
BLOCK = 1024
"""Rows drawn at a time."""


def drawn(family: str, n: int, seed: int = 0) -> Any:
    """Costs (n, n) on the device, float32, or int32 in [0, n)."""
    rng = cupy.random.default_rng(seed)
    if family == "integers":
        cost = cupy.empty((n, n), np.int32)
        for first in range(0, n, BLOCK):
            cost[first : first + BLOCK] = rng.integers(0, n, (min(BLOCK, n - first), n), dtype=np.int32)
        return cost
    cost = cupy.empty((n, n), np.float32)
    x, y = rng.random((n, 2), dtype=np.float32), rng.random((2, n), dtype=np.float32)
    for first in range(0, n, BLOCK):
        rows = cost[first : first + BLOCK]
        if family == "places":
            here = x[first : first + BLOCK]
            rows[:] = (here[:, :1] - y[:1]) ** 2 + (here[:, 1:] - y[1:]) ** 2
            continue
        rows[:] = rng.random((len(rows), n), dtype=np.float32)
        if family == "offsets":
            rows += 5 * x[first : first + BLOCK, :1] + 5 * y[:1]
    return cost


def proved(cost: Any, solution: Solution) -> tuple[float, dict[str, Any]]:
    """Milliseconds of the certificate, and what it found."""
    since, wide = time.perf_counter(), np.int64 if cost.dtype.kind == "i" else np.float64
    u, v, assignment = (
        cupy.asarray(solution.arrays[name].astype(dtype)[None])
        for name, dtype in (("u", wide), ("v", wide), ("assignment", np.int64))
    )
    found = weigh(Lines(cost[None], 1, u, v, assignment), (True, False))
    took = 1e3 * (time.perf_counter() - since)
    facts, gap = found.facts, np.array([a - b for a, b in zip(found.objective, found.bound, strict=True)], float)
    bad = facts["fault"].any() or facts["missing"].any() or facts["without"].any()
    exact = cost.dtype.kind == "i"
    closed = (gap == 0).all() if exact else closes(gap, facts["objective"], facts["sizes"]).all()
    return took, {
        "holds": bool(closed and not bad and solution.termination is Termination.OPTIMAL),
        "objective": float(found.objective[0]),
        "gap_abs": float(gap[0]),
        "max_violation": float(facts["violation"].max()),
    }


def one(family: str, n: int) -> dict[str, Any]:
    """One solve and its certificate."""
    cost = drawn(family, n)
    search = DeviceSearch([HeldRows(0, 0, cost)], False)
    v, limits = np.zeros(n, search.dtype), unlimited(n, search.dtype)
    sweeps = []
    for _ in range(3):
        since = time.perf_counter()
        search.cheapest(v, v, np.arange(n), limits, solver.COLUMNS, Deadline())
        sweeps.append(1e3 * (time.perf_counter() - since))
    since = time.perf_counter()
    solver.soften(search, Deadline())
    soften_ms = 1e3 * (time.perf_counter() - since)
    since = time.perf_counter()
    solution = solver.solve(search, False, Deadline(LIMIT_S))
    ms = 1e3 * (time.perf_counter() - since)
    certify_ms, proof = proved(cost, solution)
    return {
        "family": family,
        "n": n,
        "dtype": cost.dtype.name,
        "device": "gpu",
        "method": "columns",
        "ms": ms if proof["holds"] else float("nan"),
        "sweep_ms": min(sweeps),
        "floor_ms": 1e3 * cost.nbytes / read_bytes_per_s(),
        "soften_ms": soften_ms,
        "certify_ms": certify_ms,
        **proof,
        **solution.facts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--sizes", default="65536,98304,131072")
    arguments = parser.parse_args()
    rows = Rows(on_gpu("lap_columns"))
    one("uniform", 2048)  # loads what is compiled
    one("integers", 2048)
    for n in map(int, arguments.sizes.split(",")):
        for family in arguments.families.split(","):
            rows.add(**one(family, n))
            cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
