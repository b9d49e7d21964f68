"""What a problem is built with: nothing is made that no worker could hold, or more than whoever builds it takes."""

import numpy as np
import pytest

from app.intake.weighing import MADE_BYTES, Question, weigh
from kernels import SOLVERS, TooMuch, at_most
from kernels.texture import texture
from workers.jobs.job import DoesNotFit, WorkerInfo

MADE = 300 * 300 + 3 * 3


def question(host_bytes: int) -> Question:
    card, points = SOLVERS["gromov"], np.random.default_rng(0).random((300, 2))
    worker = WorkerInfo("cpu-0", "cpu", "cpu", "idle", 0.1, host_bytes)
    return Question(card, {"x": points, "y": points[:3]}, card.options(), {}, "auto", [worker])


def test_what_no_worker_can_hold_does_not_fit() -> None:
    told: list[int] = []
    refused = weigh(question(MADE * MADE_BYTES - 1), told.append)
    assert isinstance(refused.refusal, DoesNotFit)
    assert refused.refusal.bytes_needed == MADE * MADE_BYTES
    assert sum(told) < MADE
    assert weigh(question(1 << 40), told.append).place is not None


def test_whoever_builds_is_asked() -> None:
    with pytest.raises(TooMuch):
        weigh(question(1 << 40), at_most(MADE - 1))
    assert weigh(question(1 << 40), at_most(MADE)).place is not None


def test_what_an_estimate_read_goes_with_the_job() -> None:
    card = SOLVERS["lap"]
    worker = WorkerInfo("cpu-0", "cpu", "cpu", "idle", 0.1, 1 << 40)
    cost = np.random.default_rng(0).random((300, 300))
    weighed = weigh(Question(card, {"cost": cost}, card.options(), {}, "auto", [worker]))
    seen = texture(cost)
    assert weighed.derived == [seen.rank, seen.permitted, seen.distinct]
