"""The host's part of a batch of transports on a GPU, on a machine without one: NumPy's sweeps in place of a launch."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernels.uot.batch import gpu_batch, gpu_sweeps
from kernels.uot.batch.steps import StackSteps
from kernels.uot.iteration import gpu_launch as on
from kernels.uot.iteration.layout import CONVERGED, REASON, STATUS
from kernels.uot.rounding import LOG2E
from tests.kernels.strict_arrays import STRICT, StrictArray

STUCK = 0.4375
"""As the first cost of a problem: its gap does not fall before it has had ENOUGH sweeps."""
ENOUGH = 1000


def without_device(monkeypatch: pytest.MonkeyPatch, launch: Callable[..., None]) -> None:
    """Arrays of the stand-in for those on a device, and `launch` in place of a batch's."""
    for module in (gpu_batch, gpu_sweeps):
        monkeypatch.setattr(module, "cp", STRICT)
        monkeypatch.setattr(module, "uploaded", STRICT.asarray)
    monkeypatch.setattr(gpu_sweeps, "sent", lambda *arrays: [STRICT.asarray(array) for array in arrays])
    monkeypatch.setattr(gpu_sweeps, "back", lambda *arrays: [array.get() for array in arrays])
    monkeypatch.setattr(gpu_sweeps, "steps", StackSteps(STRICT))
    kernel = SimpleNamespace(max_dynamic_shared_size_bytes=0)
    monkeypatch.setattr(gpu_sweeps, "cuda", SimpleNamespace(kernel=lambda *_, **__: kernel))
    monkeypatch.setattr(gpu_sweeps.Batch, "launch", launch)


def swept_each(batch: Any, iterations: int, tolerance: float) -> None:
    """Sweeps in float64 of each problem by itself, from where the last launch left it, until its potentials stay."""
    problem, status = batch.problem, batch.status.get()
    potential, g = batch.potential.get(), batch.g.get().astype(np.float64)
    damping = [1.0 if np.isinf(strength) else strength / (strength + problem.reg) for strength in problem.reg_m]
    for k, one in enumerate(status):
        if one[REASON] == CONVERGED:
            continue
        given = batch.cost[k].get()
        cost = given.astype(np.float64) / problem.reg
        column = (g[k] - batch.beta_b[k]) / LOG2E
        a, b = problem.a[k], problem.b[k]
        product = problem.reference == "product"  # what an entry is multiplied with, and what a line is to sum up to
        of_a, of_b, of_rows, of_columns = (a, b, 1.0, 1.0) if product else (np.ones(a.size), np.ones(b.size), a, b)
        for _ in range(iterations):
            row = -damping[0] * np.log((of_b * np.exp(column - cost)).sum(axis=1) / of_rows)
            after = -damping[1] * np.log((of_a[:, None] * np.exp(row[:, None] - cost)).sum(axis=0) / of_columns)
            one[on.GAP], column = abs(after - column).max(), after
            one[on.ITERATIONS] += 1
            if given[0, 0] == STUCK and one[on.ITERATIONS] < ENOUGH:
                one[on.GAP] = 1.0
            if one[on.GAP] <= 1e-3 * tolerance:
                one[REASON] = CONVERGED
                break
        one[on.DUAL] = (a * row).sum() + (b * column).sum()
        potential[k], g[k] = row * LOG2E + batch.beta_a[k], column * LOG2E + batch.beta_b[k]
    batch.potential, batch.g, batch.status = StrictArray(potential), StrictArray(g), StrictArray(status)


def swept_blindly(batch: Any, iterations: int, tolerance: float) -> None:
    """As many sweeps of all problems as any needs, and the status of problems that took 60 and more."""
    problem, f = batch.problem, np.zeros(batch.problem.a.shape)
    g, cost = np.zeros(problem.b.shape), batch.cost.get().astype(np.float64) / problem.reg
    damping = [1.0 if np.isinf(strength) else strength / (strength + problem.reg) for strength in problem.reg_m]
    for _ in range(60):
        f = -damping[0] * np.log((problem.b[:, None, :] * np.exp(g[:, None, :] - cost)).sum(axis=2))
        g = -damping[1] * np.log((problem.a[:, :, None] * np.exp(f[:, :, None] - cost)).sum(axis=1))
    batch.potential, batch.g = (
        StrictArray(potential * LOG2E + beta) for potential, beta in ((f, batch.beta_a), (g, batch.beta_b))
    )
    status = np.zeros((len(f), STATUS))
    status[:, REASON], status[:, on.ITERATIONS] = CONVERGED, 60 + np.arange(len(f))
    status[:, on.DUAL], status[:, on.GAP] = (problem.a * f).sum(axis=1), 1e-7
    batch.status = StrictArray(status)
