"""Rows and columns that may stay alone, beside lapx."""

from typing import Any

import lap
import numpy as np
import pytest
from allot_client import Client
from allot_client.limits import with_way_out

random = np.random.default_rng(11)
SHAPES = [(5, 5), (3, 8), (8, 3), (1, 1), (1, 6), (12, 20)]


def lapx(cost: Any, limit: float) -> list[int]:
    found: list[int] = lap.lapjv(np.asarray(cost, float), extend_cost=True, cost_limit=limit)[1].tolist()
    return found


def priced(cost: Any, columns: list[int], limit: float) -> float:
    pairs = [(i, j) for i, j in enumerate(columns) if j >= 0]
    return float(sum(cost[pair] for pair in pairs) + limit * (min(cost.shape) - len(pairs)))


@pytest.mark.parametrize("limit", [0.05, 0.4, 5.0, 0])
@pytest.mark.parametrize("shape", SHAPES)
def test_one(allot: Client, shape: tuple[int, int], limit: float) -> None:
    cost = random.random(shape)
    answer = allot.lap(cost, cost_limit=limit)
    expected = lapx(cost, limit) if limit else [-1] * shape[0]
    assert answer.assignment.tolist() == expected
    assert answer.objective == pytest.approx(priced(cost, expected, limit))
    assert answer.optimal
    assert (len(answer.u), len(answer.v)) == shape


def test_many_of_all_sizes(allot: Client) -> None:
    frames = [random.random((random.integers(1, 25), random.integers(1, 25))).astype(np.float32) for _ in range(200)]
    found = list(allot.lap(frames, cost_limit=0.3).each())
    assert [one.assignment.tolist() for one in found] == [lapx(frame, 0.3) for frame in frames]
    for one, frame in zip(found, frames, strict=True):
        assert one.objective == pytest.approx(priced(frame, one.assignment.tolist(), 0.3))


def test_jobs_are_no_different(allot: Client) -> None:
    frames = [random.random(shape) for shape in SHAPES]
    answer: Any = allot.submit("lap", {"cost": frames}, cost_limit=0.3).result()
    assert [one.assignment.tolist() for one in answer.each()] == [lapx(frame, 0.3) for frame in frames]


def test_batches_and_integers(allot: Client) -> None:
    costs = random.integers(0, 1000, (6, 7, 9))
    found = allot.lap(costs, cost_limit=150).assignment
    assert found.tolist() == [lapx(cost, 150) for cost in costs]
    assert allot.lap(costs[0], cost_limit=150.5).assignment.tolist() == lapx(costs[0], 150.5)


def test_forbidden_pairs_stay_forbidden(allot: Client) -> None:
    assert allot.lap([[None, 2], [None, 1]], cost_limit=10).assignment.tolist() == [-1, 1]
    assert allot.lap([[None, 2], [None, 1]], cost_limit=10.5).assignment.tolist() == [-1, 1]
    assert allot.lap([[np.inf]], cost_limit=1).assignment.tolist() == [-1]


def test_what_makes_no_sense_is_refused(allot: Client) -> None:
    for wrong in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="expected a number"):
            with_way_out(np.eye(2), wrong)
    with pytest.raises(ValueError, match="maximize"):
        allot.lap(np.eye(2), cost_limit=1, maximize=True)
    with pytest.raises(ValueError, match="blob"):
        allot.lap(allot.upload(np.eye(2)), cost_limit=1)
