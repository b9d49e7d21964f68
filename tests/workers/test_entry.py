"""Jobs that are put in line from an event loop, on a real Redis and without workers."""

import asyncio
import hashlib
import json
import os
import signal
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS
from tests.workers.service import allowed, quickest
from workers.jobs.entry import STALE_S, BeingDeleted, Counting, Entry
from workers.jobs.form import placed
from workers.jobs.job import (
    IdempotencyConflict,
    Job,
    NoSuchDevice,
    QueueFull,
    QuotaFull,
    StoreFull,
    Submission,
    Unavailable,
    UnknownBlob,
)
from workers.jobs.queue import Jobs
from workers.jobs.quotas import Quotas
from workers.jobs.room import is_roomy
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.runtime.redis_server import EmbeddedRedis
from workers.store.inline import carried
from workers.store.names import name_of
from workers.store.reference import of_array

COST = np.array([[4.0, 1.0], [2.0, 0.0]])


def submission(**more: Any) -> Submission:
    return Submission("ann", "lap", {"cost": carried(of_array(COST), COST)}, queue="cpu", **more)


def run(settings: Settings, *work: Any) -> list[Any]:
    """What coroutines answer that share an entry, all at once; exceptions as values."""

    async def all_of_it() -> list[Any]:
        entry = Entry(settings, Quotas(connect(settings.redis_url), settings))
        try:
            return await asyncio.gather(*(one(entry) for one in work), return_exceptions=True)
        finally:
            entry.close()

    return asyncio.run(all_of_it())


def submit(one: Submission) -> Any:
    def begin(entry: Entry) -> Coroutine[Any, Any, tuple[Job | None, str]]:
        return entry.submit(one)

    return begin


def test_many_at_once_are_all_there(jobs: Jobs, settings: Settings) -> None:
    made = run(settings, *[submit(submission()) for _ in range(200)])
    ids = {job_id for _, job_id in made}
    assert len(ids) == 200
    assert jobs._records.in_line("cpu") == ids
    for job, job_id in made:
        assert job == replace(jobs.get(job_id, "ann"), queue_position=job.queue_position)
    assert sorted(job.queue_position for job, _ in made) == list(range(1, 201))


def test_who_waits_is_not_told_a_position(jobs: Jobs, settings: Settings) -> None:
    ((job, job_id),) = run(settings, submit(submission(reply="somebody")))
    assert job.queue_position is None
    assert jobs.get(job_id, "ann").queue_position == 1


def test_the_limit_of_workers_holds_for_jobs_that_are_handed_over(jobs: Jobs, settings: Settings) -> None:
    for most, handed in ((0, 2), (1, 1)):
        jobs._redis.flushall()
        jobs._redis.zadd("allot:idle:cpu", {"w1": time.time() + 60, "w2": time.time() + 60})
        run(replace(settings, quota_workers=most), submit(submission()), submit(submission()))
        assert jobs._redis.llen("rq:queue:cpu") == handed


def test_a_key_makes_one_job(jobs: Jobs, settings: Settings) -> None:
    one = submission(idempotency_key="k", fingerprint="a")
    made = run(settings, *[submit(one) for _ in range(20)])
    assert len({job_id for _, job_id in made}) == 1
    assert len([job for job, _ in made if job is not None]) == 1
    (other,) = run(settings, submit(replace(one, fingerprint="b")))
    assert isinstance(other, IdempotencyConflict)


def test_what_cannot_be_taken_is_told_as_it_is_elsewhere(jobs: Jobs, settings: Settings) -> None:
    unknown = replace(submission(), inputs={"cost": of_array(COST)})
    few = replace(settings, max_queued=1)
    wrong = run(few, submit(unknown))
    assert isinstance(wrong[0], UnknownBlob)
    made = run(few, submit(submission()), submit(submission()))
    assert sorted(isinstance(one, QueueFull) for one in made) == [False, True]


def test_a_redis_that_has_forgotten_the_script_is_sent_it_again(jobs: Jobs, settings: Settings) -> None:
    run(settings, submit(submission()))
    jobs._redis.script_flush()
    ((job, _),) = run(settings, submit(submission()))
    assert job is not None


