"""What one owner may have: each limit refuses one more, others go on, and what is given back can be had again."""

import dataclasses
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.workers.test_fair import Office
from workers.jobs import quotas
from workers.jobs.job import OverQuota, QueueFull, QuotaFull, StoreFull, Submission
from workers.jobs.queue import Jobs
from workers.jobs.quotas import DAY_S, Quota, checked
from workers.runtime.config import Settings


def give(jobs: Jobs, owner: str, **limits: Any) -> None:
    jobs.quotas.set(owner, {name: str(value) for name, value in limits.items()})


def submit(jobs: Jobs, owner: str, **more: Any) -> str:
    reference = jobs.store.put(np.eye(2), owner)
    return jobs.submit(Submission(owner, "lap", {"cost": reference}, queue="cpu", **more))[0].id


def flood(jobs: Jobs, owner: str) -> None:
    for _ in range(100):
        submit(jobs, owner)


def test_so_many_jobs_of_one_wait(jobs: Jobs) -> None:
    give(jobs, "ann", queued=2)
    first = submit(jobs, "ann")
    submit(jobs, "ann")
    with pytest.raises(OverQuota, match="2 of your jobs wait already") as refused:
        submit(jobs, "ann")
    assert (refused.value.policy, refused.value.most) == ("queued", 2)
    submit(jobs, "bob")
    jobs.cancel(first, "ann")
    assert submit(jobs, "ann")


def test_one_owner_leaves_places_in_the_queue(jobs: Jobs) -> None:
    few = Jobs(dataclasses.replace(jobs.settings, max_queued=8), jobs.store)
    with pytest.raises(OverQuota, match="50 % of the places") as refused:
        flood(few, "ann")
    assert (refused.value.policy, refused.value.most) == ("queued", 4)
    assert few.quotas.used("ann")["queued"] == 4
    for other in ("bob", "cid", "dan", "eve"):
        submit(few, other)


def test_an_owner_who_is_alone_may_fill_the_queue(jobs: Jobs) -> None:
    few = Jobs(dataclasses.replace(jobs.settings, max_queued=8), jobs.store)
    with pytest.raises(QueueFull):
        flood(few, "local")
    assert few.quotas.used("local")["queued"] == 8


def test_a_change_is_in_force_within_a_second(jobs: Jobs, settings: Settings) -> None:
    submit(jobs, "ann")
    elsewhere = Jobs(settings)
    give(elsewhere, "ann", queued=1)
    time.sleep(1.0)
    with pytest.raises(OverQuota):
        submit(jobs, "ann")
    give(elsewhere, "ann", queued="")
    time.sleep(1.0)
    assert submit(jobs, "ann")


def test_jobs_of_one_hold_so_many_workers_and_others_go_first(jobs: Jobs) -> None:
    office = Office(jobs)
    give(jobs, "ann", workers=2)
    anns = [office.submit("ann") for _ in range(5)]
    bobs = office.submit("bob", seconds=100.0)
    office.submit("bob", seconds=100.0)
    taken = [office.take() for _ in range(3)]
    assert [order.job_id for orders in taken for order in orders if order.job_id in anns] == anns[:2]
    office.take()
    assert office.take() == []  # three of ann's wait, and workers are free
    office.finish([order for orders in taken for order in orders if order.job_id == anns[0]])
    assert office.take()[0].job_id == anns[2]
    assert bobs


def test_what_idle_workers_are_given_counts_as_held(jobs: Jobs) -> None:
    office = Office(jobs)
    give(jobs, "ann", workers=1)
    jobs._redis.zadd("allot:idle:cpu", {"w1": time.time() + 60, "w2": time.time() + 60})
    for _ in range(3):
        office.submit("ann")
    assert jobs._redis.llen("rq:queue:cpu") == 1
    office.submit("bob")
    assert jobs._redis.llen("rq:queue:cpu") == 2


def test_a_job_that_is_gone_by_accident_holds_no_worker(jobs: Jobs) -> None:
    office = Office(jobs)
    give(jobs, "ann", workers=1)
    office.submit("ann")
    (order,) = office.take()
    jobs._redis.delete(f"allot:job:{order.job_id}")
    again = office.submit("ann")
    assert office.take()[0].job_id == again


def test_the_limit_of_workers_is_the_services_where_an_owner_has_none(jobs: Jobs) -> None:
    office = Office(jobs)
    office.limits = dataclasses.replace(office.limits, most_workers=1)
    for owner in ("ann", "ann", "bob", "bob"):
        office.submit(owner)
    assert Counter(order.job_id.split("-")[0] for _ in range(4) for order in office.take()) == {"ann": 1, "bob": 1}


