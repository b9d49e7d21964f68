"""Jobs of one form in a child's own code: what a card's joint solve gives, and what becomes of the rest."""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, InputChanged, Solution, Termination
from tests.kernels.no_device import swept_each, without_device
from workers.jobs.job import State, StoreFull, Submission
from workers.jobs.queue import Jobs
from workers.jobs.records import Ending, Limits, Order, Records
from workers.runtime import batch, document, gpu_memory, run
from workers.runtime.document import Bench
from workers.runtime.run import DeviceLost
from workers.store import inline, shorts, store
from workers.store.names import name_of
from workers.store.store import Store

Joint = Callable[[Sequence[Any], Any, Deadline], list[tuple[Solution, Certificate] | None]]


def orders(jobs: Jobs, solver: str, inputs: list[dict[str, Array]], **options: Any) -> list[Order]:
    """Jobs that a worker has taken one by one."""
    found = []
    for k, arrays in enumerate(inputs):
        references = {name: jobs.store.put(array, "ann") for name, array in arrays.items()}
        job, _ = jobs.submit(Submission("ann", solver, references, options, queue="cpu"))
        jobs._redis.lpush("rq:queue:cpu", job.id)
        taken = Records(jobs._redis).take("cpu", "a worker", "a cpu", f"taken-{k}", Limits.of(jobs.settings))
        found += taken or []
    assert len(found) == len(inputs)
    return found


def ended(jobs: Jobs, given: list[Order], device: Any) -> list[Ending]:
    """The endings of jobs that one child has, in the order of the jobs."""
    bench = Bench(Records(jobs._redis), jobs.store, device, "a device")
    by_job = {one.job_id: one for part in batch.endings(given, bench) for one in part}
    return [by_job[order.job_id] for order in given]


def facts_of(ending: Ending) -> dict[str, Any]:
    assert ending.result is not None
    return dict(json.loads(ending.result)["facts"])


