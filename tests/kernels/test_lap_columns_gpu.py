"""Matrices whose rows a GPU prices, or several: what the CPU's pricing finds, and the optimum of scipy."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, InvalidProblem, Termination, solve_and_prove
from kernels.lap.columns import dense, level, solver
from tests.conftest import gpu_is_here
from tests.kernels.test_lap_columns import FAMILIES, costs, is_exact

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
LAP = SOLVERS["lap"]
DTYPES = [np.float32, np.float64, np.int32, np.int64]


def searched(cost: Any, maximize: bool, devices: list[int] | None = None) -> Any:
    from kernels.lap.columns.gpu_columns import parts_of
    from kernels.lap.columns.gpu_dense import DeviceSearch

    return DeviceSearch(parts_of(cost, False, devices or [0]), maximize)


@pytest.fixture
def by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the forest ended at 16 rows."""
    from kernels.lap import gpu

    monkeypatch.setattr(gpu, "MOST_ROWS", 16)
    monkeypatch.setattr(gpu, "FEW", 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(300, 1000), (300, 1001), (37, 50), (1, 1), (5, 131)])
@pytest.mark.parametrize("devices", [[0], [0, 0, 0]])
def test_the_twins_find_the_same(dtype: Any, maximize: bool, shape: tuple[int, int], devices: list[int]) -> None:
    rng = np.random.default_rng(sum(shape))
    cost = (rng.random(shape) * (1 if np.dtype(dtype).kind == "f" else 1000) - 0.3).astype(dtype)
    if np.dtype(dtype).kind == "f":
        cost[rng.random(shape) < 0.1] = -np.inf if maximize else np.inf
    here, there = dense.DenseSearch(cost, maximize), searched(cost, maximize, devices)
    assert there.shape == here.shape
    assert there.dtype == here.dtype
    base, rise = ((rng.random(shape[1]) * 40).astype(here.dtype) for _ in range(2))
    rows = np.flatnonzero(rng.random(shape[0]) < 0.7)
    for most in (1, 8, 12, 16, 32):
        every = level.unlimited(len(rows), here.dtype)
        a, b = (search.cheapest(base, rise, rows, every, most, Deadline()) for search in (here, there))
        assert a is not None
        assert b is not None
        assert (a.counts == b.counts).all()
        assert (a.values == b.values).all()
        limits = np.where(np.arange(len(rows)) % 3 == 0, a.values[:, a.values.shape[1] // 2], every)
        a, b = (search.cheapest(base, rise, rows, limits, most, Deadline()) for search in (here, there))
        assert a is not None
        assert b is not None
        assert (a.counts == b.counts).all()
        assert (a.values == b.values).all()
        for q, i in enumerate(rows.tolist()):
            columns = b.columns[q, : b.counts[q]]
            assert len(set(columns.tolist())) == len(columns)
            indptr = np.zeros(shape[0] + 1, np.int64)
            indptr[i + 1 :] = len(columns)
            assert (here.edges(indptr, columns, base - rise) == b.values[q, : b.counts[q]]).all()
    least, other = here.minima(), there.minima()
    known = np.isfinite(least.values) if here.dtype.kind == "f" else np.ones(shape[1], bool)
    assert (least.values[known] == other.values[known]).all()
    assert (~np.isfinite(other.values[~known])).all()
    picked = (-1 if maximize else 1) * cost[other.rows, np.arange(shape[1])].astype(here.dtype)
    assert (picked[known] == least.values[known]).all()
    indptr, columns = np.arange(shape[0] + 1), rng.integers(0, shape[1], shape[0]).astype(np.int32)
    assert (here.edges(indptr, columns, base) == there.edges(indptr, columns, base)).all()
    u = rng.random(shape[0])
    for a, b in (
        (here.soft_minima_of_rows(base - 0.5, 0.7), there.soft_minima_of_rows(base - 0.5, 0.7)),
        (here.soft_minima_of_columns(u, 0.7), there.soft_minima_of_columns(u, 0.7)),
    ):
        assert (a.least == b.least).all()
        assert b.sums == pytest.approx(a.sums, rel=1e-4)
    if here.dtype.kind == "i":
        assert there.largest() == np.abs(cost.astype(np.int64)).max()


def test_rows_that_are_alike_list_other_columns() -> None:
    search, zeros = searched(np.zeros((400, 400), np.float32), False), np.zeros(400)
    found = search.cheapest(zeros, zeros, np.arange(400), level.unlimited(400, np.float64), 12, Deadline())
    assert len(np.unique(found.columns)) > 300


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(300, 300), (300, 420), (420, 300)])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("by_columns")
def test_the_optimum_of_every_family(family: str, shape: tuple[int, int], maximize: bool) -> None:
    cost, options = costs(family, *shape), LAP.options(maximize=maximize)
    problem = LAP.build({"cost": cost}, options)
    solution, certificate = solve_and_prove(LAP, problem, options, Deadline(60), "gpu")
    assert solution.method == "columns"
    is_exact(problem.weights, solution, certificate, maximize)


