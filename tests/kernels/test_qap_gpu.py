"""The kernels of qap on a device: each layout, dtype and symmetry against the CPU's arithmetic."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, Progress, Termination
from kernels.problems import QuadraticAssignment
from kernels.qap import QapOptions
from kernels.qap.bounds import lower as bounds
from kernels.qap.bounds import rlt1
from kernels.qap.exact.planting import Ground
from kernels.qap.form import penalised, search_form
from tests.conftest import gpu_is_here
from tests.instances import quadratic as instances
from tests.oracles import quadratic as oracle

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
    from kernels.qap.multistart import gpu_multistart

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


@pytest.mark.parametrize("label", ["int32", "asymmetric", "float64"])
def test_recency_by_pairs_keeps_its_costs(label: str) -> None:
    options = QapOptions(method="tabu", recency="pairs", rounds=2, starts=64, iterations=3000, seed=2)
    problem = CARD.build(forms()[label], options)
    seen: list[Any] = []
    solution = CARD.solve(problem, options, Deadline(30, on_progress=seen.append), "gpu")
    assert seen[-1].objective == pytest.approx(problem.objective(solution.arrays["permutation"]), rel=1e-9)
    by_places = options.model_copy(update={"recency": "places"})
    other = problem.objective(CARD.solve(problem, by_places, Deadline(30), "gpu").arrays["permutation"])
    assert problem.objective(solution.arrays["permutation"]) <= 1.05 * abs(other)


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


def test_two_populations_of_one_seed_agree() -> None:
    problem = CARD.build(instances.middling(), QapOptions())

    def run(**limit: Any) -> Any:
        options = QapOptions(method="memetic", starts=40, seed=5, deterministic=True, population=True, **limit)
        return CARD.solve(problem, options, Deadline(10), "gpu")

    first, second = run(rounds=40), run(rounds=40)
    assert first.arrays["population"].tolist() == second.arrays["population"].tolist()
    target = int(1.01 * problem.objective(first.arrays["permutation"]))
    first, second = run(target=target), run(target=target)
    assert first.termination is second.termination is Termination.GAP_REACHED
    assert first.arrays["permutation"].tolist() == second.arrays["permutation"].tolist()
    assert first.facts["rounds"] == second.facts["rounds"]


@pytest.mark.parametrize("method", ["memetic", "tabu"])
def test_the_population_is_returned_in_order_of_cost(method: Any) -> None:
    options = QapOptions(method=method, starts=30, rounds=3, iterations=200, population=True)
    problem = CARD.build(instances.middling(), options)
    solution = CARD.solve(problem, options, Deadline(30), "gpu")
    costs = [problem.objective(member) for member in solution.arrays["population"]]
    assert len(costs) == 30
    assert costs == sorted(costs)
    assert all(sorted(member.tolist()) == list(range(problem.n)) for member in solution.arrays["population"])


@pytest.mark.parametrize("method", ["memetic", "tabu"])
@pytest.mark.parametrize("floating", [False, True])
def test_incumbents_are_told_as_they_are_met(method: Any, floating: bool) -> None:
    flow, distance = (instances.symmetric(90, 99, seed) * (0.5 if floating else 1) for seed in (1, 2))
    options = QapOptions(method=method, starts=4, iterations=40_000, rounds=6, bounds=("gilmore-lawler",))
    problem = CARD.build({"flow": flow, "distance": distance}, options)
    seen: list[Progress] = []
    solution = CARD.solve(problem, options, Deadline(120, on_progress=seen.append), "gpu")  # compiling counts too
    told = [progress.objective for progress in seen if progress.objective is not None]
    assert len(told) > 2
    assert told == sorted(told, reverse=True)
    assert told[-1] == pytest.approx(problem.objective(solution.arrays["permutation"]), rel=1e-9)
    assert all(progress.bound is not None and progress.gap is not None for progress in seen)


def test_the_mailbox_hears_every_cost_and_passes_on_those_that_were_the_least() -> None:
    from kernels.qap import gpu_mailbox
    from kernels.qap.layout import RING

    box = gpu_mailbox.Mailbox(floating=False)

    def told(number: int, cost: int) -> None:
        at = 1 + (number - 1) % RING * 2
        box._words[at : at + 2] = number, cost

    assert box.news() == []
    for number, cost in enumerate((90, 70, 80, -5), 1):
        told(number, cost)
    assert box.news() == [90, 70, -5]
    assert box.news() == []
    for number in range(5, 10 + RING):  # once round and on: the first of them are lost
        told(number, -number)
    assert box.news()[-1] == box.least == -(9 + RING)


@pytest.mark.parametrize("streamed", [1, 2, 3])
def test_what_lies_off_the_chip_changes_nothing(streamed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.qap.memetic import gpu_geometry, gpu_memetic
    from kernels.qap.memetic.gpu_geometry import MemeticGeometry
    from kernels.qap.memetic.gpu_memetic import Ends, People

    flow, distance, linear = (instances.asymmetric(16, -9, 40, seed) for seed in range(3))
    problem = QuadraticAssignment(flow, distance, linear)

    def run(level: int) -> gpu_memetic.Evolved:
        monkeypatch.setattr(gpu_geometry, "geometry", lambda n, wide: MemeticGeometry(32, level, 4))
        return gpu_memetic.evolve(problem, Deadline(), People(members=9), Ends(generation_limit=20))

    on_chip, off_chip = run(0), run(streamed)
    assert [member.tolist() for member in on_chip.members] == [member.tolist() for member in off_chip.members]
    assert off_chip.scaled == 2 * problem.objective(off_chip.permutation)


def test_fixed_facilities_stay_and_forbidden_pairs_are_left_alone() -> None:
    inputs = dict(forms()["int32"])
    linear = np.zeros((23, 23))
    linear[5, :20] = np.inf
    options = QapOptions(fixed={0: 7, 3: 1}, rounds=40, population=True)
    problem = CARD.build({**inputs, "linear": linear}, options)
    solution = CARD.solve(problem, options, Deadline(20), "gpu")
    assert solution.arrays["permutation"][[0, 3]].tolist() == [7, 1]
    assert solution.arrays["permutation"][5] >= 20
    assert CARD.certify(problem, solution).holds


def test_beyond_registers_the_population_goes_on() -> None:
    n = 560
    problem = QuadraticAssignment(instances.symmetric(n, 9, 1), instances.symmetric(n, 9, 2))
    options = QapOptions(method="memetic", starts=6, rounds=2, iterations=60)
    solution = CARD.solve(problem, options, Deadline(60), "gpu")
    assert CARD.certify(problem, solution).holds
    assert problem.objective(solution.arrays["permutation"]) < problem.objective(np.arange(n))


@pytest.mark.parametrize("label", ["int32", "one-sided", "asymmetric", "linear", "int64", "float64", "barred"])
def test_gilmore_and_lawler_agree_on_both_devices(label: str) -> None:
    from kernels.qap.bounds import gpu_bounds

    inputs = dict(forms()["int32" if label == "barred" else label])
    if label == "barred":
        inputs["linear"] = np.where(np.eye(23, dtype=bool), np.inf, 3.0)
    problem = CARD.build(inputs, QapOptions())
    here, there = bounds.gilmore_lawler(problem), gpu_bounds.gilmore_lawler(problem)
    assert there.value == (here.value if problem.integer else pytest.approx(here.value, rel=1e-9))
    options = QapOptions(method="memetic", rounds=1, starts=8)
    solution = CARD.solve(problem, options, Deadline(), "gpu")
    assert CARD.certify(problem, solution).holds


def tree_of(problem: QuadraticAssignment, incumbent: int, batch: int = 64) -> tuple[bool, tuple[int, Array] | None]:
    """The device's tree below a root of a few sweeps."""
    from kernels.qap.exact import gpu_branch

    ascent = rlt1.DualAscent(problem)
    for _ in range(3):
        ascent.step()
    linear = penalised(problem).linear
    linear = np.zeros_like(problem.flow) if linear is None else linear
    limit = np.array([incumbent], np.int64)
    tree = gpu_branch.DeviceTree(Ground(problem, linear, ascent, limit, max(1, problem.granularity)))
    tree.batch = batch
    return tree.run(np.zeros(1, np.uint8)), tree.best


