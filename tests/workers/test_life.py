"""Jobs as their owner sees them, on a running service."""

import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime

import numpy as np
import pytest
from rq import Queue, Retry
from rq.command import send_stop_job_command
from rq.serializers import JSONSerializer
from scipy.optimize import linear_sum_assignment

from tests.workers.service import OWNER, Service, allowed, child_of, eventually, quickest, running_service
from workers.jobs.job import Expired, Job, JobFailed, State, UnknownJob
from workers.runtime.connection import connect
from workers.store.reference import of_array


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from running_service(
        tmp_path_factory.mktemp("allot"), cpu_workers=1, hard_margin_s=3.0, blob_ttl_s=3.0, cancel_grace_s=3.0
    )


def test_a_job_is_solved_proved_and_timed(service: Service) -> None:
    cost = np.random.default_rng(3).integers(0, 100, (8, 8))
    done = service.ended(service.submit("lap", {"cost": cost}))
    assert (done.state, done.termination, done.attempt) == (State.SUCCEEDED, "optimal", 1)
    result = service.jobs.result(done.id, OWNER)
    rows, columns = linear_sum_assignment(cost)
    assert result["objective"] == cost[rows, columns].sum()
    assert result["certificate"]["gap_abs"] == 0
    assert {"queued", "load", "solve", "certify", "total"} <= set(result["timings_ms"])
    assert result["versions"]["numpy"] == np.__version__
    assert result["input_digests"] == {"cost": of_array(cost)} == done.inputs
    reference = result["arrays"]["assignment"]
    assignment = service.jobs.store.open_array(reference, OWNER)
    assert reference["shape"] == [8]
    assert cost[np.arange(8), assignment].sum() == result["objective"]


def test_cancel_keeps_the_best(service: Service) -> None:
    made: list[Job] = []

    def cancelled() -> float:
        job = service.long_qap()
        service.solving(job)
        start = time.monotonic()
        service.jobs.cancel(job.id, OWNER)
        made.append(service.ended(job))
        return time.monotonic() - start

    assert quickest(cancelled, 2) < allowed(2)
    job = done = made[-1]
    assert (done.state, done.termination) == (State.SUCCEEDED, "stopped")
    permutation = service.jobs.result(job.id, OWNER)["arrays"]["permutation"]
    assert sorted(service.jobs.store.open_array(permutation, OWNER)) == list(range(40))
    events = service.jobs.events(job.id, OWNER)
    incumbents = [event.data["objective"] for event in events if event.kind == "incumbent"]
    assert incumbents == sorted(incumbents, reverse=True)
    assert incumbents
    assert service.jobs.events(job.id, OWNER, after=events[2].id) == events[3:]


def test_a_time_limit_is_an_answer(service: Service) -> None:
    done = service.ended(service.long_qap(time_limit_s=0.5))
    assert (done.state, done.termination) == (State.SUCCEEDED, "time_limit")


def test_a_wrong_problem_fails_with_its_field(service: Service) -> None:
    failed = service.ended(service.submit("lap", {"cost": np.array([[1.0, np.nan]])}))
    assert failed.state is State.FAILED
    assert failed.error is not None
    assert (failed.error["code"], failed.error["field"]) == ("invalid-problem", "cost")
    assert failed.attempt == 1
    with pytest.raises(JobFailed):
        service.jobs.result(failed.id, OWNER)


def test_a_child_that_ignores_its_deadline_is_killed(service: Service) -> None:
    job = service.long_qap(time_limit_s=min(20.0, allowed(2.0)))
    service.solving(job)
    os.kill(child_of(service.worker_of(job)).pid, signal.SIGSTOP)
    failed = service.ended(job)
    assert (failed.state, failed.attempt) == (State.FAILED, 1)
    assert failed.error is not None
    assert failed.error["code"] == "deadline"


def test_a_child_that_ignores_a_cancellation_is_killed(service: Service) -> None:
    service.ready()
    job = service.long_qap()
    service.running(job, within_s=60)
    os.kill(child_of(service.worker_of(job)).pid, signal.SIGSTOP)
    service.jobs.cancel(job.id, OWNER)
    assert service.ended(job).state is State.CANCELLED


