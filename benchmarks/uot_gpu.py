"""Unbalanced transport on one GPU: microseconds a sweep, share of the read bandwidth, time to a certified gap, memory.

    python -m benchmarks.uot_gpu sweeps | small | points | batch | gap | map | all

Every row is checked against float64 on the same data before it is timed: a row whose plan is wrong has no time.
"""

import argparse
import functools
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cupy as cp
import numpy as np

from benchmarks.rows import Rows
from kernels.deadline import Deadline
from kernels.problems import UnbalancedTransport
from kernels.uot import TransportOptions, gpu_dense
from kernels.uot import gpu_launch as on
from kernels.uot.gpu_batch import Batch
from kernels.uot.gpu_exact import Exact
from kernels.uot.gpu_geometry import STORAGE
from kernels.uot.gpu_map import Plan
from kernels.uot.marginals import Marginals
from kernels.uot.outer import iterate, schedule

BANDWIDTH = 4.6e12  # bytes a second that a bare read reaches on an H200
CHECKED = 8  # sweeps that are compared with float64
PLAN_ERROR = {"float32": 1e-4, "float16": 1e-4, "bfloat16": 1e-4}


def instance(n: int, reg: float = 0.05, reg_m: float = 1.0) -> UnbalancedTransport:
    """Squared distances in the unit cube, the second cloud shifted; masses 1 and 1.3; made on the device."""
    rng = cp.random.RandomState(n)
    x, y = rng.rand(n, 3), rng.rand(n, 3) * 0.8 + 0.2
    a, b = rng.rand(n) + 0.5, rng.rand(n) + 0.5
    cost = cp.empty((n, n), cp.float32)
    for k in range(0, n, 1024):
        cost[k : k + 1024] = sum((x[k : k + 1024, None, d] - y[None, :, d]) ** 2 for d in range(3))
    return UnbalancedTransport((a / a.sum()).get(), (1.3 * b / b.sum()).get(), reg, (reg_m, reg_m), cost=cost)


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
    return statistics.median(times)


def plan_error(dense: on.Dense, problem: UnbalancedTransport) -> float:
    """L1 distance of the plan after CHECKED sweeps from the float64 one after as many, relative to its mass.

    Where the kernel is stored in 16 bits, the reference starts from those 16 bits.
    """
    sweep_to(dense, CHECKED)
    f, g = dense.pair(dense.status.get())
    marginals = Marginals(cp, problem, dense.spread)
    exact = Exact(problem, marginals)
    if dense.storage != "float32":
        raw = dense.matrix[: dense.m, : dense.n]
        if dense.storage == "bfloat16":
            raw = (raw.astype(cp.uint32) << 16).view(cp.float32)
        exact.device_cost = -problem.reg * cp.log(cp.maximum(raw.astype(cp.float64), 1e-300))
    exact.start(problem.reg)
    g64 = cp.zeros(dense.n)
    for k in range(CHECKED):
        f64, h = exact.sweep(g64)
        state = marginals.evaluate(f64, g64, h, problem.reg)
        if k < CHECKED - 1:
            g64 = marginals.next_g(h, problem.reg)
            g64 = g64 - marginals.shift(f64, g64)
    apart, mass = 0.0, 0.0
    for rows in exact.rows():
        cost = exact.cost(rows)
        weight = marginals.weight_a[rows, None] * marginals.weight_b
        wanted = weight * cp.exp((state.f[rows, None] + state.g - cost) / problem.reg)
        found = weight * cp.exp((f[rows, None] + g - cost) / problem.reg)
        apart, mass = apart + float(abs(found - wanted).sum()), mass + float(wanted.sum())
    return apart / mass


def sweep_to(dense: on.Dense, sweeps: int) -> None:
    """Exactly `sweeps` plain sweeps from zero potentials."""
    dense.begin(dense.problem.reg, cp.zeros(dense.n))
    done = 0
    while done < sweeps:
        dense.launch(sweeps - done, -1.0, mixes=False)
        status = dense.status.get()
        done = int(status[on.ITERATIONS])
        if status[on.REASON] == on.JUMPED:
            dense.refer()
        elif status[on.REASON] != on.RUNNING:
            raise RuntimeError(f"left float32's range after {done} sweeps")


