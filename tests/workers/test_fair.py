"""Whose turn it is: lines by owner, weight, priority and form, on a real Redis and without workers."""

import random
import time
from collections import Counter
from typing import Any

import pytest

from workers.jobs.job import State
from workers.jobs.queue import Jobs
from workers.jobs.records import Ending, Limits, Order, Records

HOUR_S = 3600.0


class Office:
    """Submits jobs that nobody solves, and takes them as a worker would. `now` goes on by what each is to take."""

    def __init__(self, jobs: Jobs) -> None:
        self.redis, self.records = jobs._redis, Records(jobs._redis)
        self.limits = Limits.of(jobs.settings)
        self._count, self.now = 0, time.time()
        self.records.now = lambda: self.now  # type: ignore[method-assign]

    def submit(self, owner: str, seconds: float = 1.0, form: str = "-", priority: int = 0, **more: Any) -> str:
        self._count += 1
        job_id = f"{owner}-{self._count}"
        record = {"owner": owner, "solver": "lap", "state": "queued", "queue": "cpu", "attempt": 0, "retries": 2}
        record |= {"form": form, "priority": priority, "seconds": seconds, "result_ttl_s": 60}
        record |= {
            "created_at": time.time(),
            "inputs": "{}",
            "options": "{}",
            "device": "cpu",
            "time_limit_s": 1,
        } | more
        assert self.records.submit(job_id, record, ([], []), "", self.limits)[0] == "created"
        return job_id

    def take(self, most: int = 1, idle_s: float = 0.0) -> list[Order]:
        self._count += 1
        return self.records.take(
            "cpu", "a worker", "a cpu", f"take{self._count}", self.limits, most=most, idle_s=idle_s
        )

    def work(self) -> str:
        """One job from its line to its end; its id."""
        (order,) = self.take()
        self.finish([order])
        return order.job_id

    def finish(self, orders: list[Order]) -> list[bool]:
        self.now += sum(float(order.record["seconds"]) for order in orders)
        endings = [Ending(order.job_id, order.execution, State.SUCCEEDED, {}, "{}") for order in orders]
        return self.records.finish(endings, "cpu", "a worker")


@pytest.fixture
def office(jobs: Jobs) -> Office:
    return Office(jobs)


def test_owners_share_by_weight_in_seconds_and_not_in_jobs(office: Office) -> None:
    office.redis.hset("allot:weights", "bob", 3)
    rng, seconds = random.Random(0), {}
    for owner, scale, count in (("ann", 1.0, 100), ("bob", 0.4, 500)):
        for _ in range(count):
            cost = scale * rng.choice([0.1, 0.5, 1])
            seconds[office.submit(owner, cost)] = cost
    had = {"ann": 0.0, "bob": 0.0}
    while sum(had.values()) < 100:
        job_id = office.work()
        had[job_id.split("-")[0]] += seconds[job_id]
    assert abs(had["bob"] / had["ann"] - 3) < 0.3


def test_many_hours_of_one_do_not_delay_the_next_job_of_another(office: Office) -> None:
    anns = [office.submit("ann", HOUR_S) for _ in range(201)]
    assert office.work() == anns[0]
    bobs = office.submit("bob", HOUR_S)
    assert office.records.position("cpu", bobs) == 1
    assert office.work() == bobs


def test_idle_workers_are_given_no_more_than_they_take(office: Office) -> None:
    assert office.take(idle_s=60) == []
    anns = [office.submit("ann", HOUR_S) for _ in range(5)]
    assert office.redis.lrange("rq:queue:cpu", 0, -1) == anns[:1]
    assert [order.job_id for order in office.take()] == anns[:1]
    bobs = office.submit("bob")
    assert office.redis.llen("rq:queue:cpu") == 0  # nobody is idle: who takes next is not settled before
    assert office.take()[0].job_id == bobs


def test_who_comes_back_has_saved_nothing_up(office: Office) -> None:
    for _ in range(50):
        office.submit("ann")
        assert office.work()
    for _ in range(10):
        office.submit("ann")
        office.submit("bob")
    had = Counter(office.work().split("-")[0] for _ in range(10))
    assert abs(had["ann"] - had["bob"]) <= 2


