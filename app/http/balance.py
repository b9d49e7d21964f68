"""Connections to one port, divided evenly over the processes that answer there.

All processes accept from one socket. Each publishes how many connections it has, in memory that all of them map. When a
connection waits, a process takes it at once if no other has fewer. Otherwise it leaves the connection where it is,
looks again every millisecond, and takes it after PATIENCE_S for each process that has fewer.

A connection stays with the kernel until somebody takes it. So a process that is stopped or has died holds up a
connection by the others' patience, and loses none. The counts are advice: a wrong one costs such a wait or some
evenness.
"""

import asyncio
import errno
import logging
import mmap
import os
import select
import socket
from collections.abc import Callable

LOOK_S = 0.001
"""Between two looks at a connection that was left to others: the least that a loop's timer takes."""
PATIENCE_S = 0.003
"""For each process with fewer connections. One that is idle takes a connection within a tenth of that."""
SLACK = 4
"""One connection in so many counts for nothing: among thousands evenness is not worth a wait."""
MOST_WAITS = 100
"""Looks that a process puts off in a second. Where connections come faster they are short, or soon even out."""
REST_S = 1.0
"""After an accept that failed for want of descriptors or memory."""
WIDTH = 8
"""Bytes of a count. It is aligned, so the processor reads and writes it as a whole."""
NOBODY = -1
LOG = logging.getLogger("allot")


class Counts:
    """The connections of each process, in memory that all of them share.

    A place has one writer at a time: its process, and the parent while there is none. Nothing is locked.
    """

    def __init__(self, descriptor: int) -> None:
        """Map the memory behind a descriptor of `memory`. Raises OSError, ValueError."""
        self._places = memoryview(mmap.mmap(descriptor, 0)).cast("q")

    def put(self, place: int, connections: int) -> None:
        """Say how many connections a process has."""
        self._places[place] = connections

    def clear(self, place: int) -> None:
        """Say that nobody accepts at this place, so that nobody leaves a connection to it."""
        self._places[place] = NOBODY

    def told(self) -> list[int]:
        """The count of each place; NOBODY where nobody accepts."""
        return self._places.tolist()

    def ahead(self, place: int) -> int:
        """Processes that have fewer connections, by more than one in SLACK."""
        counts = self.told()
        own = counts[place]
        return sum(other > NOBODY and other + other // SLACK < own for other in counts)


def memory(places: int) -> int:
    """A descriptor, which processes may inherit, of memory for as many counts. Raises OSError."""
    descriptor = os.memfd_create("allot-connections")
    os.truncate(descriptor, places * WIDTH)
    counts = Counts(descriptor)
    for place in range(places):
        counts.clear(place)
    return descriptor


class Place:
    """One process among those that share a port. It counts a connection from when it is accepted."""

    def __init__(self, counts: Counts, number: int) -> None:
        self._counts, self._number = counts, number
        self._known = self._coming = 0
        self._open = False

    @property
    def ahead(self) -> int:
        """Processes that a new connection is better left to."""
        return self._counts.ahead(self._number)

    def open(self) -> None:
        """From now on the process accepts."""
        self._open = True
        self._tell()

    def close(self) -> None:
        """It accepts no more."""
        self._open = False
        self._counts.clear(self._number)

    def know(self, connections: int) -> None:
        """Count so many connections that are under way."""
        self._known = connections
        self._tell()

    def come(self, connections: int) -> None:
        """Count so many more, or fewer, that are accepted and not yet known."""
        self._coming += connections
        self._tell()

    def _tell(self) -> None:
        if self._open:
            self._counts.put(self._number, self._known + self._coming)


class Listener:
    """Accepts connections for one process of several, and is closed as a server of asyncio is.

    Args:
        listening: a socket that listens, which all processes inherited. It does not block from now on.
        protocol: makes the protocol of a connection.
        place: of this process.
    """

    def __init__(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol], place: Place) -> None:
        self._listening, self._protocol, self._place = listening, protocol, place
        self._loop = asyncio.get_running_loop()
        self._queue = select.poll()
        self._queue.register(listening, select.POLLIN)
        self._patient_since: float | None = None
        self._second, self._waits_left = 0, MOST_WAITS
        self._again: asyncio.TimerHandle | None = None
        self._coming: set[asyncio.Task[None]] = set()
        listening.setblocking(False)
        place.open()
        self._watch()

    def close(self) -> None:
        """Accept no more; connections that wait are left to others, and to whoever listens next."""
        self._place.close()
        if self._again is not None:
            self._again.cancel()
            self._again = None
        self._loop.remove_reader(self._listening)

    async def wait_closed(self) -> None:
        """Wait until each connection that was accepted has its protocol."""
        await asyncio.gather(*self._coming)

    def _watch(self) -> None:
        self._again = None
        self._loop.add_reader(self._listening, self._ready)

    def _pause(self, for_s: float, then: Callable[[], None]) -> None:
        self._loop.remove_reader(self._listening)
        self._again = self._loop.call_later(for_s, then)

    def _ready(self) -> None:
        """A connection waits: take it, or leave it to others for a moment."""
        if self._leaves_it():
            self._pause(LOOK_S, self._look)
        else:
            self._patient_since = None
            self._take()

    def _leaves_it(self) -> bool:
        """Whether others should have it, and have not had the time to."""
        ahead = self._place.ahead
        if not ahead:
            return False
        now = self._loop.time()
        if int(now) != self._second:
            self._second, self._waits_left = int(now), MOST_WAITS
        if self._patient_since is None:
            self._patient_since = now
        if not self._waits_left or now - self._patient_since >= ahead * PATIENCE_S:
            return False
        self._waits_left -= 1
        return True

    def _look(self) -> None:
        """Is there still one, after a wait? Whether it is the same nobody can say."""
        self._watch()
        if self._queue.poll(0):
            self._ready()
        else:
            self._patient_since = None

    def _take(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):  # another process was first, or the client left
            return
        except OSError as wrong:
            if wrong.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                raise
            LOG.error("no connection can be accepted for a while: %s", wrong.strerror)
            self._pause(REST_S, self._watch)
            return
        self._place.come(1)
        task = self._loop.create_task(self._begin(connection))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def _begin(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError as wrong:  # it broke off in that moment
            LOG.debug("a connection was lost at its beginning: %s", wrong)
            connection.close()
        finally:
            self._place.come(-1)
