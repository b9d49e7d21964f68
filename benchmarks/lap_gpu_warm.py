"""Warm starts on one GPU beside cold ones: python -m benchmarks.lap_gpu_warm [--sizes ...] [--families ...].

A problem of which a share of the rows was drawn anew starts from the duals of the one before, or with `--noise` one
whose costs have all risen by up to so large a share. *Device*: with the matrix there, from the first launch until the
proof on the device has ended, by the clock; of a warm start duals are brought there, too. *Answer*: a call that solves
and proves, with the matrix in page-locked memory. Beside them by prices alone, and by seats whatever they leave; all in
turn, medians. The run ends where an answer is not optimal.
"""

import argparse
import statistics
import time
from typing import Any

import cupy
import cupyx
import numpy as np

from benchmarks import instances
from benchmarks.rows import Rows, on_gpu
from kernels import SOLVERS, Deadline, Termination, solve_and_prove
from kernels.lap.auto.gpu_forest import Forest, Tuning
from kernels.lap.auto.gpu_warm import start_at
from kernels.lap.proof.gpu_proof import prove
from kernels.problems.seen import Seen, note, seen_of

LAP = SOLVERS["lap"]
COUNTS = ("bid_rounds", "n_seated", "n_begun", "phases", "rounds", "scaled")
FAMILIES = "u,r01,r1,r10,sqeuclid,euclid,clustered,gene50"


def pinned(matrix: Any) -> Any:
    """The same in page-locked memory, with what the service would have seen of it."""
    held = cupyx.empty_pinned(matrix.shape, matrix.dtype)
    held[...] = matrix
    note(held, Seen(matrix.min().item(), matrix.max().item()))
    return held


def on_device(
    cost: Any, forest: Forest, duals: dict[str, Any], seen: Seen | None
) -> tuple[float, dict[str, int], list[float]]:
    """(milliseconds, counts, proof) of one solve of a matrix on the device."""
    forest.mailbox[:] = 0
    cupy.cuda.Device().synchronize()
    begun = time.perf_counter()
    start = start_at(cost, False, duals.get("u0"), duals.get("v0"), seen)
    forest.launch(cost, False, start)
    proof = prove(cost, False, forest.u, forest.v, forest.row_col)
    cupy.cuda.Device().synchronize()
    return 1e3 * (time.perf_counter() - begun), forest.facts(), proof.get().tolist()


def answered(cost: Any, **duals: Any) -> tuple[float, Any, Any]:
    """(milliseconds, solution, certificate) of one call."""
    options = LAP.options()
    problem = LAP.build({"cost": cost, **duals}, options)
    begun = time.perf_counter()
    solution, certificate = solve_and_prove(LAP, problem, options, Deadline(), "gpu")
    return 1e3 * (time.perf_counter() - begun), solution, certificate


def changed(old: Any, share: float, noise: float) -> Any:
    """The problem after it: some of its rows drawn anew, or noise on all costs."""
    n = len(old)
    if noise:
        return (old * (1 + noise * np.random.default_rng(n).random(old.shape))).astype(old.dtype)
    return instances.redrawn(old, n, share)


def one(rows: Rows, family: str, n: int, share: float, asked: argparse.Namespace) -> None:
    """All of one problem."""
    old = instances.lap(family, n)
    duals, cost = answered(pinned(old))[1].arrays, changed(old, share, asked.noise)
    held, both = pinned(cost), {"u0": duals["u"], "v0": duals["v"]}
    given: dict[str, dict[str, Any]] = {"cold": {}, "warm": both, "prices": {"v0": duals["v"]}, "seats": both}
    there = cupy.asarray(cost)
    forests = {
        name: Forest(n, n, cost.dtype, Tuning(seats_from=0, seats=1, few=1) if name == "seats" else None)
        for name in given
    }
    times: dict[str, list[float]] = {}
    counts: dict[str, dict[str, int]] = {}
    bounds: dict[str, float] = {}
    for number in range(asked.repeats + 1):
        for name, start in given.items():
            taken, counts[name], proof = on_device(there, forests[name], start, seen_of(held))
            assert proof[-1] == 0
            bounds[name] = proof[0]
            if number:
                times.setdefault(f"{name}_device_ms", []).append(taken)
            if name in ("cold", "warm"):
                wall, solution, certificate = answered(held, **start)
                assert certificate.holds
                assert solution.termination is Termination.OPTIMAL
                if number:
                    times.setdefault(f"{name}_answer_ms", []).append(wall)
    assert all(np.isclose(bounds["cold"], bound, rtol=1e-9) for bound in bounds.values())
    medians = {name: statistics.median(values) for name, values in times.items()}
    rows.add(
        family=family, n=n, dtype=cost.dtype.name, changed=share, noise=asked.noise, **medians,
        device_share=medians["warm_device_ms"] / medians["cold_device_ms"],
        answer_share=medians["warm_answer_ms"] / medians["cold_answer_ms"],
        **{f"{name}_{what}": told[what] for name, told in counts.items() for what in COUNTS},
    )  # fmt: skip


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=FAMILIES)
    parser.add_argument("--sizes", default="1024,2048,4096,8192")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--noise", type=float, default=0.0, help="on all costs, as 1e-3, in place of rows drawn anew")
    parser.add_argument("--changed", default="0.01", help="shares of the rows")
    asked = parser.parse_args()
    rows = Rows(on_gpu("lap_warm"))
    for n in map(int, asked.sizes.split(",")):
        for family in asked.families.split(","):
            for share in map(float, asked.changed.split(",")):
                one(rows, family, n, share, asked)


if __name__ == "__main__":
    main()
