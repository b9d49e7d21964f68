"""What a caller may ask of his jobs, on a real Redis and without workers."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, InvalidProblem
from tests.workers.service import allowed, quickest
from workers.jobs.job import (
    DoesNotFit,
    IdempotencyConflict,
    NoSuchDevice,
    NotEnded,
    QueueFull,
    State,
    Submission,
    Unavailable,
    UnknownBlob,
    UnknownJob,
)
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings


def submission(jobs: Jobs, owner: str = "ann", **more: Any) -> Submission:
    reference = jobs.store.put(np.array([[4, 1], [2, 0]]), owner)
    return Submission(owner, "lap", {"cost": reference}, **{"queue": "cpu", **more})


def test_a_new_job_waits_in_line(jobs: Jobs) -> None:
    first, created = jobs.submit(submission(jobs))
    second, _ = jobs.submit(submission(jobs))
    assert created
    assert (first.state, first.queue_position, second.queue_position) == (State.QUEUED, 1, 2)
    assert jobs.get(second.id, "ann") == second
    with pytest.raises(NotEnded):
        jobs.result(first.id, "ann")


def test_another_owner_sees_nothing(jobs: Jobs) -> None:
    job, _ = jobs.submit(submission(jobs))
    for ask in (jobs.get, jobs.cancel, jobs.delete, jobs.result, jobs.events):
        with pytest.raises(UnknownJob):
            ask(job.id, "bob")
    assert jobs.list("bob") == ([], None)
    with pytest.raises(UnknownBlob):
        jobs.submit(Submission("bob", "lap", job.inputs, queue="cpu"))


def test_idempotency_key(jobs: Jobs) -> None:
    one = submission(jobs, idempotency_key="k", fingerprint="a")
    job, created = jobs.submit(one)
    again, created_again = jobs.submit(one)
    assert (again.id, created, created_again) == (job.id, True, False)
    with pytest.raises(IdempotencyConflict):
        jobs.submit(submission(jobs, idempotency_key="k", fingerprint="b"))
    other, created = jobs.submit(submission(jobs, "bob", idempotency_key="k", fingerprint="b"))
    assert created
    assert other.id != job.id


def test_two_requests_with_one_key_at_once_make_one_job(jobs: Jobs) -> None:
    one = submission(jobs, idempotency_key="race", fingerprint="a")
    made: list[tuple[str, bool]] = []

    def submit() -> None:
        job, created = jobs.submit(one)
        made.append((job.id, created))

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({job_id for job_id, _ in made}) == 1
    assert sum(created for _, created in made) == 1


def test_a_full_queue_turns_jobs_away(settings: Settings, jobs: Jobs) -> None:
    from dataclasses import replace

    small = Jobs(replace(settings, max_queued=1), jobs.store)
    small.submit(submission(small))
    with pytest.raises(QueueFull):
        small.submit(submission(small))
    assert small.counts()["waiting"]["cpu"] == 1


def test_pages_are_newest_first_and_complete(jobs: Jobs) -> None:
    ids = [jobs.submit(submission(jobs))[0].id for _ in range(7)]
    jobs.cancel(ids[3], "ann")
    seen: list[str] = []
    cursor = None
    while True:
        page, cursor = jobs.list("ann", cursor, limit=3)
        seen += [job.id for job in page]
        if cursor is None:
            break
    assert seen == ids[::-1]
    assert [job.id for job in jobs.list("ann", state=State.CANCELLED)[0]] == [ids[3]]
    assert jobs.list("ann", solver="qap") == ([], None)
    with pytest.raises(ValueError, match="float"):
        jobs.list("ann", "nonsense")


def test_cancelling_a_queued_job_takes_it_out_of_the_line(jobs: Jobs) -> None:
    job, _ = jobs.submit(submission(jobs))
    assert jobs.cancel(job.id, "ann").state is State.CANCELLED
    assert jobs.counts()["waiting"]["cpu"] == 0
    assert jobs.cancel(job.id, "ann").state is State.CANCELLED
    kinds = [(event.kind, event.data["state"]) for event in jobs.events(job.id, "ann")]
    assert kinds == [("state", "queued"), ("state", "cancelled")]


def test_delete_forgets(jobs: Jobs) -> None:
    job, _ = jobs.submit(submission(jobs))
    jobs.delete(job.id, "ann")
    with pytest.raises(UnknownJob):
        jobs.get(job.id, "ann")
    assert jobs.counts()["waiting"]["cpu"] == 0


@contextlib.contextmanager
def soon(delay_s: float, call: Callable[[], object]) -> Iterator[None]:
    """Call from another thread while the block waits; the thread has ended when the block has."""
    timer = threading.Timer(delay_s, call)
    timer.start()
    yield
    timer.join()


def test_wait_returns_at_once_on_a_change(jobs: Jobs) -> None:
    def waited() -> float:
        job, _ = jobs.submit(submission(jobs))
        start = time.monotonic()
        with soon(0.2, lambda: jobs.cancel(job.id, "ann")):
            assert jobs.wait(job.id, "ann", 10).state is State.CANCELLED
        return time.monotonic() - start

    assert 0.1 < quickest(waited, 2) < allowed(2)
    other, _ = jobs.submit(submission(jobs))
    assert jobs.wait(other.id, "ann", 0.1).state is State.QUEUED
    assert jobs.wait(other.id, "ann", 5, version=other.version - 1) == other


def test_events_wait_for_the_first(jobs: Jobs) -> None:
    job, _ = jobs.submit(submission(jobs))
    (queued,) = jobs.events(job.id, "ann")
    assert jobs.events(job.id, "ann", queued.id, timeout_s=0.05) == []
    with soon(0.1, lambda: jobs.cancel(job.id, "ann")):
        (cancelled,) = jobs.events(job.id, "ann", queued.id, timeout_s=5)
    assert cancelled.data["state"] == "cancelled"
    with pytest.raises(ValueError, match="event id"):
        jobs.events(job.id, "ann", "yesterday")


def test_submit_builds_the_problem_when_nobody_has(jobs: Jobs) -> None:
    job, _ = jobs.submit(submission(jobs, queue=None))
    assert job.queue_position == 1
    bad = jobs.store.put(np.array([[np.nan]]), "ann")
    with pytest.raises(InvalidProblem, match="nan"):
        jobs.submit(Submission("ann", "lap", {"cost": bad}))


def pretend_worker(jobs: Jobs, device: str, host_bytes: int = 1 << 30, gpu_bytes: int | None = None) -> None:
    gpu = (
        None if gpu_bytes is None else {"uuid": "GPU-1", "bytes_total": gpu_bytes, "bytes_free": gpu_bytes, "count": 1}
    )
    told = {"device": device, "queue": device, "state": "idle", "heartbeat": time.time()}
    jobs._redis.hset("allot:workers", device, json.dumps(told | {"host_bytes": host_bytes, "gpu": gpu}))


def test_devices_that_are_not_there(jobs: Jobs) -> None:
    card = SOLVERS["lap"]
    options = card.options()
    problem = card.build({"cost": np.ones((4, 4))}, options)
    assert jobs.place(card, problem, options, "auto") == "cpu"  # no worker yet: the job waits for one
    with pytest.raises(NoSuchDevice, match="gpu"):
        jobs.place(card, problem, options, "gpu")
    pretend_worker(jobs, "cpu", host_bytes=16)
    with pytest.raises(DoesNotFit) as caught:
        jobs.place(card, problem, options, "auto")
    assert caught.value.bytes_available == 16
    assert jobs.workers()[0].device == "cpu"


def test_redis_away_is_said_and_survived(tmp_path: Any) -> None:
    from workers.runtime.redis_server import EmbeddedRedis

    redis = EmbeddedRedis(tmp_path)
    jobs = Jobs(Settings(data_dir=tmp_path).with_redis(redis.start()))
    one = submission(jobs)
    redis.stop()
    for ask in (jobs.ping, jobs.counts, lambda: jobs.submit(one), lambda: jobs.list("ann")):
        with pytest.raises(Unavailable):
            ask()
    redis.start()
    assert jobs.submit(one)[1]  # the blob and its owner were in the append-only file
    redis.stop()
