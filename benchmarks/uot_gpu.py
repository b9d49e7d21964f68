"""Unbalanced transport on one GPU: microseconds a sweep, share of the read bandwidth, time to a certified gap, memory.

    python -m benchmarks.uot_gpu float32 float16 log gap points batch map [--sizes 8192 10240] [--cuts 3]
    python -m benchmarks.uot_gpu peers --sizes 1024 4096    # OTT-JAX and GeomLoss, to uot_peers_<gpu>.jsonl

Every row is checked against float64 on the same data before it is timed: a row whose plan is wrong has no time.
"""

import argparse
import functools
import gc
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cupy as cp
import numpy as np

from benchmarks.bandwidth import read_bytes_per_s
from benchmarks.rows import Rows, on_gpu
from benchmarks.uot_checks import error, instance
from kernels import cuda
from kernels.deadline import Deadline
from kernels.papers.map_uot.gpu import Plan
from kernels.problems import UnbalancedTransport
from kernels.problems.arrays import Array
from kernels.uot import TransportOptions
from kernels.uot.batch.gpu_sweeps import Batch
from kernels.uot.dense import gpu_dense
from kernels.uot.dense.gpu_exact import ExactSweeps
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.iteration.gpu_geometry import STORAGE, Geometry, MatrixSize
from kernels.uot.marginals import Marginals
from kernels.uot.outer import schedule
from kernels.uot.points.gpu_clouds import PointClouds
from kernels.uot.stages import Run

# Sweeps of plain Sinkhorn to a relative gap of 1e-6 at (reg, reg_m), float64, n = 1000: the number hardly depends on n.
# python -m benchmarks.uot --counts counts them: 64, 313, 3359 and 34,416 on its instance.
PLAIN = {(0.05, 1.0): 64, (0.01, 1.0): 312, (0.01, 10.0): 3355, (0.01, 100.0): 34_000}
PARTS = ["float32", "float16", "log", "points", "batch", "gap", "map", "peers"]
PLAN_ERROR = {"float32": 1e-4, "float16": 1e-4, "bfloat16": 1e-4}


def microseconds(work: Callable[[], Any], count: int, repeats: int = 3) -> float:
    """Median time of one of the `count` steps that work() queues."""
    times = []
    for _ in range(repeats):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, end) * 1e3 / count)
    return float(statistics.median(times))


def geometries(problem: UnbalancedTransport, method: str, storage: str, count: int) -> list[Geometry]:
    """The geometry that is taken by default, and others that should be nearly as fast."""
    first = on.Dense(problem, method, storage, 3.0, cuda.attribute("MultiProcessorCount")).cut
    matrix = MatrixSize(*problem.shape, storage, first.teams, first.cluster, method == "log" and not first.keeps, False)
    found = {_kind(first): first}
    for _, cut in sorted(matrix.cuts(), key=lambda one: one[0]):
        if cut.keeps == first.keeps and cut.teams == first.teams and len(found) < count:
            found.setdefault(_kind(cut), cut)
    return list(found.values())


def _kind(cut: Geometry) -> tuple[bool, int]:
    """Cuts of one kind are much alike: many or few threads, and the size of a group."""
    return cut.threads > 300, round(cut.group * cut.width / cut.teams / 250)


def bench_sweeps(rows: Rows, cases: list[tuple[str, str, int]], cuts: int) -> None:
    pool = cp.get_default_memory_pool()
    for method, storage, n in cases:
        problem = instance(n)
        for cut in geometries(problem, method, storage, cuts) if cuts > 1 else [None]:
            gc.collect()  # what earlier cases left in cycles would be counted, and used again
            pool.free_all_blocks()
            before = pool.total_bytes()
            dense = on.Dense(problem, method, storage, 3.0, cuda.attribute("MultiProcessorCount"), cut)
            given = n * n * STORAGE[storage][1] + 16 * n
            over = (pool.total_bytes() - before) / given - 1
            plan_error = error(dense, problem)
            right = plan_error <= PLAN_ERROR[storage]
            count = max(30, min(1000, int(1e5 / (n * n * 4 / read_bytes_per_s() * 1e6 + 8))))
            work = functools.partial(dense.launch, count, -1.0, every=1 << 30, mixes=False)
            us = microseconds(work, count)
            mixing = microseconds(functools.partial(dense.launch, count, -1.0), count)
            bandwidth = n * n * STORAGE[storage][1] / (us * 1e-6) / read_bytes_per_s()
            g = dense.cut
            rows.add(
                bench="sweeps",
                method=method,
                storage=storage,
                n=n,
                us_per_sweep=us if right else None,
                bandwidth_share=bandwidth if right else None,
                us_accelerated=mixing if right else None,
                plan_error=plan_error,
                memory_over_input=over,
                cut=f"{g.teams} x {g.cluster} blocks of {g.threads}, {g.lanes} lanes, {g.pieces} pieces, {g.rows} rows",
            )
            del dense, work
        del problem


