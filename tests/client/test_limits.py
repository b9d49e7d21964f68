"""Rows and columns that may stay alone, beside lapx."""

from typing import Any

import lap
import numpy as np
import pytest
from allot_client import Client
from allot_client.boxes import distances as boxes_apart
from allot_client.points import cost_matrix

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
    for cost, columns in zip(costs, found.tolist(), strict=True):  # of equal answers another one may come
        assert priced(cost, columns, 150) == priced(cost, lapx(cost, 150), 150)
    assert allot.lap(costs[0], cost_limit=150.5).assignment.tolist() == lapx(costs[0], 150.5)


def test_forbidden_pairs_stay_forbidden(allot: Client) -> None:
    assert allot.lap([[None, 2], [None, 1]], cost_limit=10).assignment.tolist() == [-1, 1]
    assert allot.lap([[None, 2], [None, 1]], cost_limit=10.5).assignment.tolist() == [-1, 1]
    assert allot.lap([[np.inf]], cost_limit=1).assignment.tolist() == [-1]


def test_what_makes_no_sense_is_refused(allot: Client) -> None:
    for wrong in (np.inf, np.nan):
        with pytest.raises(ValueError, match="expected a finite number"):
            allot.lap(np.eye(2), cost_limit=wrong)
    with pytest.raises(ValueError, match="maximize"):
        allot.lap(np.eye(2), cost_limit=1, maximize=True)


def test_costs_that_were_uploaded(allot: Client) -> None:
    answer = allot.lap(allot.upload(np.array([[0.25, 1], [1, 2]])), cost_limit=0.5)
    assert answer.assignment.tolist() == [0, -1]


def test_prices_of_lines(allot: Client) -> None:
    answer = allot.lap(np.array([[5, 9], [9, 1]]), reject_rows=[2, 3], reject_cols=[2, 2])
    assert (answer.assignment.tolist(), answer.objective) == ([-1, 1], 5)
    costs = [np.array([[5, 9], [9, 1]]), np.zeros((0, 3)), np.array([[4]])]
    several = allot.lap(costs, reject_rows=[[2, 3], [], [5]], reject_cols=[[2, 2], [1, 1, 1], [0]])
    assert [one.assignment.tolist() for one in several.each()] == [[-1, 1], [], [0]]
    assert [one.objective for one in several.each()] == [5, 3, 4]


def test_ten_thousand_entries_in_frames_of_all_sizes_are_sent_without_padding(allot: Client) -> None:
    frames = [random.random((random.integers(0, 30), random.integers(0, 30))) for _ in range(60)]
    answer = allot.lap(frames, cost_limit=0.3)
    assert answer.document["input_digests"]["cost"]["shape"] == [sum(frame.size for frame in frames)]
    for one, frame in zip(answer.each(), frames, strict=True):
        assert one.assignment.tolist() == (lapx(frame, 0.3) if frame.size else [-1] * len(frame))


def some_boxes(count: int) -> Any:
    corner = random.uniform(0, 80, (count, 2))
    return np.concatenate([corner, corner + random.uniform(10, 30, (count, 2))], axis=1)


def test_boxes_with_a_limit_and_frames_of_boxes(allot: Client) -> None:
    """A tracker has boxes, and a limit for them; whole frames of boxes go as lists."""
    before, after = [some_boxes(n) for n in (6, 9, 1)], [some_boxes(n) for n in (8, 5, 1)]
    single = [allot.lap(x=x, y=y, metric="iou", cost_limit=0.9) for x, y in zip(before, after, strict=True)]
    for one, x, y in zip(single, before, after, strict=True):
        whole = allot.lap(x=x, y=y, metric="iou")
        assert whole.objective == pytest.approx(allot.lap(cost_matrix(x, y, "iou")).objective)
        assert one.assignment.tolist() == lapx(cost_matrix(x, y, "iou"), 0.9)
    together = list(allot.lap(x=before, y=after, metric="iou", cost_limit=0.9).each())
    assert [one.assignment.tolist() for one in together] == [one.assignment.tolist() for one in single]
    every = list(allot.lap(x=before, y=after, metric="iou").each())
    for free, x, y in zip(every, before, after, strict=True):
        assert free.objective == pytest.approx(allot.lap(x=x, y=y, metric="iou").objective)
    with pytest.raises(ValueError, match="as many"):
        allot.lap(x=before, y=after[:2], metric="iou")
    with pytest.raises(ValueError, match="holds no boxes"):
        allot.lap(x=before[0][:, ::-1], y=after[0], metric="iou", cost_limit=0.5)


def test_many_frames_of_boxes_some_of_them_empty(allot: Client) -> None:
    """Each frame as lapx pairs it, whose costs are worked out pair by pair."""
    shapes = [(0, 0), (0, 4), (7, 0), (40, 30), *random.integers(0, 25, (60, 2)).tolist(), (0, 3)]
    before, after = ([some_boxes(shape[side]) for shape in shapes] for side in (0, 1))
    answer = allot.lap(x=before, y=after, metric="iou", cost_limit=0.8)
    assert answer.optimal
    found = list(answer.each())
    assert len(found) == len(shapes)
    for one, x, y in zip(found, before, after, strict=True):
        cost = np.array([[apart(row, column) for column in y] for row in x]).reshape(len(x), len(y))
        expected = lapx(cost, 0.8) if cost.size else [-1] * len(x)
        assert one.assignment.tolist() == expected
        assert one.objective == pytest.approx(priced(cost, expected, 0.8))


