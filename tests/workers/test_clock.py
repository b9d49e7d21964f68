"""Hosts whose clocks are wrong: Redis's time is the only one that counts."""

import dataclasses
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import rq.registry

from workers.jobs.janitor import Janitor
from workers.jobs.job import Submission
from workers.jobs.queue import Jobs
from workers.jobs.records import Limits, Records
from workers.rq import Lost
from workers.rq.hands import Hands
from workers.runtime import clock as clocks
from workers.runtime.clock import Clock
from workers.runtime.config import Settings
from workers.runtime.connection import connect

HOUR = 3600.0


@pytest.fixture
def shifted(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set this process's clock, and RQ's, so many seconds ahead."""
    real, stamp = time.time, rq.registry.current_timestamp

    def shift(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: real() + seconds)
        monkeypatch.setattr("rq.registry.current_timestamp", lambda: stamp() + int(seconds))

    return shift


def submitted(jobs: Jobs) -> str:
    return jobs.submit(Submission("ann", "lap", {"cost": jobs.store.put(np.eye(2), "ann")}, queue="cpu"))[0].id


@pytest.mark.parametrize("ahead_s", [HOUR, -HOUR])
def test_a_job_is_dated_by_redis(
    jobs: Jobs, settings: Settings, shifted: Callable[[float], None], ahead_s: float
) -> None:
    before = time.time()
    shifted(ahead_s)
    wrong = Jobs(settings)
    record = Records(jobs._redis).read(submitted(wrong))
    assert before - 1 < float(record["created_at"]) < before + 60


@pytest.mark.parametrize("ahead_s", [HOUR, -HOUR])
def test_a_wrong_clock_neither_takes_jobs_away_nor_keeps_the_dead(
    jobs: Jobs, settings: Settings, shifted: Callable[[float], None], ahead_s: float
) -> None:
    """The worker's clock is right and the janitor's is not, and the other way round."""
    for worker_ahead_s, janitor_ahead_s in ((0.0, ahead_s), (ahead_s, 0.0)):
        jobs._redis.flushall()
        job_id = submitted(jobs)
        shifted(worker_ahead_s)
        raw = connect(settings.redis_url, text=False)
        order = Records(jobs._redis).take("cpu", "one", "a cpu", "token", Limits.of(settings), most=1)[0]
        hands = Hands("cpu", raw, lost_after_s=60, stop=lambda: None)
        held = hands.hold(order.job_id, order.execution)
        held.renew()
        shifted(janitor_ahead_s)
        lost: list[str] = []
        finder = Lost("cpu", connect(settings.redis_url, text=False))
        finder.revoke(lambda lost_id, again, lost=lost: lost.append(lost_id) or False)  # type: ignore[misc]
        assert lost == []
        for entry in jobs._redis.zrange("rq:wip:cpu", 0, -1):
            jobs._redis.zincrby("rq:wip:cpu", -61, entry)  # as if it had not been heard of for so long
        finder.revoke(lambda lost_id, again, lost=lost: lost.append(lost_id) or False)  # type: ignore[misc]
        assert lost == [job_id]


def test_a_clock_that_is_a_day_ahead_expires_nothing(
    jobs: Jobs, settings: Settings, shifted: Callable[[float], None]
) -> None:
    job_id = submitted(jobs)
    jobs.cancel(job_id, "ann")
    reference = jobs.store.put(np.eye(3), "ann")
    shifted(25 * HOUR)
    Janitor(settings).clean()
    assert jobs.get(job_id, "ann").state.ended
    assert jobs.store.stat(reference["blob"], "ann") is not None
    shifted(0)
    brief = Jobs(dataclasses.replace(settings, result_ttl_s=0.1))
    gone = submitted(brief)
    brief.cancel(gone, "ann")
    time.sleep(0.2)
    shifted(-HOUR)
    Janitor(settings).clean()
    assert not Records(jobs._redis).read(gone)


def test_skew_is_measured_and_warned_of_once(
    shifted: Callable[[float], None], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.runtime.clock.ASK_S", 0.0)
    clock, begun = Clock(lambda: (1_000_000, 0)), time.monotonic()
    shifted(1_003_600 - time.time())
    for _ in range(3):
        assert abs(clock.skew_s() - HOUR) < 0.1 + time.monotonic() - begun
    assert caplog.text.count("3600 s ahead of Redis's") == 1


def test_a_clock_that_is_put_right_in_between_changes_nothing(shifted: Callable[[float], None]) -> None:
    clock = Clock(lambda: (1_000_000, 500_000))
    begun, before = time.monotonic(), clock.now()
    shifted(-HOUR)
    assert 0 <= clock.now() - before < 0.1 + time.monotonic() - begun


def test_an_answer_that_was_long_on_its_way_does_not_spoil_a_better_one() -> None:
    """Where a process was busy when it came, half of that time would be taken for a difference of clocks."""
    clock, here = Clock(lambda: (0, 0)), time.monotonic()

    def learn(redis_s: float, start: float, end: float) -> float:
        clock.learn((int(redis_s), round(1e6 * (redis_s % 1))), here + start, here + end)
        return clock.now() - time.monotonic() - 1000 + here

    assert learn(1000.0, -0.0001, 0.0001) == pytest.approx(0, abs=1e-4)
    assert learn(1001.0, 0.9999, 1.0201) == pytest.approx(0, abs=1e-4)
    assert learn(1002.5, 1.9999, 2.0201) == pytest.approx(0.49, abs=1e-4)  # Redis's clock was set
    assert learn(1003.505, 2.9999, 3.0001) == pytest.approx(0.505, abs=1e-4)


def test_an_answer_that_waited_for_a_connection_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the worker of a fresh process would tell of jobs that they queued for as long as it took to connect."""
    ways, here = [0.1, 0.02, 0.0], 100.0  # that the answer takes back, by a clock that nobody else's work moves
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: here, time=lambda: here))

    def ask() -> tuple[int, int]:
        nonlocal here
        now, here = here + 1000, here + ways.pop(0)
        return int(now), round(1e6 * (now % 1))

    assert Clock(ask).now() - here == pytest.approx(1000, abs=1e-5)
    assert not ways


@pytest.mark.parametrize("late", [0.0, 0.5, 1.0])
def test_processes_of_redis_host_agree_however_long_its_answers_take(
    monkeypatch: pytest.MonkeyPatch, late: float
) -> None:
    """Or a job would have been queued for less than no time."""
    here = 100.0
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: here, time=lambda: here + 1000))
    clock = Clock(lambda: (0, 0))
    for way in (0.002, 0.02, 0.0002):
        start, here = here, here + way
        told = start + late * way + 1000
        clock.learn((int(told), round(1e6 * (told % 1))), start, here)
        assert clock.now() - here == pytest.approx(1000, abs=2e-6)


def test_a_clock_whose_answers_are_all_slow_takes_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    ways, here = [0.06, 0.05, 0.04, 0.03], 100.0
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic=lambda: here, time=lambda: here + 1))

    def ask() -> tuple[int, int]:
        nonlocal here
        now, here = here, here + ways.pop(0)
        return int(now), round(1e6 * (now % 1))

    clock = Clock(ask)
    assert clock.now() - here == pytest.approx(-0.015, abs=1e-5)  # half of the least, and the others' would be more
    assert not ways
    clock.now()
