"""Bytes that workers may read already and the disk does not have for certain: forced there beside the solve.

Whoever waits for an answer is served it at once; whoever is told that a job or its bytes are kept waits for this. Most
answers are there within milliseconds: for so long the disk, the cores and Python's lock are left to them.
"""

import asyncio
import logging
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool

from workers.store.store import Store

LATER_S = 0.025
"""For so long nothing is forced to the disk that nobody waits for."""
LOG = logging.getLogger("allot.http")


class Settling:
    """What this process still has to settle. Used from one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._under_way: dict[asyncio.Task[None], asyncio.Event] = {}

    def begin(self, names: Sequence[str]) -> "Settled":
        """Settle these in a moment; the task goes on whether or not anybody waits for it."""
        if not names:
            return SETTLED
        wanted = asyncio.Event()
        task = asyncio.create_task(self._settle(names, wanted))
        self._under_way[task] = wanted
        task.add_done_callback(self._done)
        return Settled(task, wanted)

    async def _settle(self, names: Sequence[str], wanted: asyncio.Event) -> None:
        asyncio.get_running_loop().call_later(LATER_S, wanted.set)
        await wanted.wait()
        await run_in_threadpool(self._store.settle, names)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.warning("an upload is not on the disk yet, a janitor tries again: %s", error)

    async def finish(self) -> None:
        """See to all of them now, and wait for it."""
        for wanted in self._under_way.values():
            wanted.set()
        await asyncio.gather(*self._under_way, return_exceptions=True)


class Settled:
    """Bytes under way to the disk."""

    def __init__(self, task: "asyncio.Task[None] | None" = None, wanted: asyncio.Event | None = None) -> None:
        self._task, self._wanted = task, wanted

    async def wait(self) -> None:
        """Return once they are there. Raises StoreFull, Unavailable."""
        if self._task is not None and self._wanted is not None:
            self._wanted.set()
            await asyncio.shield(self._task)


SETTLED = Settled()
"""What there is to wait for where all travels with its job: nothing."""
