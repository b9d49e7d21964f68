"""uvicorn as Allot runs it: its own signals, a calm garbage collector, and a way out in two steps."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import cast

import uvicorn
from fastapi import FastAPI

from app.http.balance import Listener, Place
from app.http.config import BACKLOG, HttpSettings
from app.http.door import Door, Guarded, Sparse

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of glibc's mallopt."""
KEPT_BYTES = 64 << 20
LARGEST_PIECE = 32 << 20
GC_THRESHOLDS = (100_000, 50, 1000)
"""With a thousand waiters the collector's default would cost half of the throughput."""
COLLECT_EVERY_S = 60.0
LEAST_PAUSES = 200
"""Of a collection's own length, until the next: at most half a percent of the time."""
SWITCH_S = 0.0005
"""How long a thread may compute while the event loop wants to go on.

The loop asks anew after each answer that it writes. With Python's 5 ms, 300 event streams that ended beside a busy
thread held everybody else up for 1.2 s.
"""


def keep_memory() -> None:
    """Let freed pieces of bodies be used again: otherwise each comes from the kernel anew, zeroed a page at a time."""
    with contextlib.suppress(OSError, AttributeError):  # another C library keeps its ways
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, LARGEST_PIECE)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


class Collecting:
    """Frees what only the collector can, however long its thresholds let it wait.

    An exception that was caught holds on to the frames it passed, and these to arrays and files. On a quiet service the
    thresholds are reached after hours, and what was old once is not looked at again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._next = clock, clock() + COLLECT_EVERY_S

    def if_due(self) -> bool:
        """Collect all generations when it is time; whether it was."""
        begun = self._clock()
        if begun < self._next:
            return False
        gc.collect()
        ended = self._clock()
        self._next = ended + max(COLLECT_EVERY_S, LEAST_PAUSES * (ended - begun))
        return True


class Server(uvicorn.Server):
    """One process's HTTP. `lame_duck` stops taking new work; `stop` ends it, waiting requests first.

    Args:
        app: what answers.
        http: how.
        place: of this process among those that accept from the same socket; None where it has sockets of its own.
    """

    def __init__(self, app: FastAPI, http: HttpSettings, place: Place | None = None) -> None:
        self.app, self.door, self._place = app, Door(http, place), place
        self._protocol = Guarded.of(self.door)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="on",
            server_header=False,
            http=self._protocol,
            backlog=BACKLOG,
            timeout_keep_alive=int(http.idle_s),
            timeout_graceful_shutdown=int(http.http_drain_s),
        )
        super().__init__(config)
        self._collecting = Collecting()
        sparse = Sparse()
        for name in ("", "uvicorn"):
            for handler in logging.getLogger(name).handlers:
                handler.addFilter(sparse)

    def lame_duck(self) -> None:
        """Not ready any more; whoever asks after a job is still answered."""
        self.app.state.lame = True

    def stop(self) -> None:
        """Answer those who wait with what there is, let requests end, and return from `run`. From any thread."""
        self.app.state.lame = True
        self.should_exit = True
        self.app.state.waiting.end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer; what is there by now stays, so the collector need not look at it again."""
        if self._place is None:
            await super().startup(sockets)
        else:
            await super().startup([])
            listeners = [Listener(one, self._connection, self._place) for one in sockets or ()]
            self.servers = cast("list[asyncio.base_events.Server]", listeners)
        keep_memory()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        sys.setswitchinterval(SWITCH_S)

    def _connection(self) -> Guarded:
        """What uvicorn makes for a connection that it accepts itself."""
        return self._protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        self._collecting.if_due()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the caller, who has more to stop than HTTP."""
        yield