@pytest.mark.parametrize("label", ["one-sided-8", "asymmetric-7", "forbidden-7", "negative-5", "grid-8", "wide-7"])
@pytest.mark.parametrize("above", [2, 4000])
def test_the_tree_finds_the_optimum_and_nothing_below_it(label: str, above: int) -> None:
    inputs = instances.SMALL[label]() if label != "grid-8" else {
        "flow": instances.symmetric(8, 10, 1), "distance": instances.grid(2, 4)
    }  # fmt: skip
    problem = CARD.build(inputs, QapOptions())
    linear = problem.linear
    if problem.forbidden is not None:
        linear = np.where(problem.forbidden, 10**7, linear)
    best = oracle.optimum(problem.flow, problem.distance, linear)
    done, found = tree_of(problem, best + above)
    assert done
    assert found is not None
    assert found[0] == best == problem.objective(found[1])
    assert tree_of(problem, best) == (True, None)


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_agrees_with_the_threads(seed: int) -> None:
    from kernels.qap.exact.proof import Proof

    problem = QuadraticAssignment(instances.symmetric(11, 30, seed), instances.symmetric(11, 30, seed + 50))
    start = int(problem.objective(np.arange(11)))
    done, found = tree_of(problem, start, batch=4096)
    proof = Proof(problem, start, 2)
    proof.wait(60)
    assert done
    assert proof.finished
    assert found is not None
    assert proof.best is not None
    assert found[0] == proof.best[0] == problem.objective(found[1])


