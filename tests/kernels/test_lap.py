from typing import Any

import numpy as np
import pytest

from benchmarks import instances
from kernels import SOLVERS, Array, Certificate, Deadline, Device, InvalidProblem, Solution, Termination
from tests.instances import Case, assignment
from tests.oracles.assignment import brute_force, scipy_optimum

LAP = SOLVERS["lap"]


def run(
    inputs: dict[str, Any], deadline: Deadline | None = None, device: Device = "cpu", **options: Any
) -> tuple[Solution, Certificate]:
    chosen = LAP.options(**options)
    problem = LAP.build(inputs, chosen)
    solution = LAP.solve(problem, chosen, deadline or Deadline(60), device)
    return solution, LAP.certify(problem, solution)


def single(cases: list[Case]) -> list[Case]:
    return [case for case in cases if "batch" not in case.label and "ragged" not in case.label]


@pytest.mark.parametrize("case", single(assignment.LAP_CASES), ids=str)
def test_objective_is_scipys(case: Case, device: Device) -> None:
    inputs = dict(case.inputs())
    solution, certificate = run(inputs, device=device, **case.options)
    expected = scipy_optimum(inputs["cost"], case.options.get("maximize", False))  # type: ignore[arg-type]
    if expected is None:
        assert solution.termination is Termination.INFEASIBLE
        return
    assert solution.termination is Termination.OPTIMAL
    assert certificate.objective == pytest.approx(expected, rel=1e-12)
    if inputs["cost"].dtype.kind == "i":  # type: ignore[union-attr]
        assert certificate.gap_abs == 0
        assert certificate.max_violation == 0


@pytest.mark.parametrize("seed", range(60))
def test_tiny_problems_by_brute_force(seed: int, device: Device) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 7, 2)
    cost = rng.integers(-4, 9, shape)
    maximize = bool(seed % 2)
    if seed % 3:
        cost = cost.astype(np.float64 if seed % 5 else np.float32)
        cost[rng.random(shape) < 0.3] = -np.inf if maximize else np.inf
    solution, certificate = run({"cost": cost}, device=device, maximize=maximize)
    assert certificate.holds, certificate
    assert certificate.objective == pytest.approx(brute_force(cost, maximize))
    assert (solution.termination is Termination.INFEASIBLE) == (certificate.objective is None)


def test_batch_agrees_with_single_problems(device: Device) -> None:
    cost = assignment.batch(5, 12, 12)
    sizes = assignment.RAGGED
    _, certificate = run({"cost": cost, "sizes": sizes}, device=device)
    parts = [scipy_optimum(cost[k, :n, :m].astype(float)) for k, (n, m) in enumerate(sizes)]
    assert certificate.objective == pytest.approx(sum(p for p in parts if p is not None))


def test_large_members_of_a_batch_go_one_by_one() -> None:
    cost = np.stack([assignment.uniform_float(520, 520, seed) for seed in (0, 1)])
    _, certificate = run({"cost": cost})
    assert certificate.holds
    assert certificate.objective == pytest.approx(sum(scipy_optimum(c) or 0 for c in cost))


def test_an_infeasible_member_is_named(device: Device) -> None:
    cost = np.random.default_rng(0).random((6, 9, 9))
    cost[4, :, 2] = np.inf
    solution, certificate = run({"cost": cost}, device=device)
    assert solution.termination is Termination.INFEASIBLE
    assert solution.facts["problem"] == 4
    assert certificate.holds


@pytest.mark.parametrize("shape", [(80, 80), (50, 90), (90, 50)])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("given", ["u", "v", "both", "wild"])
def test_warm_start_gives_the_same_objective(
    shape: tuple[int, int], maximize: bool, given: str, device: Device
) -> None:
    cost = assignment.spatial(*shape)
    first, cold = run({"cost": cost}, device=device, maximize=maximize)
    inputs: dict[str, Any] = {"cost": cost * 1.01}
    if given == "wild":
        inputs["v0"] = np.random.default_rng(1).normal(size=shape[1]) * 1e9
    if given in ("u", "both"):
        inputs["u0"] = first.arrays["u"]
    if given in ("v", "both"):
        inputs["v0"] = first.arrays["v"]
    _, warm = run(inputs, device=device, maximize=maximize)
    assert warm.holds, warm
    assert warm.objective == pytest.approx(1.01 * float(cold.objective or 0))


def test_warm_start_saves_work() -> None:
    cost = assignment.spatial(300, 300)
    first, _ = run({"cost": cost})
    again, _ = run({"cost": cost, "v0": first.arrays["v"]})
    work = [solution.facts["rows_scanned"] + solution.facts["rows_read_whole"] for solution in (first, again)]
    assert work[1] < work[0] / 4


