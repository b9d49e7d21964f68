"""Rows in their seats at old duals, on a GPU: the pairs of the rule, and exact answers whatever the duals are."""

from typing import Any

import numpy as np
import pytest

from benchmarks import instances
from benchmarks.instances import redrawn
from kernels import SOLVERS, Array, Deadline, Termination
from tests.conftest import gpu_is_here
from tests.kernels.test_lap_gpu import is_exact, run
from tests.oracles.seats import seated

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
LAP = SOLVERS["lap"]
LARGE = 2100
"""Rows from which seats are taken."""
CONTINUOUS = ("u", "sqeuclid", "euclid", "clustered", "gene50", "powerlaw")


def solved(cost: Array, device: Any = "cpu", **options: Any) -> dict[str, Array]:
    chosen = LAP.options(**options)
    return LAP.solve(LAP.build({"cost": cost}, chosen), chosen, Deadline(60), device).arrays


def costs_of(kind: str, n: int) -> Array:
    rng = np.random.default_rng(8)
    if kind == "constant":
        return np.full((n, n), 7, np.int64)
    if kind == "few values":
        return rng.integers(0, 9, (n, n), dtype=np.int32)
    if kind == "short":
        return rng.random((n, n), dtype=np.float32)
    if kind == "forbidden":
        cost = np.where(rng.random((n, n)) < 0.3, np.inf, rng.random((n, n)))
        np.fill_diagonal(cost, 0.5)
        return np.asarray(cost)
    return instances.lap(kind, n)


def seats_there(cost: Array, maximize: bool, u0: Array, v0: Array) -> tuple[Any, dict[str, Any], Any]:
    """(start, what take_seats left, its state), all on the host, for duals of the problem as it is asked."""
    import cupy

    from kernels.lap.auto.gpu_forest import Forest
    from kernels.lap.auto.gpu_warm import start_at
    from kernels.lap.auto.layout import STATE

    there = cupy.asarray(cost)
    forest, start = Forest(len(cost), len(cost), cost.dtype), start_at(there, maximize, u0, v0)
    assert start is not None
    matrix = {"cost": there, "n_rows": len(cost), "n_cols": len(cost), "negate": maximize}
    forest.array("v_first")[:] = start.v
    forest._launch_reduce_columns(matrix, 2)
    forest._launch_take_seats(matrix, start.own)
    left = {name: forest.array(name).get() for name in ("u", "v", "col_row", "row_col", "free_rows", "free_u")}
    return (start.own.get(), start.v.get()), left, forest.array("state").get().view(STATE.dtype)[0]