def test_a_small_problem_is_proved_on_the_device() -> None:
    problem = QuadraticAssignment(instances.symmetric(12, 10, 4), instances.grid(3, 4))
    solution = CARD.solve(problem, QapOptions(), Deadline(20), "gpu")
    assert solution.termination is Termination.OPTIMAL
    certificate = CARD.certify(problem, solution)
    assert certificate.holds
    assert certificate.facts["verified"]  # by the tree's log, whose leaves were all checked
    assert certificate.gap_abs == 0


def test_thread_counts_are_remembered_by_device_and_n() -> None:
    from kernels.qap.multistart import gpu_multistart

    form = search_form(CARD.build(instances.middling(), QapOptions()))
    first = gpu_multistart.tuned(form)
    key = next(key for key in gpu_multistart._remembered() if f"n={form.n} " in key)
    assert tuple(gpu_multistart._remembered()[key]) == first.tile
    assert gpu_multistart.tuned(form, threads=64).threads != gpu_multistart.tuned(form, threads=1024).threads


@pytest.mark.parametrize("label", ["int32", "asymmetric", "linear", "int64", "float64"])
def test_a_population_in_a_larger_size_moves_none_of_the_facilities_beside_it(label: str) -> None:
    """Every member is a permutation of the problem's own facilities, and costs what the device says."""
    from kernels.qap.memetic import gpu_memetic
    from kernels.qap.parts import split

    problem = CARD.build(forms()[label], QapOptions())
    policy = gpu_memetic.Policy(moves=2, quiet=1, cross=0.3, relink=0.3)
    matrices = split(penalised(problem))
    population = gpu_memetic.DevicePopulation(matrices, 40, 1, policy)
    orders = np.array([np.random.default_rng(k).permutation(problem.n) for k in range(40)])
    population.open(orders)
    for _ in range(30):
        population.generation()
    assert population.state()["number"] > 0  # epochs have ended: fresh starts are among the members
    half = population.generations % 2
    costs = np.sort(population._arrays["cost"][half].get())
    beside = population._arrays["population"][half].get()[:, problem.n :]
    assert (beside == np.arange(problem.n, population.size)).all()
    for member, cost in zip(population.elite(), costs, strict=True):
        assert sorted(member.tolist()) == list(range(problem.n))
        assert cost / population.scale == pytest.approx(problem.objective(member), rel=1e-9)


def test_the_last_epoch_of_an_era_begins_with_the_best_of_the_others() -> None:
    from kernels.qap.memetic import gpu_memetic
    from kernels.qap.memetic.layout import ERA
    from kernels.qap.parts import split

    problem = CARD.build(instances.middling(), QapOptions())
    population = gpu_memetic.DevicePopulation(split(problem), 41, 1, gpu_memetic.Policy(moves=1, quiet=1, growth=2))
    orders = np.array([np.random.default_rng(k).permutation(problem.n) for k in range(41)])
    population.open(orders)
    count, best = 41 // (ERA - 1), []
    for _ in range(400):
        population.generation()
        state = population.state()
        if state["fresh"]:
            best += population.elite()[:count]
            if state["number"] == ERA - 1:
                break
    elders = population._arrays["elders"].get()[: len(best), : problem.n]
    assert len(best) == (ERA - 1) * count
    assert elders.tolist() == np.array(best).tolist()
    assert state["length"] == 2 * state["base"]
    population.generation()
    costs = population._arrays["cost"][population.generations % 2].get()[: len(best)] / population.scale
    assert all(cost <= problem.objective(elder) for cost, elder in zip(costs, best, strict=True))
    while population.state()["number"] < ERA:
        population.generation()
    assert population.state()["base"] == population.state()["length"] == 2 * state["base"]
