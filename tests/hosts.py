"""A service of several hosts on one machine, each host a group of processes: two APIs, three workers, Redis under
Sentinel, and a bucket. What dies is started again, as an orchestrator would."""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.workers.cluster import Cluster, free_port
from tests.workers.service import eventually

SECRET = {"AWS_ACCESS_KEY_ID": "allot", "AWS_SECRET_ACCESS_KEY": "secret-enough", "AWS_DEFAULT_REGION": "us-east-1"}
WATCH_S = 0.1
READY_S = 280.0


class Host:
    """One command of `allot` with a data folder of its own, in a process group of its own."""

    def __init__(self, folder: Path, environ: dict[str, str], *words: str) -> None:
        folder.mkdir(exist_ok=True)
        self.data = folder / "data"
        self._environ, self._words, self._log = environ, words, folder / "log"
        self.process = self._started()

    def keep(self) -> None:
        """Start it again if it has ended."""
        if self.process.poll() is not None:
            self.process = self._started()

    def processes(self) -> dict[str, psutil.Process]:
        """One of each kind, by the module that it runs, those that others started first."""
        try:
            first = psutil.Process(self.process.pid)
            family = [*reversed(first.children(recursive=True)), first]
        except psutil.NoSuchProcess:
            return {}
        found = {}
        for one in family:
            with contextlib.suppress(psutil.Error):  # it ends just now
                words = one.cmdline()
                found[words[words.index("-m") + 1] if "-m" in words else " ".join(words[:3])] = one
        return found

    def stop(self) -> int:
        """End it as an operator would; its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()

    def log(self) -> str:
        """What it said since its first start."""
        return self._log.read_text()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "app.cli.main", *self._words, "--data-dir", str(self.data)]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command, env=self._environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )


class S3:
    """A server that speaks S3 and keeps everything in memory, with the bucket `allot`."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        with (folder / "s3.log").open("wb") as log:
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        eventually(self._made, 60)

    def _made(self) -> bool:
        try:
            return httpx.put(f"{self.url}/allot", headers=_SIGNED, timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        """Its objects are gone with it."""
        self.process.kill()
        self.process.wait()


_SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=allot/20260101/us-east-1/s3/aws4_request, Signature=0"}
"""Nobody checks it, but it says which service is meant."""


class Hosts:
    """All of it, kept alive until `stop`."""

    def __init__(self, folder: Path, cluster: Cluster, s3: S3, apis: int = 2, workers: int = 3) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")} | SECRET
        environ |= {"ALLOT_REDIS_URL": cluster.url, "ALLOT_STORE_URL": "s3://allot/blobs"}
        environ |= {"ALLOT_S3_ENDPOINT_URL": s3.url, "ALLOT_WARM_SOLVERS": "lap,qap", "ALLOT_DRAIN_S": "20"}
        ports = [free_port() for _ in range(apis)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.apis = [
            Host(folder / f"api-{k}", environ, "serve", "--workers", "0", "--port", str(port))
            for k, port in enumerate(ports)
        ]
        self.workers = [Host(folder / f"worker-{k}", environ, "worker", "--workers", "1") for k in range(workers)]
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def ready(self) -> None:
        """Wait until every API host sees every worker host."""
        eventually(lambda: all(self._workers(url) == len(self.workers) for url in self.urls), READY_S)

    def _workers(self, url: str) -> int:
        try:
            if httpx.get(f"{url}/readyz", timeout=5).status_code != 200:
                return 0
            told: list[dict[str, Any]] = httpx.get(f"{url}/v1/devices", timeout=5).json()["workers"]
        except (httpx.TransportError, KeyError, ValueError):
            return 0
        return sum(worker["state"] in ("idle", "busy") for worker in told)

    def _keep(self) -> None:
        while not self._ended.wait(WATCH_S):
            for host in (*self.apis, *self.workers):
                host.keep()

    def stop(self) -> list[int]:
        """End all hosts; their exit statuses."""
        self._ended.set()
        self._keeper.join()
        return [host.stop() for host in (*self.workers, *self.apis)]


def is_gone(process: psutil.Process) -> bool:
    """Whether it has ended; whoever started it may not have noticed yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