def bench_points(rows: Rows) -> None:
    for n, d in ((4096, 3), (10240, 3), (20480, 3), (100_000, 3), (10240, 64)):
        rng = np.random.default_rng(n)
        x, y = rng.random((n, d), dtype=np.float32), 0.2 + 0.8 * rng.random((n, d), dtype=np.float32)
        x, y = x * (3 / d) ** 0.5, y * (3 / d) ** 0.5  # costs of the same size in every dimension
        a, b = rng.random(n) + 0.5, rng.random(n) + 0.5
        problem = UnbalancedTransport(a / a.sum(), 1.3 * b / b.sum(), 0.05, (1.0, 1.0), x=x, y=y)
        points = PointClouds(problem, "points", "float32", 3.0, cuda.attribute("MultiProcessorCount"))
        plan_error = error(points, problem)
        us = microseconds(functools.partial(points.launch, 20, -1.0, every=1 << 30, mixes=False), 20)
        rows.add(bench="points", n=n, d=d, us_per_sweep=us if plan_error <= 1e-4 else None, plan_error=plan_error)


def bench_batch(rows: Rows) -> None:
    for size, n in ((4096, 64), (4096, 128), (2048, 200)):
        rng = np.random.default_rng(n)
        x, y = rng.random((size, n, 3), dtype=np.float32), 0.2 + 0.8 * rng.random((size, n, 3), dtype=np.float32)
        cost = np.asarray(sum((x[:, :, None, d] - y[:, None, :, d]) ** 2 for d in range(3)))
        a, b = rng.random((size, n)) + 0.5, rng.random((size, n)) + 0.5
        masses = a / a.sum(1, keepdims=True), 1.3 * b / b.sum(1, keepdims=True)
        problem = UnbalancedTransport(*masses, 0.05, (1.0, 1.0))
        batch = Batch(problem, cp.asarray(cost), np.ptp(cost, axis=(1, 2)))
        start = batch.g.copy()
        for tolerance, every in ((-1.0, 1 << 30), (1e-6, 8)):

            def work(
                tolerance: float = tolerance, every: int = every, batch: Batch = batch, start: Any = start
            ) -> None:
                batch.g[:], batch.status[:] = start, 0
                batch.launch(100, tolerance, every)

            us = microseconds(work, 1)
            status = batch.status.get()
            gap = status[:, on.GAP] / abs(status[:, on.PRIMAL])
            right = bool((gap <= 1e-6).all())
            rows.add(
                bench="batch",
                batch=size,
                n=n,
                sweeps=float(status[:, on.ITERATIONS].mean()),
                ms=us / 1e3 if right else None,
                largest_gap=float(gap.max()),
                tolerance=tolerance,
            )


def pot_milliseconds(problem: UnbalancedTransport, sweeps: int) -> float:
    """Milliseconds that one iteration of POT's sinkhorn_unbalanced takes on torch tensors on the device."""
    import ot
    import torch

    a, b = (torch.tensor(v, dtype=torch.float32, device="cuda") for v in (problem.a, problem.b))
    cost = torch.from_dlpack(problem.cost)

    def work() -> None:
        ot.unbalanced.sinkhorn_unbalanced(
            a, b, cost, problem.reg, problem.reg_m[0], numItermax=sweeps, stopThr=0, warn=False
        )

    work()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / sweeps


def to_gap(problem: UnbalancedTransport) -> tuple[float, int, float, float]:
    """Milliseconds of ours to a gap of 1e-6, sweeps, the gap that the device saw, and that gap in float64."""
    options = TransportOptions.model_validate({"tolerance": 1e-6})
    assert problem.cost is not None
    spread = float(problem.cost.max() - problem.cost.min())
    dense = on.Dense(problem, "log", "float32", spread, cuda.attribute("MultiProcessorCount"))
    stages = schedule(problem.reg, spread, False)

    def work() -> Run:
        g, sweeps = cp.zeros(dense.n), 0
        for value in stages:
            begun = gpu_dense.Begun([value], g, 5000, sweeps)
            run = gpu_dense._stage(dense, options, Deadline(), begun, value == stages[-1])
            assert run is not None
            g, sweeps = run.g, sweeps + run.iterations
        assert run is not None
        return replace(run, iterations=sweeps)

    run = work()
    ms = microseconds(work, 1, 5) / 1e3
    marginals = Marginals(cp, problem, spread)
    exact = ExactSweeps(problem, marginals)
    exact.start(problem.reg)
    f, h = exact.sweep(run.g)
    return ms, run.iterations, run.gap, marginals.evaluate(f, run.g, h, problem.reg).relative_gap


