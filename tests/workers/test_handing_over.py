"""A job that finds a worker waiting: past the lines, with the same books, and with as few messages as it takes."""

from typing import Any

import pytest

from tests.workers.test_fair import Office
from workers.jobs.job import State
from workers.jobs.queue import Jobs
from workers.jobs.records import Ending

LINE = "rq:queue:cpu"


@pytest.fixture
def office(jobs: Jobs) -> Office:
    return Office(jobs)


def ended(office: Office, order: Any, last: bool) -> tuple[list[bool], bool]:
    ending = Ending(order.job_id, order.execution, State.SUCCEEDED, {}, "{}")
    return office.records.finish_all([ending], "cpu", "a worker", last)


def books(office: Office) -> dict[str, Any]:
    had = {owner: float(value) for owner, value in office.redis.hgetall("allot:had:cpu").items()}
    backlog = {name: float(value) for name, value in office.redis.hgetall("allot:backlog:cpu").items() if float(value)}
    held = office.redis.smembers("allot:held:ann")
    fair = office.redis.zrange("allot:fair:cpu", 0, -1)
    return {"had": had, "clock": float(office.redis.get("allot:clock:cpu") or 0), "backlog": backlog, "fair": fair,
            "held": len(held)}  # fmt: skip


def test_the_books_are_those_of_a_job_that_stood_in_a_line(office: Office) -> None:
    seen = []
    for straight in (True, False):
        office.redis.flushdb()
        office.redis.hset("allot:weights", "ann", 4)
        office.redis.hset("allot:had:cpu", mapping={"ann": 5, "bob": 9})
        office.redis.set("allot:clock:cpu", 7)
        for owner in ("ann", "bob", "ann"):
            if straight:
                assert office.take(idle_s=60) == []
            office.submit(owner, 2.0)
            assert office.redis.llen(LINE) == straight
            (order,) = office.take(got=office.redis.lpop(LINE) if straight else "")
            seen.append(books(office))
            assert office.finish([order]) == [True]
            seen.append(books(office))
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
    assert seen[0]["had"]["ann"] == 7 + 2 / 4  # began where the others are


def test_nobody_is_handed_over_past_those_who_wait(office: Office) -> None:
    first = office.submit("ann")
    office.redis.zadd("allot:idle:cpu", {"a worker": office.now + 60})
    office.submit("bob")
    assert office.redis.lrange(LINE, 0, -1) == [first]


def test_nobody_is_handed_over_who_holds_all_their_workers(office: Office) -> None:
    office.redis.hset("allot:quota:ann", "workers", 1)
    office.submit("ann")
    assert office.take()
    assert office.take(idle_s=60) == []
    office.submit("ann")
    assert office.redis.llen(LINE) == 0
    bobs = office.submit("bob")
    assert office.redis.lrange(LINE, 0, -1) == [bobs]


def test_who_finishes_the_last_job_of_all_waits_from_then_on(office: Office) -> None:
    office.submit("ann")
    (order,) = office.take()
    assert ended(office, order, last=True) == ([True], True)
    assert office.redis.zrange("allot:idle:cpu", 0, -1) == ["a worker"]
    bobs = office.submit("bob")
    assert office.redis.lrange(LINE, 0, -1) == [bobs]


@pytest.mark.parametrize("last", [True, False])
def test_who_has_more_to_do_does_not_wait(office: Office, last: bool) -> None:
    office.submit("ann")
    (order,) = office.take()
    if last:
        office.submit("bob")
    assert ended(office, order, last) == ([True], False)
    assert office.redis.zcard("allot:idle:cpu") == 0


def test_nobody_is_woken_for_a_new_job_whose_submitter_waits_for_its_answer(office: Office) -> None:
    with office.redis.pubsub() as heard:
        heard.subscribe("allot:told")
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        told = []
        mores: list[dict[str, Any]] = [{"reply": "somebody"}, {}, {"reply": "somebody", "created_at": office.now - 1}]
        for more in mores:
            job_id = office.submit("ann", **{"created_at": office.now, **more})
            (order,) = office.take()
            assert office.finish([order]) == [True]
            while message := heard.get_message(timeout=0.1):
                told += [(job_id, *message["data"].split(" ")[:2])]
    short, plain, old = dict.fromkeys(job_id for job_id, _, _ in told)
    assert [(job_id, state) for job_id, _, state in told] == [
        (short, "succeeded"), (plain, "running"), (plain, "succeeded"), (old, "running"), (old, "succeeded"),
    ]  # fmt: skip
