"""A service under mixed load and random kills, for as long as you like; at the end everything must be as it was.

    python -m benchmarks.soak --minutes 30

Loaders submit tiny and larger assignments, auctions, transport and QAP, by JSON and by upload, and check every answer:
assignments against SciPy, the rest by their certificates. Meanwhile a child, a worker or Redis is killed every few
seconds. Twice, after a first part of the load and at the end, the load stops, results expire, and memory, open files,
keys of Redis and bytes on disk are counted. The second count must not be above the first by more than the slack.
"""

import argparse
import contextlib
import io
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import redis
from scipy.optimize import linear_sum_assignment

from benchmarks.rows import Rows

RESULT_TTL_S = 8
SETTLE_S = 25.0
KILL_EVERY_S = 6.0
SOLVED_BETWEEN = 5
SLACK = {"rss_mib": 1.05, "files": 1.05, "keys": 1.2, "redis_mib": 1.2, "disk_mib": 1.0, "all_rss_mib": 1.2}
SLACK |= {"all_files": 1.2}
SPARE = {"rss_mib": 8, "files": 8, "keys": 20, "redis_mib": 1, "disk_mib": 1, "all_rss_mib": 100, "all_files": 40}
"""The API's process lives through all of it and must be flat. Of the others, which are killed, those that are there at
a count may be of any age, and a child that has solved much has compiled and kept more than a new one."""
ENVIRON = {
    "ALLOT_RESULT_TTL_S": str(RESULT_TTL_S),
    "ALLOT_BLOB_TTL_S": str(RESULT_TTL_S),
    "ALLOT_TOMBSTONE_TTL_S": "2",
    "ALLOT_ATTEMPTS": "8",
    "ALLOT_WARM_SOLVERS": "lap,qap,auction,uot",
}


@dataclass
class Told:
    """What the loaders saw."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)


class Service:
    """`allot serve` with its own Redis, in a folder of its own."""

    def __init__(self, folder: Path, workers: int, environ: Mapping[str, str] = ENVIRON) -> None:
        self.folder = folder
        env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
        command = [sys.executable, "-m", "app.cli.main", "serve", "--port", "0", "--workers", str(workers)]
        env |= environ
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen(
            [*command, "--data-dir", str(folder / "data")], stdout=subprocess.PIPE, stderr=self.log, text=True, env=env
        )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        if found is None:
            raise SystemExit(f"the service did not start: {(folder / 'log').read_text()[-2000:]}")
        self.url = found[0]
        self.redis_url = (folder / "data/redis/url").read_text()

    def ready(self, within_s: float = 300.0) -> None:
        """Wait until it solves."""
        give_up = time.monotonic() + within_s
        while httpx.get(f"{self.url}/readyz", timeout=10).status_code != 200:
            if time.monotonic() > give_up or self.process.poll() is not None:
                raise SystemExit("the service did not get ready")
            time.sleep(0.2)

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Those that may be killed, by what they are."""
        found: dict[str, list[psutil.Process]] = {"redis": [], "worker": [], "child": []}
        for one in psutil.Process(self.process.pid).children(recursive=True):
            try:
                words = " ".join(one.cmdline())
            except psutil.Error:
                continue
            for kind, mark in (("redis", "redis-server"), ("worker", "runtime.worker"), ("child", "runtime.child")):
                if mark in words:
                    found[kind].append(one)
        return found

    def count(self) -> dict[str, float]:
        """What must be flat: of the API's process, of it and all that it started, of Redis and of the disk."""
        api = psutil.Process(self.process.pid)
        family = [api, *api.children(recursive=True)]
        with redis.Redis.from_url(self.redis_url) as client:
            keys, used = client.dbsize(), client.info("memory")["used_memory"]
        files = [path for path in (self.folder / "data/blobs").rglob("*") if path.is_file()]
        return {
            "rss_mib": round(api.memory_info().rss / 2**20, 1),
            "all_rss_mib": round(sum(one.memory_info().rss for one in family) / 2**20, 1),
            "files": api.num_fds(),
            "all_files": sum(one.num_fds() for one in family),
            "keys": float(keys),
            "redis_mib": round(used / 2**20, 3),
            "disk_mib": round(sum(path.stat().st_size for path in files) / 2**20, 3),
        }

    def stop(self) -> int:
        """End it; its exit status."""
        self.process.terminate()
        code = self.process.wait(60)
        self.log.close()
        return code