def bench_sweeps(rows: Rows, cases: list[tuple[str, str, int]]) -> None:
    for method, storage, n in cases:
        problem = instance(n)
        pool = cp.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.used_bytes()
        dense = on.Dense(problem, method, storage, 3.0, gpu_dense._processors())
        given = n * n * STORAGE[storage][1] + 16 * n
        over = (pool.used_bytes() - before) / given - 1
        error = plan_error(dense, problem) if n <= 10240 else sampled_error(dense, problem)
        right = error <= PLAN_ERROR[storage]
        count = max(30, min(1000, int(1e5 / (n * n * 4 / BANDWIDTH * 1e6 + 8))))
        us = microseconds(functools.partial(dense.launch, count, -1.0, every=1 << 30, mixes=False), count)
        size = STORAGE[storage][1]
        rows.add(
            bench="sweeps",
            method=method,
            storage=storage,
            n=n,
            us_per_sweep=us if right else None,
            bandwidth_share=n * n * size / (us * 1e-6) / BANDWIDTH if right else None,
            plan_error=error,
            memory_over_input=over,
        )
        del dense, problem


def sampled_error(dense: on.Dense, problem: UnbalancedTransport) -> float:
    """For matrices too large for float64 copies: relative error of the column sums that the last sweep worked out."""
    sweep_to(dense, CHECKED)
    f, _ = dense.pair(dense.status.get())
    some = slice(0, min(512, dense.n))
    assert problem.cost is not None
    cost = problem.cost
    if dense.storage == "float16":
        cost = None
    mass = cp.zeros(some.stop)
    for k in range(0, dense.m, 2048):
        if cost is None:
            kernel = dense.matrix[k : min(k + 2048, dense.m), some].astype(cp.float64)
        else:
            kernel = cp.exp(-cost[k : k + 2048, some].astype(cp.float64) / problem.reg)
        a = cp.asarray(problem.a[k : k + 2048])
        mass += ((a * cp.exp(f[k : k + 2048] / problem.reg))[:, None] * kernel).sum(0)
    phi = problem.reg_m[1] / (problem.reg_m[1] + problem.reg)
    wanted = -phi * problem.reg * cp.log(mass)  # up to the translation, which is the same for every column
    found = (dense.values[0, some].astype(cp.float64) - dense.beta_b[some]) * (problem.reg / on.LOG2E)
    apart = (found - wanted) / problem.reg
    return float(abs(cp.expm1(apart - cp.median(apart))).max())


def bench_points(rows: Rows) -> None:
    for n in (4096, 10240, 20480):
        rng = np.random.default_rng(n)
        x, y = rng.random((n, 3), dtype=np.float32), 0.2 + 0.8 * rng.random((n, 3), dtype=np.float32)
        a, b = rng.random(n) + 0.5, rng.random(n) + 0.5
        problem = UnbalancedTransport(a / a.sum(), 1.3 * b / b.sum(), 0.05, (1.0, 1.0), x=x, y=y)
        points = on.Points(problem, "points", "float32", 3.0, gpu_dense._processors())
        error = plan_error(points, problem)
        us = microseconds(functools.partial(points.launch, 60, -1.0, every=1 << 30, mixes=False), 60)
        rows.add(bench="points", n=n, d=3, us_per_sweep=us if error <= 1e-4 else None, plan_error=error)


def bench_batch(rows: Rows) -> None:
    for size, n in ((4096, 64), (4096, 128), (2048, 200)):
        rng = np.random.default_rng(n)
        x, y = rng.random((size, n, 3), dtype=np.float32), 0.2 + 0.8 * rng.random((size, n, 3), dtype=np.float32)
        cost = sum((x[:, :, None, d] - y[:, None, :, d]) ** 2 for d in range(3))
        a, b = rng.random((size, n)) + 0.5, rng.random((size, n)) + 0.5
        masses = a / a.sum(1, keepdims=True), 1.3 * b / b.sum(1, keepdims=True)
        batch = Batch(UnbalancedTransport(*masses, 0.05, (1.0, 1.0), cost=np.asarray(cost)))
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