@pytest.mark.parametrize("devices", [[0], [0, 0]])
def test_rows_divided_over_devices(devices: list[int]) -> None:
    for family in ("uniform", "few", "places"):
        cost = costs(family, 2001, 2001)
        solution = solver.solve(searched(cost, False, devices), False, Deadline(60))
        is_exact(cost, solution, LAP.certify(LAP.build({"cost": cost}, LAP.options()), solution))


def test_all_devices_are_taken_where_one_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.lap.columns import gpu_columns

    cost = np.ones((600, 600))
    monkeypatch.setattr(gpu_columns, "bytes_free", lambda: 2_500_000)
    monkeypatch.setattr("cupy.cuda.runtime.getDeviceCount", lambda: 1)
    with pytest.raises(InvalidProblem, match=r"needs \d+ bytes of device memory; 2500000 bytes are free"):
        gpu_columns.devices_for(cost, False)
    monkeypatch.setattr(gpu_columns, "bytes_free", lambda: 10_000_000)
    assert gpu_columns.devices_for(cost, False) == [0]


@pytest.mark.parametrize("shape", [(90, 90), (80, 90), (90, 80)])
@pytest.mark.parametrize("share", [0.5, 0.97])
@pytest.mark.usefixtures("by_columns")
def test_forbidden_entries(shape: tuple[int, int], share: float) -> None:
    rng = np.random.default_rng(7)
    cost = rng.random(shape)
    cost[rng.random(shape) < share] = np.inf
    options = LAP.options()
    problem = LAP.build({"cost": cost}, options)
    is_exact(cost, *solve_and_prove(LAP, problem, options, Deadline(60), "gpu"))


@pytest.mark.usefixtures("by_columns")
def test_stopped_before_it_begins_it_pairs_all_the_same() -> None:
    options, cost = LAP.options(), costs("uniform", 100, 100)
    problem = LAP.build({"cost": cost}, options)
    solution = LAP.solve(problem, options, Deadline(cancelled=lambda: True), "gpu")
    assert solution.termination is Termination.STOPPED
    assert (np.sort(solution.arrays["assignment"]) == np.arange(100)).all()
    assert LAP.certify(problem, solution).holds


@pytest.mark.usefixtures("by_columns")
def test_integers_without_room_are_refused() -> None:
    cost = np.arange(400).reshape(20, 20)
    cost[3, 4] = 2**41
    options = LAP.options()
    with pytest.raises(InvalidProblem, match="2199023255552"):
        LAP.solve(LAP.build({"cost": cost}, options), options, Deadline(), "gpu")


@pytest.mark.parametrize("shape", [(300, 65_537), (65_600, 400)])
def test_more_columns_than_the_forest_has_rows(shape: tuple[int, int]) -> None:
    cost, options = costs("uniform", *shape), LAP.options()
    problem = LAP.build({"cost": cost}, options)
    solution, certificate = solve_and_prove(LAP, problem, options, Deadline(60), "gpu")
    assert solution.method == "columns"
    is_exact(cost, solution, certificate)
