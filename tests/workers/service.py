"""A whole service for tests: an embedded Redis, workers under a supervisor, and a caller."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from kernels import Array
from workers.jobs.job import Device, InputRef, Job, State, Submission
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.runtime.devices import visible_gpus
from workers.runtime.redis_server import EmbeddedRedis
from workers.runtime.supervisor import Supervisor

OWNER = "ann"
READY_S = 240.0
"""Compiling the kernels for the first time takes most of a minute on two cores."""


def settings_for(folder: Path, **changes: Any) -> Settings:
    return Settings(data_dir=folder, warm_solvers="lap,qap", **{"cancel_grace_s": 2.0, "drain_s": 5.0, **changes})


class Service:
    def __init__(self, folder: Path, cpu_workers: int, gpu: bool = False, **changes: Any) -> None:
        self.device: Device = "gpu" if gpu else "cpu"
        self.redis = EmbeddedRedis(folder, fsync="no")  # written at once, and no slow disk keeps it from answering
        self.settings = settings_for(folder, **changes).with_redis(self.redis.start())
        self.jobs = Jobs(self.settings)
        gpus = [found.uuid for found in visible_gpus()[:1]] if gpu else []
        self.supervisor = Supervisor(self.settings, cpu_workers, gpus)
        self.supervisor.start()
        self.workers = cpu_workers + len(gpus)

    def ready(self) -> None:
        eventually(lambda: len(self.jobs.workers()) >= self.workers, READY_S)

    def stop(self) -> None:
        self.supervisor.stop(drain=False)
        self.redis.stop()

    def lap(self, n: int = 4, seed: int = 0, **more: Any) -> Job:
        return self.submit("lap", {"cost": np.random.default_rng(seed).integers(0, 100, (n, n))}, **more)

    def long_qap(self, time_limit_s: float = 60.0, n: int = 40, **more: Any) -> Job:
        """Takes all its time: nothing proves an instance of this size optimal."""
        rng = np.random.default_rng(n)
        arrays = {name: _symmetric(rng.integers(0, 100, (n, n))) for name in ("flow", "distance")}
        options = {"bound_share": 0.0, "bounds": ["gilmore-lawler"]}
        return self.submit("qap", arrays, options=options, time_limit_s=time_limit_s, **more)

    def submit(self, solver: str, arrays: dict[str, Array], **more: Any) -> Job:
        inputs: dict[str, InputRef] = {name: self.jobs.store.put(array, OWNER) for name, array in arrays.items()}
        return self.jobs.submit(Submission(OWNER, solver, inputs, queue=self.device, **more))[0]

    def ended(self, job: Job, within_s: float = 30.0) -> Job:
        seen = self.jobs.wait(job.id, OWNER, allowed(within_s))
        assert seen.state.ended, seen
        return seen

    def running(self, job: Job, attempt: int = 1, within_s: float = 30.0) -> Job:
        def there() -> bool:
            seen = self.jobs.get(job.id, OWNER)
            return seen.state is State.RUNNING and seen.attempt >= attempt

        eventually(there, within_s)
        return self.jobs.get(job.id, OWNER)

    def solving(self, job: Job, attempt: int = 1, within_s: float = 30.0) -> Job:
        """Running, and its child tells how far it is: one that dies before it has heard of a job costs no attempt."""
        self.running(job, attempt, within_s)
        eventually(lambda: self.jobs.get(job.id, OWNER).progress is not None, within_s)
        return self.running(job, attempt, within_s)

    def worker_of(self, job: Job) -> psutil.Process:
        """The worker that runs the job, as RQ's books say, which may come a moment after the record."""
        found: list[int] = []

        def there() -> bool:
            for name in (info.name for info in self.jobs.workers()):
                held = self.jobs._redis.smembers(f"rq:worker:{name}:executions")
                pid = int(self.jobs._redis.hget(f"rq:worker:{name}", "pid") or 0)
                if any(entry.startswith(f"{job.id}:") for entry in held) and psutil.pid_exists(pid):
                    found.append(pid)
            return bool(found)

        eventually(there)
        return psutil.Process(found[0])


def _symmetric(matrix: Array) -> Array:
    return np.triu(matrix, 1) + np.triu(matrix, 1).T


def child_of(worker: psutil.Process) -> psutil.Process:
    """The one that runs: after a kill the next one, once the worker has noticed and started it."""
    eventually(lambda: any(map(runs, worker.children())))
    (child,) = filter(runs, worker.children())
    return child


def runs(process: psutil.Process) -> bool:
    """False once it has ended, whether its parent has asked for that or not."""
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def kill(process: psutil.Process) -> None:
    """At once, and wait until it is gone: a signal only begins the end."""
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: not runs(process))


def eventually(holds: Callable[[], bool], within_s: float = 10.0) -> float:
    """Wait until it holds; returns how long that took."""
    start = time.monotonic()
    while not holds():
        if time.monotonic() - start > allowed(within_s):
            raise AssertionError(f"not within {within_s} s")
        time.sleep(0.02)
    return time.monotonic() - start


def allowed(seconds: float) -> float:
    """`seconds` of a machine that has nothing else to do; as much longer as the present one has work for its cores."""
    with open("/proc/loadavg") as file:
        load, _, _, running, _ = file.read().split()
    work = max(float(load), float(running.partition("/")[0]))
    return seconds * max(1.0, work / (os.cpu_count() or 1))


def quickest(attempt: Callable[[], float], within_s: float, attempts: int = 3) -> float:
    """The fewest seconds that an attempt says it took; a machine that pauses spoils one, which is then made again."""
    took = [attempt()]
    while took[-1] >= allowed(within_s) and len(took) < attempts:
        took.append(attempt())
    return min(took)


def running_service(folder: Path, cpu_workers: int, gpu: bool = False, **changes: Any) -> Iterator[Service]:
    service = Service(folder, cpu_workers, gpu, **changes)
    try:
        service.ready()
        yield service
    finally:
        service.stop()
