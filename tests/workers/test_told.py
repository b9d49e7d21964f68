import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.workers.service import allowed
from workers.jobs.job import Damaged, Job, State, Submission, Unavailable, UnknownJob
from workers.jobs.queue import Jobs
from workers.jobs.shown import Seen
from workers.jobs.told import REPLY, TICK_S, Told
from workers.jobs.wire import Wire
from workers.runtime.config import Settings

OWNER = "ann"


def submitted(jobs: Jobs) -> Job:
    inputs = {"cost": jobs.store.put(np.array([[4, 1], [2, 0]]), OWNER)}
    return jobs.submit(Submission(OWNER, "lap", inputs, queue="cpu"))[0]


def listening(settings: Settings, test: Callable[[Told], Awaitable[None]]) -> None:
    """Run `test` with a process's ear that is open already."""

    async def run() -> None:
        async with open_ear(settings) as told:
            await test(told)

    asyncio.run(run())


@contextlib.asynccontextmanager
async def open_ear(settings: Settings) -> AsyncIterator[Told]:
    told, raw = Told(settings.redis_url), Wire(settings.redis_url)
    told.start()
    try:
        while (await raw.ask(("PUBSUB", "NUMSUB", REPLY + told.name)))[0][1] == 0:
            await asyncio.sleep(0.01)
        yield told
    finally:
        raw.close()
        await told.stop()


def test_all_who_wait_are_told_over_two_connections(
    settings: Settings, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.jobs.told.TICK_S", 60.0)
    made = [submitted(jobs) for _ in range(3)]
    before = len(jobs._redis.client_list())

    async def test(told: Told) -> None:
        with contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(told.follow(job.id, until_ended=True)) for job in made for _ in range(100)]
            assert told.waiting == 300
            await asyncio.gather(*(told.look(job.id, OWNER) for job in made))
            assert len(jobs._redis.client_list()) <= before + 3  # this test's own is the third
            news = [asyncio.create_task(follower.news(20)) for follower in waiting]
            await asyncio.sleep(0.05)
            for job in made:
                await asyncio.to_thread(jobs.cancel, job.id, OWNER)
            assert all(await asyncio.gather(*news))  # told, and not found by looking around
            assert (await told.look(made[0].id, OWNER)).job.state is State.CANCELLED
        assert told.waiting == 0

    listening(settings, test)


def test_who_waits_for_the_end_sleeps_through_the_rest(settings: Settings, jobs: Jobs) -> None:
    job = submitted(jobs)

    async def test(told: Told) -> None:
        with told.follow(job.id) as any_change, told.follow(job.id, until_ended=True) as the_end:
            for follower in (any_change, the_end):
                follower.version = (await told.look(job.id, OWNER)).job.version
            jobs._redis.hset("allot:job:" + job.id, "state", "running")
            jobs._redis.publish("allot:told", f"{job.id} running {any_change.version + 1}")
            assert await any_change.news(5)
            assert not await the_end.news(0.2)
            jobs._redis.publish("allot:told", f"{job.id} running {any_change.version}")  # late, and known already
            assert not await any_change.news(0.2)

    listening(settings, test)


def test_a_lost_message_is_made_good(settings: Settings, jobs: Jobs) -> None:
    job = submitted(jobs)

    async def test(told: Told) -> None:
        with told.follow(job.id) as follower:
            follower.version = (await told.look(job.id, OWNER)).job.version
            jobs._redis.hincrby(f"allot:job:{job.id}", "version", 1)  # and nobody publishes that
            assert await follower.news(allowed(2 * TICK_S))

    listening(settings, test)


def test_a_cut_subscription_is_opened_anew(settings: Settings, jobs: Jobs) -> None:
    job = submitted(jobs)

    async def test(told: Told) -> None:
        with told.follow(job.id, until_ended=True) as follower:
            assert jobs._redis.client_kill_filter(_type="pubsub") == 1
            await asyncio.to_thread(jobs.cancel, job.id, OWNER)
            until = time.monotonic() + allowed(15)
            while not (await told.look(job.id, OWNER)).job.state.ended or not await follower.news(5):
                assert time.monotonic() < until
        with told.follow(submitted(jobs).id) as follower:
            while not await follower.news(0.1):  # by the subscription, or by the look that follows a new one
                assert time.monotonic() < until

    listening(settings, test)


def test_an_answer_that_is_published_needs_no_reading(settings: Settings, jobs: Jobs) -> None:
    job = submitted(jobs)
    record = jobs._redis.hgetall(f"allot:job:{job.id}") | {"state": "succeeded"}
    document = json.dumps({"id": job.id, "job": record, "result": {"objective": 3}}, separators=(",", ":"))

    async def test(told: Told) -> None:
        jobs._redis.publish(REPLY + told.name, document)  # before anybody waits
        jobs._redis.publish(REPLY + told.name, "nonsense")  # is skipped
        with told.follow(job.id) as follower:
            jobs._redis.delete(f"allot:job:{job.id}")
            while (seen := told.reply(job.id, OWNER)) is None:
                await follower.news(1)
            assert (seen.job.state, seen.result, seen.document()) == (
                State.SUCCEEDED, b'{"objective":3}', {"objective": 3}
            )  # fmt: skip
            assert told.reply(job.id, OWNER) is None
        jobs._redis.publish(REPLY + told.name, document)
        await asyncio.sleep(0.1)
        assert told.reply(job.id, "bob") is None

    listening(settings, test)


