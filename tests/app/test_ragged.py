"""Problems of different sizes over HTTP: a list of matrices, a file with several, a flat array with sizes."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from allot_client import facts
from allot_client.safetensors import Safetensors

from app.cli.main import main
from tests.app.test_bad_input import check

Post = Callable[..., httpx.Response]
FRAMES = [[[4, 1], [2, 0], [3, 3]], [[5]], [], [[9, 8, 2]]]
FLAT = {"cost": [4, 1, 2, 0, 3, 3, 5, 9, 8, 2], "sizes": [[3, 2], [1, 1], [0, 0], [1, 3]]}


def job(inputs: Any, **options: Any) -> dict[str, Any]:
    return {"solver": "lap", "inputs": inputs, "options": options}


def test_all_forms_are_the_same_problem(client: httpx.Client, post: Post) -> None:
    packed = io.BytesIO()
    np.savez(packed, *(np.array(one).reshape(len(one), -1 if one else 0) for one in FRAMES))
    answers = [post(job({"cost": FRAMES}, cost_limit=4)), post(job(FLAT, cost_limit=4))]
    files = {"cost": ("frames.npz", packed.getvalue())}
    answers.append(
        client.post(
            "/v1/jobs", data={"job": json.dumps(job({}, cost_limit=4))}, files=files, headers={"Prefer": "wait=30"}
        )
    )
    blob = client.post("/v1/blobs", content=packed.getvalue()).json()
    answers.append(post(job({"cost": blob}, cost_limit=4)))
    for answer in answers:
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["assignment"] == [1, 0, -1, -1, 2]
        assert found["objective"] == found["certificate"]["bound"] == 9
        assert found["certificate"]["facts"]["problems"] == {
            "terminations": ["optimal"] * 4,
            "objectives": [3, 4, 0, 2],
            "bounds": [3, 4, 0, 2],
            "gaps": [0] * 4,
        }
        assert found["input_digests"]["cost"]["shape"] == [10]


def test_an_infeasible_frame_loses_no_other(post: Post) -> None:
    found = post(job({"cost": [[[1, 2], [3, 5]], [[None], [None]], [[7]]]})).json()
    assert found["termination"] == "infeasible"
    assert found["certificate"]["facts"]["problems"]["objectives"] == [5, None, 7]
    assert found["assignment"] == [1, 0, -1, -1, 0]


def test_prices_of_lines_in_lists_of_different_lengths(post: Post) -> None:
    inputs = {"cost": [[[5, 9], [9, 1]], [[4]]], "reject_rows": [[2, 3], [5]], "reject_cols": [[2, 2], [0]]}
    found = post(job(inputs)).json()
    assert (found["assignment"], found["objective"]) == ([-1, 1, 0], 9)


def test_one_matrix_without_rows(post: Post) -> None:
    found = post(job({"cost": [[], [], []]}, cost_limit=2)).json()
    assert (found["assignment"], found["objective"], found["termination"]) == ([-1, -1, -1], 0, "optimal")


@pytest.mark.parametrize(
    ("inputs", "field", "message"),
    [
        ({"cost": [[[1, 2], [3]], [[4]]]}, "inputs.cost", "[0, 1] holds 1 entries"),
        ({"cost": [[[1, 2]], [["4"]]]}, "inputs.cost", "a string at [1, 0, 0]"),
        ({"cost": [[[1, 2]], [[4]]], "sizes": [[1, 2], [1, 1]]}, "inputs.sizes", "says the sizes itself"),
        ({"cost": [1, 2, 3]}, "inputs.cost", "2-dimensional"),
        ({"cost": [1, 2, 3], "sizes": [[1, 2]]}, "inputs.cost", "expected 2"),
        ({"cost": [[1, 2], [3]]}, "inputs.cost", "ragged"),
        ({"cost": [[[1]], [[2, 3]]], "reject_rows": [[1], [2, 3]]}, "inputs.reject_rows", "expected (2,)"),
    ],
)
def test_what_is_wrong_is_named(post: Post, inputs: Any, field: str, message: str) -> None:
    answer = post(job(inputs))
    check(answer, 422, field)
    assert message in answer.text


def test_answers_are_verified(post: Post, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    posted, answered = tmp_path / "job.json", tmp_path / "answer.json"
    for inputs in ({"cost": FRAMES}, {"cost": [[4, 1], [2, 0]], "reject_rows": [1, 1]}):
        asked = job(inputs, **({"cost_limit": 4} if len(inputs) == 1 else {}))
        posted.write_text(json.dumps(asked))
        answered.write_text(post(asked).text)
        assert main(["verify", str(answered), str(posted)]) == 0, capsys.readouterr().out
        wrong = json.loads(answered.read_text())
        wrong["certificate"]["bound"] += 1
        wrong["certificate"]["facts"].get("problems", {"bounds": [0]})["bounds"][0] += 1
        answered.write_text(json.dumps(wrong))
        assert main(["verify", str(answered), str(posted)]) == 1


@pytest.mark.parametrize("scale", [1, 1.5], ids=["integers", "floats"])
def test_facts_of_each_problem_come_as_arrays_to_who_asks(client: httpx.Client, post: Post, scale: float) -> None:
    """The client's reader makes of them the lists of the document; others find these where they were."""
    frames: list[Any] = [[[scale * (k + i), scale * j] for i, j in ((0, 3), (5, 2))] for k in range(70)]
    frames[7] = [[None, None], [scale, scale]]
    answer = post(job({"cost": frames})).json()
    where = answer["links"]["result"]
    whole = client.get(where).json()["certificate"]
    assert answer["certificate"] == whole
    assert whole["facts"]["problems"]["objectives"][7] is None
    assert {"optimal", "infeasible"} <= set(whole["facts"]["problems"]["terminations"])
    kind = "application/x-safetensors"
    told, arrays = Safetensors.read(client.get(where, headers={"Accept": kind}).content)
    assert json.loads(told)["certificate"] == whole
    apart, more = Safetensors.read(client.get(where, headers={"Accept": f"{kind}; facts=arrays, */*;q=0.1"}).content)
    document = json.loads(apart)
    assert more.keys() > arrays.keys()
    assert "terminations" in {name.removeprefix(facts.PREFIX) for name in more}
    assert document["certificate"]["facts"]["problems"]["terminations"].keys() == {"words"}
    facts.put_back(document, more)
    assert document["certificate"] == whole
    assert more.keys() == arrays.keys()
    packed = client.get(where, headers={"Accept": "application/x-npz;facts=arrays"})
    assert set(np.load(io.BytesIO(packed.content))) == arrays.keys()
