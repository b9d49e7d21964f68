"""What the service adds to a solve: python -m benchmarks.service [--jobs 200] [--kills 5].

One worker and the embedded Redis; tiny assignments, so that nothing but the service is measured. `enqueue to
finished` runs from the submission to the moment its waiting caller knows that the job ended; the peer is RQ's own
Worker, which forks for every job, on the same Redis in the same run, called with a function that does nothing.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rq import Queue
from rq.serializers import JSONSerializer

from benchmarks.rows import Rows
from workers.jobs.job import Submission
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.runtime.redis_server import EmbeddedRedis
from workers.runtime.supervisor import Supervisor

OWNER = "bench"
READY_S = 300.0


def quantiles(run: Callable[[], Any], count: int) -> dict[str, float]:
    """Milliseconds of `run`, after ten that do not count."""
    taken = []
    for number in range(count + 10):
        start = time.perf_counter()
        run()
        if number >= 10:
            taken.append(1e3 * (time.perf_counter() - start))
    p50, p90, p99 = np.percentile(taken, [50, 90, 99])
    return {"p50_ms": float(p50), "p90_ms": float(p90), "p99_ms": float(p99)}


def ours(jobs: Jobs, rows: Rows, count: int) -> None:
    """Latency of one caller, where it goes, and throughput with everything queued at once."""
    reference = jobs.store.put(np.array([[4, 1], [2, 0]]), OWNER)
    one = Submission(OWNER, "lap", {"cost": reference}, queue="cpu")
    parts: dict[str, list[float]] = {}

    def there_and_back() -> None:
        job, _ = jobs.submit(one)
        for name, value in jobs.wait(job.id, OWNER, 30).timings_ms.items():
            parts.setdefault(name, []).append(value)

    rows.add(what="submit", **quantiles(lambda: jobs.submit(one), count))
    drain(jobs)
    rows.add(what="enqueue to finished", **quantiles(there_and_back, count))
    rows.add(what="of which", **{f"{name}_ms": float(np.median(values)) for name, values in parts.items()})
    start = time.perf_counter()
    last = [jobs.submit(one)[0] for _ in range(count)][-1]
    jobs.wait(last.id, OWNER, 120)
    rows.add(what="throughput", jobs=count, jobs_per_s=count / (time.perf_counter() - start))


def drain(jobs: Jobs) -> None:
    """Wait until nothing is queued or running."""
    while sum(jobs.counts()["waiting"].values()) + sum(jobs.counts()["running"].values()):
        time.sleep(0.02)


def recovery(jobs: Jobs, supervisor: Supervisor, rows: Rows, repeats: int) -> None:
    """Seconds from kill -9 in the middle of a job until it runs again."""
    rng = np.random.default_rng(0)
    inputs = {name: jobs.store.put(rng.integers(0, 99, (40, 40)), OWNER) for name in ("flow", "distance")}
    for victim in ("child", "worker"):
        taken = []
        for _ in range(repeats):
            while len(jobs.workers()) < 2 or len(supervisor.alive()) < 2:
                time.sleep(0.1)
            job, _ = jobs.submit(Submission(OWNER, "qap", inputs, queue="cpu", time_limit_s=60))
            worker = psutil.Process(worker_of(jobs, job.id))
            (worker if victim == "worker" else worker.children()[0]).kill()
            start = time.perf_counter()
            while jobs.get(job.id, OWNER).attempt < 2:
                time.sleep(0.01)
            taken.append(time.perf_counter() - start)
            jobs.delete(job.id, OWNER)
            drain(jobs)
        rows.add(what=f"kill -9 of a {victim} until its job runs again", seconds=sorted(taken))


def worker_of(jobs: Jobs, job_id: str) -> int:
    """Process id of the worker that runs the job, once one does."""
    books = connect(jobs.settings.redis_url)
    while True:
        for worker in jobs.workers():
            pid = int(books.hget(f"rq:worker:{worker.name}", "pid") or 0)
            held = books.smembers(f"rq:worker:{worker.name}:executions")
            has_it = any(entry.startswith(f"{job_id}:") for entry in held)
            if has_it and jobs.get(job_id, OWNER).attempt == 1 and psutil.pid_exists(pid):
                return pid
        time.sleep(0.01)


def stock(url: str, rows: Rows, count: int) -> None:
    """The peer: rq's Worker and a function that returns at once."""
    command = [sys.executable, "-m", "rq.cli", "worker", "--url", url, "--serializer", "json", "--quiet", "stock"]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    queue = Queue("stock", connection=connect(url, text=False), serializer=JSONSerializer)

    def there_and_back() -> None:
        job = queue.enqueue("time.time")
        job.latest_result(timeout=30)  # blocks until there is one

    try:
        rows.add(what="enqueue to finished, rq.Worker", **quantiles(there_and_back, count))
    finally:
        worker.terminate()
        worker.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=5, help="of each kind of process")
    arguments = parser.parse_args()
    rows = Rows("service")
    folder = Path(tempfile.mkdtemp(prefix="allot-bench-"))
    with EmbeddedRedis(folder) as url:
        settings = Settings(data_dir=folder, warm_solvers="lap,qap").with_redis(url)
        jobs = Jobs(settings)
        supervisor = Supervisor(settings, cpu_workers=1, gpus=[])
        start = time.perf_counter()
        supervisor.start()
        while not jobs.workers():
            time.sleep(0.02)
        rows.add(what="worker ready", seconds=time.perf_counter() - start)
        ours(jobs, rows, arguments.jobs)
        supervisor.stop()
        stock(url, rows, arguments.jobs)
        supervisor = Supervisor(settings, cpu_workers=2, gpus=[])
        supervisor.start()
        recovery(jobs, supervisor, rows, arguments.kills)
        supervisor.stop(drain=False)


if __name__ == "__main__":
    main()
