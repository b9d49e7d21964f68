"""Method `auto` on a GPU: exact on every family, shape and type, whatever the path through its kernels."""

import time
from typing import Any

import numpy as np
import pytest

from benchmarks import instances
from kernels import SOLVERS, Array, Certificate, Deadline, InvalidProblem, Solution, Termination
from tests.conftest import gpu_is_here
from tests.oracles.assignment import scipy_optimum

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
LAP = SOLVERS["lap"]


def run(inputs: dict[str, Any], deadline: Deadline | None = None, **options: Any) -> tuple[Solution, Certificate]:
    chosen = LAP.options(**options)
    problem = LAP.build(inputs, chosen)
    solution = LAP.solve(problem, chosen, deadline or Deadline(60), "gpu")
    return solution, LAP.certify(problem, solution)


def is_exact(cost: Array, solution: Solution, certificate: Certificate, maximize: bool = False) -> None:
    expected = scipy_optimum(cost, maximize)
    assert certificate.holds, certificate
    if expected is None:
        assert solution.termination is Termination.INFEASIBLE
        return
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(expected, rel=1e-12)
    if cost.dtype.kind == "i":
        assert certificate.gap_abs == 0
        assert certificate.max_violation == 0


@pytest.mark.parametrize("family", instances.LAP_FAMILIES)
def test_families(family: str) -> None:
    cost = instances.lap(family, 500)
    is_exact(cost, *run({"cost": cost}))