def is_by_the_rule(cost: Array, maximize: bool, u0: Array, v0: Array) -> int:
    """Compare with the oracle; returns how many rows have a seat."""
    from kernels.lap.auto.layout import GROW, SEATED

    (own, v), left, state = seats_there(cost, maximize, u0, v0)
    value = np.dtype(np.int64 if cost.dtype.kind == "i" else np.float64)
    expected, least = seated((-1 if maximize else 1) * cost.astype(value), own, v)
    np.testing.assert_array_equal(left["v"], v)
    np.testing.assert_array_equal(left["col_row"], expected)
    np.testing.assert_array_equal(left["u"], least)
    cols = np.flatnonzero(expected >= 0)
    free = np.setdiff1d(np.arange(len(cost)), expected)
    np.testing.assert_array_equal(left["row_col"][expected[cols]], cols)
    assert (left["row_col"][free] == -1).all()
    assert state["n_seated"] == len(cols)
    assert state["mode"][0] == (SEATED if len(free) <= len(cost) // 64 else GROW)
    if state["mode"][0] == SEATED:
        assert state["n_free"] == state["n_begun"] == len(free)
        np.testing.assert_array_equal(left["free_rows"][: len(free)], free)
        np.testing.assert_array_equal(left["free_u"][: len(free)], np.where(np.isfinite(least), least, 0)[free])
    return len(cols)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("kind", [*CONTINUOUS, "r01", "r1", "r10", "constant", "few values", "short"])
def test_pairs_are_those_of_the_rule(kind: str, maximize: bool) -> None:
    old = costs_of(kind, 333)
    duals = solved(old, maximize=maximize)
    cost = redrawn(old, 1, 0.01)
    count = is_by_the_rule(cost, maximize, duals["u"], duals["v"])
    assert count >= (0.95 if kind in CONTINUOUS else 0.8) * len(cost)


@pytest.mark.parametrize("kind", ["u", "r1", "short", "few values", "forbidden"])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("n", [1, 2, 31, 33, 257])
def test_pairs_at_duals_of_the_same_problem(kind: str, device: str, n: int) -> None:
    cost = costs_of(kind, n)
    duals = solved(cost, device)
    assert is_by_the_rule(cost, False, duals["u"], duals["v"]) >= 0.8 * n


@pytest.mark.parametrize("kind", ["u", "r1", "short", "forbidden"])
def test_pairs_at_garbage(kind: str) -> None:
    rng, cost = np.random.default_rng(0), costs_of(kind, 200)
    size = float(np.abs(cost[np.isfinite(cost)]).max())
    for u0, v0 in (
        (np.zeros(200), np.zeros(200)),
        (rng.normal(size=200) * size, rng.normal(size=200) * size),
        (np.full(200, 1e30), np.full(200, -1e30)),
    ):
        is_by_the_rule(cost, False, u0, v0)


def test_rows_that_want_one_column() -> None:
    """All rows had it, by their duals: the lowest gets it, and the forest begins with nearly all."""
    cost = np.random.default_rng(1).random((100, 100)) + 1
    cost[:, 40] = 0.25
    assert is_by_the_rule(cost, False, np.full(100, 0.25), np.zeros(100)) == 1
    assert seats_there(cost, False, np.full(100, 0.25), np.zeros(100))[1]["col_row"][40] == 0


def test_a_changed_row_does_not_take_the_column_of_another() -> None:
    cost = np.full((64, 64), 9.0)
    np.fill_diagonal(cost, 1.0)
    cost[0, 5] = 0.5  # its least, which row 5 had
    u0 = np.ones(64)
    _, left, _ = seats_there(cost, False, u0, np.zeros(64))
    assert left["col_row"][5] == 5
    assert left["col_row"][0] == -1


def test_a_row_without_entries_has_no_seat() -> None:
    cost = np.random.default_rng(2).random((64, 64))
    cost[7] = np.inf
    is_by_the_rule(cost, False, cost.min(1, initial=1), np.zeros(64))
    solution, certificate = run({"cost": cost, "u0": np.zeros(64), "v0": np.zeros(64)})
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("family", [one for one in instances.LAP_FAMILIES if one != "product"])
def test_few_rows_are_begun_with(family: str, device: str) -> None:
    """Where a few have changed; of more, but not all, the start is a cold one."""
    n = LARGE
    old = instances.lap(family, n)
    duals = solved(old, device)
    for changed in (3, 30):
        cost = redrawn(old, 3, changed / n)
        solution, certificate = run({"cost": cost, "u0": duals["u"], "v0": duals["v"]})
        is_exact(cost, solution, certificate)
        facts = solution.facts
        assert (facts["n_seated"] > 0) is (changed == 3) or family[0] == "r"
        if facts["bid_rounds"] == 0:
            assert facts["n_begun"] == n - facts["n_seated"] <= n // 64
            assert not facts["scaled"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("maximize", [False, True])
def test_types_and_signs(dtype: str, maximize: bool) -> None:
    old = (np.random.default_rng(4).random((LARGE, LARGE)) * 2e5 - 1e5).astype(dtype)
    duals = solved(old, "gpu", maximize=maximize)
    cost = redrawn(old, 5, 3 / LARGE)
    solution, certificate = run({"cost": cost, "u0": duals["u"], "v0": duals["v"]}, maximize=maximize)
    is_exact(cost, solution, certificate, maximize)
    assert solution.facts["n_seated"] >= 0.97 * LARGE


@pytest.mark.parametrize("family", ["u", "sqeuclid", "clustered", "r1", "r10"])
@pytest.mark.parametrize(
    "tuning", [{"replicate": False}, {"deep_from": 0}, {"few": 1, "seats": 1}, {"few": 1 << 20}], ids=str
)
def test_every_path_through_the_kernels(family: str, tuning: dict[str, Any]) -> None:
    import cupy

    from kernels.lap.auto.gpu_forest import Forest, Tuning
    from kernels.lap.auto.gpu_warm import start_at
    from kernels.lap.auto.layout import SOLVED
    from kernels.lap.proof.gpu_proof import named, prove
    from tests.oracles.assignment import scipy_optimum

    old = instances.lap(family, 400)
    duals = solved(old)
    for share in (0.01, 0.05, 0.5):
        cost = redrawn(old, 6, share)
        there = cupy.asarray(cost)
        forest = Forest(400, 400, cost.dtype, Tuning(seats_from=0, **tuning))
        for _ in range(2):  # nothing is left of the first
            forest.launch(there, False, start_at(there, False, duals["u"], duals["v"]))
            proof = named(prove(there, False, forest.u, forest.v, forest.row_col))
            assert forest.facts()["mode"] == SOLVED
            assert proof["primal"] == pytest.approx(scipy_optimum(cost, False), rel=1e-12)
            assert proof["dual"] == pytest.approx(proof["primal"], rel=1e-12)
            assert max(proof["violation"], proof["slack"]) <= 1e-15 * 800 * float(cost.max())
            assert proof["unassigned"] == 0
            if "few" in tuning:
                assert (forest.facts()["n_seated"] > 0) is (forest.tuning.few == 1 or share == 0.5)


@pytest.mark.parametrize("family", ["u", "sqeuclid", "clustered"])
def test_the_same_answer_comes_again(family: str) -> None:
    old = instances.lap(family, LARGE)
    duals = solved(old, "gpu")
    cost = redrawn(old, 7, 3 / LARGE)
    solution, certificate = run({"cost": cost, "u0": duals["u"], "v0": duals["v"]})
    is_exact(cost, solution, certificate)
    again, _ = run({"cost": cost, "u0": duals["u"], "v0": duals["v"]})
    assert all(np.array_equal(again.arrays[name], value) for name, value in solution.arrays.items())


@pytest.mark.parametrize("family", ["u", "euclid", "r1"])
def test_garbage_spoils_nothing(family: str) -> None:
    cost, rng = instances.lap(family, 300), np.random.default_rng(9)
    duals = solved(cost)
    for u0, v0 in (
        (rng.permutation(duals["u"]), duals["v"]),
        (duals["u"], rng.permutation(duals["v"])),
        (duals["u"] + 1, duals["v"] - 1),
        (rng.normal(size=300) * 1e4, rng.normal(size=300) * 1e4),
        (np.full(300, 1e18), np.full(300, -1e18)),
    ):
        is_exact(cost, *run({"cost": cost, "u0": u0, "v0": v0}))


def test_noise_on_all_costs_goes_on_with_an_auction() -> None:
    old = instances.lap("sqeuclid", 600)
    duals = solved(old)
    cost = old.astype(np.float64) * (1 + 1e-3 * np.random.default_rng(10).random(old.shape))
    solution, certificate = run({"cost": cost, "u0": duals["u"], "v0": duals["v"]})
    is_exact(cost, solution, certificate)
    assert solution.facts["bid_rounds"] > 0


@pytest.mark.parametrize("given", ["u", "v"])
def test_one_side_seats_nobody(given: str) -> None:
    cost = instances.lap("u", LARGE)
    solution, certificate = run({"cost": cost, f"{given}0": solved(cost)[given]})
    is_exact(cost, solution, certificate)
    assert solution.facts["n_seated"] == 0


@pytest.mark.parametrize("family", ["u", "sqeuclid", "r10"])
@pytest.mark.parametrize("shape", [(580, 600), (600, 580), (LARGE - 20, LARGE), (LARGE, LARGE - 1)])
def test_wide_and_tall_problems(family: str, shape: tuple[int, int]) -> None:
    old = instances.lap(family, max(shape))[: shape[0], : shape[1]].copy()
    duals = solved(old, "gpu")
    cost = redrawn(old, 11, 3 / max(shape))
    solution, certificate = run({"cost": cost, "u0": duals["u"], "v0": duals["v"]})
    is_exact(cost, solution, certificate)
    assert (solution.facts["n_seated"] > 0) is (max(shape) == LARGE)


def test_infeasible_problems_are_seen() -> None:
    rng = np.random.default_rng(12)
    old = rng.random((300, 300))
    duals = solved(old)
    cost = old.copy()
    cost[:5, 4:] = np.inf
    solution, certificate = run({"cost": cost, "u0": duals["u"], "v0": duals["v"]})
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds
