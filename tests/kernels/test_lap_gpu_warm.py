"""Prices that a GPU starts from, with arrays of the host in place of a device's."""

import importlib.util
import sys
import types
from typing import Any

import numpy as np
import pytest

import kernels
from kernels.problems.seen import Seen

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
