"""One of several processes that answer HTTP on one port; `allot serve --api-workers N` starts and watches them.

    python -m app.cli.api PARENT SOCKET COUNTS PLACE

Its settings are in the environment. It inherits the listening socket, which is everybody's, and the memory in which all
say how many connections they have. Its own count is at PLACE.

SIGUSR1 makes it a lame duck, SIGTERM ends it. Ctrl-C is for the parent.
"""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from app.http.balance import Counts, Place, memory
from app.http.config import HttpSettings
from workers.runtime import logs
from workers.runtime.config import Settings
from workers.runtime.process import die_with, program

POLL_S = 0.1
LONGEST_DELAY_S = 10.0
STEADY_S = 30.0
LOG = logging.getLogger("allot")


@dataclass
class _Place:
    """One of the processes, or where one will be."""

    number: int
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    due: float = 0.0
    delay_s: float = 0.0


class Front:
    """The processes behind one port, which accept from one socket: a connection waits for any of them.

    Args:
        listener: a socket that listens.
        processes: how many accept from it.
        environ: what they are started with.
    """

    def __init__(self, listener: socket.socket, processes: int, environ: dict[str, str]) -> None:
        self._listener, self._environ = listener, environ
        self._memory = memory(processes)
        self._counts = Counts(self._memory)
        self._places = [_Place(number) for number in range(processes)]
        self._stopping, self._lame = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="front", daemon=True)

    def start(self) -> None:
        """Start the processes, and again whichever ends. A process dies with the thread that started it."""
        self._thread.start()

    def lame_duck(self) -> None:
        """Let every process take nothing new, those too that are still starting or are started from now on."""
        self._lame.set()
        self._signal(signal.SIGUSR1)

    def stop(self, within_s: float) -> None:
        """End every process."""
        self._stopping.set()
        self._thread.join(within_s + 2 * POLL_S)
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1

    def pids(self) -> list[int]:
        """Of those that run."""
        running = [place.process for place in self._places]
        return [process.pid for process in running if process is not None and process.poll() is None]

    def _watch(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # it waits in a new process until that can take it
        while not self._stopping.wait(POLL_S):
            for place in self._places:
                self._tend(place)
        self._signal(signal.SIGTERM)
        while self.pids():
            time.sleep(POLL_S)

    def _tend(self, place: _Place) -> None:
        now = time.monotonic()
        if place.process is not None:
            code = place.process.poll()
            if code is None:
                return
            place.delay_s = 0.0 if now - place.started > STEADY_S else min(LONGEST_DELAY_S, 2 * place.delay_s + 0.1)
            place.process, place.due = None, now + place.delay_s
            self._counts.clear(place.number)
            LOG.warning("an API process ended with %s; again in %.1f s", code, place.delay_s)
        if now >= place.due:
            inherited = [self._listener.fileno(), self._memory]
            command = program("app.cli.api", *map(str, [os.getpid(), *inherited, place.number]))
            place.process = subprocess.Popen(
                command, env=self._environ, pass_fds=inherited, stdin=subprocess.DEVNULL, process_group=0
            )
            place.started = now
            if self._lame.is_set():  # it may have been set after the others were told
                place.process.send_signal(signal.SIGUSR1)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def main() -> int:
    """Answer HTTP until told to stop."""
    parent, listener, shared, number = map(int, sys.argv[1:5])
    for early in (signal.SIGINT, signal.SIGHUP):
        signal.signal(early, signal.SIG_IGN)
    die_with(parent)
    logs.configure()
    from app.http.main import create_app  # whoever starts such processes needs nothing of what they import
    from app.http.server import Server

    http = HttpSettings.from_env()
    server = Server(create_app(Settings.from_env(), http), http, Place(Counts(shared), number))
    signal.signal(signal.SIGUSR1, lambda *_: server.lame_duck())
    signal.signal(signal.SIGTERM, lambda *_: server.stop())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    server.run(sockets=[socket.socket(fileno=listener)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
