"""Frames of points and boxes: sent as points, answered as their costs are, to the last bit."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from allot_client import AsyncClient, Client, InvalidInput, flows, tasks
from allot_client.points import ROUNDED, cost_matrix

from kernels.certificates.exact import rounded_points
from tests.app.conftest import Service

SIZES = [(9, 12), (12, 7), (0, 3), (4, 0), (0, 0), (1, 1), (20, 20)]
SAID = {
    "inputs.sizes": "is given beside x or y; expected a matrix of costs or two clouds of points",
    "inputs.reject_rows": "is given beside x or y; expected a matrix of costs or two clouds of points",
    "options.cost_limit": "belongs to a matrix of costs, and x and y are given",
}
"""What services say that take no frames as points."""


def some(rng: np.random.Generator, count: int, metric: str, dtype: Any = np.float64) -> Any:
    if metric != "iou":
        return rng.normal(size=(count, 5)).astype(dtype)
    corner = rng.uniform(0, 60, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(10, 30, (count, 2))], axis=1).astype(dtype)


def frames(metric: str, dtype: Any = np.float64, sizes: list[tuple[int, int]] = SIZES) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(23)
    pairs = [[some(rng, count, metric, dtype) for count in size] for size in sizes]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def told(answer: Any) -> list[Any]:
    """All that an answer says, but for the costs' sentence, its id, and when it was made."""
    proof = answer.certificate
    numbers = [proof.bound, proof.gap_abs, proof.gap_rel, proof.max_violation, proof.holds, proof.verified, proof.facts]
    arrays = {name: (array.dtype.str, array.tolist()) for name, array in answer.arrays.items()}
    words = proof.proved.partition("; costs of the given")[0]
    return [answer.termination, repr(answer.objective), words, *map(repr, numbers), arrays, answer.home.sizes]


def alone(answer: Any) -> list[Any]:
    """The same of a problem that went with others, whose words and facts are those of the company."""
    whole = told(answer)
    return [*whole[:2], *whole[3:9], *whole[10:]]


def costs_of(x: list[Any], y: list[Any], metric: str) -> list[Any]:
    return [cost_matrix(one, other, metric) for one, other in zip(x, y, strict=True)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16], ids=["float64", "float32", "int16"])
@pytest.mark.parametrize("metric", ROUNDED)
def test_frames_go_as_points_and_are_answered_as_costs(allot: Client, metric: str, dtype: Any) -> None:
    x, y = frames(metric, dtype)
    prices = {
        "reject_rows": [np.full(len(one), 0.4) for one in x],
        "reject_cols": [np.full(len(one), 0.3) for one in y],
    }
    asked: list[dict[str, Any]] = [{"cost_limit": 0.8}, {}, {"maximize": True}, prices, {**prices, "maximize": True}]
    for options in asked:
        made = tasks.lap(None, {"metric": metric}, {"x": x, "y": y, **prices})
        assert made.inputs.keys() == {"x", "sizes", "reject_rows", "reject_cols"}
        answer = allot.lap(x=x, y=y, metric=metric, **options)
        words = f"costs of the given points in float64, each step rounded to nearest ({metric})"
        assert words in answer.certificate.proved
        assert told(answer) == told(allot.lap(costs_of(x, y, metric), **options))
        assert [len(one.assignment) for one in answer.each()] == [len(one) for one in x]


@pytest.mark.parametrize("metric", ROUNDED)
def test_one_frame_with_a_limit_or_prices(allot: Client, metric: str) -> None:
    x, y = frames(metric, sizes=[(30, 25)])
    prices = {"reject_rows": np.linspace(0, 1, 30), "reject_cols": np.linspace(0, 2, 25)}
    asked: list[dict[str, Any]] = [{"cost_limit": 0.8}, prices, {**prices, "maximize": True}]
    for options in asked:
        answer = allot.lap(x=x[0], y=y[0], metric=metric, **options)
        assert told(answer) == told(allot.lap(cost_matrix(x[0], y[0], metric), **options))
        assert "costs of the given points" in answer.certificate.proved
    job = allot.submit("lap", {"x": x[0], "y": y[0]}, metric=metric, cost_limit=0.8)
    assert told(job.result()) == told(allot.lap(x=x[0], y=y[0], metric=metric, cost_limit=0.8))


@pytest.mark.parametrize("metric", ROUNDED)
@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 9, 16, 40, 200])
@pytest.mark.parametrize("shape", [(1, 1), (13, 17), (40, 31)], ids=str)
def test_costs_are_added_up_coordinate_after_coordinate(metric: str, d: int, shape: tuple[int, int]) -> None:
    """So the service has the same bits; up to seven coordinates they are those of NumPy's sum, as always."""
    rng = np.random.default_rng(d)
    x, y = (rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) for n in shape)
    if metric == "iou":
        x, y = (some(rng, n, metric) for n in shape)
    costs = cost_matrix(x, y, metric)
    (slow,) = rounded_points.matrices(x, y, [list(shape)], metric)
    assert costs.tobytes() == slow.tobytes()
    if metric != "iou" and d < 8:
        apart = x[:, None] - y[None]
        sums = np.abs(apart).sum(-1) if metric == "cityblock" else (apart**2).sum(-1)
        assert costs.tobytes() == (np.sqrt(sums) if metric == "euclidean" else sums).tobytes()