def test_what_is_published_is_read_in_each_form(jobs: Jobs) -> None:
    """As it is today, as earlier releases wrote it, and without a document; junk is damaged."""
    job = submitted(jobs)
    record = jobs._redis.hgetall(f"allot:job:{job.id}") | {"state": "succeeded", "note": 'x","result":{"a":1}'}
    text = '{"objective":3}'
    forms: list[tuple[dict[str, Any], Any]] = [
        ({"id": job.id, "job": record, "result": {"objective": 3}}, {"objective": 3}),
        ({"id": job.id, "job": record, "result": text}, {"objective": 3}),
        ({"result": text, "job": record, "id": job.id}, {"objective": 3}),
        ({"id": job.id, "job": record, "result": None}, None),
    ]
    for told, said in forms:
        seen = Seen.of_reply(json.dumps(told, separators=(",", ":")).encode())
        assert (seen.job_id, seen.owner, seen.state) == (job.id, OWNER, State.SUCCEEDED)
        assert (seen.result and seen.document()) == said
    for junk in (b"", b"{", b'{"id":"a"}', b'{"id":"a","job":{},"result":{}}', b'{"id":"a","job":[],"result":null}'):
        with pytest.raises(Damaged):
            Seen.of_reply(junk)


def test_only_the_owner_sees_a_job(settings: Settings, jobs: Jobs) -> None:
    job = submitted(jobs)

    async def test(told: Told) -> None:
        with pytest.raises(UnknownJob):
            await told.look(job.id, "bob")
        with told.follow(job.id) as follower, pytest.raises(UnknownJob):
            await told.events(job.id, "bob", "0-0", follower)

    listening(settings, test)


def test_a_job_without_a_stream_tells_its_states(settings: Settings, jobs: Jobs) -> None:
    job = submitted(jobs)

    async def test(told: Told) -> None:
        with told.follow(job.id) as follower:
            jobs._redis.delete(f"allot:events:{job.id}")
            found, over = await told.events(job.id, OWNER, "0-0", follower)
            assert (over, [event.data["state"] for event in found]) == (False, ["queued"])
            assert await told.events(job.id, OWNER, found[-1].id, follower) == ([], False)
            await asyncio.to_thread(jobs.cancel, job.id, OWNER)
            jobs._redis.delete(f"allot:events:{job.id}")
            more, over = await told.events(job.id, OWNER, found[-1].id, follower)
            assert (over, [event.data["state"] for event in more]) == (True, ["cancelled"])
            assert await told.events(job.id, OWNER, more[-1].id, follower) == ([], True)

    listening(settings, test)


def test_a_silent_redis_is_given_up_within_a_second(settings: Settings) -> None:
    async def run() -> None:
        server = await asyncio.start_server(lambda *_: asyncio.sleep(30), "127.0.0.1", 0)
        wire = Wire(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0")
        begun = time.monotonic()
        with pytest.raises(Unavailable, match="within 1 s"):
            await wire.ask(("PING",))
        assert 0.9 < time.monotonic() - begun < allowed(3)
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_loop_that_was_busy_does_not_call_redis_silent(settings: Settings, rounds: int) -> None:
    async def run() -> None:
        wire = Wire(settings.redis_url)
        await wire.ask(("PING",))
        asked = asyncio.create_task(wire.ask(("PING",)))
        for _ in range(rounds):  # not yet asked, asked and not written, written and not read
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        time.sleep(1.2)  # others keep the loop busy
        assert await asked == [b"PONG"]
        wire.close()

    asyncio.run(run())


def test_a_loop_that_was_busy_does_not_call_redis_unreachable(settings: Settings) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        connect = loop.create_unix_connection

        async def late(*given: Any) -> Any:
            time.sleep(1.3)  # hundreds of others came at the same moment
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return await connect(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "create_unix_connection", late)
            assert await Wire(settings.redis_url).ask(("PING",)) == [b"PONG"]

    asyncio.run(run())


def test_a_redis_that_cannot_be_reached_is_given_up_within_a_second(settings: Settings) -> None:
    async def run() -> None:
        async def silent(*_: Any) -> None:
            await asyncio.sleep(30)

        begun = time.monotonic()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "create_unix_connection", silent)
            with pytest.raises(Unavailable, match="no connection"):
                await Wire(settings.redis_url).ask(("PING",))
        assert 0.9 < time.monotonic() - begun < allowed(3)

    asyncio.run(run())


def test_a_wire_logs_in_and_comes_back(settings: Settings, jobs: Jobs) -> None:
    jobs._redis.config_set("requirepass", "secret")
    try:

        async def run() -> None:
            with pytest.raises(Unavailable, match="NOAUTH"):
                await Wire(settings.redis_url).ask(("PING",))
            wire = Wire(replace(settings, redis_url=settings.redis_url.replace("unix://", "unix://:secret@")).redis_url)
            await asyncio.gather(*(wire.ask(("SET", f"k{i}", i), ("GET", f"k{i}")) for i in range(50)))
            jobs._redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.wait_for(wire.closed.wait(), 10)
            assert await wire.ask(("GET", "k7"), ("GET", "none")) == [b"7", None]
            with pytest.raises(Unavailable, match="WRONGTYPE"):
                await wire.ask(("HGETALL", "k7"))
            wire.close()

        asyncio.run(run())
    finally:
        jobs._redis.config_set("requirepass", "")


def test_many_may_ask_while_a_wire_opens(settings: Settings, jobs: Jobs) -> None:
    async def run() -> None:
        wire = Wire(settings.redis_url)
        for _ in range(3):

            async def late() -> None:
                for _ in range(30):
                    await asyncio.sleep(0)
                    await wire.ask(("PING",))

            async with asyncio.timeout(allowed(5)):
                await asyncio.gather(*(wire.ask(("PING",)) for _ in range(20)), late(), late())
            wire.close()

    asyncio.run(run())
