"""A Redis that runs out of memory: what ended goes, what was accepted ends, what is new is refused, and it recovers."""

import dataclasses
import json
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from workers.jobs import room
from workers.jobs.janitor import Janitor
from workers.jobs.job import Expired, State, StoreFull, Submission
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.runtime.connection import NoRoom


@pytest.fixture
def jobs(settings: Settings) -> Iterator[Jobs]:
    made = Jobs(dataclasses.replace(settings, result_ttl_s=0.2))
    made._redis.config_set("maxmemory", 0)
    made._redis.flushall()
    yield made
    made._redis.config_set("maxmemory", 0)


def submitted(jobs: Jobs) -> str:
    return jobs.submit(Submission("ann", "lap", {"cost": jobs.store.put(np.eye(2), "ann")}, queue="cpu"))[0].id


def test_overdue_jobs_go_although_nothing_can_be_written(jobs: Jobs, settings: Settings) -> None:
    ended = [submitted(jobs) for _ in range(3)]
    for job_id in ended:
        jobs.cancel(job_id, "ann")
    janitor = Janitor(settings)
    jobs._redis.config_set("maxmemory", 1)
    time.sleep(0.3)
    with pytest.raises(NoRoom):  # the janitor's own lock
        janitor.clean()
    for job_id in ended:
        with pytest.raises(Expired):
            jobs.get(job_id, "ann")


def test_what_was_accepted_can_be_cancelled_and_what_is_new_is_refused(jobs: Jobs) -> None:
    job_id = submitted(jobs)
    jobs._redis.config_set("maxmemory", 1)
    with pytest.raises(StoreFull):
        submitted(jobs)
    assert jobs.cancel(job_id, "ann").state is State.CANCELLED
    jobs._redis.config_set("maxmemory", 0)
    time.sleep(room.LOOK_S)
    assert submitted(jobs)


def test_there_is_a_reserve(jobs: Jobs) -> None:
    jobs._redis.setrange("ballast", 32 << 20, b"0")  # a reply's buffer is nothing beside it, and no bytes were read
    used = jobs._redis.info("memory")["used_memory"]
    jobs._redis.config_set("maxmemory", int(used / 0.95))
    with pytest.raises(StoreFull, match="nearly out of memory"):
        submitted(jobs)
    jobs._redis.set("there is", "room")


def test_a_janitor_keeps_up_with_a_backlog(jobs: Jobs, settings: Settings) -> None:
    """Far more than one batch in one round."""
    now = time.time()
    record = jobs._records.read(submitted(jobs)) | {"state": "succeeded"}
    held = jobs._redis.zrange("allot:blobs", 0, -1), jobs._redis.keys("allot:refs:*")
    with jobs._redis.pipeline(transaction=False) as pipeline:
        for k in range(1000):
            digests = json.dumps([f"sha256:{k:064x}"])
            pipeline.hset(f"allot:job:old{k}", mapping=record | {"digests": digests})
            pipeline.sadd(f"allot:refs:sha256:{k:064x}", f"old{k}")
            pipeline.zadd("allot:expiry", {f"old{k}": now - 1})
            pipeline.zadd("allot:blobs", {f"sha256:{k:064x}": now + 100})
        pipeline.execute()
    Janitor(dataclasses.replace(settings, janitor_s=20.0)).clean()
    assert jobs._redis.zcard("allot:expiry") == 0
    assert (jobs._redis.zrange("allot:blobs", 0, -1), jobs._redis.keys("allot:refs:*")) == held


def test_a_janitor_waits_for_heartbeats_after_an_outage(
    jobs: Jobs, settings: Settings, passes: Callable[[float], None]
) -> None:
    janitor = Janitor(dataclasses.replace(settings, lost_after_s=60.0))
    job_id = submitted(jobs)
    jobs._redis.lrem("rq:queue:cpu", 0, job_id)
    jobs._redis.zadd("rq:wip:cpu", {f"{job_id}:one": time.time() - 1})
    jobs._redis.hset(f"rq:job:{job_id}", "status", "started")
    janitor._refused = time.monotonic()
    janitor.clean()
    assert jobs._redis.zcard("rq:wip:cpu") == 1  # its worker may be about to renew it
    passes(61)
    janitor.clean()
    assert jobs._redis.zcard("rq:wip:cpu") == 0
