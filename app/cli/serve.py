"""`allot serve` and `allot worker`: processes in the right order, and out again without orphans.

serve:  Redis (embedded unless ALLOT_REDIS_URL) -> workers -> HTTP, whose modules are imported while workers start
stop:   HTTP takes nothing new -> workers end their jobs -> HTTP, which has answered after them until then -> Redis
"""

import contextlib
import functools
import logging
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import threading
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from app.cli.api import Front
from app.cli.start import Start
from app.http.config import BACKLOG, COUNTS, HttpSettings
from app.http.loopback import is_loopback
from workers.jobs.job import Unavailable
from workers.runtime import logs
from workers.runtime.config import Settings
from workers.runtime.process import cpus
from workers.runtime.redis_server import EmbeddedRedis, running_url
from workers.runtime.signals import signals
from workers.runtime.supervisor import Supervisor
from workers.store.opening import bring_home, let_memory_go

if TYPE_CHECKING:
    from app.http.metrics import Metrics

WORKER = "workers.runtime.worker"
MOST_FILES = 65_536
SHARED_MEMORY = Path("/dev/shm")
MEMORY_SHARE = 8
"""Of all memory, what an arena that nobody asked for takes at most."""
CORES_EACH, MOST_PROCESSES = 4, 4
"""Of API processes that nobody asked for: cores for each, and how many at most. A request takes one milliseconds."""
LOG = logging.getLogger("allot")


class CannotServe(Exception):
    """Something that the user can mend; the message says what."""


def settings_from(args: Namespace) -> Settings:
    """The environment's settings with the command line's over them."""
    settings = Settings.from_env()
    data_dir: Path | None = args.data_dir
    return settings if data_dir is None else replace(settings, data_dir=data_dir.expanduser().absolute())


def logs_as(args: Namespace) -> None:
    """Logs as the command line or ALLOT_LOG_FORMAT says, here and in every process that is started from here."""
    if getattr(args, "log_format", None):
        os.environ["ALLOT_LOG_FORMAT"] = args.log_format
    logs.configure()


def serve(args: Namespace) -> int:
    """Run the whole service in the foreground until SIGTERM or SIGINT."""
    logs_as(args)
    try:
        http = HttpSettings.from_env()
        processes = args.api_workers or http.api_workers or suitable(cpus())
        http = replace(http, insecure=args.insecure or http.insecure, api_workers=processes)
        if not http.names_keys:  # to read keys takes seconds of imports, and is done once workers start
            check_address(args.host, http)
        settings = settings_from(args)
        alone = args.workers != 0 and not settings.redis_url
        with (
            bound(args.host, args.port, http.api_workers) as listener,
            redis_for(settings) as settings,
            memory_for(settings, alone) as settings,
        ):
            _serve(listener, settings, http, args)
    except (CannotServe, Unavailable, OSError, ValueError) as wrong:
        print(f"allot: {wrong}", file=sys.stderr)
        return 2
    return 0


