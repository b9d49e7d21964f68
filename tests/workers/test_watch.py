"""What of a solve's progress is published, with a clock that the test sets."""

from typing import Any

import pytest

from kernels import Progress
from kernels.deadline import Phase
from workers.runtime import watch
from workers.runtime.watch import Watch


class Told(list[tuple[str, str, int]]):
    """Stands in for the records."""

    def stop_requested(self, job_id: str, execution: str) -> bool:
        return False

    def report(self, job_id: str, execution: str, reports: list[tuple[int, str, dict[str, Any]]]) -> None:
        self.extend((kind, data["phase"], data["iteration"]) for _, kind, data in reports)


class Clock:
    now = 50.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1e9 + self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(watch, "time", found)
    return found


def watched() -> tuple[Watch, Told]:
    told: Any = Told()
    return Watch(told, "job", "one"), told


def test_a_short_job_tells_of_nothing(clock: Clock) -> None:
    one, told = watched()
    phases: tuple[Phase, ...] = ("load", "solve", "solve", "certify")
    for k, phase in enumerate(phases):
        one.progress(Progress(k, 9.0 - k, phase=phase))
        clock.now += 0.02
    one.flush()
    assert told == []


def test_what_was_kept_of_the_start_is_told_when_the_job_turns_out_long(clock: Clock) -> None:
    one, told = watched()
    for k in range(1, 5):
        one.progress(Progress(k, 10.0 - k))
        clock.now += 0.06
        assert [iteration for _, _, iteration in told] == ([] if k < 3 else list(range(1, k + 1)))


def test_a_report_that_came_too_early_is_told_although_no_other_comes(clock: Clock) -> None:
    one, told = watched()
    one.progress(Progress(1, 9.0))
    clock.now += 5
    assert not one.cancelled()
    assert told == [("incumbent", "solve", 1)]


def test_every_phase_of_a_longer_job_is_told_at_once(clock: Clock) -> None:
    one, told = watched()
    one.progress(Progress(phase="load"))
    clock.now += 0.1
    one.progress(Progress(phase="solve"))
    clock.now += 0.01
    one.progress(Progress(5, 1.0, phase="solve"))
    one.progress(Progress(5, 1.0, phase="certify"))
    assert told == [("progress", "solve", 0), ("incumbent", "certify", 5)]


def test_fractions_are_told_now_and_then(clock: Clock) -> None:
    one, told = watched()
    clock.now += 1
    for k in range(100):
        one.progress(Progress(fraction=k / 100, phase="certify"))
        clock.now += 0.01
    assert 4 <= len(told) <= 6


def test_the_last_incumbent_is_told_when_it_is_over(clock: Clock) -> None:
    one, told = watched()
    clock.now += 1
    one.progress(Progress(1, 9.0))
    one.progress(Progress(2, 8.0))
    one.progress(Progress(2, 8.0, fraction=0.5))
    assert told == [("incumbent", "solve", 1)]
    one.flush()
    one.flush()
    assert told == [("incumbent", "solve", 1), ("incumbent", "solve", 2)]
