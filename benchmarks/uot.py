"""Unbalanced transport on the CPU beside its peers: python -m benchmarks.uot [--sizes 1024,4096,10240] [--no-gap].

With --counts, alone: `count` rows, the sweeps to a gap of 1e-6 with acceleration and without, in float64.

`iteration` rows: milliseconds of one full Sinkhorn iteration, everything set up, in float32; POT's is the difference of
two runs of different length. `read` is a bare pass over the kernel, the least that any iteration can take. `gap` rows:
time to a certified relative gap of 1e-6, ours with and without acceleration (the same sweeps), and POT's own loop (in
float64: in float32 it overflows) run in steps until its plan has that gap. OTT-JAX and GeomLoss stand beside both where
installed (benchmarks/uot_peers.py). Every row carries the error of its plan to a float64 solve (L1 over mass).
"""

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ot
from numba import njit

from benchmarks import instances, uot_peers
from benchmarks.instances import Array
from benchmarks.rows import Rows, alternate
from kernels import SOLVERS, Deadline, Solution, Termination
from kernels.papers.map_uot import cpu as published
from kernels.problems import UnbalancedTransport
from kernels.uot import TransportOptions
from kernels.uot.cpu.sweeps import FusedSweeps, LogSweeps
from kernels.uot.cpu.threads import in_threads, summed

UOT = SOLVERS["uot"]
CASES = ((0.05, 1.0), (0.01, 1.0), (0.01, 10.0), (0.01, 100.0))
"""reg and reg_m of the times to a gap."""


def options(**given: Any) -> TransportOptions:
    return TransportOptions.model_validate(given)


def exact_plan(cost: Array, a: Array, b: Array, reg: float, reg_m: float) -> Array:
    """The plan in float64 to a relative gap of 1e-11."""
    chosen = options(reg=reg, reg_m=reg_m, storage="float64", tolerance=1e-11)
    problem = UOT.build({"cost": cost, "a": a, "b": b}, chosen)
    return np.asarray(UOT.solve(problem, chosen, Deadline()).arrays["plan"])


