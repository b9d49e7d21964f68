"""A solve hears of cancellations and tells of its progress, and waits for neither."""

import threading
import time

import pytest
import redis

from tests.workers.service import allowed, quickest
from workers.runtime import aside as aside_module
from workers.runtime.aside import MOST_KEPT, WITHIN_S, Aside, Late


class Records:
    """Answers once it may."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.stop = False
        self.told: list[int] = []

    def stop_requested(self, job_id: str, execution: str) -> bool:
        self.open.wait()
        if job_id == "broken":
            raise redis.ConnectionError("gone")
        return self.stop

    def report(self, number: int) -> bool:
        self.open.wait()
        self.told.append(number)
        return True


@pytest.fixture
def records() -> Records:
    return Records()


def test_a_healthy_redis_is_heard_at_once(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside_module, "WITHIN_S", 30.0)  # it answers from a thread of this process, which may be busy
    aside = Aside(records)
    assert not aside.stop_requested("job", "one")
    records.stop = True
    assert aside.stop_requested("job", "one")
    assert aside.report(1)
    assert records.told == [1]
    with pytest.raises(redis.ConnectionError, match="gone"):
        aside.stop_requested("broken", "one")


def test_a_frozen_redis_costs_a_solve_next_to_nothing() -> None:
    made: list[tuple[Records, Aside]] = []

    def cost() -> float:
        records = Records()
        records.open.clear()
        aside = Aside(records)
        made.append((records, aside))
        start = time.monotonic()
        for _ in range(100):
            with pytest.raises(Late):
                aside.stop_requested("job", "one")
            with pytest.raises(Late):
                aside.report(1)
        return time.monotonic() - start

    assert quickest(cost, WITHIN_S + 0.2) < allowed(WITHIN_S + 0.2)
    records, aside = made.pop()
    for others, _ in made:
        others.open.set()
    records.stop = True
    records.open.set()
    give_up = time.monotonic() + 5
    stopped = False
    while not stopped and time.monotonic() < give_up:
        try:
            stopped = aside.stop_requested("job", "one")
        except Late:
            time.sleep(0.01)
    assert stopped
    assert 90 <= len(records.told) <= MOST_KEPT


def test_reports_come_in_order(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    aside = Aside(records)
    records.open.clear()
    for number in range(10):
        with pytest.raises(Late):
            aside.report(number)
    records.open.set()
    give_up = time.monotonic() + 5
    while len(records.told) < 10 and time.monotonic() < give_up:
        time.sleep(0.01)
    monkeypatch.setattr(aside_module, "WITHIN_S", 30.0)
    aside.report(10)
    assert records.told == list(range(11))