def suitable(cores: int) -> int:
    """API processes for a machine of so many cores: the others are for workers and for Redis."""
    return max(1, min(MOST_PROCESSES, cores // CORES_EACH))


def check_address(host: str, http: HttpSettings) -> None:
    """Without keys only this machine may ask. Raises CannotServe, BadKeys."""
    there = http.api_keys_in_redis
    if http.names_keys:
        from app.http.auth import load_keys

        there = bool(load_keys(http)) or there
    if not there and not http.insecure and not is_loopback(host):
        raise CannotServe(
            f"{host} can be reached from other machines and there are no API keys. Make one with `allot key entry "
            "OWNER` and name its file in ALLOT_API_KEYS_FILE, set ALLOT_API_KEYS_IN_REDIS=1, listen on 127.0.0.1, "
            "or say --insecure"
        )


@contextlib.contextmanager
def bound(host: str, port: int, count: int = 1) -> Iterator[socket.socket]:
    """A socket that listens, from which `count` processes will accept; port 0 is a free one. Raises CannotServe."""
    if count < 1:
        raise CannotServe(f"{count} API processes cannot answer; at least one is needed")
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG * count)
        except OSError as wrong:
            raise CannotServe(f"cannot listen on {host} port {port}: {wrong.strerror}") from None
        yield listener


@contextlib.contextmanager
def redis_for(settings: Settings) -> Iterator[Settings]:
    """The settings with a Redis that answers: the named one, or an embedded one that lives as long as the block."""
    if settings.redis_url:
        yield settings
        return
    with EmbeddedRedis(settings.data_dir, fsync=settings.fsync) as url:
        yield replace(settings, redis_url=url)


@contextlib.contextmanager
def memory_for(settings: Settings, alone: bool) -> Iterator[Settings]:
    """The settings with an arena on this machine's shared memory, if nobody else reads the store; freed with the block.

    One that they name may be used by others still, and is kept. The disk has all that lies there when the block ends.
    """
    made = alone and not settings.arena_dir and settings.arena_bytes > 0 and SHARED_MEMORY.is_dir()
    if made:
        there = psutil.virtual_memory().total // MEMORY_SHARE
        most = min(settings.arena_bytes, shutil.disk_usage(SHARED_MEMORY).total // 2, there)
        settings = replace(settings, arena_dir=str(SHARED_MEMORY), arena_bytes=most)
    try:
        yield settings
    finally:
        if made:
            let_memory_go(settings)
        else:
            bring_home(settings)


def _serve(listener: socket.socket, settings: Settings, http: HttpSettings, args: Namespace) -> None:
    """Workers and HTTP, until a signal. First nothing new is taken, then running jobs end, then HTTP does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, MOST_FILES)), hard))
    supervisor = None if args.workers == 0 else Supervisor(settings, cpu_workers=args.workers)
    front: _Alone | _Several | None = None
    hung_up = signal.SIGHUP  # key files are watched: there is nothing to do
    with signals(hung_up) as (asked, in_a_hurry), contextlib.ExitStack() as stack:
        if supervisor is not None:
            supervisor.start()
        try:
            check_address(args.host, http)
            front = (_Alone if http.api_workers == 1 else _Several)(listener, settings, http)
            front.start()
            stack.enter_context(exported(front, settings, http))
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"Allot listens on http://{shown}:{port}  (docs at /docs, data in {settings.data_dir})", flush=True)
            from workers.jobs.queue import Jobs  # takes a while to import, and workers have begun by now

            begun = Start(Jobs(settings).workers) if supervisor is not None else None
            while not asked.wait(1.0):
                front.check()
                if begun is not None and not begun.over():
                    begun.tell()
            front.lame_duck()
            in_a_hurry.wait(http.lame_s)
        finally:
            if supervisor is not None:
                LOG.info("draining: running jobs may go on for %g s", settings.drain_s)
                supervisor.stop(drain=not in_a_hurry.is_set())
            if front is not None:
                front.stop(http.http_drain_s)


class _Alone:
    """HTTP in a thread of this process."""

    def __init__(self, listener: socket.socket, settings: Settings, http: HttpSettings) -> None:
        from app.http.main import create_app
        from app.http.server import Server

        app = create_app(settings, http)
        self.metrics: Metrics = app.state.metrics
        self._server = Server(app, http)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name="http", daemon=True)
        self.start, self.lame_duck = self._thread.start, self._server.lame_duck

    def check(self) -> None:
        """Raise CannotServe when HTTP has ended by itself."""
        if not self._thread.is_alive():
            raise CannotServe("HTTP has ended; the log says why")

    def stop(self, within_s: float) -> None:
        """End it."""
        self._server.stop()
        self._thread.join(within_s + 5)


class _Several(Front):
    """HTTP in processes of their own."""

    def __init__(self, listener: socket.socket, settings: Settings, http: HttpSettings) -> None:
        self._metrics = tempfile.TemporaryDirectory(prefix="allot-metrics-")
        told = {"ALLOT_INSECURE": str(int(http.insecure)), COUNTS: self._metrics.name}
        super().__init__(listener, http.api_workers, {**os.environ, **settings.to_env(), **told})

    @functools.cached_property
    def metrics(self) -> "Metrics":
        """Of all of them. Their module takes a second to import, and those who answer do not wait for it."""
        from app.http.metrics import Metrics

        return Metrics(self._metrics.name)

    def check(self) -> None:
        """They are watched and started again; there is nothing to do here."""

    def stop(self, within_s: float) -> None:
        """End them."""
        super().stop(within_s)
        self._metrics.cleanup()


@contextlib.contextmanager
def exported(front: "_Alone | _Several", settings: Settings, http: HttpSettings) -> Iterator[None]:
    """The metrics on a port of their own while the block lasts, where the settings name one."""
    if not http.metrics_port:
        yield
        return
    from app.http.metrics import Exporter
    from workers.jobs.queue import Jobs

    exporter = Exporter(http.metrics_host, http.metrics_port, front.metrics, Jobs(settings))
    LOG.info("metrics are on http://%s:%d/metrics", http.metrics_host, exporter.port)
    try:
        yield
    finally:
        exporter.stop()


def work(args: Namespace) -> int:
    """Run workers alone, for an API elsewhere on the same Redis and store."""
    logs_as(args)
    settings = settings_from(args)
    if args.check and not settings.redis_url:  # of a service with its own Redis
        settings = settings.with_redis(running_url(settings.data_dir) or "")
    if not settings.redis_url:
        print("allot: ALLOT_REDIS_URL is not set; workers alone need the API's Redis", file=sys.stderr)
        return 2
    if args.check:
        return check_workers(settings)
    supervisor = Supervisor(settings, cpu_workers=args.workers)
    with signals() as (asked, _), memory_for(settings, alone=False):
        try:
            supervisor.start()
        except (Unavailable, ValueError) as wrong:
            print(f"allot: {wrong}", file=sys.stderr)
            return 2
        print(f"Allot workers run under process {os.getpid()}", flush=True)
        asked.wait()
        supervisor.stop(drain=True)
    return 0


def check_workers(settings: Settings) -> int:
    """0 when Redis has just heard of a worker that is a process of this machine (or container).

    While Redis is away a worker that runs is taken for alive: it may hold an answer, which dies with it.
    """
    here = {
        str(process.pid) for process in psutil.process_iter(["cmdline"]) if WORKER in (process.info["cmdline"] or ())
    }
    from workers.jobs.queue import Jobs

    try:
        alive = [worker.name for worker in Jobs(settings).workers() if worker.name.split("-")[1] in here]
    except Unavailable as wrong:
        print(f"allot: {wrong}; processes of workers here: {len(here)}", file=sys.stderr)
        return 0 if here else 1
    print(f"alive: {', '.join(alive) or 'none'}")
    return 0 if alive else 1
