"""Small jobs that are solved together, on a running service whose processes are stopped and killed."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from kernels import SOLVERS, Array, Csr, solve_and_prove
from kernels.deadline import Deadline
from tests.workers.service import OWNER, Service, child_of, eventually, kill, running_service
from workers.jobs.job import Job, State, Submission
from workers.store.inline import carried, unpack
from workers.store.reference import of_array

N = 12


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from running_service(tmp_path_factory.mktemp("allot"), cpu_workers=1)


def small(service: Service, solver: str, arrays: dict[str, Array | Csr], **options: Any) -> Job:
    """Submitted as a request does it: placed, with its arrays in its record."""
    card = SOLVERS[solver]
    chosen = card.options(**options)
    place = service.jobs.assess(card, card.build(arrays, chosen), chosen, "cpu")
    inputs = {name: carried(of_array(value), value) for name, value in arrays.items()}
    asked = Submission(OWNER, solver, inputs, options, queue=place.queue, form=place.form, seconds=place.seconds)
    assert place.form
    return service.jobs.submit(asked)[0]


def costs(count: int, n: int = 8) -> list[Array]:
    return list(np.random.default_rng(n).integers(0, 50, (count, n, n)))


class Stopped:
    """The service's processes, by signal; all go on when the block ends."""

    def __init__(self, *processes: psutil.Process) -> None:
        self._processes = processes

    def __enter__(self) -> None:
        for process in self._processes:
            os.kill(process.pid, signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):  # killed meanwhile
                os.kill(process.pid, signal.SIGCONT)


def worker_of(service: Service) -> psutil.Process:
    service.ready()
    eventually(lambda: len(service.supervisor.alive()) == 1)
    (pid,) = service.supervisor.alive()
    return psutil.Process(pid)


def not_waited_for(service: Service) -> None:
    """Wait until no worker counts as waiting: else the first job would be handed to it, alone."""
    eventually(lambda: service.jobs._redis.zcount("allot:idle:cpu", time.time(), "+inf") == 0)


def together(service: Service, jobs: list[Job]) -> bool:
    """Whether one worker has all of them now."""
    return all(service.jobs.get(job.id, OWNER).state is State.RUNNING for job in jobs)


@pytest.mark.parametrize(("solver", "name"), [("lap", "cost"), ("auction", "benefit")])
def test_what_queued_up_is_solved_in_one_go_and_answered_one_by_one(service: Service, solver: str, name: str) -> None:
    given, worker = costs(N), worker_of(service)
    with Stopped(worker):
        jobs = [small(service, solver, {name: cost}, seed=3) for cost in given]
    results = [service.jobs.result(service.ended(job).id, OWNER) for job in jobs]
    sizes = {result["facts"].get("solved_together") for result in results}
    assert max(sizes - {None}) >= N - 1  # the first may have been on its way by itself
    card = SOLVERS[solver]
    options = card.options(seed=3)
    for job, cost, result in zip(jobs, given, results, strict=True):
        solution, certificate = solve_and_prove(card, card.build({name: cost}, options), options, Deadline(), "cpu")
        assert (result["id"], result["objective"], result["seed"]) == (job.id, certificate.objective, solution.seed)
        for kind in solution.arrays:
            np.testing.assert_array_equal(unpack(result["arrays"][kind]), solution.arrays[kind])
        assert result["certificate"]["proved"] == certificate.proved
        assert result["input_digests"][name]["digest"] == of_array(cost)["blob"]
        assert {"queued", "load", "solve", "certify", "total"} <= result["timings_ms"].keys()


def quadratic(rng: np.random.Generator, n: int) -> dict[str, Array | Csr]:
    """A job of a solver without a batched form."""
    return {name: rng.integers(0, 9, (n, n)) for name in ("flow", "distance")}


def test_a_solver_without_a_batched_form_takes_them_one_after_the_other(service: Service) -> None:
    rng = np.random.default_rng(0)
    assert not SOLVERS["qap"].joint
    with Stopped(worker_of(service)):
        jobs = [small(service, "qap", quadratic(rng, 4)) for _ in range(5)]
    assert all(service.ended(job).state is State.SUCCEEDED for job in jobs)


def test_a_cancel_ends_that_member_alone(service: Service) -> None:
    worker = worker_of(service)
    time.sleep(0.2)  # a child says that it is done once the answer is out: frozen before that, it keeps its worker
    with Stopped(child_of(worker)):
        jobs = [small(service, "lap", {"cost": cost}) for cost in costs(4)]
        eventually(lambda: service.jobs.get(jobs[0].id, OWNER).state is State.RUNNING)
        cancelled = small(service, "lap", {"cost": costs(1)[0]})
        service.jobs.cancel(cancelled.id, OWNER)
        service.jobs.delete(jobs[3].id, OWNER)
    assert all(service.ended(job).state is State.SUCCEEDED for job in jobs[:3])
    assert service.ended(cancelled).state is State.CANCELLED


