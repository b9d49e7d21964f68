"""What release 0.1 left in Redis and in the store is read, used and solved by this one.

The sample in former/ was written by that release: keys of Redis by type (as latin-1, since RQ's are binary), files of
the store in base64, and the ids of its jobs by what is special about each. Its worker was stopped while jobs queued.
"""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workers.service import Service, allowed, eventually
from workers.jobs.job import Expired, State, Submission
from workers.runtime.connection import connect

SAMPLE = json.loads(gzip.decompress((Path(__file__).parent / "former/release-0.1.json.gz").read_bytes()))
JOBS = SAMPLE["jobs"]
THEN = "local"
"""The owner of everything where there are no keys."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """This release, with a worker, on what the former one left."""
    folder: Path = tmp_path_factory.mktemp("former")
    made = Service(folder, cpu_workers=1)
    try:
        made.ready()
        for name, data in SAMPLE["blobs"].items():  # right before the records that name them: others are cleared away
            file = folder / "blobs" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(base64.b64decode(data))
        fill(connect(made.settings.redis_url, text=False))
        yield made
    finally:
        made.stop()


def fill(redis: Any) -> None:
    for name, (kind, value) in sorted(SAMPLE["redis"].items()):  # queues come last
        key = name.encode("latin-1")
        if kind == "hash":
            redis.hset(key, mapping={raw(field): raw(told) for field, told in value.items()})
        elif kind == "zset":
            redis.zadd(key, {raw(member): score for member, score in value})
        elif kind == "set":
            redis.sadd(key, *map(raw, value))
        elif kind == "list":
            redis.rpush(key, *map(raw, value))
        elif kind == "string":
            redis.set(key, raw(value))
        else:
            for entry, fields in value:
                redis.xadd(key, {raw(field): raw(told) for field, told in fields.items()}, id=entry)


def raw(text: str) -> bytes:
    return text.encode("latin-1")


@pytest.mark.parametrize(("name", "objective"), [("lap", 5), ("stopped", 24), ("large", 1514)])
def test_results_are_read(service: Service, name: str, objective: int) -> None:
    job = service.jobs.get(JOBS[name], THEN)
    assert job.state is State.SUCCEEDED
    result = service.jobs.result(job.id, THEN)
    assert result["objective"] == objective
    for entry in result["arrays"].values():
        assert service.jobs.store.open_array(entry, THEN).size > 0


def test_events_are_read(service: Service) -> None:
    told = [event.data.get("state") for event in service.jobs.events(JOBS["lap"], THEN) if event.kind == "state"]
    assert told == ["queued", "running", "succeeded"]


def test_what_has_expired_or_was_cancelled_stays_so(service: Service) -> None:
    with pytest.raises(Expired):
        service.jobs.get(JOBS["expired"], THEN)
    assert service.jobs.get(JOBS["cancelled"], THEN).state is State.CANCELLED


def test_jobs_that_waited_are_solved(service: Service) -> None:
    for job_id in JOBS["queued"]:
        eventually(lambda job_id=job_id: service.jobs.get(job_id, THEN).state.ended, 60)  # type: ignore[misc]
        job = service.jobs.get(job_id, THEN)
        assert (job.state, job.attempt) == (State.SUCCEEDED, 1), job.error
    assert service.jobs.result(JOBS["queued"][2], THEN)["objective"] == 1514  # an upload of then


def test_an_upload_of_then_is_used_by_a_job_of_now(service: Service) -> None:
    job, _ = service.jobs.submit(Submission(THEN, "lap", {"cost": {"blob": JOBS["blob"]}}, queue="cpu"))
    done = service.jobs.wait(job.id, THEN, allowed(30))
    assert done.state is State.SUCCEEDED
    assert service.jobs.result(job.id, THEN)["objective"] == 1514
