"""Problems as lists, as trackers and layouts have them: of different sizes, empty, by name."""

import asyncio
import functools
import inspect
import sys
from typing import Any

import numpy as np
import pytest
from allot_client import AsyncClient, Client, InvalidInput, tasks

from kernels import SOLVERS
from tests.app.conftest import Service

random = np.random.default_rng(11)


def told(answer: Any) -> list[Any]:
    return [(one.assignment.tolist(), one.objective) for one in answer.each()]


def test_lists_of_lists_of_different_sizes(allot: Client) -> None:
    frames: list[Any] = [[[4, 1, 3], [2, 0, 5]], [[7.5]], [[None, 2], [1, 3], [2, 2]]]
    arrays = [np.array(one, float) for one in frames]  # NaN for None, which forbids, also beside floats
    arrays[2][0, 0] = np.inf
    assert told(allot.lap(frames)) == told(allot.lap(arrays))
    arrays[2][0, 0] = -np.inf
    assert told(allot.lap(frames, maximize=True)) == told(allot.lap(arrays, maximize=True))
    assert told(allot.lap(frames[:1] * 2)) == told(allot.lap(arrays[:1] * 2))  # of one size they are one array


def test_frames_without_boxes(allot: Client) -> None:
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10]]
    before: list[Any] = [boxes, [], np.array([]), boxes[:1]]
    after: list[Any] = [boxes[::-1], boxes, boxes, []]
    found = [one.assignment.tolist() for one in allot.lap(x=before, y=after, metric="iou", cost_limit=0.5).each()]
    assert found == [[1, 0], [], [], [-1]]
    assert [one.assignment.tolist() for one in allot.lap([np.zeros((2, 0)), [], [[3]]]).each()] == [[-1, -1], [], [0]]


NO_ROWS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "rows": ({"cost": np.zeros((0, 3))}, []),
    "columns": ({"cost": np.zeros((3, 0))}, [-1] * 3),
    "an empty list": ({"cost": []}, []),
    "an empty array": ({"cost": np.zeros(0)}, []),
    "points": ({"x": np.zeros((0, 4)), "y": np.ones((3, 4))}, []),
    "points of columns": ({"x": np.ones((3, 4)), "y": np.zeros((0, 4))}, [-1] * 3),
    "an empty list of points": ({"x": [], "y": np.ones((3, 4))}, []),
    "two empty lists": ({"x": [], "y": []}, []),
}


@pytest.mark.parametrize("options", [{}, {"cost_limit": 0.5}, {"k_best": 3}], ids=["plain", "limit", "several"])
@pytest.mark.parametrize(("inputs", "expected"), NO_ROWS.values(), ids=NO_ROWS)
def test_a_matrix_without_an_entry_is_taken_on_every_route(
    allot: Client, inputs: dict[str, Any], expected: list[int], options: dict[str, Any]
) -> None:
    metric: dict[str, Any] = {"metric": "iou"} if "x" in inputs else {}
    answers = [allot.lap(**inputs, **metric, **options), allot.submit("lap", inputs, **metric, **options).result()]
    if "cost" in inputs:
        answers += allot.map(functools.partial(allot.lap, **options), [inputs["cost"], [[0.25]]])
        answers += allot.map(lambda cost: allot.lap(cost, **options), [inputs["cost"], [[0.25]]])
        assert [one.assignment.tolist() for one in answers[3::2]] == [[0], [0]]  # type: ignore[attr-defined]
        answers = [*answers[:3], answers[4]]
    for answer in answers:
        found = answer.assignment  # type: ignore[attr-defined]
        assert (found.tolist(), found.dtype, answer.objective, answer.optimal) == (expected, np.int64, 0, True)


def test_starts_and_a_wish_for_the_most_are_nothing_to_a_matrix_without_an_entry(allot: Client) -> None:
    assert allot.lap(np.zeros((3, 0)), u0=[1, 2, 3], maximize=True).assignment.tolist() == [-1] * 3


@pytest.mark.parametrize("options", [{}, {"cost_limit": 0.5}], ids=["plain", "limit"])
def test_frames_none_of_which_has_a_box(allot: Client, options: dict[str, Any]) -> None:
    found = allot.lap([np.zeros((0, 3))], **options).assignment
    assert np.ones((3, 4))[found].shape == (1, 0, 4)
    assert allot.lap(np.zeros((2, 0, 3)), **options).assignment.shape == (2, 0)
    assert not list(allot.lap(np.zeros((0, 3, 3)), **options).each())
    lists = allot.lap(x=[[], []], y=[np.ones((3, 4))] * 2, metric="iou", **options)
    assert [one.assignment.tolist() for one in lists.each()] == [[], []]


def test_whole_numbers_stay_whole_beside_an_empty_list(allot: Client) -> None:
    answer = allot.lap([[[2**53 + 1, 1]], []], maximize=True)
    assert answer.objective == 2**53 + 1


