"""Nobody outlives whoever started him, and nobody is started for nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.workers.service import OWNER, READY_S, Service, allowed, eventually, settings_for
from workers.jobs.job import State
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.runtime.supervisor import Supervisor


class Foreground:
    """`python -m workers.runtime.supervisor` with a Redis of its own."""

    def __init__(self, folder: Path) -> None:
        settings = settings_for(folder)
        command = [sys.executable, "-m", "workers.runtime.supervisor", "--cpu-workers", "1", "--no-gpu"]
        self.process = subprocess.Popen(command, env=os.environ | settings.to_env())
        socket = folder / "redis" / "redis.sock"
        eventually(socket.exists, 30)
        self.jobs = Jobs(settings.with_redis(f"unix://{socket}"))
        eventually(lambda: len(self.jobs.workers()) == 1, READY_S)
        self.family = psutil.Process(self.process.pid).children(recursive=True)


@pytest.fixture
def foreground(tmp_path: Path) -> Iterator[Foreground]:
    made = Foreground(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


def gone(processes: list[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


def test_kill_9_of_the_supervisor_leaves_no_orphans(foreground: Foreground) -> None:
    assert len(foreground.family) == 3  # Redis, the worker and its child
    foreground.process.kill()
    eventually(lambda: gone(foreground.family), 5)


def test_sigterm_stops_everything_in_time(foreground: Foreground) -> None:
    start = time.monotonic()
    foreground.process.send_signal(signal.SIGTERM)
    assert foreground.process.wait(allowed(15)) == 0
    assert time.monotonic() - start < allowed(10)
    assert gone(foreground.family)


def test_a_job_that_outlasts_the_drain_goes_back_and_loses_no_attempt(tmp_path: Path) -> None:
    service = Service(tmp_path, 1, drain_s=2.0)
    try:
        service.ready()
        quick, job = service.lap(), service.long_qap()
        service.running(job)
        start = time.monotonic()
        service.supervisor.stop()
        assert time.monotonic() - start < allowed(7)
        assert service.ended(quick).state is State.SUCCEEDED
        assert service.jobs.get(job.id, OWNER).state is State.QUEUED
        assert service.jobs._redis.hget(f"rq:job:{job.id}", "retries_left") == "2"
    finally:
        service.stop()


def test_gpus_are_shared_out(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, gpus_per_worker=2)
    places = Supervisor(settings, 0, ["GPU-a", "GPU-b", "GPU-c"])._places
    assert [place.arguments[-1] for place in places] == ["GPU-a,GPU-b", "GPU-c"]


def test_workers_share_a_gpu_and_its_page_locked_memory(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers_per_gpu=2, ready_bytes=8 << 20, pinned_bytes=4 << 20)
    supervisor = Supervisor(settings, 0, ["GPU-a", "GPU-b"])
    assert [place.arguments[-1] for place in supervisor._places] == ["GPU-a", "GPU-a", "GPU-b", "GPU-b"]
    assert supervisor._environ["ALLOT_READY_BYTES"] == str(2 << 20)
    assert supervisor._environ["ALLOT_PINNED_BYTES"] == str(2 << 20)
    assert supervisor._environ["ALLOT_WORKERS_PER_GPU"] == "2"


def test_workers_on_gpus_share_the_memory_that_is_taken_ahead(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, ready_bytes=6 << 20)
    for gpus, each in ((["GPU-a", "GPU-b"], 3 << 20), (["GPU-a"], 6 << 20), ([], 6 << 20)):
        assert Supervisor(settings, 0, gpus)._environ["ALLOT_READY_BYTES"] == str(each)


def test_a_worker_that_cannot_start_is_tried_ever_more_slowly(tmp_path: Path) -> None:
    nowhere = Settings(data_dir=tmp_path, redis_url=f"unix://{tmp_path}/nobody.sock")
    supervisor = Supervisor(nowhere, 1, [])
    supervisor.start()
    (place,) = supervisor._places
    eventually(lambda: place.starts >= 2, 60)
    assert place.delay_s >= 0.4
    start = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - start < allowed(15)
    assert supervisor.alive() == []