def test_a_tiny_job_leaves_no_file_and_no_arrays(service: Service) -> None:
    root = service.jobs.store.folder.temporary.parent
    before = sum(path.is_file() for path in root.rglob("*"))
    done = service.ended(small(service, "lap", {"cost": costs(1)[0]}))
    assert sum(path.is_file() for path in root.rglob("*")) == before
    redis = service.jobs._redis
    assert not redis.exists(f"allot:arrays:{done.id}", f"allot:events:{done.id}", f"rq:job:{done.id}")
    kinds = [event.data["state"] for event in service.jobs.events(done.id, OWNER)]
    assert kinds == ["queued", "running", "succeeded"]
    held = sum(redis.memory_usage(key) for key in redis.keys(f"*{done.id}*"))
    arrays = sum(len(entry["data"]) for entry in service.jobs.result(done.id, OWNER)["arrays"].values())
    assert held - arrays <= 2560


def test_a_child_killed_among_several_charges_none_and_each_runs_alone(service: Service) -> None:
    redis, rng = service.jobs._redis, np.random.default_rng(5)
    for _ in range(8):  # on a busy machine the child may have ended all of them before it is killed
        worker = worker_of(service)
        child = child_of(worker)
        with Stopped(worker):
            jobs = [small(service, "qap", quadratic(rng, 5)) for _ in range(60)]
        eventually(lambda: service.jobs.get(jobs[1].id, OWNER).state is not State.QUEUED)  # noqa: B023 (called at once)
        time.sleep(0.03)  # they are solved one after the other: some have ended, and one of the others kills the child
        kill(child)
        assert {service.ended(job, 60).state for job in jobs} == {State.SUCCEEDED}
        if alone := [job for job in jobs if redis.hget(f"allot:job:{job.id}", "alone") == "1"]:
            break
    assert alone
    assert all(redis.hget(f"allot:job:{job.id}", "execution").endswith("-1") for job in alone)  # nobody beside them


def test_a_child_killed_before_it_had_begun_costs_no_attempt(service: Service) -> None:
    worker = worker_of(service)
    child = child_of(worker)
    with Stopped(worker):
        not_waited_for(service)
        jobs = [small(service, "lap", {"cost": cost}) for cost in costs(N)]
        os.kill(child.pid, signal.SIGSTOP)
    eventually(lambda: together(service, jobs[1:]))
    kill(child)
    done = [service.ended(job, 60) for job in jobs]
    assert {(job.state, job.attempt) for job in done} == {(State.SUCCEEDED, 1)}


def test_a_worker_killed_with_several_loses_none(service: Service) -> None:
    worker = worker_of(service)
    child = child_of(worker)
    with Stopped(worker):
        not_waited_for(service)
        jobs = [small(service, "lap", {"cost": cost}) for cost in costs(N)]
        os.kill(child.pid, signal.SIGSTOP)
    eventually(lambda: together(service, jobs[1:]))
    kill(worker)
    assert {service.ended(job, 60).state for job in jobs} == {State.SUCCEEDED}
    assert service.jobs._redis.zcard("rq:wip:cpu") == 0
    assert service.jobs._redis.llen("rq:queue:cpu:intermediate") == 0


def test_a_worker_killed_before_it_hears_of_its_job_loses_none(service: Service) -> None:
    """The job was started on it, and it had not said yet that it has it."""
    worker = worker_of(service)
    redis = service.jobs._redis
    eventually(lambda: redis.zcount("allot:idle:cpu", time.time(), "+inf") == 1)
    with Stopped(worker):  # in its wait, or about to begin one
        job = small(service, "lap", {"cost": costs(1)[0]})
        assert redis.hmget(f"allot:job:{job.id}", "state", "execution") == ["running", f"straight-{job.id}"]
        kill(worker)
    assert service.ended(job, 60).state is State.SUCCEEDED


def test_a_worker_that_is_stopped_sees_through_what_it_was_handed(service: Service) -> None:
    worker = worker_of(service)
    redis = service.jobs._redis
    eventually(lambda: redis.zcount("allot:idle:cpu", time.time(), "+inf") == 1)
    with Stopped(worker):
        job = small(service, "lap", {"cost": costs(1)[0]})
        assert redis.hget(f"allot:job:{job.id}", "execution") == f"straight-{job.id}"
        worker.send_signal(signal.SIGTERM)
    done = service.ended(job, 60)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
    assert redis.hget(f"allot:job:{job.id}", "execution") == f"straight-{job.id}"
