"""How a process of the API puts jobs in line: on one connection that all its requests share, and without a thread.

What is asked of Redis in a moment goes out together, and each answer finds its own request. What does not change with
every job (who works, how much memory is left, what time it is) is looked at now and then beside the requests.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from workers.jobs.fresh import Fresh, Granted, fresh, workers_of
from workers.jobs.job import Device, Job, NoSuchDevice, Submission, Unavailable, WorkerInfo
from workers.jobs.quotas import Quota, Quotas, too_much_kept
from workers.jobs.records import OVER, Limits, submitting
from workers.jobs.room import FULL, is_roomy, require_room, share_taken
from workers.jobs.scripts import Script, script
from workers.jobs.wire import Argument, Cut, Wire
from workers.runtime.clock import Clock
from workers.runtime.config import Settings
from workers.runtime.connection import WRITE_S
from workers.store.names import name_of

FRESH_S = 0.25
"""What is younger than this needs no other look."""
STALE_S = 2.0
"""What is older is waited for; in between it is used while another look is under way."""
PAUSES_S = (0.02, 0.25, None)
"""Before SUBMIT is sent again over a new connection: a Redis that restarts under a supervisor is missed by few."""
T = TypeVar("T")


class BeingDeleted(Exception):
    """Old bytes of such a name are just going: they cannot be counted yet, and no job was made."""


@dataclass
class Counting:
    """Blobs of a job that are to be counted as its owner's, as `Store` does before it gives bytes their name.

    Attributes:
        sizes: bytes of each, by digest.
        owner: whose they are.
        seconds: for which they are kept, if no job holds them.
        free, spare: bytes that are free in the store, and those that nobody may fill: see `Quota.share_of`.
        may_be: whether they may have been counted: they were asked for, and not refused as far as is known.
    """

    sizes: Mapping[str, int]
    owner: str
    seconds: float
    free: Callable[[], int | None]
    spare: int
    may_be: bool = False

    @property
    def names(self) -> list[str]:
        """What the blobs are called."""
        return [name_of(digest, self.owner) for digest in self.sizes]

    def told(self, now: float, quota: Quota) -> list[Argument]:
        """What `keep` is given."""
        share = quota.share_of(self.free, self.spare)
        each = chain[Argument](*((name_of(digest, self.owner), size) for digest, size in self.sizes.items()))
        self.may_be = True
        return [self.owner, now + self.seconds, quota.bytes, *share, "1", *each]

    def heard(self, answer: int, quota: Quota) -> None:
        """Take what `keep` answers. Raises QuotaFull, StoreFull, BeingDeleted."""
        self.may_be = answer > 0
        if answer < 0:
            raise too_much_kept(OVER[answer], quota)
        if answer == 0:
            raise BeingDeleted


class Entry:
    """Of one process, in one event loop."""

    def __init__(self, settings: Settings, quotas: Quotas) -> None:
        self._settings, self._limits, self._quotas = settings, Limits.of(settings), quotas
        self._wire = Wire(settings.redis_url, WRITE_S)
        self._clock = Clock(_nobody)
        self._workers: list[WorkerInfo] = []
        self._taken, self._most, self._looked, self._asked = 0.0, 0.0, -STALE_S, -STALE_S
        self._looking: asyncio.Task[None] | None = None
        self.is_roomy = False
        """Whether Redis had room for arrays that could be files, as it was seen last."""

    async def submit(self, submission: Submission, counting: Counting | None = None) -> tuple[Job | None, str]:
        """Record a job that has a queue, and put it in line.

        Args:
            counting: blobs that the job holds and that are counted first, in the same trip to Redis.

        Returns:
            the job and its id; or None and the id of the job that its Idempotency-Key had made before.

        Raises:
            IdempotencyConflict, QueueFull, OverQuota, QuotaFull, UnknownBlob, StoreFull, Unavailable.
            BeingDeleted: of the blobs that were to be counted.
        """
        await self._look()
        if self._taken > FULL:
            await self._look(self._looked)  # it may have room again
            require_room(self._taken)
        quota = self._quotas.fresh(submission.owner)
        if quota is None:  # Redis is asked for it now and then
            quota = await asyncio.to_thread(self._quotas.of, submission.owner)
        one = fresh(submission, self._settings, Granted(quota, FULL * self._most), self._clock.now())
        outcome, told, position = await self._submitted(one, counting)
        job = one.job(outcome, told, position, self._settings.max_queued)
        if job is None and told == one.job_id:  # sent again after a lost answer
            job = one.job("created", told, None, 0)
        return job, told

    async def _submitted(self, one: Fresh, counting: Counting | None) -> tuple[str, str, int]:
        """SUBMIT's answer. It may be sent again: a second one finds the job of the first.

        KEEP is in front of it where there is something to count. What it did not count SUBMIT does not know, and no job
        is made that holds it.

        It makes nothing once its caller has been told that Redis does not answer, however late Redis reads it.
        """
        ahead_s = self._clock.now() - time.monotonic()
        for pause_s in PAUSES_S:
            try:
                until = time.monotonic() + ahead_s + WRITE_S
                told = submitting(one.job_id, one.record, one.held, one.data, self._limits, one.most, until)
                calls: list[tuple[Script, Sequence[Argument]]] = [(script("submit"), told)]
                if counting is not None:
                    calls.insert(0, (script("keep"), counting.told(self._clock.now(), one.granted.quota)))
                *kept, submitted = await self._wire.run_all(*calls)
                answer = _read(submitted)
                if counting is not None and answer[0] not in ("created", "seen", "late"):
                    counting.heard(int(kept[0]), one.granted.quota)
                if answer[0] != "late":
                    return answer
                await self._look(self._looked)  # another primary has another clock
                ahead_s = self._clock.now() - time.monotonic()
            except Cut:
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
        raise Unavailable("Redis does not answer: it was too slow, and nothing was made")

    async def placed(self, place: Callable[[list[WorkerInfo]], T], aside: bool = False) -> T:
        """What `place` says, given the workers; if there was none for it, once more with those of this moment.

        Args:
            aside: `place` takes a while, and is called in a thread.

        Raises:
            NoSuchDevice, and whatever else `place` raises; Unavailable.
        """
        await self._look()
        seen = self._looked
        try:
            return await asyncio.to_thread(place, self._workers) if aside else place(self._workers)
        except NoSuchDevice:
            await self._look(seen)
            return await asyncio.to_thread(place, self._workers) if aside else place(self._workers)

    async def has(self, device: Device) -> bool:
        """Whether there is a worker of that kind, as far as is known; False where nothing is."""
        with contextlib.suppress(Unavailable):
            await self._look()
        return any(worker.device == device for worker in self._workers)

    async def _look(self, since: float | None = None) -> None:
        """See to it that what is known is not stale; or, with `since`, that it is of a later look than that."""
        now = time.monotonic()
        stale = now - self._looked >= STALE_S
        if self._looking is None and (stale or since is not None or now - self._asked >= FRESH_S):
            self._asked = now
            self._looking = asyncio.create_task(self._look_once())
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may wait
        if self._looking is not None and (stale or since is not None):
            await asyncio.shield(self._looking)

    async def _look_once(self) -> None:
        try:
            start = time.monotonic()
            told, memory, now = await self._wire.ask(("HGETALL", "allot:workers"), ("INFO", "memory"), ("TIME",))
            self._looked = time.monotonic()
            self._clock.learn((int(now[0]), int(now[1])), start, self._looked)
            texts = zip(map(bytes.decode, told[::2]), map(bytes.decode, told[1::2]), strict=True)
            self._workers = workers_of(dict(texts), self._clock.now())
            lines = (line.partition(":") for line in memory.decode().splitlines())
            memory_told = {name: value for name, _, value in lines}
            self._taken, self._most = share_taken(memory_told), float(memory_told.get("maxmemory") or 0)
            self.is_roomy = is_roomy(memory_told)
        finally:
            self._looking = None

    def close(self) -> None:
        """Hang up."""
        self._wire.close()


def _read(answer: list[Any]) -> tuple[str, str, int]:
    return answer[0].decode(), answer[1].decode(), int(answer[2]) if len(answer) > 2 else 0


def _nobody() -> tuple[int, int]:
    raise AssertionError("the clock is told the time, and never asks")
