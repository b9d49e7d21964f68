"""The systems of the papers and batches on a GPU: python -m benchmarks.lap_systems [--parts systems,ablation,batched].

Milliseconds with the data on the device, median of the repeats, certificate not counted. Every row is checked: the
pairing is valid and its objective equals the sum of feasible duals. The ablation runs the classical Hungarian
algorithm at each level of tuning of Kawtikwar, Chang and Govind, -1 being Lopes et al. and 5 our own; levels below
2 are driven from Python, one launch a step.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from benchmarks import instances
from benchmarks.rows import Rows, on_gpu, published
from kernels import Deadline
from kernels.lap.batched import gpu_batched
from kernels.lap.proof.gpu_proof import named, prove_batch
from kernels.papers.hungarian import gpu as hungarian
from kernels.papers.tree import gpu as tree

SYSTEMS = (
    *(("u", n) for n in (1024, 2048, 4096, 8192)),
    *((family, n) for family in ("r1", "r10", "r01") for n in (1024, 4096, 8192)),
    *((family, 1024) for family in ("sqeuclid", "clustered", "gene50", "lowrank8", "powerlaw")),
)
ABLATION = (("u", 1024), ("u", 2048), ("u", 4096), ("r10", 4096), ("r10", 8192))
BATCHES = ((1000, 64), (1000, 128), (100, 512))
SPENT_MS = 1000.0
"""Repeats of one case end once this much was spent on them."""


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """(median, first) milliseconds of a solve whose kernels are compiled, and the last answer."""
    taken: list[float] = []
    while len(taken) < repeats and sum(taken) < SPENT_MS:
        cupy.cuda.get_current_stream().synchronize()
        start = time.perf_counter()
        answer = run()
        cupy.cuda.get_current_stream().synchronize()
        taken.append((time.perf_counter() - start) * 1e3)
    return statistics.median(taken), taken[0], answer


def check(cost: Any, answer: dict[str, Any]) -> tuple[bool, float]:
    """Whether the answer is optimal by its duals (with float64 tolerance), and the gap left; on the device."""
    n = len(cost)
    col_of, u, v = answer["col_of"], answer["u"], answer["v"]
    valid = bool((cupy.sort(col_of) == cupy.arange(n)).all())
    wide = np.int64 if cost.dtype.kind == "i" else np.float64
    objective, violation = 0, 0.0
    for first in range(0, n, 1024):
        block = cost[first : first + 1024].astype(wide)
        rows = cupy.arange(len(block))
        objective += block[rows, col_of[first : first + 1024]].sum().item()
        violation = max(violation, float((u[first : first + 1024, None] + v - block).max()))
    gap = abs(objective - u.sum().item() - v.sum().item())
    tolerance = 0.0 if wide is np.int64 else 8 * 2.0**-52 * n * float(cost.max())
    return valid and violation <= tolerance and gap <= n * tolerance, gap


def system(method: str, cost: Any, opt: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    if method == "tree":
        return tree.solve_on_device(cost, False, Deadline(60))
    return hungarian.solve_on_device(cost, False, Deadline(60), opt=opt)


def single(rows: Rows, method: str, family: str, n: int, repeats: int, opt: int = hungarian.OURS) -> None:
    cost = cupy.asarray(instances.lap(family, n))
    system(method, cost[:64, :64].copy(), opt)  # compiles
    ms, first, (ended, answer, facts) = timed(lambda: system(method, cost, opt), repeats)
    holds, gap = check(cost, answer) if ended == "optimal" else (False, float("nan"))
    hylac = published("lap")["peers"].get(family, {}).get(str(n), {}).get("HyLAC")
    peer = {} if hylac is None else {"hylac_ms": hylac}
    shared: dict[str, Any] = {"family": family, "n": n, "method": method, "ms": ms, "first_ms": first}
    rows.add(**shared, termination=str(ended), holds=holds, gap_abs=gap, **peer, **facts)


def batched(rows: Rows, count: int, n: int, dtype: str, repeats: int) -> None:
    """`ms` of the one launch on the device, `call_ms` of the call with its allocations and its wait for the status."""
    cost = cupy.asarray(instances.lap_batch(count, n).astype(dtype))

    def run() -> tuple[Any, dict[str, Any], dict[str, Any]]:
        return gpu_batched.solve_on_device(cost, None, False, Deadline(60))

    run()
    call_ms, _, (ended, out, facts) = timed(run, repeats)
    status, taken = cupy.zeros(count, np.int32), []
    for _ in range(repeats):
        begun, done = cupy.cuda.Event(), cupy.cuda.Event()
        begun.record()
        gpu_batched.launch_solve_each(cost, None, 0, count, False, out, status)
        done.record()
        done.synchronize()
        taken.append(cupy.cuda.get_elapsed_time(begun, done))
    prove_batch(cost, None, False, out)  # compiles
    begun.record()
    proof = prove_batch(cost, None, False, out)
    done.record()
    done.synchronize()
    parts = named(proof)
    tolerance = 8 * 2.0**-52 * n * float(cost.max())
    holds = parts["unassigned"] == 0 and max(parts["violation"], parts["slack"]) <= tolerance
    gap = float(cupy.abs(proof[:, 0] - proof[:, 1]).max())
    rows.add(
        family=f"batch {count}",
        n=n,
        method="batched",
        dtype=dtype,
        ms=statistics.median(taken),
        call_ms=call_ms,
        certify_ms=cupy.cuda.get_elapsed_time(begun, done),
        termination=str(ended),
        holds=bool(holds and gap <= n * tolerance),
        gap_abs=gap,
        **facts,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="systems,ablation,batched")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=8192)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    rows, parts = Rows(on_gpu("lap_systems"), arguments.out), arguments.parts.split(",")
    for count, n in BATCHES if "batched" in parts else ():
        for dtype in ("float32", "float64"):
            batched(rows, count, n, dtype, 9)
    for family, n in SYSTEMS if "systems" in parts else ():
        for method in ("hungarian", "tree") if n <= arguments.largest else ():
            single(rows, method, family, n, arguments.repeats)
    for family, n in ABLATION if "ablation" in parts else ():
        for opt in range(-1, 6) if n <= arguments.largest else ():
            single(rows, "hungarian", family, n, 1, opt)


if __name__ == "__main__":
    main()
