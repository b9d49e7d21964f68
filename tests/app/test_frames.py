"""Frames of boxes over HTTP: points one after the other with their sizes, or one pair of clouds with a limit."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.cli.main import main
from kernels.certificates.exact.rounded_points import iou
from tests.app.test_bad_input import check
from tests.app.test_ragged import job

Post = Callable[..., httpx.Response]
X: Any = [[0, 0, 10, 10], [20, 0, 30, 10], [0, 0, 4, 4.5]]
Y: Any = [[21, 0, 31, 10], [1, 0, 11, 10], [0, 0, 4, 4], [50, 50, 60, 60], [1, 1, 2, 2]]
SIZES = [[2, 2], [1, 2], [0, 1]]
COSTS: Any = [[iou(p, q) for q in Y[:2]] for p in X[:2]], [[iou(X[2], q) for q in Y[2:4]]], []
POINTS: dict[str, Any] = {"x": X, "y": Y, "sizes": SIZES}


def file(array: Any, dtype: Any = float) -> bytes:
    held = io.BytesIO()
    np.save(held, np.array(array, dtype))
    return held.getvalue()


def test_boxes_in_every_form_are_their_costs(client: httpx.Client, post: Post) -> None:
    flat = {"cost": [cost for frame in COSTS for row in frame for cost in row], "sizes": SIZES}
    expected = post(job(flat, cost_limit=0.5)).json()
    options = {"cost_limit": 0.5, "metric": "iou"}
    files = {name: (f"{name}.npy", file(value, int if name == "sizes" else float)) for name, value in POINTS.items()}
    sent: dict[str, Any] = {"data": {"job": json.dumps(job({}, **options))}, "headers": {"Prefer": "wait=30"}}
    blobs = {name: client.post("/v1/blobs", content=content[1]).json() for name, content in files.items()}
    answers = [post(job(POINTS, **options)), client.post("/v1/jobs", files=files, **sent), post(job(blobs, **options))]
    together = {"x": [*X, *Y], "sizes": SIZES}
    files = {"x": ("x.npy", file(together["x"])), "sizes": files["sizes"]}
    alone = [post(job(together, **options)), client.post("/v1/jobs", files=files, **sent)]
    for answer in answers + alone:
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["assignment"] == expected["assignment"] == [1, 0, 0]
        assert found["duals"] == expected["duals"]
        assert found["objective"] == expected["objective"]
        assert {**found["certificate"], "proved": ""} == {**expected["certificate"], "proved": ""}
        assert found["certificate"]["proved"].endswith(
            "; costs of the given points in float64, each step rounded to nearest (iou)"
        )
        assert found["input_digests"].keys() == ({"x", "sizes"} if answer in alone else {"x", "y", "sizes"})


def test_one_frame_with_a_limit(post: Post) -> None:
    found = post(job({"x": X[:2], "y": Y[:2]}, metric="iou", cost_limit=0.5)).json()
    assert (found["assignment"], found["termination"]) == ([1, 0], "optimal")
    found = post(job({"x": X[:2], "y": Y[:2], "reject_rows": [0.1, 0.1]}, metric="iou")).json()
    assert (found["assignment"], found["objective"]) == ([-1, -1], 0.2)
    found = post(job({"x": [], "y": Y[:2]}, metric="iou", cost_limit=0.5)).json()
    assert (found["assignment"], found["objective"]) == ([], 0)


def test_an_estimate_knows_of_the_costs(client: httpx.Client) -> None:
    """They are of the costs in the worker's memory, and not of the points that are sent."""
    sizes, box = [[300, 200]] * 4, [[0, 0, 1, 1]]
    inputs = {"x": box * 1200, "y": box * 800, "sizes": sizes}
    answer = client.post("/v1/estimates", json=job(inputs, metric="iou", cost_limit=0.5))
    assert answer.status_code == 200, answer.text
    assert answer.json()["estimates"]["cpu"]["host_bytes"] > 16 * 4 * 300 * 200


@pytest.mark.parametrize(
    ("inputs", "options", "field", "message"),
    [
        ({**POINTS, "sizes": [[2, 2], [1, 2], [0, 2]]}, {}, "inputs.y", "has 5 points; expected 6"),
        ({**POINTS, "x": [*X[:2], [1, 1, 0, 2]]}, {}, "inputs.x", "in problem 1 at [0]; expected x1 <= x2"),
        (POINTS, {"metric": "correlation"}, "options.metric", "expected one of iou, sqeuclidean, euclidean, cityblock"),
        ({"x": X, "y": Y}, {"metric": "inner", "cost_limit": 1}, "options.metric", "is inner; beside sizes"),
        (POINTS, {"k_best": 2}, "options.k_best", "belongs to a matrix of costs"),
        (POINTS, {"cost_limit": 1, "maximize": True}, "options.cost_limit", "`maximize` is set"),
        ({"x": X, "sizes": SIZES}, {}, "inputs.x", "has 3 points and y is left out; expected 8"),
        ({**POINTS, "cost": [1, 2]}, {}, "inputs.cost", "is given beside x and y"),
        ({**POINTS, "u0": [1, 2, 3]}, {}, "inputs.u0", "starts an assignment"),
        ({**POINTS, "x": [*X[:2], [0, 0, 1, None]]}, {}, "inputs.x", "holds inf in problem 1 at [0, 3]"),
    ],
)
def test_what_is_wrong_is_named(post: Post, inputs: Any, options: Any, field: str, message: str) -> None:
    answer = post(job(inputs, **{"metric": "iou", **options}))
    check(answer, 422, field)
    assert message in answer.text


