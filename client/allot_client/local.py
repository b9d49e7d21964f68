"""A service of one's own, for a notebook: API, workers and an embedded Redis in processes that end with this one."""

from __future__ import annotations

import atexit
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import httpx

from allot_client.errors import Unreachable

READY_S = 300.0
"""The first start after an install compiles the solvers."""


def start(workers: int | None = None) -> tuple[str, Callable[[], None]]:
    """Start `allot serve` on a free port: (its address, how to stop it). No setting of ALLOT_... reaches it.

    Raises:
        Unreachable: the service is not installed, or did not start; with the end of its log.
    """
    try:
        importlib.metadata.distribution("allot")
    except importlib.metadata.PackageNotFoundError:
        missing = "a service of one's own needs the package `allot` in this environment: pip install allot"
        raise Unreachable(missing) from None
    folder = tempfile.TemporaryDirectory(prefix="allot-local-", ignore_cleanup_errors=True)
    command = [sys.executable, "-P", "-m", "app.cli.main", "serve", "--port", "0", "--data-dir", folder.name]
    command += ["--workers", str(workers)] if workers is not None else []
    env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=env, text=True)

    def stop() -> None:
        atexit.unregister(stop)
        process.kill()  # whatever it started goes with it, and nothing that it holds is kept
        process.wait()
        log.close()
        folder.cleanup()

    atexit.register(stop)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    give_up = time.monotonic() + READY_S
    while found is None or not _is_ready(found[0]):
        if found is None or process.poll() is not None or time.monotonic() > give_up:
            log.seek(0)
            words = log.read()[-2000:]
            stop()
            raise Unreachable(f"the service did not start; is the package `allot` installed here? {words}")
        time.sleep(0.1)
    return found[0], stop


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5.0).status_code == 200
    except httpx.TransportError:
        return False
