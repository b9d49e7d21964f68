"""Unbalanced transport between two clouds, and to neighbours alone, whose plans are weighed again."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, save_npz

from kernels.demonstration import Demonstration, require
from kernels.problems import Array
from kernels.problems.arrays import Floats

TOLERANCE = 1e-5


def demonstrations() -> tuple[Demonstration, ...]:
    """Both."""
    return clouds(300, 400, reg=0.05, reg_m=1.0), neighbours(2000, 20, reg=0.05, reg_m=1.0)


def clouds(m: int, n: int, reg: float, reg_m: float) -> Demonstration:
    """Sent as JSON."""
    rng = np.random.default_rng(5)
    x, y = rng.random((m, 2)), rng.random((n, 2)) + 0.1
    cost = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    a, b = rng.random(m), rng.random(n)

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        found = value(arrays["plan"].astype(np.float64), cost, a, b, reg, reg_m)
        require(np.isclose(answer["objective"], found, rtol=1e-4), f"the plan is worth {found}", answer)
        require(answer["certificate"]["gap_rel"] <= TOLERANCE, "the plan is not within its tolerance", answer)

    inputs = {"cost": cost.tolist(), "a": a.tolist(), "b": b.tolist()}
    options = {"reg": reg, "reg_m": reg_m, "tolerance": TOLERANCE}
    return Demonstration("uot", f"{m} x {n}", "json", check, inputs=inputs, options=options)


def neighbours(n: int, k: int, reg: float, reg_m: float) -> Demonstration:
    """Each row may reach k columns only. Sent as the .npz that SciPy writes."""
    rng = np.random.default_rng(6)
    columns = np.argsort(rng.random((n, 4 * k)), axis=1)[:, :k] + np.arange(n)[:, None]
    cost = csr_array((rng.random(n * k) + 0.1, (columns % n).ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    stream = io.BytesIO()
    save_npz(stream, cost)

    def check(answer: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        plan = csr_array((arrays["entry_values"], cost.indices, cost.indptr), shape=cost.shape)
        log_p = np.log(plan.data * n * n)
        entries = float((plan.data * (cost.data + reg * (log_p - 1))).sum()) + reg * k / n
        sides = [plan.sum(axis=axis) * n for axis in (0, 1)]
        found = entries + reg_m * sum(float((p * np.log(p) - p + 1).sum()) / n for p in sides)
        require(np.isclose(answer["objective"], found, rtol=1e-4), f"the plan is worth {found}", answer)
        require(answer["certificate"]["gap_rel"] <= TOLERANCE, "the plan is not within its tolerance", answer)

    options = {"reg": reg, "reg_m": reg_m, "tolerance": TOLERANCE}
    size, data = f"{n} x {n}, {n * k} entries", stream.getvalue()
    return Demonstration("uot, CSR", size, "file", check, "cost", data, "cost.npz", options=options)


def value(plan: Floats, cost: Floats, a: Floats, b: Floats, reg: float, reg_m: float) -> float:
    """The primal objective of a plan, written out."""

    def kl(p: Floats, q: Floats) -> float:
        logs = np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / q), 0)
        return float((logs - p + q).sum())

    masses = kl(plan.sum(axis=1), a) + kl(plan.sum(axis=0), b)
    return float((plan * cost).sum()) + reg * kl(plan, np.outer(a, b)) + reg_m * masses
