"""An hour of owners against each other, by a clock that goes on with the work: shares of workers follow the weights."""

import heapq
import random
from collections import Counter
from collections.abc import Mapping

import pytest

from tests.workers.test_fair import Office
from workers.jobs.job import State
from workers.jobs.queue import Jobs
from workers.jobs.records import Ending, Order

WORKERS = 3
WITHIN = 0.1


def compete(
    office: Office, weights: Mapping[str, float], hours: float, scale: float, seed: int = 0
) -> dict[str, float]:
    """Seconds of workers that each owner had, while each has some jobs waiting all the time.

    Owners differ in how long their jobs are, and in how wrong the estimates of these are.
    """
    rng = random.Random(seed)
    for owner, weight in weights.items():
        office.redis.hset("allot:weights", owner, weight)
    typical = {owner: scale * rng.choice([0.3, 1.0, 3.0]) for owner in weights}
    wrong = {owner: rng.choice([0.2, 1.0, 5.0]) for owner in weights}
    takes: dict[str, float] = {}

    def more(owner: str) -> None:
        seconds = typical[owner] * rng.choice([0.5, 1.0, 1.5])
        takes[office.submit(owner, seconds * wrong[owner] * rng.uniform(0.5, 1.5), priority=rng.randrange(-3, 3))] = (
            seconds
        )

    for owner in weights:
        for _ in range(4):
            more(owner)
    begun, had = office.now, dict.fromkeys(weights, 0.0)
    running: list[tuple[float, str, Order]] = []
    while office.now < begun + 3600 * hours:
        while len(running) < WORKERS:
            (order,) = office.take()
            heapq.heappush(running, (office.now + takes[order.job_id], order.job_id, order))
        office.now, job_id, order = heapq.heappop(running)
        assert office.records.finish([Ending(job_id, order.execution, State.SUCCEEDED, {}, "{}")], "cpu", "w") == [True]
        owner = job_id.rpartition("-")[0]
        had[owner] += takes.pop(job_id)
        more(owner)
    return had


def shares(had: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    """What each had over what they were to have."""
    return {
        owner: had[owner] / sum(had.values()) / (weight / sum(weights.values())) for owner, weight in weights.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_two_owners_of_an_hour(jobs: Jobs, seed: int) -> None:
    weights = {"ann": 1.0, "bob": 3.0}
    for owner, share in shares(compete(Office(jobs), weights, 1.0, 20.0, seed), weights).items():
        assert abs(share - 1) < WITHIN, (owner, share)


def test_fifty_owners_of_an_hour(jobs: Jobs) -> None:
    weights = {f"owner{k}": 1.0 + k % 3 for k in range(50)}
    for owner, share in shares(compete(Office(jobs), weights, 1.0, 1.8), weights).items():
        assert abs(share - 1) < WITHIN, (owner, share)


def test_an_owner_gains_nothing_by_jobs_that_take_longer_than_was_thought(jobs: Jobs) -> None:
    office, had = Office(jobs), Counter[str]()
    for _ in range(60):
        office.submit("honest", 10.0)
        office.submit("sly", 0.1)
    for _ in range(60):
        (order,) = office.take()
        owner = order.record["owner"]
        office.now += 10.0 - float(order.record["seconds"])  # they all take ten seconds
        office.finish([order])
        had[owner] += 1
    assert abs(had["honest"] - had["sly"]) <= 2