def test_what_the_service_does_not_round_alike_goes_as_costs() -> None:
    x, y = frames("sqeuclidean")
    wide = [np.ones((5, 2000))] * 20
    given: list[tuple[Any, Any, dict[str, Any]]] = [
        (x, y, {"metric": "cosine", "cost_limit": 0.5}),
        (x[:1], y[:1], {"metric": "inner"}),
        ([x[0], x[0][:, :2]], [y[0], y[0][:, :2]], {}),  # of different dimensions
        (wide, wide, {}),  # more numbers than costs
        (x[2:5], y[2:5], {}),  # no pair at all
    ]
    for left, right, options in given:
        if options.get("metric") == "cosine":
            left, right = left[:2], right[:2]
        assert tasks.lap(None, options, {"x": left, "y": right}).inputs.keys() == {"cost", "sizes"}
    one = tasks.lap(None, {"metric": "cosine", "cost_limit": 0.5}, {"x": x[0], "y": y[0]})
    assert one.inputs.keys() == {"cost"}
    assert tasks.lap(None, {"cost_limit": 1.0, "k_best": 2}, {"x": x[0], "y": y[0]}).inputs.keys() == {"cost"}


def test_errors_name_the_frame(allot: Client) -> None:
    x, y = frames("iou")
    with pytest.raises(ValueError, match="x holds no boxes in problem 1; expected rows x1, y1, x2, y2"):
        allot.lap(x=[x[0], x[1][:, [2, 1, 0, 3]]], y=y[:2], metric="iou")
    with pytest.raises(ValueError, match=r"y has shape \(12, 3\) in problem 0"):
        allot.lap(x=x[:1], y=[y[0][:, :3]], metric="iou")
    with pytest.raises(ValueError, match="x holds no boxes; expected"):
        allot.lap(x=x[0][:, ::-1], y=y[0], metric="iou", cost_limit=0.5)
    with pytest.raises(ValueError, match=r"points have shapes \(9, 4\) and \(12, 3\)"):
        allot.lap(x=x[:1], y=[y[0][:, :3]], metric="cityblock")
    x[1][3, 2] = np.nan
    with pytest.raises(InvalidInput, match=r"inputs.x: holds nan in problem 1 at \[3, 2\]"):
        allot.lap(x=x, y=y, metric="iou", cost_limit=0.5)
    with pytest.raises(InvalidInput, match=r"inputs.x: holds nan at \[3, 2\]"):
        allot.lap(x=x[1], y=y[1], metric="iou", cost_limit=0.5)


def sent(call: flows.Call) -> dict[str, Any]:
    """The job of a request, and the names of its inputs."""
    assert call.body is not None
    content = b"".join(call.body.slices())
    if call.headers["Content-Type"] == "application/json":
        job = json.loads(content)
        return {**job, "names": set(job["inputs"])}
    names = [found.decode() for found in re.findall(rb'form-data; name="(\w+)"', content)]
    head = content.partition(b'name="job"\r\n\r\n')[2]
    return {**json.JSONDecoder().raw_decode(head.decode("latin-1"))[0], "names": set(names) - {"job"}}


def listening(client: Any, refuses: bool) -> list[set[str]]:
    """The inputs of each job that the client sends from now on; `refuses`: to a service that takes no such frames."""
    found: list[set[str]] = []
    true: Callable[[flows.Call], Any] = client._carry_out

    def judged(call: flows.Call) -> flows.Answer | None:
        if call.method != "POST":
            return None
        job = sent(call)
        found.append(job["names"])
        named = [f"inputs.{name}" for name in job["names"]] + [f"options.{name}" for name in job.get("options", {})]
        wrong = [name for name in SAID if name in named]
        if not (refuses and "x" in job["names"] and wrong):
            return None
        document = {"status": 422, "errors": [{"field": wrong[0], "message": SAID[wrong[0]]}], "detail": SAID[wrong[0]]}
        return flows.Answer(422, {"content-type": "application/problem+json"}, json.dumps(document).encode())

    def carry_out(call: flows.Call) -> Any:
        return judged(call) or true(call)

    async def carry_out_later(call: flows.Call) -> Any:
        return judged(call) or await true(call)

    client._carry_out = carry_out if isinstance(client, Client) else carry_out_later
    return found