def test_warm_start_of_integers_and_batches(device: Device) -> None:
    cost = assignment.uniform_int(40, 40, 1)
    first, cold = run({"cost": cost}, device=device)
    inputs = {"cost": np.stack([cost, cost]), "v0": np.stack([first.arrays["v"], np.full(40, 3)])}
    _, warm = run(inputs, device=device)
    assert warm.gap_abs == 0
    assert warm.objective == 2 * (cold.objective or 0)


def test_stopped_early_keeps_a_bound() -> None:
    cost = assignment.spatial(300, 300)
    _, best = run({"cost": cost})
    solution, certificate = run({"cost": cost}, iteration_limit=3)
    assert solution.termination is Termination.ITERATION_LIMIT
    assert certificate.holds
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert best.objective is not None
    assert certificate.bound <= best.objective * (1 + 1e-12) <= certificate.objective * (1 + 1e-11)


def test_cancel_stops() -> None:
    solution, certificate = run({"cost": assignment.spatial(50, 50)}, Deadline(cancelled=lambda: True))
    assert solution.termination is Termination.STOPPED
    assert certificate.holds


def test_one_row_of_many_columns(device: Device) -> None:
    cost = np.random.default_rng(0).random((1, 100_000))
    solution, certificate = run({"cost": cost}, device=device)
    assert solution.arrays["assignment"][0] == cost.argmin()
    assert certificate.holds


def test_integers_stay_exact_beyond_float64(device: Device) -> None:
    cost = np.array([[2**53 + 1, 2**53], [2**53, 2**53 + 1]], np.int64)
    _, certificate = run({"cost": cost}, device=device)
    assert certificate.objective == 2**54
    _, certificate = run({"cost": cost}, device=device, maximize=True)
    assert certificate.objective == 2**54 + 2


@pytest.mark.parametrize("n", [7, 130])
@pytest.mark.parametrize("maximize", [False, True])
def test_one_permitted_entry_a_row(n: int, maximize: bool, device: Device) -> None:
    rng = np.random.default_rng(n)
    columns, cost = rng.permutation(n), np.full((n, n), -np.inf if maximize else np.inf)
    cost[np.arange(n), columns] = rng.normal(size=n)
    solution, certificate = run({"cost": cost}, device=device, maximize=maximize)
    np.testing.assert_array_equal(solution.arrays["assignment"], columns)
    assert certificate.holds
    cost[0, columns[0]], cost[0, columns[1]] = cost[1, columns[0]], 1.0
    solution, certificate = run({"cost": cost}, device=device, maximize=maximize)
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.holds


@pytest.mark.parametrize("shape", [(40, 40), (30, 70), (70, 30), (2, 20, 20)])
def test_magnitudes_from_1e_300_to_1e300(shape: tuple[int, ...], device: Device) -> None:
    rng = np.random.default_rng(5)
    cost = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-300, 300, shape)
    _, certificate = run({"cost": cost}, device=device)
    assert certificate.holds, certificate
    parts = cost if cost.ndim == 3 else cost[None]
    expected = sum(scipy_optimum(part) or 0 for part in parts)
    assert certificate.objective == pytest.approx(expected, rel=1e-12)


def test_progress_is_told(device: Device) -> None:
    heard: list[float] = []
    deadline = Deadline(60, on_progress=lambda progress: heard.append(progress.fraction or 0.0))
    _, certificate = run({"cost": instances.lap("clustered", 1500)}, deadline, device)
    assert certificate.holds
    assert heard
    assert 0 <= min(heard) <= max(heard) <= 1


@pytest.mark.parametrize("batch", [False, True])
def test_same_input_same_assignment(batch: bool, device: Device) -> None:
    cost = assignment.uniform_int(120, 120, 0.05)
    inputs = {"cost": np.stack([cost, cost.T]) if batch else cost}
    first, *others = (run(inputs, device=device, deterministic=True)[0].arrays for _ in range(4))
    for other in others:
        for name, array in other.items():
            np.testing.assert_array_equal(array, first[name])


def square(n: int = 3, value: float = 1.0) -> Array:
    return np.full((n, n), value)