def apart(x: Any, y: Any) -> float:
    """1 - intersection over union of two boxes, as one would write it down; 1 where nothing is shared."""
    common = max(0.0, min(x[2], y[2]) - max(x[0], y[0])) * max(0.0, min(x[3], y[3]) - max(x[1], y[1]))
    whole = sum(float((box[2] - box[0]) * (box[3] - box[1])) for box in (x, y)) - common
    return 1 - common / whole if common > 0 else 1.0


@pytest.mark.parametrize("scale", [1.0, 1e-155, 1e-162, 1e150])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_costs_of_boxes_are_the_same_alone_and_in_frames(dtype: type, scale: float) -> None:
    """To the last bit: also of boxes without area, at the ends of the numbers, and where pieces end within frames."""
    shapes = [(0, 3), (300, 170), (4, 0), *random.integers(0, 7, (40, 2)).tolist(), (1, 20000)]
    sides: list[list[Any]] = [[], []]
    for shape in shapes:
        for side, count in zip(sides, shape, strict=True):
            corner, size = random.integers(0, 6, (2, count, 2))
            size = np.minimum(size, 2)
            boxes = np.concatenate([corner, corner + size], axis=1)
            side.append((boxes * scale if dtype is np.float64 else boxes).astype(dtype))
    for x, y, cost in zip(*sides, boxes_apart(*sides), strict=True):
        assert np.array_equal(cost, cost_matrix(x, y, "iou"))
        some = [(i, j) for i in range(min(3, len(x))) for j in range(min(5, len(y)))]
        assert [cost[pair] for pair in some] == pytest.approx([apart(x[i], y[j]) for i, j in some])


def test_frames_of_what_is_no_box() -> None:
    box, turned = some_boxes(1), some_boxes(2)[:, [2, 1, 0, 3]]
    with pytest.raises(ValueError, match="y holds no boxes in problem 2"):
        boxes_apart([box] * 3, [box, np.zeros((0, 4)), turned])
    with pytest.raises(ValueError, match=r"x has shape \(2, 3\) in problem 1"):
        boxes_apart([box, turned[:, :3]], [box, box])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_sent_as_they_are(allot: Client, dtype: type) -> None:
    """Short floats are half of the bytes, and what is proved is proved of them."""
    frames: list[Any] = [random.random(shape).astype(dtype) for shape in [(30, 50), (0, 4), *SHAPES, (60, 60)]]
    answer = allot.lap(frames, cost_limit=0.3)
    told = answer.document["input_digests"]["cost"]
    assert (told["dtype"], told["shape"]) == (np.dtype(dtype).name, [sum(frame.size for frame in frames)])
    assert answer.optimal
    for one, frame in zip(answer.each(), frames, strict=True):
        assert one.assignment.tolist() == (lapx(frame, 0.3) if frame.size else [-1] * len(frame))


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (5, 5)])
@pytest.mark.parametrize("whole", [True, False])
def test_the_best_so_many_with_lines_that_stay_alone(allot: Client, shape: tuple[int, int], whole: bool) -> None:
    rng = np.random.default_rng(8)
    cost = rng.integers(0, 20, shape) if whole else rng.random(shape) * 20
    limit = 7 if whole else 7.5
    answer = allot.lap(cost, cost_limit=limit, k_best=12)
    assert answer.assignments.shape == (12, shape[0])
    assert answer.assignment.tolist() == answer.assignments[0].tolist()
    assert answer.objective == pytest.approx(allot.lap(cost, cost_limit=limit).objective)
    short = min(shape)
    for found, objective in zip(answer.assignments, answer.objectives, strict=True):
        pairs = [(row, column) for row, column in enumerate(found.tolist()) if column >= 0]
        assert all(cost[pair] <= limit for pair in pairs)
        assert objective == pytest.approx(sum(cost[pair] for pair in pairs) + limit * (short - len(pairs)))
    assert len({tuple(found.tolist()) for found in answer.assignments}) == 12
    every = sorted(_worth(cost, limit))[:12]
    assert list(answer.objectives) == pytest.approx(every)
    with pytest.raises(ValueError, match="one matrix"):
        allot.lap(np.ones((2, 3, 3)), cost_limit=limit, k_best=2)


def _worth(cost: Any, limit: float) -> list[float]:
    """What every way to pair some of the lines comes to."""
    rows, columns = cost.shape
    found: list[float] = []

    def go(row: int, used: int, so_far: float, pairs: int) -> None:
        if row == rows:
            found.append(so_far + limit * (min(rows, columns) - pairs))
            return
        go(row + 1, used, so_far, pairs)
        for column in range(columns):
            if not used >> column & 1 and cost[row, column] <= limit:
                go(row + 1, used | 1 << column, so_far + float(cost[row, column]), pairs + 1)

    go(0, 0, 0.0, 0)
    return found


def test_an_answer_says_where_it_has_no_list(allot: Client) -> None:
    with pytest.raises(AttributeError, match="with k_best"):
        _ = allot.lap([[1.0]]).objectives


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_a_frame_without_boxes_has_one_way(allot: Client, shape: tuple[int, int]) -> None:
    for options in ({"cost_limit": 0.5}, {}):
        answer = allot.lap(np.ones(shape), k_best=4, **options)
        assert answer.assignments.tolist() == [[-1] * shape[0]]
        assert list(answer.objectives) == [answer.objective] == [0]
