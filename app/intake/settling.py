"""Bytes that workers may read already and the disk does not have for certain: forced there beside the solve.

Whoever waits for an answer is served it at once; whoever is told that a job or its bytes are kept waits for this.
"""

import asyncio
import logging
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool

from workers.store.store import Store

LOG = logging.getLogger("allot.http")


class Settling:
    """What this process still has to settle. Used from one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._under_way: set[asyncio.Task[None]] = set()

    def begin(self, names: Sequence[str]) -> "Settled":
        """Start with these; the task goes on whether or not anybody waits for it."""
        if not names:
            return Settled(None)
        task = asyncio.create_task(run_in_threadpool(self._store.settle, names))
        self._under_way.add(task)
        task.add_done_callback(self._done)
        return Settled(task)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.warning("an upload is not on the disk yet, a janitor tries again: %s", error)

    async def finish(self) -> None:
        """Wait for all of them."""
        await asyncio.gather(*self._under_way, return_exceptions=True)


class Settled:
    """Bytes under way to the disk."""

    def __init__(self, task: "asyncio.Task[None] | None") -> None:
        self._task = task

    async def wait(self) -> None:
        """Return once they are there. Raises StoreFull, Unavailable."""
        if self._task is not None:
            await asyncio.shield(self._task)
