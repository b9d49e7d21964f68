"""When a worker takes its child for hung: a time limit of 10 s, a margin of 5 s, 2 s to stop after a cancellation."""

from typing import Any

import pytest

from workers.runtime.patience import LOAD_S, SLACK, Awaited, Patience


def code(ran_s: float, patience: Patience | None = None, **job: Any) -> str | None:
    why = (patience or Patience(5, 2)).over(ran_s, 1000 + ran_s, Awaited(10, **job))
    return None if why is None else str(why["code"])


def test_the_limit_and_the_margin() -> None:
    assert code(14.9) is None
    assert code(15.1) == "deadline"


def test_what_the_limit_does_not_bound_is_allowed_for() -> None:
    assert code(15 + SLACK * 4, certify_s=4) is None
    assert code(15.1 + SLACK * 4, certify_s=4) == "deadline"
    assert code(5 + SLACK * 24, first_s=20, certify_s=4) is None
    assert code(5.1 + SLACK * 24, first_s=20, certify_s=4) == "deadline"
    assert code(LOAD_S + 4, phase="load") is None
    assert code(LOAD_S + 6, phase="load") == "deadline"


@pytest.mark.parametrize("phase", ["certify", "store"])
def test_a_child_that_gets_on_is_let_be(phase: str) -> None:
    patience = Patience(5, 2)
    told = [code(float(t), patience, phase=phase, fraction=(t // 4) / 20) for t in range(0, 80, 2)]
    assert told == [None] * 40
    assert code(84, patience, phase=phase, fraction=19 / 20) == "deadline"  # the same for more than 5 s


def test_a_solver_that_reports_for_ever_is_not() -> None:
    patience = Patience(5, 2)
    assert code(14, patience, fraction=0.1) is None
    assert code(16, patience, fraction=0.2) == "deadline"


def test_a_certificate_without_a_fraction_has_its_estimate() -> None:
    patience = Patience(5, 2)
    assert [code(float(t), patience, phase="certify", certify_s=3) for t in (8, 16, 24)] == [None] * 3
    assert code(24.1, patience, phase="certify", certify_s=3) == "deadline"


def test_a_cancelled_solve_has_its_grace() -> None:
    assert code(5, cancelled_at=1003.0) is None
    assert code(5.1, cancelled_at=1003.0) == "cancelled"


def test_a_certificate_that_has_begun_outlasts_a_cancellation() -> None:
    patience = Patience(5, 2)
    for t in range(3, 13):
        assert code(float(t), patience, phase="certify", fraction=t / 100, cancelled_at=1003.0) is None
    assert code(17.9, patience, phase="certify", fraction=0.12, cancelled_at=1003.0, certify_s=1) == "cancelled"


def test_a_deleted_job_has_the_grace_alone() -> None:
    assert code(5.1, phase="certify", fraction=0.5, cancelled_at=1003.0, discarded=True) == "cancelled"


def test_an_answer_that_waits_for_room_is_not_hung() -> None:
    patience = Patience(5, 2)
    assert [code(float(t), patience, phase="wait") for t in range(0, 10_000, 100)] == [None] * 100
    assert code(20_000, patience, phase="wait", cancelled_at=20_990) == "cancelled"
