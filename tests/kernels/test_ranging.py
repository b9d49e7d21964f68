"""The compiled loops find the ends of a range that NumPy finds, and pass over nothing that is no number."""

from typing import Any

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, InvalidProblem, ranging
from kernels.problems import ranges
from kernels.problems.assignment import dense_assignment

DTYPES = [np.float32, np.float64, np.int32, np.int64]


@pytest.fixture(params=[ranges.by_numpy, ranging.ends_of])
def ends_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(ranges, "ends_of", request.param)
    return request.param


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000, 10001])
def test_the_ends_are_numpys(size: int, dtype: Any) -> None:
    rng = np.random.default_rng(size)
    for scale in (1.0, 1e-30, 1e6, 0.0):
        array = (rng.normal(size=size) * scale).astype(dtype)
        assert ranging.ends_of(array) == ranges.by_numpy(array)
        array[rng.integers(size)] = np.inf if array.dtype.kind == "f" else np.iinfo(dtype).max
        assert ranging.ends_of(array) == ranges.by_numpy(array)
        array[rng.integers(size)] = -np.inf if array.dtype.kind == "f" else np.iinfo(dtype).min
        assert ranging.ends_of(array) == ranges.by_numpy(array)
        assert ranging.ends_of(np.abs(array)) == ranges.by_numpy(np.abs(array))
        assert ranging.ends_of(-np.abs(array)) == ranges.by_numpy(-np.abs(array))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("odd", [np.nan, -np.nan])
def test_a_nan_is_an_end(odd: float, dtype: Any) -> None:
    for at in (0, 100, 9999):
        for other in (0.0, np.inf, -np.inf):
            array = np.zeros(10000, dtype)
            array[5] = other
            array[at] = odd
            assert np.isnan(ranging.ends_of(array)).any()


def test_zeros_and_the_smallest_numbers() -> None:
    tiny = np.tile(np.array([5e-324, -5e-324, 0.0, -0.0]), 100)
    assert ranging.ends_of(tiny) == (-5e-324, 5e-324)
    assert ranging.ends_of(np.zeros(99)) == (0.0, 0.0)
    assert ranging.ends_of(np.full(99, -1.5)) == (-1.5, -1.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("maximize", [False, True])
def test_problems_are_looked_at_alike(ends_of: Any, maximize: bool, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    cost = (rng.normal(size=(300, 500)) * 1e3).astype(dtype)
    looked = dense_assignment({"cost": cost}, maximize).looked
    assert looked is not None
    assert looked.largest == np.abs(cost).max()
    assert not looked.masked
    turned = dense_assignment({"cost": cost.T}, maximize).looked
    assert turned is not None
    assert turned[1:] == looked[1:]
    if cost.dtype == np.int64:
        cost[17, 3] = FORBIDDEN
    elif cost.dtype.kind == "f":
        cost[17, 3], cost[250] = [-np.inf if maximize else np.inf] * 2
    else:
        return
    looked = dense_assignment({"cost": cost}, maximize).looked
    assert looked is not None
    permitted = cost[np.isfinite(cost) & (cost != FORBIDDEN)]
    assert looked.largest == np.abs(permitted).max()
    assert looked.masked == (dtype is np.int64)


@pytest.mark.parametrize("odd", [np.nan, -np.nan, -np.inf])
@pytest.mark.parametrize("barred", [False, True])
def test_what_is_no_cost_is_refused_by_its_place(ends_of: Any, barred: bool, odd: float) -> None:
    cost = np.random.default_rng(2).random((300, 500))
    cost[100, 7] = np.inf if barred else 0.0
    cost[211, 13] = odd
    with pytest.raises(InvalidProblem, match=r"cost: holds .* at \[211, 13\]"):
        dense_assignment({"cost": cost}, False)


def test_of_a_batch_the_matrix_is_named(ends_of: Any) -> None:
    cost = np.zeros((3, 4, 5))
    cost[2, 3, 1] = np.nan
    with pytest.raises(InvalidProblem, match=r"cost: holds nan at \[2, 3, 1\]; "):
        dense_assignment({"cost": cost}, False)
    with pytest.raises(InvalidProblem, match=r"cost: holds nan in matrix 2 at \[3, 1\]; "):
        dense_assignment({"cost": cost, "sizes": np.array([[4, 5], [2, 2], [4, 2]])}, False)
    dense_assignment({"cost": cost, "sizes": np.array([[4, 5], [2, 2], [3, 2]])}, False)


def test_the_solvers_warm_up_puts_the_loops_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "ends_of", ranges.by_numpy)
    SOLVERS["lap"].warm_up("cpu")
    assert ranges.ends_of is ranging.ends_of


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_largest_size_leaves_infinities_out(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    for size in (1, 7, 64, 1000):
        array = (rng.normal(size=size) * 10.0 ** rng.integers(-5, 6)).astype(dtype)
        for barred in (np.inf, -np.inf):
            array[rng.random(size) < 0.5] = barred
            assert ranging.largest_of(array) == ranges.largest_by_numpy(array)
    top = np.finfo(dtype).max
    assert ranging.largest_of(np.array([np.inf, -top, 1], dtype)) == top
    assert ranging.largest_of(np.array([np.inf, -np.inf], dtype)) == 0