def test_rqs_stop_command(service: Service) -> None:
    service.ready()
    job = service.long_qap()
    service.running(job, within_s=60)
    send_stop_job_command(connect(service.settings.redis_url, text=False), job.id, serializer=JSONSerializer)
    failed = service.ended(job)
    assert failed.state is State.FAILED
    assert failed.error is not None
    assert failed.error["code"] == "stopped"


def test_delete_stops_a_running_job_and_forgets_it(service: Service) -> None:
    job = service.long_qap()
    service.running(job, within_s=60)
    service.jobs.delete(job.id, OWNER)
    with pytest.raises(UnknownJob):
        service.jobs.get(job.id, OWNER)
    assert service.ended(service.lap()).state is State.SUCCEEDED  # the worker is free again
    eventually(lambda: not service.jobs._redis.exists(f"allot:job:{job.id}", f"allot:events:{job.id}"))


def test_a_job_holds_its_blobs_until_it_expires(service: Service) -> None:
    store = service.jobs.store
    lasts_s = 300.0
    done = service.ended(service.lap(n=1400, seed=77, result_ttl_s=lasts_s))
    inputs = done.inputs["cost"]["blob"]
    outputs = [entry["blob"] for entry in service.jobs.result(done.id, OWNER)["arrays"].values()]
    time.sleep(4)  # the upload's own time is over
    assert all(store.stat(digest, OWNER) for digest in (inputs, *outputs))

    def expired() -> bool:
        try:
            service.jobs.get(done.id, OWNER)
        except Expired:
            return True
        return False

    redis = service.jobs._redis
    due = redis.zscore("allot:expiry", done.id)
    assert done.ended_at is not None
    assert due - lasts_s == pytest.approx(datetime.fromisoformat(done.ended_at).timestamp(), abs=0.1)
    redis.zincrby("allot:expiry", -lasts_s, done.id)  # as if that time were over
    eventually(expired)
    with pytest.raises(UnknownJob):
        service.jobs.get(done.id, "bob")
    eventually(lambda: not any(store.stat(digest, OWNER) for digest in (inputs, *outputs)))


def test_strangers_in_redis_cannot_run_code(service: Service, tmp_path: object) -> None:
    redis, trap = service.jobs._redis, f"{tmp_path}/trap"
    bombs = {
        "evil1": {"data": f'["os.system", null, ["touch {trap}"], {{}}]', "origin": "cpu"},
        "evil2": {"data": '["workers.runtime.run.run", null, ["evil2"], {}]', "failure_callback_name": "os.abort"},
        "evil3": {"data": b"\x80\x04cos\nsystem\n.", "created_at": "yesterday"},
    }
    for name, fields in bombs.items():
        redis.hset(f"rq:job:{name}", mapping=fields)
        redis.rpush("rq:queue:cpu", name)
    before = service.supervisor.restarts()
    assert service.ended(service.lap(seed=9)).state is State.SUCCEEDED
    assert service.supervisor.restarts() == before
    assert not os.path.exists(trap)


def test_a_job_that_the_former_release_queued_is_solved(service: Service) -> None:
    """Its record has none of the newer fields, and it is in RQ's list as RQ's own `enqueue` puts it there."""
    job = service.lap(seed=11)
    service.ended(job)
    redis = service.jobs._redis
    record = redis.hgetall(f"allot:job:{job.id}") | {"state": "queued", "attempt": "0"}
    for name in ("termination", "ended_at", "expires_at", "execution", "begun_at", "started_at", "ran_on", "form",
                 "priority", "seconds", "retries", "reply"):  # fmt: skip
        record.pop(name, None)
    redis.hset("allot:job:older", mapping=record)
    redis.zadd("allot:active", {"older": time.time()})
    queue = Queue("cpu", connection=connect(service.settings.redis_url, text=False), serializer=JSONSerializer)
    retry = Retry(max=2, enqueue_at_front=True)
    queue.enqueue_call("workers.runtime.run.run", ("older",), job_id="older", timeout=-1, result_ttl=0, retry=retry)
    eventually(lambda: service.jobs.get("older", OWNER).state is State.SUCCEEDED)
    assert not redis.exists("rq:job:older")
