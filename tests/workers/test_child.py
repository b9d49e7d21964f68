"""What a child tells of the solvers that it cannot warm up."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernels import Device
from tests.workers.service import allowed
from workers.jobs.queue import Jobs
from workers.runtime import child, warmed
from workers.runtime.config import Settings


def test_only_a_solver_that_fails_its_own_warm_up_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def warm(name: str) -> Any:
        def warm_up(device: Device) -> None:
            if name == "bad":
                raise RuntimeError("no kernel image")

        return SimpleNamespace(name=name, modules={"gpu": name}, warm_up=warm_up)

    met = []

    def fails(card: Any, device: Device) -> None:
        met.append(card.name)
        raise ValueError("one form of many")

    monkeypatch.setattr(child, "SOLVERS", {name: warm(name) for name in ("bad", "good")})
    monkeypatch.setattr(child, "solve_each_form", fails)
    monkeypatch.setattr(warmed, "is_warm", lambda solver: False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "loops"))
    told: list[str] = []
    broken = {"bad": "RuntimeError: no kernel image"}
    assert child._warm_up("gpu", ["bad", "good"], tmp_path, told.append) == (broken, [])
    assert met == ["good"]
    assert told == ["0 of 4", "2 of 4", "3 of 4", "4 of 4"]


def test_a_worker_says_that_it_warms_up_until_it_can_solve(jobs: Jobs, settings: Settings) -> None:
    jobs._redis.delete("allot:workers")
    environ = os.environ | replace(settings, warm_solvers="lap", heartbeat_s=0.2).to_env()
    states: list[str] = []
    with subprocess.Popen([sys.executable, "-m", "workers.runtime.worker", "--threads", "1"], env=environ) as worker:
        try:
            give_up = time.monotonic() + allowed(50)
            while not jobs.workers() and time.monotonic() < give_up:
                states += [one.state for one in jobs.workers(starting=True)]
                time.sleep(0.02)
            assert [one.state for one in jobs.workers()] == ["idle"]
        finally:
            worker.terminate()
            status = worker.wait()
    assert status == 0
    assert states
    assert all(state.startswith("warming") for state in states[:-1])


def test_a_gpu_is_asked_for_its_memory_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = iter([(1000, 2000), (900, 2000)])
    monkeypatch.setattr("workers.runtime.gpu_memory.memory", lambda: next(asked))
    room = child.Room("gpu")
    assert [room.told(), room.told()] == [{"bytes_free": 1000, "bytes_total": 2000}, {}]
    later = time.monotonic() + child.TOLD_EVERY_S
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert room.told()["bytes_free"] == 900
    assert child.Room("cpu").told() == {}
