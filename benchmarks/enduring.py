"""Many small jobs while workers are killed: python -m benchmarks.enduring [--jobs 200000] [--kill-every 5].

Clients on keep-alive connections each post their next 32 x 32 assignment when the last was answered, every one with an
Idempotency-Key, and repeat what was cut off or refused. A worker or a child is killed by SIGKILL every few seconds.
Each job must be answered, once, with the optimum that SciPy finds. Once a fifth of the jobs is done, no process may
grow any more. Jobs are kept for a few seconds, so that Redis holds as many at the end as after a minute. The status
is 0 only when nothing was lost and nothing was wrong. The row goes to benchmarks/results/enduring.jsonl.
"""

import argparse
import contextlib
import itertools
import json
import random
import threading
import time
import uuid
from collections import Counter
from http.client import HTTPConnection, HTTPException
from typing import Any

import numpy as np
import psutil
from scipy.optimize import linear_sum_assignment

from benchmarks.own import Service, service
from benchmarks.rows import Rows
from benchmarks.small_jobs import bodies, roles
from workers.runtime.connection import connect

KEPT_S = 5
PATIENCE_S = 120.0
"""A job that is not answered by then is lost."""
MIB = 1 << 20


class Crowd:
    """Clients that share a number of jobs."""

    def __init__(self, port: int, jobs: int) -> None:
        self.port, self.jobs = port, jobs
        self._next = itertools.count()
        self._lock = threading.Lock()
        self.run = uuid.uuid4().hex
        self.ids: set[str] = set()
        self.met: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._bodies = [json.loads(body) | {"result_ttl_s": KEPT_S} for body in bodies(64)]
        self._optima = [_optimum(body["inputs"]["cost"]) for body in self._bodies]

    def work(self) -> None:
        """One client's jobs, until all are taken."""
        line = HTTPConnection("127.0.0.1", self.port, timeout=60)
        while (number := next(self._next)) < self.jobs:
            try:
                found = self._answered(line, number)
            except TimeoutError as late:
                self.wrong.append(str(late))
                continue
            with self._lock:
                if found["id"] in self.ids:
                    self.wrong.append(f"job {found['id']} answers two requests")
                self.ids.add(found["id"])
            if abs(found["objective"] - self._optima[number % 64]) > 1e-9:
                self.wrong.append(f"job {number}: {found['objective']} instead of {self._optima[number % 64]}")

    def _answered(self, line: HTTPConnection, number: int) -> dict[str, Any]:
        """The result of a job, asked for until it is there."""
        headers = {"Content-Type": "application/json", "Prefer": "wait=10", "Idempotency-Key": f"{self.run}-{number}"}
        body, give_up = json.dumps(self._bodies[number % 64]), time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            try:
                line.request("POST", "/v1/jobs", body, headers)
                answer = line.getresponse()
                text = answer.read()
            except (OSError, HTTPException):
                self.met["cut"] += 1
                line.close()
                time.sleep(0.1)
                continue
            self.met[str(answer.status)] += 1
            if answer.status == 200:
                return dict(json.loads(text))
            if answer.status not in (202, 429, 503):
                raise TimeoutError(f"job {number} was answered {answer.status}: {text[:200]!r}")
            time.sleep(0.05)
        raise TimeoutError(f"job {number} was not answered")


def _optimum(cost: list[list[float]]) -> float:
    matrix = np.array(cost)
    return float(matrix[linear_sum_assignment(matrix)].sum())


def kill_now_and_then(there: Service, every_s: float, over: threading.Event, killed: Counter[str]) -> None:
    """SIGKILL to one worker or child at a time."""
    rng = random.Random(0)
    while not over.wait(every_s):
        role = rng.choice(["worker", "child"])
        with contextlib.suppress(psutil.Error):
            victims = roles(there.process)[role]
            if victims:
                rng.choice(victims).kill()
                killed[role] += 1


def memory(there: Service) -> dict[str, float]:
    """MiB of the API and of Redis. Workers come and go with the kills."""
    held = {role: sum(one.memory_info().rss for one in roles(there.process)[role]) / MIB for role in ("api", "redis")}
    return {role: round(mib, 1) for role, mib in held.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=5.0, help="seconds")
    arguments = parser.parse_args()
    rows, over, killed = Rows("enduring"), threading.Event(), Counter[str]()
    with service(arguments.workers) as there:
        crowd, begun = Crowd(there.port, arguments.jobs), time.monotonic()
        clients = [threading.Thread(target=crowd.work, daemon=True) for _ in range(arguments.connections)]
        killer = threading.Thread(target=kill_now_and_then, args=(there, arguments.kill_every, over, killed))
        for thread in (*clients, killer):
            thread.start()
        while len(crowd.ids) < arguments.jobs // 5 and any(client.is_alive() for client in clients):
            time.sleep(0.2)
        early = memory(there)
        for client in clients:
            client.join()
        over.set()
        killer.join()
        late, lasted = memory(there), time.monotonic() - begun
        redis = connect(f"unix://{next(there.folder.rglob('redis.sock'))}")
        rows.add(what="small jobs under kills", jobs=arguments.jobs, connections=arguments.connections,
                 answered=len(crowd.ids), jobs_per_s=len(crowd.ids) / lasted, killed=dict(killed), met=dict(crowd.met),
                 mib_after_a_fifth=early, mib_at_the_end=late, active_at_the_end=int(redis.zcard("allot:active")),
                 wrong=crowd.wrong[:5])  # fmt: skip
    if crowd.wrong or len(crowd.ids) < arguments.jobs:
        raise SystemExit(f"{arguments.jobs - len(crowd.ids)} jobs were lost, {len(crowd.wrong)} answers are wrong")


if __name__ == "__main__":
    main()
