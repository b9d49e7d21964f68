"""The kernels of qap on a device: each layout, dtype and symmetry against the CPU's arithmetic."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, Termination
from kernels.problems import QuadraticAssignment
from kernels.qap import QapOptions
from kernels.qap.form import search_form
from tests.conftest import gpu_is_here
from tests.instances import quadratic as instances

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not gpu_is_here(), reason="no CUDA device here")]
CARD = SOLVERS["qap"]


def forms() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(3)
    return {
        "int32": {"flow": instances.symmetric(23, 40, 1), "distance": instances.symmetric(23, 40, 2)},
        "one-sided": {"flow": instances.symmetric(30, 40, 1), "distance": instances.asymmetric(30, 0, 90, 2)},
        "asymmetric": {"flow": instances.asymmetric(16, -9, 40, 1), "distance": instances.asymmetric(16, -9, 40, 2)},
        "linear": {**instances.middling(), "linear": instances.asymmetric(40, -500, 500, 4)},
        "int64": {"flow": instances.symmetric(18, 2**26, 1), "distance": instances.symmetric(18, 2**25, 2)},
        "float64": {"flow": rng.random((21, 21)), "distance": rng.random((21, 21))},
    }


@pytest.mark.parametrize("method", ["memetic", "tabu", "2opt"])
@pytest.mark.parametrize("label", list(forms()))
def test_every_form_ends_at_what_it_claims(label: str, method: Any) -> None:
    inputs = forms()[label]
    options = QapOptions(method=method, rounds=2, starts=64, iterations=400, seed=2)
    problem = CARD.build(inputs, options)
    seen: list[Any] = []
    solution = CARD.solve(problem, options, Deadline(30, on_progress=seen.append), "gpu")
    certificate = CARD.certify(problem, solution)
    assert certificate.holds
    assert seen[-1].objective == pytest.approx(certificate.objective, rel=1e-9)
    twin = CARD.solve(problem, QapOptions(rounds=4, seed=2), Deadline(10), "cpu")
    best = problem.objective(twin.arrays["permutation"])
    assert certificate.objective <= best + 0.05 * abs(best)


@pytest.mark.parametrize("tile", [(4, 5), (2, 5), (4, 3), (4, 10), (8, 16)])
@pytest.mark.parametrize("matrices", [False, True])
def test_every_layout_keeps_its_costs(tile: tuple[int, int], matrices: bool) -> None:
    from kernels.qap import gpu_multistart

    problem = QuadraticAssignment(instances.symmetric(45, 40, 1), instances.symmetric(45, 40, 2))
    form = search_form(problem)
    layout = gpu_multistart.layout(form, tile, matrices)
    assert layout is not None
    starts = np.array([np.random.default_rng(k).permutation(45) for k in range(40)])
    searches = gpu_multistart.Searches(form, layout, starts)
    for tenure in ((4, 15), None):
        searches.launch(300, tenure)
        cost, permutation = searches.best()
        assert cost == problem.objective(permutation)


def test_more_starts_than_the_device_holds_are_all_searched() -> None:
    options = QapOptions(method="2opt", starts=9000, seed=1)
    problem = CARD.build(instances.middling(), options)
    solution = CARD.solve(problem, options, Deadline(30), "gpu")
    assert solution.iterations > 9000 * 5
    best = problem.objective(CARD.solve(problem, QapOptions(rounds=10), Deadline(10)).arrays["permutation"])
    assert problem.objective(solution.arrays["permutation"]) <= 1.05 * best


def test_two_runs_of_one_seed_agree() -> None:
    options = QapOptions(method="tabu", starts=96, iterations=500, seed=9)
    problem = CARD.build(instances.middling(), options)
    runs = [CARD.solve(problem, options, Deadline(30), "gpu").arrays["permutation"].tolist() for _ in range(2)]
    assert runs[0] == runs[1]


def test_a_large_instance_streams_from_memory() -> None:
    n = 260
    problem = QuadraticAssignment(instances.symmetric(n, 9, 1), instances.symmetric(n, 9, 2))
    for method in ("2opt", "memetic"):
        options = QapOptions(method=method, starts=16, rounds=1, iterations=200)
        solution = CARD.solve(problem, options, Deadline(20), "gpu")
        assert CARD.certify(problem, solution).holds


def test_cancelling_stops_a_launch_under_way() -> None:
    options = QapOptions(method="tabu", iterations=10_000_000, starts=64)
    problem = CARD.build(instances.middling(), options)
    deadline = Deadline(30, cancelled=lambda: deadline.elapsed_s > 1.5)
    solution = CARD.solve(problem, options, deadline, "gpu")
    assert solution.termination is Termination.STOPPED
    assert deadline.elapsed_s < 6