@pytest.mark.parametrize(
    ("inputs", "options", "field"),
    [
        ({"cost": np.array([[np.nan, 1.0]])}, {}, "cost"),
        ({"cost": np.array([[-np.inf, 1.0]])}, {}, "cost"),
        ({"cost": np.array([[np.inf, 1.0]])}, {"maximize": True}, "cost"),
        ({"cost": np.zeros((0, 3))}, {}, "cost"),
        ({"cost": np.zeros((3, 0))}, {}, "cost"),
        ({"cost": np.zeros(3)}, {}, "cost"),
        ({"cost": np.zeros((2, 2, 2, 2))}, {}, "cost"),
        ({"cost": square().astype(bool)}, {}, "cost"),
        ({"cost": square().astype(complex)}, {}, "cost"),
        ({"cost": np.full((3, 3), 2**60)}, {}, "cost"),
        ({"cost": square(value=1e308)}, {}, "cost"),
        ({"cost": square(), "u0": np.zeros(2)}, {}, "u0"),
        ({"cost": square(), "v0": np.array([0, np.nan, 0])}, {}, "v0"),
        ({"cost": square(), "v0": np.array([0, np.inf, 0])}, {}, "v0"),
        ({"cost": square(), "sizes": np.array([[3, 3]])}, {}, "sizes"),
        ({"cost": square()[None], "sizes": np.array([[3, 4]])}, {}, "sizes"),
        ({"cost": square()[None], "sizes": np.array([[-1, 3]])}, {}, "sizes"),
        ({"cost": square()[None], "sizes": np.array([[3.0, 3.0]])}, {}, "sizes"),
        ({"cost": square()[None], "sizes": np.array([3, 3])}, {}, "sizes"),
        ({"cost": square()}, {"method": "tree"}, "method"),
        ({"cost": square()}, {"method": "hungarian"}, "method"),
    ],
)
def test_bad_input_is_refused(inputs: dict[str, Any], options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as refused:
        run(inputs, **options)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("shape", "method", "expected"),
    [
        ((256, 256), "auto", False),
        ((384, 384), "auto", True),
        ((384, 384), "sap", False),
        ((9, 9), "tree", True),
        ((20, 90_000), "auto", False),
        ((9, 16, 16), "auto", False),
        ((10, 16, 16), "auto", True),
        ((1, 250, 250), "auto", False),
        ((2, 600, 500), "auto", True),
    ],
)
def test_the_device_is_the_faster_one(shape: tuple[int, ...], method: str, expected: bool) -> None:
    options = LAP.options.model_validate({"method": method})
    assert LAP.prefers_gpu(LAP.build({"cost": np.ones(shape, np.float32)}, options), options) is expected


def test_a_nan_beyond_the_sizes_is_not_read() -> None:
    cost = np.ones((1, 3, 3))
    cost[0, 2] = np.nan
    _, certificate = run({"cost": cost, "sizes": np.array([[2, 3]])})
    assert certificate.objective == 2


class TestCertificate:
    def spoil(self, **changes: Any) -> Certificate:
        options = LAP.options()
        problem = LAP.build({"cost": assignment.uniform_int(20, 20, 1)}, options)
        solution = LAP.solve(problem, options, Deadline())
        for name, change in changes.items():
            array = solution.arrays[name].copy()
            change(array)
            solution.arrays[name] = array
        return LAP.certify(problem, solution)

    def test_holds_when_nothing_is_spoiled(self) -> None:
        assert self.spoil().holds

    def test_a_column_twice(self) -> None:
        assert not self.spoil(assignment=lambda a: np.copyto(a[:2], a[1])).holds

    def test_a_row_left_out(self) -> None:
        assert not self.spoil(assignment=lambda a: a.__setitem__(3, -1)).holds

    def test_a_column_that_is_not_there(self) -> None:
        assert not self.spoil(assignment=lambda a: a.__setitem__(3, 20)).holds

    def test_two_columns_exchanged(self) -> None:
        def exchange(a: Array) -> None:
            a[[0, 1]] = a[[1, 0]]

        certificate = self.spoil(assignment=exchange)
        assert certificate.termination is Termination.CONVERGED
        assert certificate.gap_abs

    def test_a_price_too_high(self) -> None:
        certificate = self.spoil(v=lambda v: v.__iadd__(np.eye(20, dtype=np.int64)[4]))
        assert certificate.termination is Termination.CONVERGED
        assert certificate.gap_abs

    def test_a_false_hall_violator(self) -> None:
        options = LAP.options()
        problem = LAP.build({"cost": assignment.no_room(9, 9)}, options)
        solution = LAP.solve(problem, options, Deadline())
        assert LAP.certify(problem, solution).holds
        solution.arrays["hall_cols"] = solution.arrays["hall_cols"][:-1]
        assert not LAP.certify(problem, solution).holds