def error(plan: Array, wanted: Array) -> float:
    """L1 distance over the mass, in blocks."""
    step = max(1, (1 << 22) // plan.shape[1])
    apart = 0.0
    for i in range(0, len(plan), step):
        apart += float(np.abs(np.subtract(plan[i : i + step], wanted[i : i + step], dtype=np.float64)).sum())
    return apart / float(wanted.sum(dtype=np.float64))


@njit(nogil=True, fastmath=True, cache=True)
def _read(first: int, last: int, kernel: Array, out: Array) -> None:
    for i in range(first, last):
        total = np.float32(0)
        for j in range(kernel.shape[1]):
            total += kernel[i, j]
        out[i] = total


def pot(cost: Array, a: Array, b: Array, reg: float, reg_m: float, iterations: int, start: Any = None) -> Any:
    """POT's numpy Sinkhorn for a fixed number of iterations: plan and log."""
    return ot.unbalanced.sinkhorn_knopp_unbalanced(
        a, b, cost, reg, reg_m, numItermax=iterations, stopThr=0.0, warmstart=start, log=True
    )


def pot_per_iteration(cost: Array, a: Array, b: Array, reg: float, reg_m: float) -> float:
    """Milliseconds of one of POT's iterations, by difference of two runs; the longer one makes `more` iterations."""
    more = 100 if len(a) < 3000 else 10
    taken = []
    for iterations in (3, 3 + more):
        start = time.perf_counter()
        pot(cost, a, b, reg, reg_m, iterations)
        taken.append(time.perf_counter() - start)
    return max(0.0, (taken[1] - taken[0]) * 1e3 / more)


def iteration(rows: Rows, n: int, repeats: int, reg: float = 0.05, reg_m: float = 1.0) -> None:
    """Milliseconds per iteration of each method and of POT, medians of alternating runs."""
    cost, a, b = instances.uot(n)
    plain = options(reg=reg, reg_m=reg_m, acceleration=False, storage="float32")
    problem: UnbalancedTransport = UOT.build({"cost": cost, "a": a, "b": b}, plain)
    fused, log = (kind(problem, np.dtype(np.float32)) for kind in (FusedSweeps, LogSweeps))
    g = np.zeros(n)
    for sweeps in (fused, log):
        sweeps.start(reg)
        sweeps.sweep(g)
    ones, out = np.ones(n), np.empty(n, np.float32)
    kernel = fused.kernel

    def map_uot() -> None:
        summed(n, n, lambda i, j, best, total: published.rescale(i, j, kernel, scale, ones, ones, 0.9, best, total))

    scale = np.ones(n, np.float32)
    contestants: dict[str, Callable[[], Any]] = {
        "fused": lambda: fused.sweep(g),
        "log": lambda: log.sweep(g),
        "read": lambda: in_threads(n, n, lambda _, i, j: _read(i, j, kernel, out)),
    }
    for run in contestants.values():
        run()
    ms = alternate(contestants, repeats)
    pots = [pot_per_iteration(cost, a, b, reg, reg_m) for _ in range(5)]
    map_uot()
    ms |= alternate({"map-uot": map_uot}, repeats)  # last: it rewrites the kernel
    wanted, pot_ms = exact_plan(cost, a, b, reg, reg_m), float(np.median(pots))
    for name, taken in ms.items():
        row = {"ms": taken, "gb_per_s": 4e-6 * n * n / taken, "of_read": ms["read"] / taken}
        if name != "read":
            chosen = options(reg=reg, reg_m=reg_m, method=name, storage="float32")
            plan = UOT.solve(problem, chosen, Deadline()).arrays["plan"]
            row |= {"pot_ms": pot_ms, "times_pot": pot_ms / taken, "plan_error": error(plan, wanted)}
        rows.add(kind="iteration", n=n, method=name, **row)
    ours = {name: ms[name] for name in ("fused", "log")}
    uot_peers.iterations(rows, problem, functools.partial(error, wanted=wanted), ours, "cpu")


def to_gap(rows: Rows, n: int, reg: float, reg_m: float, limit_s: float) -> None:
    """Seconds to a certified relative gap of 1e-6: ours, plain Sinkhorn with our sweeps, POT."""
    cost, a, b = instances.uot(n)
    plan_error = functools.partial(error, wanted=exact_plan(cost, a, b, reg, reg_m))
    ours_ms = float("nan")
    for name, more in (("allot", {}), ("plain sinkhorn", {"acceleration": False})):
        chosen = options(reg=reg, reg_m=reg_m, iterations=1_000_000, storage="float32", **more)
        problem = UOT.build({"cost": cost, "a": a, "b": b}, chosen)
        solution, ms = _timed(problem, chosen, limit_s, 1 if more else 7)
        ours_ms = ms if name == "allot" else ours_ms
        certificate = UOT.certify(problem, solution)
        uot_peers.gap_row(rows, problem, name, solution, certificate.gap_rel, ms, ours_ms, plan_error)
    problem = UOT.build({"cost": cost, "a": a, "b": b}, chosen)
    wide_cost, wide_a, wide_b = (v.astype(np.float64) for v in (cost, a, b))
    solution, gap, ms = pot_to_gap(problem, wide_cost, wide_a, wide_b, limit_s)
    uot_peers.gap_row(rows, problem, "POT numpy", solution, gap, ms, ours_ms, plan_error)
    uot_peers.gaps(rows, problem, plan_error, ours_ms, min(limit_s, 10.0), "cpu")


def _timed(
    problem: UnbalancedTransport, chosen: TransportOptions, limit_s: float, repeats: int
) -> tuple[Solution, float]:
    """The solution and the median of its milliseconds."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        solution = UOT.solve(problem, chosen, Deadline(limit_s))
        taken.append((time.perf_counter() - start) * 1e3)
    return solution, float(np.median(taken))


def pot_to_gap(
    problem: UnbalancedTransport, cost: Array, a: Array, b: Array, limit_s: float
) -> tuple[Solution, float | None, float]:
    """Run POT warm from itself in growing steps until its plan certifies, or it overflows, or time is out.

    Only its own loop is timed; the step in which the gap fell is counted whole.
    """
    ms, done, step, start = 0.0, 0, 20, None
    reg, reg_m = problem.reg, problem.reg_m[0]
    while True:
        before = time.perf_counter()
        plan, log = pot(cost, a, b, reg, reg_m, step, start)
        ms += (time.perf_counter() - before) * 1e3
        made = len(log["err"])
        done += made
        start = log["logu"], log["logv"]
        # POT's scalings are those of the kernel a b' exp(-C / reg) too.
        arrays = {"plan": plan, "f": reg * np.asarray(start[0]), "g": reg * np.asarray(start[1])}
        solution = Solution(Termination.ITERATION_LIMIT, "POT numpy", arrays, iterations=done)
        gap = UOT.certify(problem, solution).gap_rel
        if (
            (gap is not None and gap <= uot_peers.GAP) or ms > 1e3 * limit_s or made < step
        ):  # it stops early when it overflows
            return solution, gap, ms
        step = max(20, done // 4)


def count(rows: Rows, n: int, reg: float, reg_m: float) -> None:
    """Sweeps to a relative gap of 1e-6 in float64, with acceleration and without."""
    cost, a, b = instances.uot(n)
    for name, acceleration in (("allot", True), ("plain sinkhorn", False)):
        more: dict[str, Any] = {"method": "log", "storage": "float64", "iterations": 100_000}
        chosen = options(reg=reg, reg_m=reg_m, acceleration=acceleration, tolerance=uot_peers.GAP, **more)
        problem = UOT.build({"cost": cost, "a": a, "b": b}, chosen)
        solution = UOT.solve(problem, chosen, Deadline())
        gap = UOT.certify(problem, solution).gap_rel
        rows.add(kind="count", n=n, reg=reg, reg_m=reg_m, method=name, iterations=solution.iterations, gap_rel=gap)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1024,2048,4096,10240")
    parser.add_argument("--gap-sizes", default="1024,4096")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--limit-s", type=float, default=60.0)
    parser.add_argument("--no-gap", action="store_true")
    parser.add_argument("--counts", action="store_true", help="count sweeps to a gap at n = 1000, and nothing else")
    arguments = parser.parse_args()
    rows = Rows("uot")
    UOT.warm_up("cpu")
    if arguments.counts:
        for case in CASES:
            count(rows, 1000, *case)
        return
    for n in map(int, filter(None, arguments.sizes.split(","))):
        iteration(rows, n, arguments.repeats)
    if not arguments.no_gap:
        for n in map(int, arguments.gap_sizes.split(",")):
            for case in CASES:
                to_gap(rows, n, *case, arguments.limit_s)


if __name__ == "__main__":
    main()
