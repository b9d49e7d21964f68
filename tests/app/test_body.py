"""Portions of a body on their way to a thread: in order, one behind the other, and never two at once."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest

from app.intake.body import feed


async def portions(count: int, fails_at: int | None = None) -> AsyncIterator[list[bytes]]:
    for number in range(count):
        if number == fails_at:
            raise ConnectionError("the client went away")
        await asyncio.sleep(0.001)
        yield [bytes([number])]


def test_in_order_and_one_at_a_time() -> None:
    taken, busy = [], threading.Lock()

    def take(portion: list[bytes]) -> None:
        assert busy.acquire(blocking=False)
        time.sleep(0.002)
        taken.append(portion[0][0])
        busy.release()

    asyncio.run(feed(portions(40), take))
    assert taken == list(range(40))


def test_nothing_is_under_way_once_it_has_failed() -> None:
    under_way = threading.Event()

    def take(portion: list[bytes]) -> None:
        under_way.set()
        time.sleep(0.05)
        under_way.clear()

    async def run() -> None:
        with pytest.raises(ConnectionError):
            await feed(portions(9, fails_at=3), take)
        assert not under_way.is_set()

    asyncio.run(run())


def test_what_the_thread_raises_ends_it() -> None:
    taken = []

    def take(portion: list[bytes]) -> None:
        taken.append(portion)
        if len(taken) == 3:
            raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        asyncio.run(feed(portions(20), take))
    assert len(taken) == 3


def test_a_request_that_is_cancelled_leaves_no_thread_behind() -> None:
    done = threading.Event()

    def take(portion: list[bytes]) -> None:
        time.sleep(0.1)
        done.set()

    async def endless() -> AsyncIterator[list[bytes]]:
        yield [b"x"]
        await asyncio.sleep(60)

    async def run() -> None:
        task = asyncio.create_task(feed(endless(), take))
        await asyncio.sleep(0.03)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done.is_set()

    asyncio.run(run())
