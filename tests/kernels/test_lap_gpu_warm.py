"""Duals that a GPU starts from, with arrays of the host in place of a device's, and the rule of seats."""

import importlib.util
import sys
import types
from typing import Any

import numpy as np
import pytest

import kernels
from benchmarks import instances
from kernels import SOLVERS, Deadline
from kernels.problems.seen import Seen
from tests.oracles.seats import seated

NAMES = ("asarray", "full", "minimum", "clip", "where", "isfinite", "concatenate", "zeros")


class OnDevice(np.ndarray):
    def get(self) -> Any:
        return np.asarray(self)


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with a library of devices that is NumPy."""
    library: Any = types.ModuleType("cupy")
    for name in NAMES:
        setattr(library, name, getattr(np, name))
    library.stack = lambda arrays: np.stack(arrays).view(OnDevice)
    monkeypatch.setitem(sys.modules, "cupy", library)
    spec = importlib.util.spec_from_file_location("gpu_warm_here", f"{kernels.__path__[0]}/lap/auto/gpu_warm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where dataclasses look for it
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 16)
    return module


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
@pytest.mark.parametrize("shape", [(50, 50), (50, 60)])
def test_what_was_seen_spares_the_device_a_look(warm: Any, dtype: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    cost = (rng.random(shape) * 200 - 100).astype(dtype)
    if cost.dtype.kind == "f":
        cost[3, 4], cost[40] = np.inf, -0.5
    known = cost[np.isfinite(cost)]
    seen, most = Seen(known.min().item(), known.max().item()), np.abs(known.astype(float)).max()
    assert warm._largest(cost) == seen.largest == most
    garbage = rng.normal(size=sum(shape)) * 1e4
    for u0, v0 in ((None, garbage[: shape[1]]), (garbage[: shape[0]], None)):
        found = warm.prices(cost, False, u0, v0, seen)
        np.testing.assert_array_equal(found, warm.prices(cost, False, u0, v0))
        assert np.abs(found).max() <= 4 * most
        assert shape[0] == shape[1] or found.max() <= 0


def test_without_duals_there_are_no_prices(warm: Any) -> None:
    assert warm.prices(np.zeros((3, 3)), False, None, None, Seen(0, 0)) is None


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_both_sides_tell_rows_their_columns(warm: Any, dtype: Any, maximize: bool) -> None:
    sign, cost = -1 if maximize else 1, np.arange(9, dtype=dtype).reshape(3, 3)
    u0, v0 = np.array([1.0, -2.0, 1e40]), np.array([0.0, -3.0, 4.0])
    start = warm.start_at(cost, maximize, u0, v0)
    assert start.v.dtype == start.own.dtype == dtype
    np.testing.assert_array_equal(start.v, sign * v0)
    np.testing.assert_array_equal(start.own, sign * np.minimum(u0, 2**60 if dtype is np.int64 else np.inf))
    assert warm.start_at(cost, maximize, u0, None).own is None
    assert warm.start_at(cost, maximize, None, v0).own is None
    assert warm.start_at(cost, maximize, None, None) is None


def test_rows_below_a_wide_problem_are_at_the_largest_price(warm: Any) -> None:
    start = warm.start_at(np.ones((2, 4)), False, np.array([5.0, 6.0]), np.array([-1.0, -2.0, -0.5, -1.0]))
    np.testing.assert_array_equal(start.own, [5.0, 6.0, 0.5, 0.5])


FAMILIES = {"u": 0.97, "euclid": 0.97, "r10": 0.97, "r01": 0.93}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_rule_seats_nearly_all_rows_that_did_not_change(family: str) -> None:
    """By its oracle: pairs are at the least of their rows up to rounding, and no column has two rows."""
    n, card = 400, SOLVERS["lap"]
    cost, options = instances.lap(family, n), card.options()
    duals = card.solve(card.build({"cost": cost}, options), options, Deadline(60), "cpu").arrays
    cost[:4] = cost[4:8, ::-1]
    col_row, least = seated(cost, duals["u"], duals["v"])
    cols = np.flatnonzero(col_row >= 0)
    rows = col_row[cols]
    reduced = cost - duals["v"]
    assert len(np.unique(rows)) == len(rows) >= FAMILIES[family] * n
    np.testing.assert_array_equal(least, reduced.min(1))
    bound = np.abs(least[rows]) + np.abs(duals["v"]).max()
    assert (reduced[rows, cols] - least[rows] <= 2.0**-50 * bound).all()


@pytest.mark.parametrize("kind", ["f", "i"])
def test_rows_that_changed_are_counted(warm: Any, kind: str) -> None:
    """Rounding is no change, and a row without entries is none of which a dual can tell."""
    least = np.arange(9.0) if kind == "f" else np.arange(9)
    own = least.copy()
    own[3] += 1 if kind == "i" else 1e-6
    if kind == "f":
        own[5] = np.nextafter(np.nextafter(5.0, 9), 9)
        least[7] = np.inf
    assert warm.Start(np.full(9, -2.0), own).n_changed(least) == 1
    assert warm.Start(np.full(9, -2.0), own + 1).n_changed(least) == (9 if kind == "i" else 8)