def plain_sweeps(reg: float, reg_m: float, limit: int = 4000) -> int:
    """Sweeps that plain Sinkhorn needs to a relative gap of 1e-6 (float64, n = 1000)."""
    problem = instance(1000, reg, reg_m)
    marginals = Marginals(cp, problem, 3.0)
    start = cp.zeros(1000)
    found = iterate(
        marginals,
        Exact(problem, marginals),
        start,
        stages=[reg],
        tolerance=1e-6,
        limit=limit,
        deadline=Deadline(8),
        memory=0,
        translate=False,
    )
    return found.iterations


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


def bench_gap(rows: Rows, cases: list[tuple[int, float, float]]) -> None:
    options = TransportOptions.model_validate({"tolerance": 1e-6})
    plain = {}
    for n, reg, reg_m in cases:
        if (reg, reg_m) not in plain:
            plain[reg, reg_m] = plain_sweeps(reg, reg_m)
        problem = instance(n, reg, reg_m)
        assert problem.cost is not None
        spread = float(problem.cost.max() - problem.cost.min())
        dense = on.Dense(problem, "log", "float32", spread, gpu_dense._processors())
        stages = schedule(reg, spread, False)

        def work(dense: on.Dense = dense, stages: list[float] = stages) -> gpu_dense.Run | None:
            g, sweeps = cp.zeros(dense.n), 0
            for value in stages:
                run = gpu_dense._stage(dense, options, Deadline(), value, g, 5000, value == stages[-1])
                assert run is not None
                g, sweeps = run.g, sweeps + run.iterations
            return replace(run, iterations=sweeps)

        run = work()
        assert run is not None
        ms = microseconds(work, 1, 5) / 1e3
        marginals = Marginals(cp, problem, spread)
        exact = Exact(problem, marginals)
        exact.start(reg)
        f, h = exact.sweep(run.g)
        gap = marginals.evaluate(f, run.g, h, reg).relative_gap
        pot = pot_milliseconds(problem, 50)
        rows.add(
            bench="gap",
            n=n,
            reg=reg,
            reg_m=reg_m,
            ms=ms if gap <= 1e-6 else None,
            sweeps=run.iterations,
            gap_device=run.gap,
            gap_float64=gap,
            pot_ms_per_sweep=pot,
            pot_sweeps=plain[reg, reg_m],
            times_faster=pot * plain[reg, reg_m] / ms if gap <= 1e-6 else None,
        )
        del dense, exact, problem


def bench_map(rows: Rows) -> None:
    for n in (4096, 10240):
        problem = instance(n)
        marginals = Marginals(cp, problem, 3.0)
        plan = Plan(problem.cost, problem.a, problem.b, marginals.weight_a, marginals.weight_b, problem.reg)

        def work(plan: Plan = plan) -> None:
            for _ in range(50):
                plan.iterate((1 / 1.05, 1 / 1.05), True)

        us = microseconds(work, 50)
        share = 4 * n * n * 4 / (us * 1e-6) / BANDWIDTH
        rows.add(bench="map-uot", n=n, us_per_sweep=us, traffic_share=share, times_bytes_of_fused=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+")
    chosen = parser.parse_args().parts
    rows = Rows("uot_h200")
    sizes = (8192, 10240, 16384, 20480)
    if "small" in chosen or "all" in chosen:
        bench_sweeps(rows, [("fused", "float32", n) for n in (1024, 2048, 4096)])
    if "sweeps" in chosen or "all" in chosen:
        cases = [("fused", "float32", n) for n in sizes] + [("fused", "float16", n) for n in sizes]
        bench_sweeps(rows, [*cases, ("log", "float32", 4096), ("log", "float32", 10240)])
    if "points" in chosen or "all" in chosen:
        bench_points(rows)
    if "batch" in chosen or "all" in chosen:
        bench_batch(rows)
    if "gap" in chosen or "all" in chosen:
        bench_gap(
            rows, [(n, *c) for n in (4096, 10240) for c in ((0.05, 1.0), (0.01, 1.0), (0.01, 10.0), (0.01, 100.0))]
        )
    if "map" in chosen or "all" in chosen:
        bench_map(rows)


if __name__ == "__main__":
    main()