class Loader(threading.Thread):
    """One client that submits, waits and checks, again and again."""

    def __init__(self, service: Service, seed: int, stop: threading.Event, told: Told) -> None:
        super().__init__(daemon=True)
        self._rng, self._stop_asked, self._told = np.random.default_rng(seed), stop, told
        self._client = httpx.Client(base_url=service.url, timeout=90)

    def run(self) -> None:
        """Go on until asked to stop."""
        kinds = [self._lap, self._upload, self._auction, self._uot, self._qap]
        while not self._stop_asked.is_set():
            kind = kinds[int(self._rng.choice(len(kinds), p=[0.5, 0.2, 0.1, 0.1, 0.1]))]
            try:
                kind()
            except httpx.HTTPError:
                self._told.counts["connection"] += 1
                time.sleep(0.2)
            except Exception as error:
                self._told.wrong.append(repr(error)[:300])

    def _lap(self) -> None:
        cost = self._rng.integers(0, 1000, (int(self._rng.integers(2, 60)),) * 2)
        self._check_lap(cost, {"cost": cost.tolist()})

    def _upload(self) -> None:
        cost, data = self._rng.integers(0, 1000, (150, 150)), io.BytesIO()
        np.save(data, cost)
        answer = self._client.post("/v1/blobs", content=data.getvalue())
        if answer.status_code == 201:
            self._check_lap(cost, {"cost": {"blob": answer.json()["blob"]}})
        else:
            self._refused(answer)

    def _check_lap(self, cost: Any, inputs: dict[str, Any]) -> None:
        rows, columns = linear_sum_assignment(cost)
        result = self._solved({"solver": "lap", "inputs": inputs})
        if result is not None and result["objective"] != cost[rows, columns].sum():
            self._told.wrong.append(f"lap answered {result['objective']}, not {cost[rows, columns].sum()}")

    def _auction(self) -> None:
        benefit = self._rng.integers(0, 100, (20, 20)).tolist()
        self._solved({"solver": "auction", "inputs": {"benefit": benefit}})

    def _uot(self) -> None:
        cost, a, b = self._rng.random((12, 12)), self._rng.random(12) + 0.1, self._rng.random(12) + 0.1
        inputs = {"cost": cost.tolist(), "a": a.tolist(), "b": b.tolist()}
        self._solved({"solver": "uot", "inputs": inputs, "options": {"reg": 0.1, "reg_m": 1.0}})

    def _qap(self) -> None:
        flow, distance = (np.triu(self._rng.integers(0, 9, (12, 12)), 1) for _ in range(2))
        inputs = {"flow": (flow + flow.T).tolist(), "distance": (distance + distance.T).tolist()}
        self._solved({"solver": "qap", "inputs": inputs, "time_limit_s": 0.5})

    def _solved(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """The result, however long and through whatever it takes; None where nothing was accepted."""
        key = {"Idempotency-Key": f"soak-{self._rng.integers(1 << 60)}", "Prefer": "wait=20"}
        answer = self._client.post("/v1/jobs", json=job, headers=key)
        if answer.status_code not in (200, 202):
            self._refused(answer)
            return None
        path = answer.headers.get("location") or f"/v1/jobs/{answer.json()['id']}"
        give_up = time.monotonic() + 120
        while answer.status_code != 200 or "certificate" not in answer.json():
            if time.monotonic() > give_up:
                raise RuntimeError(f"{path} has no answer after 120 s: {answer.status_code} {answer.text[:200]}")
            try:
                self._client.get(path, params={"wait": 5})
                answer = self._client.get(f"{path}/result")
            except httpx.HTTPError:
                time.sleep(0.2)
            if answer.status_code in (404, 410, 500):
                raise RuntimeError(f"{path} answered {answer.status_code}: {answer.text[:300]}")
            time.sleep(0.05 if answer.status_code != 200 else 0)
        self._told.counts["solved"] += 1
        return dict(answer.json())

    def _refused(self, answer: httpx.Response) -> None:
        self._told.counts[f"refused {answer.status_code}"] += 1
        if answer.status_code not in (429, 503):
            raise RuntimeError(f"{answer.status_code}: {answer.text[:300]}")
        time.sleep(0.2)


def killing(service: Service, stop: threading.Event, told: Told, seed: int) -> None:
    """Kill something every few seconds; Redis seldom, as five deaths in a minute would end the service.

    Nothing is killed before jobs were solved since the last time: on a busy machine a new child takes longer to start
    than the pause lasts, and a service without any would be judged.
    """
    rng = random.Random(seed)
    solved = told.counts["solved"]
    while not stop.wait(KILL_EVERY_S * rng.uniform(0.5, 1.5)):
        if told.counts["solved"] < solved + SOLVED_BETWEEN:
            continue
        kind = rng.choices(["child", "worker", "redis"], [6, 4, 1])[0]
        if kind == "redis":
            time.sleep(1.2)
        found = service.processes()[kind]
        if found:
            told.kills[kind] += 1
            solved = told.counts["solved"]
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(found).pid, signal.SIGKILL)


def load(service: Service, seconds: float, told: Told, loaders: int, seed: int) -> None:
    """Load and kills for so long, and quiet until results have expired."""
    stop = threading.Event()
    threads: list[threading.Thread] = [Loader(service, seed + k, stop, told) for k in range(loaders)]
    threads.append(threading.Thread(target=killing, args=(service, stop, told, seed), daemon=True))
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join(150)
    service.ready()
    time.sleep(SETTLE_S)


def main() -> None:
    """Soak, and print one row; exit status 1 when an answer was wrong or something grew."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--loaders", type=int, default=4)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    told, seconds = Told(), 60 * given.minutes - 2 * SETTLE_S
    with tempfile.TemporaryDirectory(prefix="allot-soak-") as folder:
        service = Service(Path(folder), given.workers)
        try:
            service.ready()
            load(service, max(10.0, 0.3 * seconds), told, given.loaders, given.seed)
            first = service.count()
            load(service, max(10.0, 0.7 * seconds), told, given.loaders, given.seed + 1000)
            last = service.count()
        finally:
            code = service.stop()
        log = (Path(folder) / "log").read_text()
    grown = [name for name, most in SLACK.items() if last[name] > most * first[name] + SPARE[name]]
    told_of = {"minutes": given.minutes, "counts": dict(told.counts), "kills": dict(told.kills)}
    Rows("soak").add(**told_of, first=first, last=last, grown=grown, wrong=told.wrong[:20], exit=code)
    if grown or told.wrong or code or not told.counts["solved"]:
        print(log[-4000:], file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
