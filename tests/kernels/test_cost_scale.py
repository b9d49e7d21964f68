"""The size of large costs: worked out a few rows at a time, and the same to the last bit however that is done."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from kernels import Seen, note
from kernels.problems import UnbalancedTransport
from kernels.problems.cost_scale import BLOCK, MOST, cost_scale


def plainly(cost: Any, a: Any, b: Any) -> float:
    """The mean of the drawn entries, in blocks of BLOCK entries that are worked out whole."""
    rows, columns = np.flatnonzero(a), np.flatnonzero(b)
    if rows.size * columns.size > MOST:
        rng = np.random.default_rng(0)
        most = max(int(MOST**0.5), MOST // min(rows.size, columns.size))
        rows = rows if rows.size <= most else np.sort(rng.choice(rows, most, replace=False))
        most = MOST // rows.size
        columns = columns if columns.size <= most else np.sort(rng.choice(columns, most, replace=False))
    top = float(np.max(abs(cost), where=np.isfinite(cost), initial=0))
    a, b = a[rows] / a.max(), b[columns] / b.max()
    total = weight = 0.0
    step = max(1, BLOCK // columns.size)
    for start in range(0, rows.size, step):
        sizes, some = (
            abs(cost[np.ix_(rows[start : start + step], columns)].astype(float)) / top,
            a[start : start + step],
        )
        held = np.isfinite(sizes)
        if held.all():
            total += float((some * np.einsum("ij,j->i", sizes, b)).sum())
            weight += float(some.sum() * b.sum())
        else:
            weights = np.where(held, some[:, None] * b, 0.0)
            total += float((np.where(held, sizes, 0.0) * weights).sum())
            weight += float(weights.sum())
    return top * (total / weight)


@pytest.mark.parametrize("shape", [(300, 777), (2300, 2100), (2100, 3000), (2, 2_200_000), (70_000, 64)])
@pytest.mark.parametrize("form", ["float32", "float64", "by columns", "forbidden", "massless"])
def test_the_mean_is_the_same_to_the_last_bit(shape: tuple[int, int], form: str) -> None:
    rng = np.random.default_rng(0)
    cost = rng.standard_normal(shape, np.float32)
    a, b = (rng.random(n) + 0.1 for n in shape)
    if form == "float64":
        cost = cost.astype(np.float64)
    elif form == "by columns":
        cost = np.asfortranarray(cost)
    elif form == "forbidden":
        cost[shape[0] // 2, ::2] = np.inf
    elif form == "massless":
        a[::7], b[1::5] = 0, 0
    wanted = plainly(cost, a, b)
    assert cost_scale(UnbalancedTransport(a, b, 1.0, (1.0, 1.0), cost), "mean") == wanted
    known = cost[np.isfinite(cost)]
    note(cost, Seen(float(known.min()), float(known.max()), plus=known.size < cost.size))
    assert cost_scale(UnbalancedTransport(a, b, 1.0, (1.0, 1.0), cost), "mean") == wanted


def test_memory_is_that_of_a_few_rows() -> None:
    cost = np.random.default_rng(0).random((4096, 4096), np.float32)
    problem = UnbalancedTransport(np.ones(4096), np.ones(4096), 1.0, (1.0, 1.0), cost)
    cost_scale(problem, "mean")
    tracemalloc.start()
    try:
        cost_scale(problem, "mean")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