def test_seconds_of_a_day_are_used_up_and_the_day_turns(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    office = Office(jobs)
    give(jobs, "ann", cpu_s=100)
    now = (int(time.time()) // DAY_S) * DAY_S + 3600.0
    monkeypatch.setattr(type(jobs._redis), "now", lambda _: now)
    monkeypatch.setattr(office.records, "now", lambda: now)
    submit(jobs, "ann")
    (order,) = office.take()
    now += 200
    office.finish([order])
    assert jobs.quotas.used("ann")["cpu_s"] == pytest.approx(200)
    with pytest.raises(OverQuota, match="used up; the day turns") as refused:
        submit(jobs, "ann")
    assert refused.value.retry_after_s == pytest.approx(DAY_S - 3800)
    assert (refused.value.policy, refused.value.window_s) == ("cpu-seconds", DAY_S)
    submit(jobs, "bob")
    now += DAY_S
    assert submit(jobs, "ann")


def test_jobs_that_ran_together_share_their_seconds(jobs: Jobs) -> None:
    office = Office(jobs)
    for _ in range(10):
        office.submit("ann", 0.5, "f1")
    office.finish(office.take(most=10))
    assert jobs.quotas.used("ann")["cpu_s"] == pytest.approx(5.0, rel=1e-3)


def test_jobs_that_wait_count_for_the_day(jobs: Jobs) -> None:
    give(jobs, "ann", cpu_s=100)
    submit(jobs, "ann", seconds=60.0)
    submit(jobs, "ann", seconds=60.0)
    with pytest.raises(OverQuota, match="wanted by your jobs that wait"):
        submit(jobs, "ann", seconds=1.0)


def test_a_longer_job_is_cut_and_priorities_are_kept_in_their_range(jobs: Jobs) -> None:
    give(jobs, "ann", longest_s=7, lowest=-2, highest=3)
    job_id = submit(jobs, "ann", time_limit_s=50.0, priority=9)
    assert jobs.get(job_id, "ann").time_limit_s == 7
    assert jobs._records.read(job_id)["priority"] == "3"
    assert jobs._records.read(submit(jobs, "ann", priority=-9))["priority"] == "-2"


def test_bytes_are_counted_and_given_back(jobs: Jobs, settings: Settings) -> None:
    jobs.store.quota_of = jobs.quotas.of
    give(jobs, "ann", bytes=50_000)
    array = np.arange(4000.0)
    kept = jobs.store.put_array(array, "ann")["blob"]
    assert jobs.store.put_array(array, "ann")["blob"] == kept  # the same bytes once
    assert 32_000 < jobs.quotas.used("ann")["bytes_store"] < 32_200
    with pytest.raises(QuotaFull, match=r"at most 50000 bytes are kept for you.*DELETE"):
        jobs.store.put_array(array + 1, "ann")
    jobs.store.put_array(array, "bob")  # the same bytes of another cost them their own
    assert 32_000 < jobs.quotas.used("bob")["bytes_store"] < 32_200
    jobs.store.delete(kept, "ann")
    jobs.store.sweep()
    assert jobs.quotas.used("ann")["bytes_store"] == 0
    assert jobs.store.put_array(array + 1, "ann")


def test_a_job_counts_for_what_it_keeps_in_redis_until_it_is_gone(jobs: Jobs) -> None:
    office = Office(jobs)
    made = {}
    for owner in ("ann", "bob"):
        inputs = {"cost": {"digest": "sha256:0", "dtype": "float64", "shape": [20, 20], "data": "x" * 4000}}
        made[owner] = jobs.submit(Submission(owner, "lap", inputs, queue="cpu"))[0].id
    queued = jobs.quotas.used("ann")["bytes_redis"]
    assert 4000 < queued < 8000
    office.finish(office.take() + office.take())
    ended = jobs.quotas.used("ann")["bytes_redis"]
    assert 0 < ended < queued - 3900  # the inputs are gone
    jobs.delete(made["ann"], "ann")
    assert jobs.quotas.used("ann")["bytes_redis"] == 0
    assert jobs.quotas.used("bob")["bytes_redis"] > 0


def test_one_owner_leaves_room_in_the_store(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.store.quota_of = jobs.quotas.of
    free = [1 << 27]
    monkeypatch.setattr(type(jobs.store.folder), "free", lambda _: free[0] + (64 << 20))
    jobs.store.put_array(np.zeros(1 << 20), "ann")
    free[0] = 9 << 20
    with pytest.raises(QuotaFull, match="one owner may fill 50 % of the store"):
        jobs.store.put_array(np.ones(1 << 20), "ann")
    jobs.store.put_array(np.ones(1 << 20), "bob")
    jobs.store.put_array(np.full(1 << 20, 2.0), "local")  # who is alone may have all
    jobs.store.quota_of = None  # as in a worker: what a job leaves is always kept
    jobs.store.put_array(np.ones(1 << 20), "ann")


def test_one_owner_leaves_room_in_redis(jobs: Jobs) -> None:
    long = Jobs(dataclasses.replace(jobs.settings, max_queued=10**9), jobs.store)  # of places there are plenty
    give(long, "ann", share=0.001)
    used = jobs._redis.info("memory")["used_memory"]
    jobs._redis.config_set("maxmemory", used + (6 << 20))
    try:
        time.sleep(0.6)
        with pytest.raises(QuotaFull, match=r"0\.1 % of Redis"):
            flood(long, "ann")
        submit(long, "bob")
    finally:
        jobs._redis.config_set("maxmemory", 0)


def test_a_service_whose_redis_is_nearly_full_is_not_ready(jobs: Jobs) -> None:
    jobs.ping()
    jobs._redis.setrange("a lot", 8 << 20, "x")  # beside which what Redis takes for itself does not matter
    jobs._redis.config_set("maxmemory", int(jobs._redis.info("memory")["used_memory"] / 0.95))
    try:
        time.sleep(0.6)
        with pytest.raises(StoreFull, match="nearly out of memory"):
            jobs.ping()
    finally:
        jobs._redis.config_set("maxmemory", 0)


@pytest.mark.parametrize("name", [spec.name for spec in dataclasses.fields(Quota)])
def test_what_is_no_limit_is_refused_and_changes_nothing(name: str) -> None:
    for text in ("-10", "nan", "inf", "1e400", "many"):
        with pytest.raises(ValueError, match=name):
            checked({name: text})
        assert Quota().with_said({name: text}) == Quota()


def test_a_limit_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="'colour' is no limit"):
        checked({"colour": "3"})


def test_limits_of_many_owners_take_bounded_memory(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MOST_REMEMBERED", 10)
    for number in range(100):
        jobs.quotas.of(f"owner{number}")
    assert len(jobs.quotas._known) <= 10