def test_priority_is_for_ones_own(office: Office) -> None:
    low, high = office.submit("ann", priority=-1), office.submit("ann", priority=5)
    bobs = office.submit("bob")
    assert (office.records.position("cpu", high) or 9) <= 2
    order = [office.work() for _ in range(3)]
    assert order.index(high) < order.index(low)
    assert order.index(bobs) < 2  # another's priority is nothing to them


def test_positions_fall_to_one_as_others_are_taken(office: Office) -> None:
    ids = [office.submit(owner) for owner in ("ann", "ann", "bob", "ann", "bob")]
    mine = ids[3]
    places = []
    while (place := office.records.position("cpu", mine)) is not None:
        places.append(place)
        office.work()
    assert places == sorted(places, reverse=True)
    assert places[-1] == 1
    assert places[0] in (4, 5)


def test_jobs_of_a_form_are_taken_together_and_charged_to_their_owners(office: Office) -> None:
    anns = [office.submit("ann", 0.01, "f1") for _ in range(3)]
    other = office.submit("ann", 0.01, "f2")
    bobs = [office.submit("bob", 0.01, "f1") for _ in range(100)]
    taken = office.take(most=10)
    assert {order.job_id for order in taken} >= {*anns}
    assert len(taken) == 10
    assert len({order.execution for order in taken}) == 10
    assert all(office.finish(taken))
    had = {owner: office.redis.zscore("allot:fair:cpu", owner) for owner in ("ann", "bob")}
    assert had["ann"] == pytest.approx(0.03)
    assert had["bob"] == pytest.approx(0.07)
    assert office.work() == other
    assert office.records.waiting("cpu") == len(bobs) - 7
    assert [len(office.take(most=64)) for _ in range(3)] == [64, 29, 0]


def test_a_cancelled_job_leaves_its_line(office: Office) -> None:
    ids = [office.submit("ann", 0.01, "f1") for _ in range(4)]
    office.records.cancel(ids[0])
    office.records.discard(ids[2])
    assert office.records.waiting("cpu") == 2
    assert [order.job_id for order in office.take(most=9)] == [ids[1], ids[3]]
    assert office.records.waiting("cpu") == 0
    assert office.redis.keys("allot:line:*") == office.redis.keys("allot:forms:*") == []
    assert office.redis.hgetall("allot:backlog:cpu") == {"n": "0"}


# --- who may be to blame when several were lost --------------------------------------------------------------------


def test_of_several_that_were_lost_each_runs_alone_and_none_is_charged(office: Office) -> None:
    ids = [office.submit("ann", 0.01, "f1") for _ in range(3)]
    for order in reversed(office.take(most=9)):
        assert office.records.lose(order.job_id, order.execution, "fail", {}) == "spared"
    for job_id in ids:
        assert office.records.rejoin(job_id, office.limits)
    again = [office.take(most=9) for _ in ids]
    assert [len(orders) for orders in again] == [1, 1, 1]
    assert [orders[0].runs_left for orders in again] == [2, 2, 2]
    (order,) = again[0]
    assert office.records.lose(order.job_id, order.execution, "fail", {"code": "x"}) == "failed"


def test_what_a_silent_worker_had_of_several_comes_back_uncharged(office: Office, jobs: Jobs) -> None:
    from workers.jobs.janitor import Janitor

    ids = [office.submit("ann", 0.01, "f1") for _ in range(3)]
    taken = office.take(most=9)
    for order in taken:
        office.redis.zadd("rq:wip:cpu", {f"{order.job_id}:{order.execution}": time.time() - 1})
    Janitor(jobs.settings).clean()
    assert sorted(office.redis.lrange("rq:queue:cpu", 0, -1)) == sorted(ids)
    assert office.finish(taken) == [False] * 3  # they come too late
    again = [office.take(most=9) for _ in ids]
    assert [[order.runs_left for order in orders] for orders in again] == [[2], [2], [2]]
    assert all(office.finish([order]) == [True] for (order,) in again)