def test_more_costs_than_a_worker_holds(client: httpx.Client) -> None:
    """A few megabytes of boxes whose costs would be terabytes are turned away, and nobody works a cost out."""
    box = np.tile([[0.0, 0.0, 1.0, 1.0]], (1 << 17, 1))
    files = {name: (f"{name}.npy", file(box)) for name in "xy"}
    asked = {"job": json.dumps(job({}, metric="iou", cost_limit=0.5))}
    answer = client.post("/v1/jobs", data=asked, files=files)
    check(answer, 507)


def test_answers_are_verified(post: Post, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    posted, answered = tmp_path / "job.json", tmp_path / "answer.json"
    given: list[dict[str, Any]] = [POINTS, {"x": X[:2], "y": Y[:2]}]
    for inputs in given:
        asked = job(inputs, metric="iou", cost_limit=0.5)
        posted.write_text(json.dumps(asked))
        answered.write_text(post(asked).text)
        assert main(["verify", str(answered), str(posted)]) == 0, capsys.readouterr().out
        for change in (
            {"bound": 1.5},
            {"proved": json.loads(answered.read_text())["certificate"]["proved"].replace("(iou)", "(euclidean)")},
            {"proved": json.loads(answered.read_text())["certificate"]["proved"].partition("; costs")[0]},
        ):
            wrong = json.loads(answered.read_text())
            wrong["certificate"] |= change
            (tmp_path / "wrong.json").write_text(json.dumps(wrong))
            assert main(["verify", str(tmp_path / "wrong.json"), str(posted)]) == 1
        moved = [[0, 0, 10, 10.5], *X[1 : len(inputs["x"])]]
        posted.write_text(json.dumps({**asked, "inputs": {**inputs, "x": moved}}))
        assert main(["verify", str(answered), str(posted)]) == 1


def long_frames(count: int = 1000) -> tuple[Any, Any]:
    """1.3 MB of boxes in one array, for 1,000 frames, and the sizes of these: as a client sends them."""
    rng = np.random.default_rng(11)
    sizes = np.array([(20 + k % 3, 19 + k % 5) for k in range(count)])
    corner = rng.uniform(0, 80, (int(sizes.sum()), 2))
    return np.concatenate([corner, corner + rng.uniform(10, 30, corner.shape)], axis=1), sizes


def send_long(client: httpx.Client, boxes: Any, sizes: Any, wait: bool = True) -> httpx.Response:
    files = {"x": ("x.npy", file(boxes, boxes.dtype)), "sizes": ("sizes.npy", file(sizes, int))}
    asked = {"job": json.dumps(job({}, metric="iou", cost_limit=0.5))}
    return client.post("/v1/jobs", data=asked, files=files, headers={"Prefer": "wait=30"} if wait else {})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_long_array_of_boxes_is_built_where_it_came(client: httpx.Client, dtype: Any) -> None:
    boxes, sizes = long_frames(1000 if dtype is np.float64 else 2000)
    boxes = boxes.astype(dtype)
    answer = send_long(client, boxes, sizes)
    assert answer.status_code == 200, answer.text
    found, rows = answer.json(), int(sizes[:, 0].sum())
    assert found["certificate"]["holds"]
    assert found["termination"] == "optimal"
    k, first, second = 7, int(sizes[:7, 0].sum()), rows + int(sizes[:7, 1].sum())
    one = {"x": boxes[first : first + sizes[k, 0]].tolist(), "y": boxes[second : second + sizes[k, 1]].tolist()}
    alone = client.post("/v1/jobs", json=job(one, metric="iou", cost_limit=0.5), headers={"Prefer": "wait=30"}).json()
    assert found["certificate"]["facts"]["problems"]["objectives"][k] == alone["objective"]


@pytest.mark.parametrize("wait", [True, False], ids=["waits", "follows"])
@pytest.mark.parametrize(
    ("spoilt", "column", "value", "message"),
    [
        (19, 1, np.nan, "inputs.x: holds nan in problem 0 at [19, 1]; expected finite numbers"),
        (20, 0, np.inf, "inputs.x: holds inf in problem 1 at [0, 0]; expected finite"),
        (40_000, 3, -2e100, "inputs.y: holds -2e+100 in problem"),
        (-1, 2, -1.0, "inputs.y: holds the box ["),
    ],
)
def test_what_is_wrong_with_a_long_array_is_said_where_it_is(
    client: httpx.Client, wait: bool, spoilt: int, column: int, value: float, message: str
) -> None:
    boxes, sizes = long_frames()
    boxes[spoilt, column] = value
    answer = send_long(client, boxes, sizes, wait)
    check(answer, 422, message[:8])
    assert message in answer.json()["detail"]
    if spoilt == -1:
        assert f"in problem 999 at [{sizes[-1, 1] - 1}]; expected x1 <= x2" in answer.json()["detail"]


def test_sizes_that_a_long_array_has_not(client: httpx.Client) -> None:
    boxes, sizes = long_frames()
    for wrong in (sizes[:-1], np.concatenate([sizes, [[0, 1]]]), sizes + 1, -sizes):
        check(
            send_long(client, boxes, wrong),
            422,
            "inputs.sizes" if wrong is not sizes and wrong.min() < 0 else "inputs.x",
        )
