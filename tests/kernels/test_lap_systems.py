"""Methods `hungarian` and `tree` and batches on a GPU; their sources in every form they are compiled in, anywhere."""

from typing import Any

import numpy as np
import pytest

from benchmarks import instances
from kernels import SOLVERS, Certificate, Deadline, InvalidProblem, Solution, Termination
from tests.conftest import gpu_is_here
from tests.instances import Case, assignment
from tests.oracles.assignment import brute_force, scipy_optimum

LAP = SOLVERS["lap"]
SINGLE = [case for case in assignment.LAP_CASES if "batch" not in case.label and "ragged" not in case.label]
on_gpu = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]


def run(inputs: dict[str, Any], deadline: Deadline | None = None, **options: Any) -> tuple[Solution, Certificate]:
    chosen = LAP.options(**options)
    problem = LAP.build(inputs, chosen)
    solution = LAP.solve(problem, chosen, deadline or Deadline(60), "gpu")
    return solution, LAP.certify(problem, solution)


@pytest.mark.parametrize(
    "form",
    [
        ("papers/hungarian/v1_counter.cu", "-DCOST=float"),
        ("papers/hungarian/v6_abreast.cu", "-DCOST=int", "-DDUAL=long long"),
        ("papers/tree/tree.cu", "-DCOST=float"),
        ("papers/tree/tree.cu", "-DCOST=int", "-DDUAL=long long"),
        ("lap/batched/batched.cu", "-DTEAM=32", "-DSLOTS=1", "-DCOST=int", "-DVALUE=long long"),
        ("lap/batched/batched.cu", "-DTEAM=128", "-DSLOTS=1"),
        ("lap/batched/batched.cu", "-DTEAM=512", "-DSLOTS=2", "-DMATRIX_SHARED=0"),
    ],
    ids=" ".join,
)
def test_other_forms_of_the_sources_compile(form: tuple[str, ...]) -> None:
    cuda = pytest.importorskip("kernels.cuda", reason="cupy is not installed")
    assert cuda.compile_only(form[0], "90", form[1:])


class TestSystems:
    pytestmark = on_gpu

    @pytest.mark.parametrize("method", ["hungarian", "tree"])
    @pytest.mark.parametrize("case", SINGLE, ids=str)
    def test_objective_is_scipys(self, case: Case, method: str) -> None:
        inputs: dict[str, Any] = dict(case.inputs())
        solution, certificate = run(inputs, method=method, **case.options)
        assert certificate.holds, certificate
        expected = scipy_optimum(inputs["cost"], case.options.get("maximize", False))
        if expected is None:
            assert solution.termination is Termination.INFEASIBLE
            return
        assert solution.termination is Termination.OPTIMAL
        assert certificate.objective == pytest.approx(expected, rel=1e-12)
        if inputs["cost"].dtype.kind == "i":
            assert certificate.gap_abs == 0

    @pytest.mark.parametrize("method", ["hungarian", "tree"])
    @pytest.mark.parametrize("family", instances.LAP_FAMILIES)
    def test_families(self, method: str, family: str) -> None:
        cost = instances.lap(family, 150)
        solution, certificate = run({"cost": cost}, method=method)
        assert solution.method == method
        assert certificate.holds, certificate
        assert certificate.objective == pytest.approx(scipy_optimum(cost), rel=1e-12)

    @pytest.mark.parametrize("opt", range(-1, 6))
    def test_every_level_of_tuning_is_exact(self, opt: int) -> None:
        import cupy

        from kernels.papers.hungarian.gpu import solve_on_device

        for cost in (assignment.uniform_float(120, 120), assignment.uniform_int(150, 150, 1)):
            ended, answer, _ = solve_on_device(cupy.asarray(cost), False, Deadline(30), opt=opt)
            col_of = answer["col_of"].get()
            assert ended is Termination.OPTIMAL
            assert sorted(col_of) == list(range(len(cost)))
            assert cost[np.arange(len(cost)), col_of].sum() == pytest.approx(scipy_optimum(cost))

    @pytest.mark.parametrize("method", ["hungarian", "tree"])
    def test_stopped_early_keeps_a_bound(self, method: str) -> None:
        cost = assignment.spatial(300, 300)
        solution, certificate = run({"cost": cost}, method=method, iteration_limit=3)
        assert solution.termination is Termination.ITERATION_LIMIT
        assert certificate.holds
        assert certificate.bound is not None
        stopped, certificate = run({"cost": cost}, Deadline(cancelled=lambda: True), method=method)
        assert stopped.termination is Termination.STOPPED
        assert certificate.holds

    @pytest.mark.parametrize("method", ["hungarian", "tree"])
    def test_batches_are_refused(self, method: str) -> None:
        with pytest.raises(InvalidProblem, match="method"):
            run({"cost": assignment.batch(2, 5, 5)}, method=method)


class TestBatches:
    pytestmark = on_gpu

    @pytest.mark.parametrize(
        "shape", [(40, 1, 1), (30, 17, 17), (20, 64, 40), (20, 40, 64), (8, 130, 100), (12, 700, 900)]
    )
    @pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
    @pytest.mark.parametrize("maximize", [False, True])
    def test_sum_is_scipys(self, shape: tuple[int, int, int], dtype: str, maximize: bool) -> None:
        cost = (np.random.default_rng(1).random(shape) * 100).astype(dtype)
        _, certificate = run({"cost": cost}, maximize=maximize)
        assert certificate.holds, certificate
        assert certificate.objective == pytest.approx(sum(scipy_optimum(c, maximize) or 0 for c in cost), rel=1e-12)

    @pytest.mark.parametrize("family", instances.LAP_FAMILIES)
    @pytest.mark.parametrize("n", [60, 200])
    def test_families(self, family: str, n: int) -> None:
        cost = np.stack([instances.lap(family, n + k)[:n, :n] for k in range(4)])
        solution, certificate = run({"cost": cost})
        assert solution.method == "batched"
        assert certificate.holds, certificate
        assert certificate.objective == pytest.approx(sum(scipy_optimum(c) or 0 for c in cost), rel=1e-12)

    def test_tiny_problems_by_brute_force(self) -> None:
        rng = np.random.default_rng(2)
        cost = rng.integers(-4, 5, (200, 5, 5)).astype(np.float64)
        sizes = rng.integers(1, 6, (200, 2)).astype(np.int32)
        _, certificate = run({"cost": cost, "sizes": sizes})
        parts = [brute_force(c[:n, :m]) for c, (n, m) in zip(cost, sizes, strict=True)]
        assert certificate.objective == sum(part for part in parts if part is not None)

    @pytest.mark.parametrize("shape", [(1100, 1100), (500, 400)])
    def test_long_or_few_members_go_one_by_one(self, shape: tuple[int, int]) -> None:
        cost = np.stack([assignment.uniform_float(*shape, seed) for seed in (0, 1)])
        solution, certificate = run({"cost": cost})
        assert solution.method == "auto"
        assert certificate.holds
        assert certificate.objective == pytest.approx(sum(scipy_optimum(c) or 0 for c in cost))

    def test_no_time(self) -> None:
        solution, certificate = run({"cost": assignment.batch(9, 20, 30)}, Deadline(0.0))
        assert solution.termination is Termination.TIME_LIMIT
        assert certificate.holds
