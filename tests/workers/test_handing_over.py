"""A job that finds a worker waiting: past the lines, with the same books, and with as few messages as it takes."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.workers.service import eventually
from tests.workers.test_fair import Office
from workers.jobs.job import State
from workers.jobs.queue import Jobs
from workers.jobs.records import Ending, Order
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.runtime.link import Link
from workers.runtime.pinned import PinnedWorker
from workers.runtime.post import Post

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
            (order,) = office.take()
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


@pytest.mark.parametrize(("size", "whole"), [(120_000, True), (300_000, False)])
def test_a_long_answer_is_sent_to_who_waits_and_a_very_long_one_is_read_by_them(
    office: Office, size: int, whole: bool
) -> None:
    with office.redis.pubsub() as heard:
        heard.subscribe("allot:reply:somebody")
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        office.submit("ann", reply="somebody")
        (order,) = office.take()
        document = json.dumps({"facts": "x" * size})
        ending = Ending(order.job_id, order.execution, State.SUCCEEDED, {}, document)
        assert office.records.finish_all([ending], "cpu", "a worker", True)[0] == [True]
        message = heard.get_message(timeout=5 if whole else 0.5)
        assert (message is not None) is whole
        assert not whole or json.loads(message["data"])["result"] == json.loads(document)


@pytest.fixture
def post(office: Office, settings: Settings) -> Iterator[Post]:
    """What a worker listens with that waits."""
    client = connect(settings.redis_url)
    made = Post(client, client.blocking_pool, "cpu", "a worker")
    made.open("its device")
    made.wait(0.1)
    assert office.take(idle_s=60) == []
    yield made
    made.close()


def record(office: Office, job_id: str, *names: str) -> list[Any]:
    return list(office.redis.hmget(f"allot:job:{job_id}", *names))


def test_who_listens_is_sent_the_job_and_need_not_ask(office: Office, post: Post) -> None:
    job_id = office.submit("ann", 2.0)
    order = post.wait(5)
    assert isinstance(order, Order)
    assert (order.job_id, order.execution, order.runs_left) == (job_id, f"straight-{job_id}", 2)
    whole = office.redis.hgetall(f"allot:job:{job_id}")
    assert {name: whole[name] for name in order.record} == order.record
    assert record(office, job_id, "state", "attempt", "ran_on") == ["running", "1", "its device"]
    assert office.redis.llen(LINE) == 0
    assert office.redis.zrange("rq:wip:cpu", 0, -1) == [f"{job_id}:straight-{job_id}"]
    assert office.redis.zcard("allot:idle:cpu") == 0
    assert ended(office, order, last=True) == ([True], True)
    assert record(office, job_id, "state") == ["succeeded"]
    assert office.take(idle_s=60) == []


def test_a_message_that_was_lost_is_told_again_once(office: Office, post: Post) -> None:
    first = office.submit("ann")
    second = office.submit("ann")
    for most in (0, 9):
        orders = office.take(most=most)
        assert [order.job_id for order in orders] == [first if most == 0 else second]
    assert orders[0].execution != f"straight-{second}"
    assert isinstance(order := post.wait(5), Order)
    assert order.job_id == first


def test_who_lost_the_answer_is_given_the_same_jobs_again(office: Office, post: Post) -> None:
    """A worker whose connection broke asks again, with the same token: no job is left to a janitor."""
    straight = office.submit("ann")
    waiting = [office.submit("ann", form="small") for _ in range(3)]

    def take(token: str, most: int = 2) -> list[Order]:
        return office.records.take("cpu", "a worker", "a cpu", token, office.limits, most=most)

    for token, jobs in (("one", [straight]), ("two", waiting[:2]), ("three", waiting[2:])):
        first = take(token)
        assert [order.job_id for order in first] == jobs
        for most in (2, 0):
            again = {order.job_id: order for order in take(token, most)}
            assert again == {order.job_id: order for order in first}
        assert all(office.finish(first))
        assert all(order.job_id not in jobs for order in take(token, most=0))  # it is over
    lost = office.submit("ann")
    assert [order.job_id for order in take("four")] == [lost]
    office.records.lose(lost, "", "again", {})
    office.redis.zadd("rq:wip:cpu", {f"{lost}:four-1": 1})
    assert office.records.lose(lost, "", "again", {}) == "queued"
    assert take("four", most=0) == []


def test_a_worker_asks_with_the_same_token_until_it_is_answered(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, tokens = PinnedWorker(settings, "cpu", Link("cpu", {})), list[str]()

    def take(*told: Any, **options: Any) -> list[Order]:
        tokens.append(told[3])
        if len(tokens) < 3:
            raise redis.ConnectionError
        return []

    monkeypatch.setattr(worker._records, "take", take)
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            worker._take()
    assert [worker._take(), worker._take()] == [[], []]
    first, second, third, other = tokens
    assert first == second == third != other


def test_a_message_about_a_job_that_was_told_before_is_no_news(office: Office, post: Post) -> None:
    """However much the worker did meanwhile: else it would solve the job a second time."""
    first = office.submit("ann")
    told = office.take()
    assert [(order.job_id, order.is_straight) for order in told] == [(first, True)]
    post.told([first])
    assert office.finish(told) == [True]
    office.submit("ann")
    assert [order.is_straight for order in office.take(idle_s=60)] == [False]
    assert office.take(idle_s=60) == []
    third = office.submit("ann")
    order = post.wait(5)
    while order is True:  # the bell, for the second
        order = post.wait(5)
    assert isinstance(order, Order)
    assert order.job_id == third
    post.told([third])
    assert post.wait(0.1) is False


def test_junk_on_the_channel_makes_the_worker_ask(office: Office, post: Post) -> None:
    for junk in ("", "{", "[]", '["a"]', "[1, 2, 3, 4, 5]", '{"a": 1}', '["a", "b", 1, [["x"]], ""]'):
        office.redis.publish("allot:handed:a worker", junk)
        assert post.wait(5) is True


def test_who_does_not_listen_any_more_is_not_sent_a_job(office: Office, post: Post) -> None:
    post.close()
    eventually(lambda: office.redis.pubsub_numsub("allot:handed:a worker")[0][1] == 0)  # Redis has read that it is gone
    job_id = office.submit("ann")
    assert office.redis.lrange(LINE, 0, -1) == [job_id]
    assert record(office, job_id, "state") == ["queued"]


def test_who_leaves_is_sent_no_job_and_called_no_more_than_others(office: Office, post: Post) -> None:
    post.leave()
    job_id = office.submit("ann")
    assert office.redis.lrange(LINE, 0, -1) == [job_id]
    assert post.wait(5) is True  # the bell


def test_a_silent_connection_is_given_up(office: Office, post: Post, settings: Settings) -> None:
    assert post.wait(2) is False
    assert post.wait(2) is False  # it said that it is there
    pid = office.redis.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    wakes = threading.Timer(0.5, os.kill, (pid, signal.SIGCONT))  # while it is opened anew
    try:
        assert post.wait(0.1) is False
        with pytest.raises(redis.ConnectionError, match="silent"):
            post.wait(0.1)
        wakes.start()
        assert post.wait(1.5) is False
    finally:
        os.kill(pid, signal.SIGCONT)
    wakes.join()


def test_a_redis_that_has_lost_its_memory_is_told_who_listens(office: Office, post: Post) -> None:
    office.redis.flushdb()
    office.redis.client_kill_filter(_type="pubsub")
    with pytest.raises(redis.ConnectionError):
        post.wait(5)
    assert post.wait(0.2) is False
    assert office.take(idle_s=60) == []
    office.submit("ann")
    assert isinstance(post.wait(5), Order)
    post.close()
    post.leave()
    assert post.wait(0.1) is False
    assert not office.redis.exists("allot:listeners:cpu")