def test_clouds_of_nested_lists(allot: Client) -> None:
    x, y = ([random.random((n, 2)) for n in sizes] for sizes in ((3, 3), (4, 2)))
    nested: Any = [[one.tolist() for one in side] for side in (x, y)]
    plain = [one["plan"] for one in allot.uot(x=x, y=y, reg=0.1).each()]
    for one, other in zip(allot.uot(x=nested[0], y=nested[1], reg=0.1).each(), plain, strict=True):
        assert one["plan"] == pytest.approx(other)


def test_an_array_of_three_dimensions_may_be_clouds_or_a_picture(allot: Client) -> None:
    for solve in (allot.lap, allot.uot):
        with pytest.raises(ValueError, match=r"several clouds list\(\.\.\.\), of a picture"):
            solve(x=random.random((4, 5, 3)), y=random.random((4, 5, 3)))


class Frame:
    """A matrix with names, as pandas gives them."""

    __module__ = "pandas.core.frame"

    def __init__(self, values: Any, names: list[str]) -> None:
        self.values, self.index, self.columns = np.asarray(values), names, names

    def to_numpy(self) -> Any:
        return self.values


def test_a_department_stays_in_its_room_by_name(allot: Client) -> None:
    n = 5
    flow, distance = (
        Frame(random.integers(0, 9, (n, n)), list("abcde")),
        Frame(random.integers(1, 9, (n, n)), list("vwxyz")),
    )
    answer = allot.qap(flow, distance, fixed={"b": "z", 3: 0}, time_limit_s=2)
    pairs = dict(answer.pairs())
    assert (pairs["b"], pairs["d"]) == ("z", "v")
    assert allot.submit("qap", {"flow": flow, "distance": distance}, fixed={"b": "z", 3: 0}).result().objective == (
        answer.objective
    )
    with pytest.raises(ValueError, match="'q', which is no line of flow"):
        allot.qap(flow, distance, fixed={"q": "z"})
    with pytest.raises(ValueError, match="distance is missing"):
        allot.qap(flow)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_input_of_a_solver_is_a_keyword(solver: str) -> None:
    """But the sizes of problems that the client lays flat itself, of a list."""
    taken = inspect.signature(getattr(Client, solver)).parameters.keys()
    assert {one.name for one in SOLVERS[solver].inputs} - taken <= ({"sizes"} if solver == "lap" else set())


def test_where_a_search_begins(allot: Client) -> None:
    flow, distance = np.triu(random.integers(0, 9, (2, 6, 6)))
    first = allot.qap(flow, distance)
    again = allot.qap(flow, distance, permutation0=first.permutation, iterations=1)
    assert again.objective == first.objective
    with pytest.raises(InvalidInput, match=r"inputs\.permutation0"):
        allot.qap(flow, distance, permutation0=[0, 0, 1, 2, 3, 4])
    benefit = random.random((5, 6))
    held = allot.auction(benefit)
    warm = allot.auction(benefit, prices0=held.prices, assignment0=held.assignment)
    assert warm.objective == held.objective


def test_the_log_of_a_proof_is_sent(allot: Client) -> None:
    flow, distance = random.integers(0, 9, (2, 9, 9))
    with pytest.raises(InvalidInput, match=r"inputs\.tree0"):
        allot.qap(flow, distance, tree0=[1, 2, 300])


def test_both_clients_have_the_same_calls(service: Service) -> None:
    names = {name for name in vars(Client) if not name.startswith("_")}
    assert names - {name for name in vars(AsyncClient) if not name.startswith("_")} == {"local"}

    async def ask() -> None:
        async with AsyncClient(service.url) as client:
            job = await client.submit("lap", {"cost": [[1, 2], [2, 1]]})
            await job.wait()
            assert job.id in [view["id"] async for view in client.jobs(solver="lap")]
            assert "lap" in [one["name"] for one in (await client.solvers())["solvers"]]
            assert await client.devices()

    asyncio.run(ask())


def test_one_more_frame_costs_few_calls() -> None:
    def calls(count: int) -> int:
        frames, found = [np.ones((2, 3)) for _ in range(count)], 0

        def noted(frame: Any, event: str, argument: Any) -> None:
            nonlocal found
            found += event in ("call", "c_call")

        tasks.lap(frames, {}, {})
        sys.setprofile(noted)
        try:
            tasks.lap(frames, {}, {})
        finally:
            sys.setprofile(None)
        return found

    assert (calls(120) - calls(20)) / 100 <= 3  # to make it flat is one of them


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool, object])
def test_frames_of_any_type_are_laid_out_alike(dtype: Any) -> None:
    frames = [np.array([[1, 0], [0, 1]], dtype), np.array([[1, 1, 0]], dtype)]
    flat = tasks.lap(frames, {}, {}).inputs["cost"]
    assert isinstance(flat, np.ndarray)
    assert flat.dtype.kind in "iuf"
    assert flat.tolist() == [1, 0, 0, 1, 1, 1, 0]
    mixed = tasks.lap([frames[0], np.array([[0.5, np.iinfo(np.int64).min]])], {}, {}).inputs["cost"]
    assert isinstance(mixed, np.ndarray)
    assert mixed.dtype.kind == "f"