@pytest.fixture
def solved_alone(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The problems of `lap` that were solved by themselves, on either device."""
    found: list[Any] = []

    def solve(problem: Any, options: Any, deadline: Deadline) -> Solution:
        found.append(problem)
        return diagonal(problem)[0]

    module = type("module", (), {"solve": staticmethod(solve)})
    monkeypatch.setattr("kernels.card._module", lambda name: module)
    monkeypatch.setattr(gpu_memory, "synchronize", lambda: None)
    return found


def diagonal(problem: Any) -> tuple[Solution, Certificate]:
    """The answer of np.eye(2) less a constant."""
    arrays = {"assignment": np.array([1, 0]), "u": np.diag(problem.weights) - 1.0, "v": np.zeros(2)}
    solution = Solution(Termination.OPTIMAL, "fake", arrays, timings_ms={"solve": 1.0, "certify": 2.0})
    return solution, SOLVERS["lap"].certify(problem, solution)


def with_joint(monkeypatch: pytest.MonkeyPatch, device: Any, solve: Joint) -> None:
    card = dataclasses.replace(SOLVERS["lap"], joint={device: solve}, device_certificate="")
    monkeypatch.setitem(SOLVERS, "lap", card)


def eyes(count: int) -> list[dict[str, Array]]:
    return [{"cost": np.eye(2) + k} for k in range(count)]


def test_what_has_no_answer_from_company_is_solved_by_itself(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def joint(problems: Sequence[Any], options: Any, deadline: Deadline) -> Any:
        asked.append((len(problems), options.seed, deadline.remaining_s < np.inf))
        return [None if problem.weights[0, 0] == 2 else diagonal(problem) for problem in problems]

    with_joint(monkeypatch, "gpu", joint)
    given = orders(jobs, "lap", eyes(3), seed=7)
    found = ended(jobs, given, "gpu")
    assert asked == [(3, 7, True)]
    assert [problem.weights[0, 0] for problem in solved_alone] == [2]
    assert [one.state for one in found] == [State.SUCCEEDED] * 3
    assert [json.loads(one.result or "")["objective"] for one in found] == [0, 2, 4]


def test_a_card_is_asked_by_device_before_anything_is_loaded(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []

    def loaded(card: Any, order: Order, bench: Bench) -> Any:
        loads.append(order.job_id)
        return run.loaded(card, order, bench)

    monkeypatch.setattr(batch, "loaded", loaded)
    with_joint(monkeypatch, "gpu", lambda problems, options, deadline: [None] * len(problems))
    assert [one.state for one in ended(jobs, orders(jobs, "lap", eyes(2)), "cpu")] == [State.SUCCEEDED] * 2
    assert not loads
    ended(jobs, orders(jobs, "lap", eyes(2)), "gpu")
    assert len(loads) == 2


def test_trouble_of_a_batch_is_nobodys(jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def joint(*_: Any) -> Any:
        raise MemoryError

    with_joint(monkeypatch, "gpu", joint)
    assert [one.state for one in ended(jobs, orders(jobs, "lap", eyes(2)), "gpu")] == [State.SUCCEEDED] * 2
    assert len(solved_alone) == 2


@pytest.mark.parametrize(("flush_s", "sizes"), [(1e9, [3]), (-1.0, [1, 1, 1])])
def test_answers_that_take_long_to_store_are_told_before_the_others(
    flush_s: float, sizes: list[int], jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_joint(monkeypatch, "gpu", lambda problems, *_: [diagonal(problem) for problem in problems])
    monkeypatch.setattr(batch, "FLUSH_S", flush_s)
    bench = Bench(Records(jobs._redis), jobs.store, "gpu", "a device")
    assert [len(part) for part in batch.endings(orders(jobs, "lap", eyes(3)), bench)] == sizes


def test_what_cannot_be_stored_harms_none_of_those_before_it(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_joint(monkeypatch, "gpu", lambda problems, *_: [diagonal(problem) for problem in problems])
    given, concluded = orders(jobs, "lap", eyes(4)), run.concluded

    def full(order: Order, *rest: Any) -> Ending:
        if order is given[2] and not solved_alone:
            raise StoreFull("no room")
        return concluded(order, *rest)

    monkeypatch.setattr(batch, "concluded", full)
    bench = Bench(Records(jobs._redis), jobs.store, "gpu", "a device")
    told = [one for part in batch.endings(given, bench) for one in part]
    assert [one.job_id for one in told] == [order.job_id for order in given]
    assert [problem.weights[0, 0] for problem in solved_alone] == [3, 4]


def test_an_input_that_changed_on_the_device_ends_the_child(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def joint(*_: Any) -> Any:
        raise InputChanged("something wrote over it")

    with_joint(monkeypatch, "gpu", joint)
    with pytest.raises(DeviceLost, match="InputChanged: something wrote over it"):
        ended(jobs, orders(jobs, "lap", eyes(2)), "gpu")
    assert not solved_alone


@pytest.mark.parametrize("certificate", ["none", "full"])
def test_minibatches_are_swept_in_one_launch_and_answered_one_by_one(
    certificate: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[int] = []

    def launch(work: Any, iterations: int, tolerance: float) -> None:
        launches.append(work.problem.batch)
        swept_each(work, iterations, tolerance)

    without_device(monkeypatch, launch)
    rng = np.random.default_rng(0)
    sizes = np.full((4, 2), 6)
    inputs = [{"x": rng.random((24, 2)), "y": rng.random((24, 2)), "sizes": sizes} for _ in range(3)]
    options = {"reg": 0.1, "reg_m": "inf", "tolerance": 1e-3, "output": "potentials", "certificate": certificate}
    given = orders(jobs, "uot", inputs, **options)
    found = ended(jobs, given, "gpu")
    assert set(launches) == {12}
    card = SOLVERS["uot"]
    for arrays, order, ending in zip(inputs, given, found, strict=True):
        assert (ending.job_id, ending.execution, ending.state) == (order.job_id, order.execution, State.SUCCEEDED)
        document = json.loads(ending.result or "")
        assert facts_of(ending)["solved_together"] == 3
        chosen = card.options.model_validate(options)
        wanted = card.solve(card.build(arrays, chosen), chosen, Deadline(), "cpu")
        value = card.claimed(card.build(arrays, chosen), wanted) if card.claimed else None
        assert document["objective"] == pytest.approx(value, rel=1e-2)
        assert document["certificate"]["holds"] is (None if certificate == "none" else True)
        assert document["termination"] == ("converged" if certificate == "none" else "gap_reached")
        assert {"queued", "load", "solve", "certify", "total"} <= document["timings_ms"].keys()


def of_owners(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, owners: Sequence[str]) -> tuple[list[Order], list[str]]:
    """Jobs that are solved together, of such owners, whose answers go to the store; and what Redis is told."""
    monkeypatch.setattr(inline, "MOST_ANSWER_BYTES", 0)
    with_joint(monkeypatch, "gpu", lambda problems, *_: [diagonal(problem) for problem in problems])
    given = [
        dataclasses.replace(order, record={**order.record, "owner": owner})
        for order, owner in zip(orders(jobs, "lap", eyes(len(owners))), owners, strict=True)
    ]
    monkeypatch.setattr(run, "_found", lambda reference, *_: jobs.store.resolve(reference, "ann"))
    told, keep = list[str](), jobs.store._records.keep

    def noted(sizes: Any, owner: str, *rest: Any) -> str:
        told.append(owner)
        return keep(sizes, owner, *rest)

    monkeypatch.setattr(jobs.store._records, "keep", noted)
    return given, told


def test_the_arrays_of_a_batch_are_kept_by_owner(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given, told = of_owners(jobs, monkeypatch, ["ann", "bob", "ann", "ann", "bob", "cay"])
    found = ended(jobs, given, "gpu")
    assert told == ["ann", "bob", "cay"]
    assert not solved_alone
    for k, (order, ending) in enumerate(zip(given, found, strict=True)):
        result = json.loads(ending.result or "")
        assert result["timings_ms"]["store"] > 0
        owner = order.record["owner"]
        assert jobs.store.open_array(result["arrays"]["u"], owner).tolist() == [k, k]
        assert sorted(ending.names) == sorted({name_of(one["blob"], owner) for one in result["arrays"].values()})
        stranger = "bob" if owner != "bob" else "ann"
        assert (jobs.store.stat(result["arrays"]["u"]["blob"], stranger) is None) == (k > 0)  # zeros are theirs too


def test_what_a_batch_cannot_keep_together_is_kept_one_by_one(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given, told = of_owners(jobs, monkeypatch, ["ann", "ann"])
    put, tries = Store.put_shorts, list[int]()

    def full(self: Store, files: Sequence[Any], owner: str) -> None:
        tries.append(len(files))
        if len(tries) == 1:
            raise StoreFull("no room for all")
        put(self, files, owner)

    monkeypatch.setattr(Store, "put_shorts", full)
    assert [one.state for one in ended(jobs, given, "gpu")] == [State.SUCCEEDED] * 2
    assert tries == [6, 3, 3]
    assert told == ["ann", "ann"]
    assert not solved_alone


def test_what_cannot_be_made_ready_together_is_left_to_each(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given, told = of_owners(jobs, monkeypatch, ["ann", "ann"])
    shorts_of, tries = shorts.shorts_of, list[int]()

    def scarce(arrays: Any) -> Any:
        tries.append(len(arrays))
        if len(tries) == 1:
            raise MemoryError
        return shorts_of(arrays)

    monkeypatch.setattr(document, "shorts_of", scarce)
    assert [one.state for one in ended(jobs, given, "gpu")] == [State.SUCCEEDED] * 2
    assert told == ["ann", "ann"]
    assert not solved_alone


def test_what_was_kept_ahead_lasts_while_an_answer_before_it_waits_for_room(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given, _ = of_owners(jobs, monkeypatch, ["ann", "ann"])
    monkeypatch.setattr(store, "BRIEF_S", 0.1)
    concluded = run.concluded

    def slow(order: Order, *rest: Any) -> Ending:
        ending = concluded(order, *rest)
        if order is given[0]:
            time.sleep(0.2)
            jobs.store.sweep()
        return ending

    monkeypatch.setattr(batch, "concluded", slow)
    result = json.loads(ended(jobs, given, "gpu")[1].result or "")
    assert not solved_alone
    assert jobs.store.open_array(result["arrays"]["u"], "ann").tolist() == [1, 1]


def test_an_answer_that_is_refuted_is_not_kept(
    jobs: Jobs, solved_alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given, told = of_owners(jobs, monkeypatch, ["ann", "ann"])

    def joint(problems: Sequence[Any], *_: Any) -> Any:
        found = [diagonal(problem) for problem in problems]
        return [(solution, dataclasses.replace(proof, holds=False)) for solution, proof in found]

    with_joint(monkeypatch, "gpu", joint)
    ended(jobs, given, "gpu")
    assert told == ["ann", "ann"]  # of those that were solved again, one by one
    assert len(solved_alone) == 2
