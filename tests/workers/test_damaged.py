"""Junk in Redis where Allot keeps its books: it is set aside, told to the log and counted, and nothing else suffers."""

import json
import time
from typing import Any

import pytest

from app.http.metrics import Metrics
from tests.workers.test_janitor import made, queued, submitted, take  # noqa: F401
from workers.jobs import janitor
from workers.jobs.janitor import Janitor
from workers.jobs.job import State, UnknownJob
from workers.jobs.notes import NoNote, Notes
from workers.jobs.queue import Jobs
from workers.jobs.shares import Shares
from workers.runtime.config import Settings

JUNK: dict[str, Any] = {
    "attempt": {"attempt": "many"}, "version": {"version": ""}, "created_at": {"created_at": "noon"},
    "time_limit_s": {"time_limit_s": "long"}, "inputs": {"inputs": "{"}, "options": {"options": "[1"},
    "bytes": {"options": b"\xff\xfe"}, "no solver": {"solver": None}, "no device": {"device": None},
    "one field": {}, "no hash": None, "a list": [],
}  # fmt: skip


def damage(jobs: Jobs, job_id: str, kind: str) -> None:
    """Put junk where the job's record is."""
    key, junk = f"allot:job:{job_id}", JUNK[kind]
    if not junk:
        jobs._redis.delete(key)
        if junk is None:
            jobs._redis.set(key, "junk")
        elif isinstance(junk, list):
            jobs._redis.rpush(key, "junk")
        else:
            jobs._redis.hset(key, mapping={"owner": "ann", "state": "queued"})
    for name, value in (junk or {}).items():
        if value is None:
            jobs._redis.hdel(key, name)
        else:
            jobs._redis.hset(key, name, value)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the janitor says to the log, wherever other tests of this process let the log go."""
    lines: list[str] = []
    monkeypatch.setattr(janitor.log, "error", lambda words, *parts: lines.append(words % parts))
    return lines


def set_aside(jobs: Jobs) -> float:
    return jobs.counts().get("damaged", {}).get("record", 0.0)


@pytest.mark.parametrize("kind", JUNK)
def test_a_list_shows_the_other_jobs(jobs: Jobs, kind: str) -> None:
    first, bad, last = submitted(jobs), submitted(jobs), submitted(jobs)
    damage(jobs, bad, kind)
    page, following = jobs.list("ann")
    assert ([job.id for job in page], following) == ([last, first], None)
    with pytest.raises(UnknownJob):
        jobs.get(bad, "ann")
    assert set_aside(jobs) == 1
    assert [job.id for job in jobs.list("ann")[0]] == [last, first]


@pytest.mark.parametrize("kind", JUNK)
def test_workers_go_on_with_the_next_job(
    jobs: Jobs, made: Janitor, kind: str, told: list[str]  # noqa: F811
) -> None:  # fmt: skip
    bad, good = submitted(jobs), submitted(jobs)
    damage(jobs, bad, kind)
    assert [order.job_id for order in take(jobs)] == [good]
    assert set_aside(jobs) == 1
    assert jobs._redis.exists(f"allot:aside:{bad}")
    assert not jobs._redis.exists(f"allot:job:{bad}")
    made.clean()
    assert told == [f"record {bad} could not be read and is set aside"]
    assert b'allot_damaged_total{what="record"} 1.0' in Metrics().render(jobs)


@pytest.mark.parametrize("kind", JUNK)
def test_a_janitor_finds_the_jobs_behind_it(jobs: Jobs, made: Janitor, kind: str) -> None:  # noqa: F811
    bad, good = submitted(jobs), submitted(jobs)
    damage(jobs, bad, kind)
    jobs._redis.delete("rq:queue:cpu")
    for key in jobs._redis.keys("allot:line:*"):
        jobs._redis.delete(key)
    made.search()
    made.search()
    assert queued(jobs) == [good]
    assert set_aside(jobs) == 1


@pytest.mark.parametrize("kind", JUNK)
def test_other_results_expire(jobs: Jobs, made: Janitor, kind: str) -> None:  # noqa: F811
    bad, good = submitted(jobs), submitted(jobs)
    for job_id in (bad, good):
        jobs.cancel(job_id, "ann")
        jobs._redis.zadd("allot:expiry", {job_id: time.time() - 1})
    damage(jobs, bad, kind)
    made.clean()
    assert not jobs._redis.exists(f"allot:job:{good}")
    assert jobs._redis.zcard("allot:expiry") == 0


def test_bad_digests_stop_no_sweep(jobs: Jobs, made: Janitor, told: list[str]) -> None:  # noqa: F811
    submitted(jobs)
    job_id = submitted(jobs)
    jobs.delete(job_id, "ann")
    jobs._redis.zadd("allot:blobs", {"../../etc/passwd": 0, "sha256:" + "g" * 64: 0, "": 0})
    jobs._redis.zadd("allot:blobs", dict.fromkeys(jobs._redis.zrange("allot:blobs", 0, -1), 0))
    made.clean()
    left = jobs._redis.zrange("allot:blobs", 0, -1)
    assert all(name.startswith("sha256:") and "g" not in name[7:71] for name in left)
    made.clean()
    assert "blob ../../etc/passwd could not be read and is set aside" in told
    assert jobs.counts()["damaged"]["blob"] == 3


@pytest.mark.parametrize("text", ["junk", "[]", "{}", '{"heartbeat": "x"}', '{"heartbeat": 1e300}', "null"])
def test_junk_for_a_worker_is_none(jobs: Jobs, made: Janitor, text: str) -> None:  # noqa: F811
    jobs._redis.hset("allot:workers", "ghost", text)
    assert jobs.workers() == []
    made.clean()
    assert submitted(jobs)


def test_junk_for_a_link_or_a_note_shows_nothing(jobs: Jobs, settings: Settings) -> None:
    job_id, shares, notes = submitted(jobs), Shares(settings, jobs), Notes(settings, jobs)
    jobs._redis.hset(f"allot:job:{job_id}", mapping={"state": State.SUCCEEDED.value})
    secret, _ = shares.create(job_id, "ann", 60.0, False)
    (digest,) = jobs._redis.hvals(f"allot:shares:{job_id}")
    for junk in ({"created_at": "noon"}, {"expires_at": ""}):
        jobs._redis.hset(f"allot:share:{digest}", mapping=junk)
        with pytest.raises(UnknownJob):
            shares.open(secret)
    assert shares.list(job_id, "ann") == []
    for junk_note in ("{", "5", "{}", json.dumps({"blob": "../x"})):
        jobs._redis.hset(f"allot:job:{job_id}", "note", junk_note)
        with pytest.raises(NoNote):
            notes.get(job_id, "ann")


@pytest.mark.parametrize("kind", ["attempt", "digests"])
def test_what_was_set_aside_holds_no_bytes(jobs: Jobs, kind: str) -> None:
    bad, blob = submitted(jobs), f"sha256:{7:064x}"
    jobs._redis.hset(f"allot:job:{bad}", "digests", json.dumps([blob]))
    jobs._redis.sadd(f"allot:refs:{blob}", bad)
    jobs._redis.hset(f"allot:job:{bad}", "attempt", "many")
    if kind == "digests":  # then nobody can tell what it held, and everything else goes all the same
        jobs._redis.hset(f"allot:job:{bad}", "digests", '{"')
    with pytest.raises(UnknownJob):
        jobs.get(bad, "ann")
    assert bool(jobs._redis.exists(f"allot:refs:{blob}")) == (kind == "digests")
    assert jobs._redis.zscore("allot:active", bad) is None
