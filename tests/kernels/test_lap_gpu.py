"""Method `auto` on a GPU: exact on every family, shape and type, whatever the path through its kernels."""

import time
from typing import Any

import numpy as np
import pytest

from benchmarks import instances
from kernels import SOLVERS, Array, Certificate, Deadline, InvalidProblem, Solution, Termination
from tests.conftest import gpu_is_here
from tests.instances import Case, assignment
from tests.oracles.assignment import brute_force, scipy_optimum

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
LAP = SOLVERS["lap"]
SINGLE = [case for case in assignment.LAP_CASES if "batch" not in case.label and "ragged" not in case.label]


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


@pytest.mark.parametrize("case", SINGLE, ids=str)
def test_objective_is_scipys(case: Case) -> None:
    inputs: dict[str, Any] = dict(case.inputs())
    solution, certificate = run(inputs, **case.options)
    is_exact(inputs["cost"], solution, certificate, case.options.get("maximize", False))


@pytest.mark.parametrize("seed", range(60))
def test_tiny_problems_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 7, 2)
    cost = rng.integers(-4, 9, shape)
    maximize = bool(seed % 2)
    if seed % 3:
        cost = cost.astype(np.float64 if seed % 5 else np.float32)
        cost[rng.random(shape) < 0.3] = -np.inf if maximize else np.inf
    solution, certificate = run({"cost": cost}, maximize=maximize)
    assert certificate.holds, certificate
    assert certificate.objective == pytest.approx(brute_force(cost, maximize))
    assert (solution.termination is Termination.INFEASIBLE) == (certificate.objective is None)


@pytest.mark.parametrize("family", instances.LAP_FAMILIES)
def test_families(family: str) -> None:
    cost = instances.lap(family, 500)
    is_exact(cost, *run({"cost": cost}))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("shape", [(257, 257), (300, 1000), (1000, 300), (1201, 1201), (1, 70000 // 2)])
def test_types_and_shapes(dtype: str, shape: tuple[int, int]) -> None:
    cost = (np.random.default_rng(1).random(shape) * 1e4).astype(dtype)
    is_exact(cost, *run({"cost": cost}))


@pytest.mark.parametrize("family", ["u", "sqeuclid", "r1"])
@pytest.mark.parametrize(
    "tuning",
    [{"replicate": False}, {"blocks": 5}, {"stop": 1}, {"levels": 3}, {"resident": False}, {"habits": 3}],
    ids=str,
)
def test_every_path_through_the_kernels(family: str, tuning: dict[str, Any]) -> None:
    import cupy

    from kernels.lap.gpu_forest import SOLVED, Forest, Tuning, prove

    cost = instances.lap(family, 300)
    forest = Forest(300, 300, cost.dtype, Tuning(**tuning))
    forest.launch(cupy.asarray(cost), False)
    primal, dual, violation, slack, unassigned = prove(cupy.asarray(cost), False, forest).get().tolist()
    assert forest.facts()["mode"] == SOLVED
    assert primal == pytest.approx(scipy_optimum(cost, False), rel=1e-12)
    assert dual == pytest.approx(primal, rel=1e-12)
    assert max(violation, slack) <= 1e-15 * 600 * float(cost.max())
    assert unassigned == 0


def test_same_input_same_assignment() -> None:
    cost = instances.lap("r01", 400)
    first = run({"cost": cost})[0].arrays
    for _ in range(5):
        again = run({"cost": cost}, deterministic=True)[0].arrays
        for name in first:
            np.testing.assert_array_equal(again[name], first[name])


@pytest.mark.parametrize("given", ["u", "v"])
def test_warm_start_saves_rounds(given: str) -> None:
    cost = instances.lap("sqeuclid", 300)
    cold, _ = run({"cost": cost})
    warm, certificate = run({"cost": cost, f"{given}0": cold.arrays[given]})
    is_exact(cost, warm, certificate)
    total = [s.facts["rounds"] + s.facts["bid_rounds"] for s in (warm, cold)]
    assert total[0] < total[1]


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


@pytest.mark.parametrize("shape", [(1, 100_000), (30, 70_000), (70_000, 12)])
@pytest.mark.parametrize("maximize", [False, True])
def test_very_long_lines(shape: tuple[int, int], maximize: bool) -> None:
    cost = np.random.default_rng(3).random(shape)
    is_exact(cost, *run({"cost": cost}, maximize=maximize), maximize)


def test_too_large_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="65536"):
        run({"cost": np.zeros((300, 65537), np.float32)})


def test_sap_runs_on_the_cpu_only() -> None:
    with pytest.raises(InvalidProblem, match="CPU"):
        run({"cost": np.zeros((2, 2))}, method="sap")
