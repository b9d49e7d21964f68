"""`allot serve` and `allot worker`: processes in the right order, and out again without orphans.

serve:  Redis (embedded unless ALLOT_REDIS_URL) -> workers -> HTTP;   stopping goes the other way round
"""

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType

import psutil
import uvicorn

from app.http.auth import BadKeys, is_loopback, load_keys
from app.http.config import HttpSettings
from app.http.main import create_app
from workers.jobs.job import Unavailable
from workers.jobs.queue import Jobs
from workers.runtime import logs
from workers.runtime.config import Settings
from workers.runtime.redis_server import EmbeddedRedis
from workers.runtime.supervisor import Supervisor

WORKER = "workers.runtime.worker"
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
        http = replace(HttpSettings.from_env(), insecure=args.insecure or HttpSettings.from_env().insecure)
        check_address(args.host, http)
        settings = settings_from(args)
        with bound(args.host, args.port) as listener, redis_for(settings) as settings:
            _serve(listener, settings, http, args.workers)
    except (CannotServe, BadKeys, Unavailable, OSError, ValueError) as wrong:
        print(f"allot: {wrong}", file=sys.stderr)
        return 2
    return 0


def check_address(host: str, http: HttpSettings) -> None:
    """Without keys only this machine may ask. Raises CannotServe, BadKeys."""
    if not load_keys(http) and not http.api_keys_in_redis and not http.insecure and not is_loopback(host):
        raise CannotServe(
            f"{host} can be reached from other machines and there are no API keys. Make one with `allot key entry "
            "OWNER` and name its file in ALLOT_API_KEYS_FILE, set ALLOT_API_KEYS_IN_REDIS=1, listen on 127.0.0.1, "
            "or say --insecure"
        )


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; port 0 is a free one."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as wrong:
            raise CannotServe(f"cannot listen on {host} port {port}: {wrong.strerror}") from None
        listener.listen(1024)
        yield listener


@contextlib.contextmanager
def redis_for(settings: Settings) -> Iterator[Settings]:
    """The settings with a Redis that answers: the named one, or an embedded one that lives as long as the block."""
    if settings.redis_url:
        yield settings
        return
    with EmbeddedRedis(settings.data_dir, fsync=settings.fsync) as url:
        yield replace(settings, redis_url=url)


def _serve(listener: socket.socket, settings: Settings, http: HttpSettings, workers: int | None) -> None:
    app = create_app(settings, http)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=int(http.drain_s),
                            lifespan="on", server_header=False)  # fmt: skip
    server = Server(config, app.state.waiting.end)
    with server.signals():
        supervisor = None
        if workers != 0:
            supervisor = Supervisor(settings, cpu_workers=workers)
            supervisor.start()
        try:
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"Allot listens on http://{shown}:{port}  (docs at /docs, data in {settings.data_dir})", flush=True)
            server.run(sockets=[listener])
        finally:
            if supervisor is not None:
                LOG.info("draining: running jobs may go on for %g s", settings.drain_s)
                supervisor.stop(drain=True)


class Server(uvicorn.Server):
    """uvicorn under our signals: it must not kill the process before the workers and Redis are down."""

    def __init__(self, config: uvicorn.Config, on_stop: "object") -> None:
        super().__init__(config)
        self._on_stop = on_stop

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `signals`, which covers more than HTTP."""
        yield

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT ask the server to stop, now or before it has begun."""

        def stop(number: int, frame: FrameType | None) -> None:
            self.should_exit = True
            self._on_stop()  # type: ignore[operator]

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # key files are watched: nothing to do
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def work(args: Namespace) -> int:
    """Run workers alone, for an API elsewhere on the same Redis and store."""
    logs_as(args)
    settings = settings_from(args)
    if not settings.redis_url:
        print("allot: ALLOT_REDIS_URL is not set; workers alone need the API's Redis", file=sys.stderr)
        return 2
    if args.check:
        return check_workers(settings)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    supervisor = Supervisor(settings, cpu_workers=args.workers)
    try:
        supervisor.start()
    except (Unavailable, ValueError) as wrong:
        print(f"allot: {wrong}", file=sys.stderr)
        return 2
    print(f"Allot workers run under process {os.getpid()}", flush=True)
    stopped.wait()
    supervisor.stop(drain=True)
    return 0


def check_workers(settings: Settings) -> int:
    """0 when Redis has just heard of a worker that is a process of this machine (or container)."""
    here = {
        str(process.pid) for process in psutil.process_iter(["cmdline"]) if WORKER in (process.info["cmdline"] or ())
    }
    try:
        alive = [worker.name for worker in Jobs(settings).workers() if worker.name.split("-")[1] in here]
    except Unavailable as wrong:
        print(f"allot: {wrong}", file=sys.stderr)
        return 1
    print(f"alive: {', '.join(alive) or 'none'}")
    return 0 if alive else 1
