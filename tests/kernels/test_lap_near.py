"""Lists of near columns, which warm starts search: nothing within a row's bound is left out."""

import numpy as np
import pytest

from kernels import Array
from kernels.lap.cpu import by_rows, near, whole
from kernels.problems.arrays import untouched


@pytest.mark.parametrize("n", [20, 64, 70, 200])
@pytest.mark.parametrize("kind", ["floats", "forbidden", "narrow", "wide", "ties"])
def test_a_list_holds_every_column_within_its_bound(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    cost: Array = (
        rng.random((n, n)) if kind in ("floats", "forbidden") else rng.integers(0, 9 if kind == "ties" else 999, (n, n))
    )
    if kind == "forbidden":
        cost[rng.random((n, n)) < 0.5] = np.inf
    if kind == "wide":
        cost <<= 40
    prepared = by_rows.prepared_costs(cost, False, False, True)
    assert prepared is not None
    assert prepared.cost.dtype == {"narrow": np.int32, "ties": np.int32, "wide": np.int64}.get(kind, np.float64)
    prices = -(cost.max(axis=0, where=np.isfinite(cost), initial=0) // 8).astype(prepared.cost.dtype)
    s = whole.new_whole(untouched(prepared.cost), prepared.limits, prepared.bits, prices.copy(), np.empty(n, np.int64))
    lists = near.new_near(s.cost, s.v, s.key_bits.dtype)
    if lists is None:
        assert kind == "ties"
        return
    near.seat_and_list(s, lists, 0, n)
    reduced = prepared.cost - prices
    listed = 0
    for i in range(n):
        held = lists.held[i]
        if held == near.CROWDED:
            continue
        listed += 1
        columns = lists.cols[i, :held]
        assert sorted(columns.tolist()) == np.flatnonzero(reduced[i] <= lists.bound[i]).tolist()
        assert (lists.costs[i, :held] == prepared.cost[i, columns]).all()
        ties = lists.ties[i]
        assert (reduced[i, columns[:ties]] <= reduced[i].min() + 1e-12).all()
        assert (reduced[i, columns[ties:]] > reduced[i].min()).all()
        assert s.col_of[i] < 0 or s.col_of[i] in columns[:ties]
    assert listed > n // 2 or kind == "ties"
