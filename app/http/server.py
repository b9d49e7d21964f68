"""uvicorn as Allot runs it: its own signals, a calm garbage collector, and a way out in two steps."""

import contextlib
import ctypes
import gc
import logging
import socket
import sys
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI

from app.http.config import HttpSettings
from app.http.door import Door, Guarded, Sparse

BACKLOG = 1024
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of glibc's mallopt."""
KEPT_BYTES = 64 << 20
LARGEST_PIECE = 32 << 20
GC_THRESHOLDS = (100_000, 50, 1000)
"""With a thousand waiters the collector's default would cost half of the throughput."""
SWITCH_S = 0.0005
"""How long a thread may compute while the event loop wants to go on. The loop asks anew after each answer
that it writes. With Python's 5 ms, 300 event streams that ended beside a busy thread held all others up for 1.2 s."""


def keep_memory() -> None:
    """Let freed pieces of bodies be used again: otherwise each comes from the kernel anew, zeroed a page at a time."""
    with contextlib.suppress(OSError, AttributeError):  # another C library keeps its ways
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, LARGEST_PIECE)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


class Server(uvicorn.Server):
    """One process's HTTP. `lame_duck` stops taking new work; `stop` ends it, waiting requests first."""

    def __init__(self, app: FastAPI, http: HttpSettings) -> None:
        self.app, self.door = app, Door(http)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="on",
            server_header=False,
            http=Guarded.of(self.door),
            backlog=BACKLOG,
            timeout_keep_alive=int(http.idle_s),
            timeout_graceful_shutdown=int(http.http_drain_s),
        )
        super().__init__(config)
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
        await super().startup(sockets)
        keep_memory()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        sys.setswitchinterval(SWITCH_S)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the caller, who has more to stop than HTTP."""
        yield