def test_a_service_of_before_is_asked_once(service: Service, allot: Client) -> None:
    x, y = frames("iou")
    expected = told(allot.lap(x=x, y=y, metric="iou", cost_limit=0.8))
    one = told(allot.lap(x=x[0], y=y[0], metric="iou", cost_limit=0.8))
    with Client(service.url) as client:
        asked = listening(client, refuses=True)
        for _ in range(2):
            assert told(client.lap(x=x, y=y, metric="iou", cost_limit=0.8)) == expected
        assert asked == [{"x", "sizes"}, *[{"cost", "sizes"}] * 2]
        assert told(client.lap(x=x[0], y=y[0], metric="iou", cost_limit=0.8)) == one
        assert told(client.submit("lap", {"x": x, "y": y}, metric="iou", cost_limit=0.8).result()) == expected
        assert asked[3:] == [{"cost"}, {"cost", "sizes"}]

    async def ask() -> list[Any]:
        async with AsyncClient(service.url) as client:
            asked = listening(client, refuses=True)
            found = [told(await client.lap(x=x[0], y=y[0], metric="iou", cost_limit=0.8)) for _ in range(2)]
            assert asked == [{"x", "y"}, {"cost"}, {"cost"}]
            return found

    assert asyncio.run(ask()) == [one, one]


def test_what_is_wrong_with_frames_is_asked_once_too(service: Service) -> None:
    """A refusal of the problem is no word on the service."""
    x, y = frames("iou", sizes=[(3, 4)])
    with Client(service.url) as client:
        asked = listening(client, refuses=False)
        for _ in range(2):
            with pytest.raises(InvalidInput, match="beside prices of lines"):
                client.lap(x=x, y=y, metric="iou", cost_limit=0.8, reject_rows=[np.ones(3)])
        assert asked == [{"x", "sizes", "reject_rows"}] * 2


@pytest.mark.parametrize("refuses", [False, True], ids=["today", "before"])
def test_frames_of_a_map_go_together(service: Service, allot: Client, refuses: bool) -> None:
    sizes = [(n % 7 + 1, n % 5 + 2) for n in range(60)]
    x, y = frames("iou", sizes=sizes)
    expected = [alone(one) for one in allot.map(lambda cost: allot.lap(cost, cost_limit=0.8), costs_of(x, y, "iou"))]
    pairs = list(zip(x, y, strict=True))
    with Client(service.url) as client:
        asked = listening(client, refuses)

        def solve(pair: Any) -> Any:
            return client.lap(x=pair[0], y=pair[1], metric="iou", cost_limit=0.8)

        assert [alone(one) for one in client.map(solve, pairs)] == expected
        assert len(asked) < 40
        assert asked[-1] == ({"cost", "sizes"} if refuses else {"x", "y", "sizes"})

    async def ask() -> list[Any]:
        async with AsyncClient(service.url) as client:
            asked = listening(client, refuses)

            async def solve(pair: Any) -> Any:
                return await client.lap(x=pair[0], y=pair[1], metric="iou", cost_limit=0.8)

            found = [alone(one) async for one in client.map(solve, pairs)]
            assert asked[-1] == ({"cost", "sizes"} if refuses else {"x", "y", "sizes"})
            return found

    assert asyncio.run(ask()) == expected


def test_a_frame_of_a_map_that_is_wrong_loses_no_other(allot: Client) -> None:
    x, y = frames("iou", sizes=[(3, 4)] * 9)
    x[4][0, 0] = np.inf
    y[4][0, 0] = np.nan
    pairs = list(zip(x, y, strict=True))
    found = list(allot.map(lambda pair: allot.lap(x=pair[0], y=pair[1], cost_limit=0.8), pairs, return_exceptions=True))
    assert isinstance(found[4], InvalidInput)
    assert [one.optimal for k, one in enumerate(found) if k != 4] == [True] * 8


@pytest.mark.parametrize("metric", ROUNDED)
def test_arrays_that_do_not_lie_alike_are_joined_side_by_side(metric: str) -> None:
    """Those that do are one array, of which the first points are x."""
    x, y = frames(metric)
    options = {"metric": metric, "cost_limit": 0.8}
    alike = tasks.lap(None, options, {"x": x, "y": y}).inputs
    rows = sum(map(len, x))
    assert alike.keys() == {"x", "sizes"}
    both = np.asarray(alike["x"])
    assert both.tobytes() == np.concatenate([*x, *y]).tobytes()
    steps = [np.repeat(one, 2, axis=0)[::2] for one in y]
    swapped = [one.astype(one.dtype.newbyteorder()) for one in x]
    for left, right in (([np.asfortranarray(one) for one in x], y), (x, steps), (swapped, swapped), (swapped, y)):
        apart = tasks.lap(None, options, {"x": left, "y": right}).inputs
        assert apart.keys() == {"x", "y", "sizes"}
        assert np.array_equal(apart["x"], both[:rows])  # type: ignore[arg-type]
        if right is not swapped:
            assert np.array_equal(apart["y"], both[rows:])  # type: ignore[arg-type]
            assert np.array_equal(apart["sizes"], alike["sizes"])  # type: ignore[arg-type]
    short = [one.astype(np.float32) for one in y]
    assert tasks.lap(None, options, {"x": x, "y": short}).inputs.keys() == {"x", "y", "sizes"}
