"""The clock, the flag and the progress of a job, with a clock that a test sets."""

import pytest

from kernels import Deadline, Progress, Termination


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_is_reserved_ends_a_solve_earlier() -> None:
    clock = Clock()
    deadline = Deadline(10, clock=clock)
    deadline.reserve(3)
    clock.now += 6.5
    assert (deadline.expired(), deadline.remaining_s, deadline.elapsed_s) == (None, 0.5, 6.5)
    clock.now += 0.5
    assert (deadline.expired(), deadline.remaining_s) == (Termination.TIME_LIMIT, 0)
    deadline.reserve(-1)
    assert deadline.expired() is None


def test_what_still_fits() -> None:
    clock = Clock()
    deadline = Deadline(10, clock=clock)
    deadline.reserve(9)  # part of what is asked about
    clock.now += 4
    assert deadline.allows(6)
    assert not deadline.allows(6.1)
    assert Deadline(clock=clock).allows(1e9)
    assert not Deadline(cancelled=lambda: True).allows(0)


def test_iterations_never_fall() -> None:
    heard: list[Progress] = []
    deadline = Deadline(on_progress=heard.append)
    for number in (3, 45, 1, 2, 46):
        deadline.report(number)
    assert [told.iteration for told in heard] == [3, 45, 45, 45, 46]


def test_phases_keep_what_was_reported() -> None:
    heard: list[Progress] = []
    deadline = Deadline(on_progress=heard.append)
    deadline.enter("load")
    deadline.advance(0.5)
    deadline.enter("solve")
    deadline.report(7, 3.0, 2.0)
    deadline.enter("certify")
    for fraction in (0.25, 0.2, 1.5):
        deadline.advance(fraction)
    assert [(told.phase, told.fraction) for told in heard] == [
        ("load", 0.0),
        ("load", 0.5),
        ("solve", None),
        ("solve", None),
        ("certify", 0.0),
        ("certify", 0.25),
        ("certify", 0.25),
        ("certify", 1.0),
    ]
    assert {(told.iteration, told.objective, told.bound) for told in heard[3:]} == {(7, 3.0, 2.0)}


@pytest.mark.parametrize(("objective", "bound", "gap"), [(3.0, 2.0, 1 / 3), (0, 0, 0.0), (1, None, None)])
def test_the_gap_is_worked_out(objective: float, bound: float | None, gap: float | None) -> None:
    heard: list[Progress] = []
    Deadline(on_progress=heard.append).report(1, objective, bound)
    assert heard[0].gap == gap