@pytest.mark.parametrize("family", ["clustered", "sqeuclid", "gene50"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_distances_with_a_coarse_search(family: str, dtype: str) -> None:
    cost = instances.lap(family, 2100)
    cost = (cost if dtype == "float64" else cost / cost.max() * 1e6).astype(dtype)
    is_exact(cost, *run({"cost": cost}))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("shape", [(257, 257), (300, 1000), (1000, 300), (1201, 1201), (1, 70000 // 2)])
def test_types_and_shapes(dtype: str, shape: tuple[int, int]) -> None:
    cost = (np.random.default_rng(1).random(shape) * 1e4).astype(dtype)
    is_exact(cost, *run({"cost": cost}))


@pytest.mark.parametrize("family", ["u", "sqeuclid", "r1"])
@pytest.mark.parametrize(
    "tuning",
    [
        {"replicate": False},
        {"blocks": 5},
        {"stop": 1},
        {"levels": 3},
        {"resident": False},
        {"prefetches": True},
        {"deep_from": 0},
        {"deep_from": 0, "coarse": 3, "replicate": False},
        {"deep_from": 0, "extra": 4, "levels": 2},
    ],
    ids=str,
)
def test_every_path_through_the_kernels(family: str, tuning: dict[str, Any]) -> None:
    import cupy

    from kernels.lap.auto.gpu_forest import Forest, Tuning
    from kernels.lap.auto.layout import SOLVED
    from kernels.lap.proof.gpu_proof import prove

    cost = instances.lap(family, 300)
    forest = Forest(300, 300, cost.dtype, Tuning(**tuning))
    forest.launch(cupy.asarray(cost), False)
    primal, dual, violation, slack, unassigned = (
        prove(cupy.asarray(cost), False, forest.u, forest.v, forest.row_col).get().tolist()
    )
    assert forest.facts()["mode"] == SOLVED
    assert primal == pytest.approx(scipy_optimum(cost, False), rel=1e-12)
    assert dual == pytest.approx(primal, rel=1e-12)
    assert max(violation, slack) <= 1e-15 * 600 * float(cost.max())
    assert unassigned == 0


@pytest.mark.parametrize("n", [600, 2100])
def test_rounded_distances_do_not_stall_an_auction(n: int) -> None:
    """Their last levels of epsilon would be below 1."""
    cost = (instances.lap("sqeuclid", n).astype(np.float64) / 200).astype(np.int32)
    solution, certificate = run({"cost": cost})
    is_exact(cost, solution, certificate)
    assert solution.facts["bid_rounds"] < 2500


@pytest.mark.parametrize("given", ["u", "v"])
def test_warm_start_saves_rounds(given: str) -> None:
    cost = instances.lap("sqeuclid", 300)
    cold, _ = run({"cost": cost})
    warm, certificate = run({"cost": cost, f"{given}0": cold.arrays[given]})
    is_exact(cost, warm, certificate)
    total = [s.facts["rounds"] + s.facts["bid_rounds"] for s in (warm, cold)]
    assert total[0] < total[1]


@pytest.mark.parametrize("given", ["u", "v"])
@pytest.mark.parametrize("shape", [(280, 300), (300, 280)])
def test_warm_start_of_a_wide_problem_saves_bids(given: str, shape: tuple[int, int]) -> None:
    cost = instances.lap("sqeuclid", 300)[: shape[0], : shape[1]].copy()
    cold, _ = run({"cost": cost})
    warm, certificate = run({"cost": cost, f"{given}0": cold.arrays[given]})
    is_exact(cost, warm, certificate)
    assert warm.facts["bid_rounds"] < cold.facts["bid_rounds"]


def test_phase_limit_gives_a_bound() -> None:
    cost = instances.lap("u", 400)
    solution, certificate = run({"cost": cost}, iteration_limit=1)
    assert solution.termination is Termination.ITERATION_LIMIT
    assert certificate.holds
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert certificate.bound <= certificate.objective


def test_cancel_stops_a_running_search() -> None:
    cost = instances.lap("clustered", 3000)
    begun = time.perf_counter()
    solution, certificate = run({"cost": cost}, Deadline(cancelled=lambda: time.perf_counter() - begun > 0.15))
    assert solution.termination in (Termination.STOPPED, Termination.OPTIMAL)
    assert certificate.holds


@pytest.mark.parametrize("family", ["u", "sqeuclid"])
@pytest.mark.parametrize("replicate", [True, False])
def test_the_flag_stops_an_auction(family: str, replicate: bool) -> None:
    """Raised before the launch: the auction sees it in its 16th round, and what it leaves gives feasible duals."""
    import cupy

    from kernels.lap.auto.gpu_forest import Forest, Tuning
    from kernels.lap.auto.layout import STOPPED
    from kernels.lap.proof.gpu_proof import named, prove

    host = instances.lap(family, 400)
    cost = cupy.asarray(host)
    forest = Forest(400, 400, cost.dtype, Tuning(replicate=replicate, stop=1000))
    forest.mailbox[0] = 1
    forest.launch(cost, False)
    proof = named(prove(cost, False, forest.u, forest.v, forest.row_col))
    facts = forest.facts()
    assert facts["mode"] == STOPPED
    assert facts["bid_rounds"] <= 16
    assert facts["phases"] == 0
    assert max(proof["violation"], proof["slack"]) <= 1e-15 * 800 * float(host.max())


def test_an_auction_with_scaling_gives_up_loose_pairs_when_stopped() -> None:
    """Stopped inside a level whose epsilon is not 0, where pairs are not tight."""
    import cupy

    from kernels.lap.auto.gpu_forest import Forest
    from kernels.lap.auto.layout import STOPPED
    from kernels.lap.proof.gpu_proof import named, prove

    host = instances.lap("clustered", 2100)
    cost = cupy.asarray(host)
    forest = Forest(2100, 2100, cost.dtype)
    stopped_inside = 0
    for wait_ms in (0.3, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0):  # auction, coarse search, auction, search
        forest.mailbox[:] = 0
        forest.launch(cost, False)
        time.sleep(wait_ms * 1e-3)
        forest.mailbox[0] = 1
        proof = named(prove(cost, False, forest.u, forest.v, forest.row_col))
        assert max(proof["violation"], proof["slack"]) <= 1e-15 * 4200 * float(host.max())
        stopped_inside += forest.facts()["mode"] == STOPPED
    assert stopped_inside


@pytest.mark.parametrize("family", ["product", "shuffled"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("maximize", [False, True])
def test_sorted_costs_are_sorted_on_the_device(family: str, dtype: str, maximize: bool) -> None:
    rng = np.random.default_rng(4)
    lines = np.arange(1, 301), np.arange(1, 301)
    if family == "shuffled":
        lines = rng.permutation(300) - 90, rng.permutation(300)
    cost = np.outer(*lines).astype(dtype)
    solution, certificate = run({"cost": cost}, maximize=maximize)
    assert solution.method == "monge"
    is_exact(cost, solution, certificate, maximize)
    cost[7, 9] += -4000 if not maximize else 4000
    solution, certificate = run({"cost": cost}, maximize=maximize)
    is_exact(cost, solution, certificate, maximize)


def test_too_little_memory_is_said_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.lap import gpu_memory

    monkeypatch.setattr(gpu_memory, "bytes_free", lambda: 1000)
    monkeypatch.setattr(gpu_memory, "bytes_unused", lambda: 900)
    for cost in (np.ones((900, 900)), np.ones((9, 300, 300))):
        for method in ("auto", "hungarian", "tree") if cost.ndim == 2 else ("auto",):
            with pytest.raises(InvalidProblem, match=r"needs \d+ bytes of device memory; \d+ bytes are free"):
                run({"cost": cost}, method=method)


@pytest.mark.parametrize("shape", [(1, 100_000), (30, 70_000), (70_000, 12)])
@pytest.mark.parametrize("maximize", [False, True])
def test_very_long_lines(shape: tuple[int, int], maximize: bool) -> None:
    cost = np.random.default_rng(3).random(shape)
    is_exact(cost, *run({"cost": cost}, maximize=maximize), maximize)


def test_sap_runs_on_the_cpu_only() -> None:
    with pytest.raises(InvalidProblem, match="CPU"):
        run({"cost": np.zeros((2, 2))}, method="sap")
