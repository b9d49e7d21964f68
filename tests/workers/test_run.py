"""One job in a child's own code: what each kind of trouble becomes. Records and store are real."""

import dataclasses
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from kernels import SOLVERS, Certificate, InputChanged, Solution, Termination, locked
from tests.workers.test_records import Held
from workers.jobs.job import State, StoreFull, Submission, Unavailable
from workers.jobs.queue import Jobs
from workers.jobs.records import Limits, Records
from workers.runtime import child, gpu_memory
from workers.runtime.batch import endings
from workers.runtime.document import Bench
from workers.runtime.run import DeviceLost
from workers.store import inline
from workers.store.shorts import Short
from workers.store.store import Store


class OutOfMemoryError(MemoryError):
    """As CuPy's, of which only module and name are looked at."""


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


OutOfMemoryError.__module__ = "cupy.cuda.memory"
CUDARuntimeError.__module__ = "cupy_backends.cuda.api.runtime"


@pytest.fixture
def outcome(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs one tiny lap with parts of its card replaced; answers the job as its owner sees it."""
    monkeypatch.setattr(gpu_memory, "synchronize", lambda: None)
    monkeypatch.setattr(gpu_memory, "free_pool", lambda: None)
    monkeypatch.setattr(gpu_memory, "memory", lambda: (1000, 2000))

    def ask(device: Any = "cpu", solve: Any = swap, certify: Any = None) -> Any:
        card = dataclasses.replace(SOLVERS["lap"], modules={"cpu": "a module", "gpu": "a module"})
        module = type("module", (), {"solve": staticmethod(solve)})
        monkeypatch.setattr("kernels.card._module", lambda name: module)
        if certify is not None:
            card = dataclasses.replace(card, certify=certify)
        monkeypatch.setitem(SOLVERS, "lap", card)
        held = Held(jobs)
        order = held.take("one")
        assert order is not None
        bench = Bench(held.records, jobs.store, device, "a device")
        assert child.work([order], "a worker", bench)[0] == {held.id: "done"}
        return jobs.get(held.id, "ann")

    return ask


def swap(problem: Any, options: Any, deadline: Any) -> Solution:
    return Solution(Termination.OPTIMAL, "guess", {"assignment": np.array([1, 0]), "u": np.zeros(2), "v": np.zeros(2)})


def refuted(problem: Any, solution: Solution, progress: Any) -> Certificate:
    return Certificate(1, None, None, None, 7.0, False, "column 0 is taken twice")


def nothing_yet(problem: Any, solution: Solution, progress: Any) -> Certificate:
    return Certificate(None, None, None, None, 0, True, "nothing was found yet")


def stopped(problem: Any, options: Any, deadline: Any) -> Solution:
    return Solution(Termination.STOPPED, "guess", {})


def raising(*errors: Exception) -> Any:
    left = list(errors)

    def solve(problem: Any, options: Any, deadline: Any) -> Solution:
        if left:
            raise left.pop(0)
        return swap(problem, options, deadline)

    return solve


def test_jobs_that_are_solved_together_keep_their_own_inputs(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locked, "page_lock", lambda address, count: lambda: None)
    costs = list(np.random.default_rng(0).integers(0, 1000, (5, 9, 9)))
    records, orders = Records(jobs._redis), []
    for k, cost in enumerate(costs):
        inputs = {"cost": jobs.store.put(cost, "ann")}
        jobs._redis.lpush("rq:queue:cpu", jobs.submit(Submission("ann", "lap", inputs, queue="cpu"))[0].id)
        orders += records.take("cpu", "a worker", "a cpu", f"token-{k}", Limits.of(jobs.settings))
    staging = gpu_memory.Staging(1 << 20)
    bench = Bench(records, jobs.store, "cpu", "a cpu", staging)  # a GPU's child stages what it loads
    done = {one.job_id: json.loads(one.result or "") for part in endings(orders, bench) for one in part}
    for order, cost in zip(orders, costs, strict=True):
        result = done[order.job_id]
        assert result["facts"]["solved_together"] == len(costs)
        assert result["objective"] == int(cost[linear_sum_assignment(cost)].sum())


def test_a_certificate_that_does_not_hold_fails_the_job(outcome: Any) -> None:
    job = outcome(solve=swap, certify=refuted)
    assert job.state is State.FAILED
    assert job.error["code"] == "certificate"
    assert "taken twice" in job.error["detail"]
    assert job.error["certificate"]["max_violation"] == 7.0


def test_stopped_with_nothing_to_keep_is_cancelled(outcome: Any) -> None:
    assert outcome(solve=stopped, certify=nothing_yet).state is State.CANCELLED


def test_a_bug_is_told_and_not_repeated(outcome: Any) -> None:
    job = outcome(solve=raising(ZeroDivisionError("by n")))
    assert (job.error["code"], job.attempt) == ("internal", 1)
    assert "ZeroDivisionError: by n" in job.error["detail"]


def test_gpu_memory_is_tried_twice(outcome: Any) -> None:
    assert outcome("gpu", raising(OutOfMemoryError())).state is State.SUCCEEDED


@pytest.mark.parametrize("error", [OutOfMemoryError, lambda: CUDARuntimeError(2)])
def test_gpu_memory_that_is_not_there_is_counted(outcome: Any, error: Any) -> None:
    job = outcome("gpu", raising(error(), error()))
    assert job.error["code"] == "out-of-memory"
    assert job.error["bytes_free"] == 1000
    assert job.error["bytes_needed"] >= 0


def test_any_other_cuda_error_costs_the_child(outcome: Any) -> None:
    with pytest.raises(DeviceLost, match="700"):
        outcome("gpu", raising(CUDARuntimeError(700)))


def test_an_input_that_was_written_over_costs_the_child(outcome: Any) -> None:
    """The attempt is void: another process runs the job again."""
    with pytest.raises(DeviceLost, match="InputChanged: the input of 3 x 3"):
        outcome("gpu", raising(InputChanged("the input of 3 x 3")))


def test_host_memory(outcome: Any) -> None:
    assert outcome(solve=raising(MemoryError())).error["code"] == "out-of-memory"


def flaky(monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> list[Exception]:
    """Keeping the arrays of an answer raises these first; those that are left."""
    left, keep = list(errors), Store.put_shorts
    monkeypatch.setattr(inline, "MOST_ANSWER_BYTES", 0)  # a small answer would need no store

    def put_shorts(self: Store, files: Sequence[Short], owner: str) -> None:
        if left:
            raise left.pop(0)
        keep(self, files, owner)

    monkeypatch.setattr(Store, "put_shorts", put_shorts)
    return left


def test_short_arrays_are_kept_while_the_answer_is_proved(outcome: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "MOST_ANSWER_BYTES", 0)
    kept, times, keep = threading.Event(), list[int](), Store.put_shorts

    def put_shorts(self: Store, files: Sequence[Short], owner: str) -> None:
        keep(self, files, owner)
        times.append(len(files))
        kept.set()

    def certify(problem: Any, solution: Solution, progress: Any) -> Certificate:
        assert kept.wait(10)
        return Certificate(5, 5, 0, 0.0, 0, True, "by hand")

    monkeypatch.setattr(Store, "put_shorts", put_shorts)
    assert outcome(certify=certify).state is State.SUCCEEDED
    assert times == [3]


def test_arrays_of_an_answer_that_was_mended_are_kept_anew(jobs: Jobs, outcome: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(inline, "MOST_ANSWER_BYTES", 0)

    def certify(problem: Any, solution: Solution, progress: Any) -> Certificate:
        solution.arrays = {**solution.arrays, "u": np.array([4.0, 1.0])}
        return Certificate(5, 5, 0, 0.0, 0, True, "by hand")

    job = outcome(certify=certify)
    told = jobs.result(job.id, "ann")["arrays"]["u"]
    np.testing.assert_array_equal(jobs.store.open_array(told, "ann"), [4.0, 1.0])


def test_a_store_that_is_away_for_a_moment_is_outlasted(outcome: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left = flaky(monkeypatch, Unavailable("away"), Unavailable("still away"))
    assert outcome().state is State.SUCCEEDED
    assert not left


def test_a_store_that_stays_away_is_told_of(
    outcome: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("workers.runtime.outlast.TOLD_S", 0.3)
    flaky(monkeypatch, *(Unavailable("no bucket") for _ in range(14)))  # 0.8 s in all
    assert outcome().state is State.SUCCEEDED
    told = [line.message for line in caplog.records if line.name == "workers.runtime.outlast"]
    assert 1 <= len(told) < 4
    assert all("no bucket" in line for line in told)


def test_a_full_store_is_waited_for(outcome: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.runtime.outlast.FULL_S", 0.01)
    left = flaky(monkeypatch, *(StoreFull("no room") for _ in range(5)))
    job = outcome()
    assert not left
    assert (job.state, job.attempt) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("slow_s", [0.0, 60.0])
def test_a_slow_job_has_a_line_that_names_its_trace(
    jobs: Jobs, caplog: pytest.LogCaptureFixture, slow_s: float
) -> None:
    held = Held(jobs)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    jobs._redis.hset(f"allot:job:{held.id}", "traceparent", trace)
    order = held.take("one")
    assert order is not None
    bench = Bench(held.records, jobs.store, "cpu", "a device", slow_s=slow_s)
    assert child.work([order], "a worker", bench)[0] == {held.id: "done"}
    lines = [one for one in caplog.records if one.name == "allot.slow"]
    assert len(lines) == (slow_s == 0.0)
    for line in lines:
        fields = line.fields  # type: ignore[attr-defined]
        assert (fields["traceparent"], fields["solver"]) == (trace, "lap")
        assert {"queued", "load", "solve", "certify", "total"} <= fields["ms"].keys()


def test_a_child_reads_no_sample_that_was_read_before(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.texture._look", raising(AssertionError("it was read again")))
    reference = jobs.store.put(np.random.default_rng(0).random((200, 200)), "ann")
    held = Held(jobs, derived=(0.4, 1.0, 1.0))
    jobs._redis.hset(f"allot:job:{held.id}", "inputs", json.dumps({"cost": reference}))
    order = held.take("one")
    assert order is not None
    assert child.work([order], "a worker", Bench(held.records, jobs.store, "cpu", "a device"))[0] == {held.id: "done"}
    assert jobs.get(held.id, "ann").state is State.SUCCEEDED
