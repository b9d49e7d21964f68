"""Whether sweeps on a GPU gave the right plan: against float64 on the same data, whole or for some columns."""

import cupy as cp

from kernels.problems import UnbalancedTransport
from kernels.uot.dense.gpu_exact import ExactSweeps, distances
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.marginals import Marginals

CHECKED = 8  # sweeps that are compared with float64
LARGEST = 10240  # rows of a problem that is compared whole


def instance(n: int, reg: float = 0.05, reg_m: float = 1.0) -> UnbalancedTransport:
    """Squared distances in the unit cube, the second cloud shifted; masses 1 and 1.3; made on the device."""
    rng = cp.random.RandomState(n)
    x, y = rng.rand(n, 3), rng.rand(n, 3) * 0.8 + 0.2
    a, b = rng.rand(n) + 0.5, rng.rand(n) + 0.5
    cost = cp.empty((n, n), cp.float32)
    for k in range(0, n, 1024):
        cost[k : k + 1024] = sum((x[k : k + 1024, None, d] - y[None, :, d]) ** 2 for d in range(3))
    return UnbalancedTransport((a / a.sum()).get(), (1.3 * b / b.sum()).get(), reg, (reg_m, reg_m), cost=cost)


def plan_error(dense: on.Dense, problem: UnbalancedTransport) -> float:
    """L1 distance of the plan after CHECKED sweeps from the float64 one after as many, relative to its mass.

    Where the kernel is stored in 16 bits, the reference starts from those 16 bits.
    """
    sweep_to(dense, CHECKED)
    f, g = dense.pair(dense.status.get())
    marginals = Marginals(cp, problem, dense.spread)
    exact = ExactSweeps(problem, marginals)
    if dense.storage != "float32":
        raw = dense.stored(slice(0, dense.m))
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


def sampled_error(dense: on.Dense, problem: UnbalancedTransport) -> float:
    """For problems too large for that: relative error of 512 columns' values, worked out in float64 from the rows'."""
    sweep_to(dense, CHECKED)
    f, _ = dense.pair(dense.status.get())
    some, mass = slice(0, min(512, dense.n)), cp.zeros(min(512, dense.n))
    a = cp.asarray(problem.a)
    for start in range(0, dense.m, 2048):
        rows = slice(start, min(start + 2048, dense.m))
        if dense.storage != "float32":
            kernel = dense.stored(rows)[:, some].astype(cp.float64)
        elif problem.cost is not None:
            kernel = cp.exp(-problem.cost[rows, some].astype(cp.float64) / problem.reg)
        else:
            assert problem.x is not None
            assert problem.y is not None
            x, y = cp.asarray(problem.x[rows], cp.float64), cp.asarray(problem.y[some], cp.float64)
            kernel = cp.exp(-distances(x, y, problem.metric) / problem.reg)
        mass += ((a[rows] * cp.exp(f[rows] / problem.reg))[:, None] * kernel).sum(0)
    phi = problem.reg_m[1] / (problem.reg_m[1] + problem.reg)
    wanted = -phi * problem.reg * cp.log(mass)  # up to the translation, which is the same for every column
    found = (dense.values[0, some].astype(cp.float64) - dense.beta_b[some]) * (problem.reg / on.LOG2E)
    apart = (found - wanted) / problem.reg
    return float(abs(cp.expm1(apart - cp.median(apart))).max())


def error(dense: on.Dense, problem: UnbalancedTransport) -> float:
    """Of the plan, or of a sample of its columns."""
    return plan_error(dense, problem) if dense.n <= LARGEST else sampled_error(dense, problem)
