"""A service of a benchmark's own on this machine: one API process, the embedded Redis, workers."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import psutil

from benchmarks import CLIENT

READY_S = 300.0


@dataclass(frozen=True)
class Service:
    """A service that runs: where it answers, its first process, and its folder."""

    port: int
    process: psutil.Process
    folder: Path

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def service(workers: int = 1, solvers: str = "lap", **settings: str) -> Iterator[Service]:
    """`allot serve`, ready; the arguments are those of `started`.

    Raises:
        SystemExit: it is not ready within READY_S.
    """
    with started(workers, solvers, **settings) as found:
        wait_until_ready(found.port)
        yield found


@contextlib.contextmanager
def started(workers: int, solvers: str, **settings: str) -> Iterator[Service]:
    """`allot serve`, which may not answer yet; its lines go to a file in its folder. It is stopped with the block.

    Args:
        workers: on CPUs; each GPU has one besides.
        solvers: those that are compiled before a worker takes jobs, with commas between; empty for all.
        settings: ALLOT_ settings by their whole names.
    """
    folder = Path(tempfile.mkdtemp(prefix="allot-bench-"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "app.cli.main", "serve", "--port", str(port), "--workers", str(workers)]
    there = os.pathsep.join(filter(None, [str(CLIENT.parent), str(CLIENT), os.environ.get("PYTHONPATH")]))
    around = {"ALLOT_API_WORKERS": "1"} | os.environ | {"ALLOT_WARM_SOLVERS": solvers, "PYTHONPATH": there} | settings
    with (folder / "lines").open("w") as lines:
        process = subprocess.Popen(
            [*command, "--data-dir", str(folder)], stdout=subprocess.DEVNULL, stderr=lines, env=around
        )
        try:
            yield Service(port, psutil.Process(process.pid), folder)
        finally:
            process.terminate()
            process.wait()


def wait_until_ready(port: int) -> None:
    """Return once it can solve. Raises SystemExit."""
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up:
        try:
            line = HTTPConnection("127.0.0.1", port)
            line.request("GET", "/readyz")
            if line.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit("the service is not ready")