def bench_gap(rows: Rows, cases: list[tuple[int, float, float]]) -> None:
    for n, reg, reg_m in cases:
        plain = PLAIN[reg, reg_m]
        problem = instance(n, reg, reg_m)
        ms, sweeps, gap_device, gap = to_gap(problem)
        pot = pot_milliseconds(problem, 50)
        rows.add(
            bench="gap",
            n=n,
            reg=reg,
            reg_m=reg_m,
            ms=ms if gap <= 1e-6 else None,
            sweeps=sweeps,
            gap_device=gap_device,
            gap_float64=gap,
            pot_ms_per_sweep=pot,
            pot_sweeps=plain,
            times_faster=pot * plain / ms if gap <= 1e-6 else None,
        )
        del problem


def bench_peers(rows: Rows, cases: list[tuple[int, float, float]], limit_s: float) -> None:
    """OTT-JAX and GeomLoss on the same device; their plans are compared with float64 on the host."""
    from benchmarks import uot, uot_peers

    for n, reg, reg_m in cases:
        problem = instance(n, reg, reg_m)
        assert problem.cost is not None
        on_device: Any = problem.cost
        cost: Array = on_device.get()
        on_host = replace(problem, cost=cost)
        wanted = uot.exact_plan(cost, on_host.a, on_host.b, reg, reg_m)
        compare = functools.partial(uot.error, wanted=wanted)
        if (reg, reg_m) == (0.05, 1.0):
            ours = {}
            for method in ("fused", "log"):
                dense = on.Dense(problem, method, "float32", 3.0, cuda.attribute("MultiProcessorCount"))
                if error(dense, problem) <= PLAN_ERROR["float32"]:
                    work = functools.partial(dense.launch, 100, -1.0, every=1 << 30, mixes=False)
                    ours[method] = microseconds(work, 100) / 1e3
            uot_peers.iterations(rows, on_host, compare, ours, "gpu")
        ms, _, _, gap = to_gap(problem)
        if gap <= 1e-6:
            uot_peers.gaps(rows, on_host, compare, ms, limit_s, "gpu")


def bench_map(rows: Rows) -> None:
    for n in (4096, 10240):
        problem = instance(n)
        marginals = Marginals(cp, problem, 3.0)
        plan = Plan(problem.cost, problem.a, problem.b, marginals.weight_a, marginals.weight_b, problem.reg)

        def work(plan: Plan = plan) -> None:
            for _ in range(50):
                plan.iterate((1 / 1.05, 1 / 1.05), True)

        us = microseconds(work, 50)
        share = 4 * n * n * 4 / (us * 1e-6) / read_bytes_per_s()
        rows.add(bench="map-uot", n=n, us_per_sweep=us, traffic_share=share, times_bytes_of_fused=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[8192, 10240, 16384, 20480])
    parser.add_argument("--cuts", type=int, default=1, help="how many geometries of a sweep to measure")
    parser.add_argument("--limit-s", type=float, default=5.0, help="peers: of one of their runs")
    chosen = parser.parse_args()
    rows = Rows(on_gpu("uot"))
    for part in chosen.parts:
        if part in ("float32", "float16"):
            bench_sweeps(rows, [("fused", part, n) for n in chosen.sizes], chosen.cuts)
        if part == "log":
            bench_sweeps(rows, [("log", "float32", n) for n in chosen.sizes], chosen.cuts)
    if "points" in chosen.parts:
        bench_points(rows)
    if "batch" in chosen.parts:
        bench_batch(rows)
    if "gap" in chosen.parts:
        bench_gap(rows, [(n, *c) for n in chosen.sizes for c in PLAIN])
    if "peers" in chosen.parts:
        bench_peers(Rows(on_gpu("uot_peers")), [(n, *c) for n in chosen.sizes for c in PLAIN], chosen.limit_s)
    if "map" in chosen.parts:
        bench_map(rows)


if __name__ == "__main__":
    main()