def test_a_redis_without_memory_takes_nothing_new(jobs: Jobs, settings: Settings) -> None:
    before = jobs._redis.config_get("maxmemory")["maxmemory"]
    jobs._redis.config_set("maxmemory", 1 << 20)
    try:
        (wrong,) = run(settings, submit(submission()))
    finally:
        jobs._redis.config_set("maxmemory", before)
    assert isinstance(wrong, StoreFull)


def test_a_connection_that_is_cut_is_opened_anew_and_nothing_is_made_twice(jobs: Jobs, settings: Settings) -> None:
    async def cut(entry: Entry) -> list[tuple[Job | None, str]]:
        await entry.submit(submission())
        asked = [asyncio.create_task(entry.submit(submission())) for _ in range(30)]
        await asyncio.sleep(0)
        assert jobs._redis.client_kill_filter(_type="normal", skipme=True) > 0
        return await asyncio.gather(*asked)

    (made,) = run(settings, cut)
    assert not isinstance(made, Exception), made
    assert len({job_id for _, job_id in made}) == 30
    assert len(jobs._records.in_line("cpu")) == 31


def test_nobody_waits_for_a_redis_that_is_not_there(settings: Settings) -> None:
    def refused() -> float:
        begun = time.monotonic()
        (wrong,) = run(replace(settings, redis_url="unix:///nowhere/redis.sock"), submit(submission()))
        assert isinstance(wrong, Unavailable)
        return time.monotonic() - begun

    assert quickest(refused, STALE_S) < allowed(STALE_S)


def test_a_worker_that_has_just_come_is_found(jobs: Jobs, settings: Settings) -> None:
    card = SOLVERS["lap"]
    options = card.options()
    problem = card.build({"cost": COST}, options)

    async def place(entry: Entry) -> tuple[bool, str]:
        try:
            await entry.placed(lambda workers: placed(card, problem, options, "gpu", workers))
            refused = False
        except NoSuchDevice:
            refused = True
        now = jobs._redis.now()
        told = {"device": "gpu", "queue": "gpu", "state": "idle", "heartbeat": now, "host_bytes": 1 << 40}
        gpu = {"uuid": "GPU-1", "name": "a", "driver": "1", "bytes_total": 1 << 40, "bytes_free": 1 << 40, "count": 1}
        jobs._redis.hset("allot:workers", "gpu-1-a", json.dumps(told | {"gpu": gpu, "broken": {}}))
        found = await entry.placed(lambda workers: placed(card, problem, options, "gpu", workers))
        return refused, found.queue

    assert run(settings, place) == [(True, "gpu")]


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (2, 2, 2)])
@pytest.mark.parametrize("dtype", ["<f8", "<i8", "<f4", "<i4"])
def test_a_small_array_is_called_what_its_file_is(shape: tuple[int, ...], dtype: str, tmp_path: Any) -> None:
    array = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    for one in (array, np.asfortranarray(array), array[..., ::-1]):
        np.save(tmp_path / "a.npy", one)
        digest = hashlib.sha256((tmp_path / "a.npy").read_bytes()).hexdigest()
        assert of_array(one)["blob"] == f"sha256:{digest}"


def test_what_a_frozen_redis_reads_too_late_makes_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.jobs.quotas.FRESH_S", 60.0)  # else it is asked for them first, after a pause
    redis = EmbeddedRedis(tmp_path)
    with redis as url:
        settings = Settings(redis_url=url, data_dir=tmp_path)
        pid = redis.pid
        assert pid is not None

        async def given_up() -> tuple[str, str]:
            entry = Entry(settings, Quotas(connect(url), settings))
            _, known = await entry.submit(submission())
            os.kill(pid, signal.SIGSTOP)
            try:
                with monkeypatch.context() as patch:
                    patch.setattr("workers.jobs.entry.WRITE_S", 0.5)
                    patch.setattr(entry._wire, "_timeout_s", 0.5)
                    with pytest.raises(Unavailable, match=r"within 0.5 s"):
                        await entry.submit(submission())
                await asyncio.sleep(0.1)
            finally:
                os.kill(pid, signal.SIGCONT)
            _, later = await entry.submit(submission())
            entry.close()
            return known, later

        known, later = asyncio.run(given_up())
        assert Jobs(settings)._records.in_line("cpu") == {known, later}


