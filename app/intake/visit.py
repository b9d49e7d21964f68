"""What goes along with a request through all stations: whose it is, what they work with, and where the time went."""

import contextlib
import functools
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from app.intake.clerks import Clerks
from app.intake.room import Held, Room
from workers.jobs.entry import Entry
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.store.doors import CLOSED, Doors
from workers.store.store import Store


@dataclass(frozen=True)
class Desk:
    """What the stations of one process work with.

    Attributes:
        max_json_bytes: of a JSON body, and of the `job` part of a multipart one.
        entry: where small work of a job is done without a thread.
        clerks: who read what is not small or plain.
        room: for bytes on their way.
        doors: files and objects that inputs may name.
    """

    store: Store
    jobs: Jobs
    entry: Entry
    settings: Settings
    max_json_bytes: int
    clerks: Clerks
    room: Room
    doors: Doors = CLOSED

    async def compared(self) -> bool:
        """Whether a worker has a GPU: its certificates compare what they read with what arrived."""
        return await self.entry.has("gpu")

    def visit(self, owner: str, key: str | None = None) -> "Visit":
        """One request, as a block."""
        return Visit(self, owner, self.room.held(owner), key)


@dataclass
class Laid:
    """Bytes that were put where workers find them, and that the disk does not have for certain yet.

    Attributes:
        wanted: the request waits for its answer, so the job need not wait for the disk.
        counted: they are all counted as their owner's.
        at_once: the event loop lays them, and waits for nobody.
        names: what is to be settled before anybody is told that it is kept.
        brought: names of the blobs that were kept for the job, each as often as it was.
    """

    wanted: bool = False
    counted: bool = False
    at_once: bool = False
    names: list[str] = field(default_factory=list)
    brought: list[str] = field(default_factory=list)


def brief(ms: float) -> float:
    """To the microsecond. `round` writes a number down and reads it again, which takes three times as long."""
    return int(1e3 * ms + 0.5) / 1e3


class Timed:
    """A block whose time is added to a station's, but for what is counted as that of a station `within`."""

    __slots__ = ("_begun", "_counted", "_spent_ms", "_station", "_within")

    def __init__(self, spent_ms: dict[str, float], station: str, within: str) -> None:
        self._spent_ms, self._station, self._within = spent_ms, station, within

    def __enter__(self) -> None:
        self._counted = self._spent_ms.get(self._within, 0.0) if self._within else 0.0
        self._begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        spent = 1e3 * (time.perf_counter() - self._begun)
        if self._within:
            spent = max(0.0, spent - (self._spent_ms.get(self._within, 0.0) - self._counted))
        self._spent_ms[self._station] = self._spent_ms.get(self._station, 0.0) + spent


@dataclass
class Visit:
    """One request. What was laid aside for it goes with the block, and its bytes are given back.

    Attributes:
        owner: whose it is.
        held: the bytes that it has on their way.
        key: its Idempotency-Key.
        spent_ms: by station.
        laid: what of its bytes is still to be settled.
        closing: what is called when the block ends.
    """

    desk: Desk
    owner: str
    held: Held
    key: str | None = None
    spent_ms: dict[str, float] = field(default_factory=dict)
    laid: Laid = field(default_factory=Laid)
    closing: list[Callable[[], object]] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            while self.closing:  # what is called may hold this visit: it must not be held by it
                self.closing.pop()()
        finally:
            self._end()

    def _end(self) -> None:
        """What is done though closing something has failed; that failure is told, and of later ones none."""
        try:
            while self.closing:
                with contextlib.suppress(Exception):
                    self.closing.pop()()
            for path in self.scratch.parent.glob(f"{self.scratch.name}*") if self.held.aside else ():
                path.unlink(missing_ok=True)
        finally:
            self.held.close()

    @functools.cached_property
    def scratch(self) -> Path:
        """How the names of files begin that are laid aside for it."""
        return self.desk.store.folder.temporary / f".aside-{uuid.uuid4().hex}-"

    def timed(self, station: str, within: str = "") -> "Timed":
        """Count the time of a block as that station's, but for what is counted as that of one `within`."""
        return Timed(self.spent_ms, station, within)

    def spent(self, station: str, begun: float) -> None:
        """Count the time since `begun`, by the clock of `time.perf_counter`, as that station's."""
        self.spent_ms[station] = self.spent_ms.get(station, 0.0) + 1e3 * (time.perf_counter() - begun)

    async def errand(self, errand: Mapping[str, Any], given_bytes: int) -> dict[str, Any]:
        """Have a clerk do something with `given_bytes` that came. Raises as `Clerk.ask`."""
        self.held.aside = True
        told = {**errand, "scratch": str(self.scratch)}
        return await self.desk.clerks.ask(self.owner, told, given_bytes, self.held.take)

    def aside(self) -> Path:
        """The name of a file that goes with the request."""
        self.held.aside = True
        return Path(f"{self.scratch}{uuid.uuid4().hex}")
