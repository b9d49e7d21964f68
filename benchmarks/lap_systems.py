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
from benchmarks.rows import Rows
from kernels import Deadline
from kernels.lap import gpu_batched, gpu_hungarian, gpu_tree

SYSTEMS = (
    *(("u", n) for n in (1024, 2048, 4096, 8192)),
    *((family, n) for family in ("r1", "r10", "r01") for n in (1024, 4096, 8192)),
    *((family, 1024) for family in ("sqeuclid", "clustered", "gene50", "lowrank8", "powerlaw")),
)
HYLAC_MS = {
    ("u", 4096): 2001,
    ("u", 8192): 11890,
    ("r10", 4096): 76,
    ("r10", 8192): 179,
    ("r1", 8192): 47,
    ("r01", 8192): 5,
}
ABLATION = (("u", 512), ("u", 1024), ("u", 2048), ("u", 4096))


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, float, Any]:
    """(median, first) milliseconds after one run that compiles, and the last answer."""
    run()
    taken = []
    for _ in range(repeats):
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


def single(rows: Rows, method: str, family: str, n: int, repeats: int, opt: int = gpu_hungarian.OURS) -> None:
    cost = cupy.asarray(instances.lap(family, n))
    if method == "tree":
        ms, first, (ended, answer, facts) = timed(lambda: gpu_tree.solve_on_device(cost, False, Deadline(10)), repeats)
    else:
        ms, first, (ended, answer, facts) = timed(
            lambda: gpu_hungarian.solve_on_device(cost, False, Deadline(10), opt=opt), repeats
        )
    holds, gap = check(cost, answer) if ended == "optimal" else (False, float("nan"))
    peer = {"hylac_ms": HYLAC_MS[family, n]} if (family, n) in HYLAC_MS else {}
    shared: dict[str, Any] = {"family": family, "n": n, "method": method, "ms": ms, "first_ms": first}
    rows.add(**shared, termination=str(ended), holds=holds, gap_abs=gap, **peer, **facts)


def batched(rows: Rows, count: int, n: int, repeats: int) -> None:
    host = instances.lap_batch(count, n)
    for dtype in (np.float32, np.float64):
        cost = cupy.asarray(host.astype(dtype))
        ms, first, (ended, out, facts) = timed(
            lambda cost=cost: gpu_batched.solve_on_device(cost, None, False, Deadline(10)),  # type: ignore[misc]
            repeats,
        )
        holds, gap = True, 0.0
        for k in range(0, count, max(1, count // 25)):
            answer = {"col_of": out["assignment"][k], "u": out["u"][k], "v": out["v"][k]}
            fine, left = check(cost[k], answer)
            holds, gap = holds and fine, max(gap, left)
        shared: dict[str, Any] = {
            "family": f"batch {count}",
            "n": n,
            "method": "batched",
            "dtype": np.dtype(dtype).name,
        }
        rows.add(**shared, ms=ms, first_ms=first, termination=str(ended), holds=holds, gap_abs=gap, **facts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="systems,ablation,batched")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=8192)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    rows, parts = Rows("lap_systems", arguments.out), arguments.parts.split(",")
    if "batched" in parts:
        for count, n in ((1000, 64), (1000, 128), (100, 512)):
            batched(rows, count, n, arguments.repeats)
    for family, n in SYSTEMS if "systems" in parts else ():
        for method in ("hungarian", "tree") if n <= arguments.largest else ():
            single(rows, method, family, n, arguments.repeats)
    for family, n in ABLATION if "ablation" in parts else ():
        for opt in range(-1, 6) if n <= arguments.largest else ():
            single(rows, "hungarian", family, n, 1, opt)


if __name__ == "__main__":
    main()