def test_another_primary_may_have_another_clock(jobs: Jobs, settings: Settings) -> None:
    def begin(entry: Entry) -> Coroutine[Any, Any, tuple[Job | None, str]]:
        async def behind() -> tuple[Job | None, str]:
            await entry.submit(submission())
            entry._clock.learn((int(time.time()) - 3600, 0), time.monotonic(), time.monotonic())
            return await entry.submit(submission())

        return behind()

    ((job, _),) = run(settings, begin)
    assert job is not None
    assert len(jobs._records.in_line("cpu")) == 2


@pytest.mark.parametrize(("most", "used", "roomy"), [(100, 44, True), (100, 46, False), (0, 4, True), (0, 6, False)])
def test_arrays_go_through_redis_while_it_has_room(most: int, used: int, roomy: bool) -> None:
    assert is_roomy({"maxmemory": str(most), "used_memory": str(used), "total_system_memory": "100"}) is roomy


def counted(sizes: dict[str, int], free: int | None = None) -> tuple[Any, Counting]:
    """A submission that holds blobs of these digests, which are counted on the way."""
    counting = Counting(sizes, "ann", 60.0, lambda: free, 24)
    inputs: dict[str, Any] = {digest[-5:]: {"blob": digest, "format": "npy"} for digest in sizes}
    one = Submission("ann", "lap", inputs, queue="cpu", reply="somebody")

    def begin(entry: Entry) -> Coroutine[Any, Any, tuple[Job | None, str]]:
        return entry.submit(one, counting)

    return begin, counting


def test_blobs_are_counted_on_the_way_as_the_store_counts_them(jobs: Jobs, settings: Settings) -> None:
    name, other = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
    begin, counting = counted({name: 700, other: 1})
    ((job, job_id),) = run(settings, begin)
    assert counting.may_be
    assert job is not None
    assert jobs._records.in_line("cpu") == {job_id}
    named = {digest: name_of(digest, "ann") for digest in (name, other)}
    assert jobs._redis.hgetall("allot:sizes") == {named[name]: "700 ann", named[other]: "1 ann"}
    assert float(jobs._redis.hget(f"allot:blob:{named[name]}", "ann")) > time.time() + 50
    assert all(jobs._redis.exists(f"allot:refs:{one}") for one in named.values())


@pytest.mark.parametrize(
    ("limits", "size", "free"), [({"quota_bytes": 800}, 900, None), ({"quota_share": 0.5}, 2000, 1024)]
)
def test_what_is_too_much_is_not_counted_and_makes_no_job(
    jobs: Jobs, settings: Settings, limits: dict[str, Any], size: int, free: int | None
) -> None:
    begin, counting = counted({f"sha256:{'c' * 64}": size}, free)
    (full,) = run(replace(settings, **limits), begin)
    assert isinstance(full, QuotaFull)
    assert not counting.may_be
    assert not jobs._records.in_line("cpu")
    assert not jobs._redis.exists("allot:sizes")


def test_what_is_just_being_deleted_is_not_counted(jobs: Jobs, settings: Settings) -> None:
    name = f"sha256:{'b' * 64}"
    jobs._redis.set(f"allot:condemned:{name_of(name, 'ann')}", 1)
    begin, counting = counted({name: 1})
    (wrong,) = run(settings, begin)  # the store waits for that
    assert isinstance(wrong, BeingDeleted)
    assert not counting.may_be
    assert not jobs._records.in_line("cpu")


def test_bytes_are_counted_though_the_line_is_full(jobs: Jobs, settings: Settings) -> None:
    begin, counting = counted({f"sha256:{'d' * 64}": 5})
    (full,) = run(replace(settings, max_queued=0), begin)
    assert isinstance(full, QueueFull)
    assert counting.may_be
    assert jobs._redis.hlen("allot:sizes") == 1


def test_a_redis_that_has_forgotten_the_scripts_is_sent_them(jobs: Jobs, settings: Settings) -> None:
    jobs._redis.script_flush()
    begin, _ = counted({f"sha256:{'e' * 64}": 5})
    ((job, job_id),) = run(settings, begin)
    assert job is not None
    assert jobs._records.in_line("cpu") == {job_id}
