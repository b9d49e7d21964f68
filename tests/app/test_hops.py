"""What a thread was given is its own until it ends, whoever is cancelled meanwhile."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.http.hops import whole


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, "hops") as made:
        yield made


def test_what_it_gives_and_what_it_raises(threads: ThreadPoolExecutor) -> None:
    def fails() -> None:
        raise ValueError("no such thing")

    assert asyncio.run(whole(threads, lambda: threading.current_thread().name)).startswith("hops")
    with pytest.raises(ValueError, match="no such thing"):
        asyncio.run(whole(threads, fails))


@pytest.mark.parametrize("fails", [False, True])
def test_who_is_cancelled_waits_for_its_end(threads: ThreadPoolExecutor, fails: bool) -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        may_end.wait(60)
        ended.set()
        if fails:
            raise ValueError("nobody wants to know")

    async def run() -> None:
        task = asyncio.create_task(whole(threads, call))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        for _ in range(3):
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=0.02)
            assert not done
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(run())
