"""What a first user gets wrong: each is told in one sentence that says what, where, and what was expected."""

import json
from typing import Any

import httpx
import numpy as np
import pytest
from allot_client import Client, InvalidInput
from allot_client.client import settings
from allot_client.flows import Answer, problem
from allot_client.tasks import of, task
from scipy.sparse import csr_array

from tests.client.test_inputs import Cells

COST = np.array([[4.0, 1], [2, 0]])


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.float32(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        ({np.int64(1): 2}, {1: 2}),
    ],
)
def test_numbers_of_numpy_are_options(value: Any, sent: Any) -> None:
    job = task("lap", {"cost": COST}, {"k_best": value}).job
    assert json.loads(json.dumps(job))["options"]["k_best"] == json.loads(json.dumps(sent))


def test_infinite_strengths_are_a_word_and_other_options_are_finite(allot: Client) -> None:
    assert allot.uot(COST, reg=np.float64(1.0), reg_m=np.inf).termination in ("converged", "gap_reached", "optimal")
    assert task("uot", {"cost": COST}, {"reg_m": (np.inf, 1.0)}).job["options"]["reg_m"] == ["inf", 1.0]
    for name, wrong in (("reg", np.nan), ("time_limit_s", np.inf), ("reg_m", np.nan), ("reg_m", -np.inf)):
        with pytest.raises(ValueError, match=f"^{name} is .*; expected a finite number"):
            allot.uot(COST, **{name: wrong})
    with pytest.raises(TypeError, match="method is a object; expected a number"):
        allot.lap(COST, method=object())
    with pytest.raises(ValueError, match="cost_limit is 'a'"):
        allot.lap(COST, cost_limit="a")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([[1, 2], [3]], r"ragged: row \[1\] holds 1 entries; expected 2"),
        ([[1, 2], 3], r"ragged: row \[1\] holds a number; expected 2"),
        ([[1, None], [3, "x"]], r"holds 'x' at \[1, 1\], which is no number; expected numbers or None"),
        (np.ones((2, 2), np.longdouble), "has dtype .*; expected float64 or shorter"),
    ],
)
def test_arrays_that_are_none(allot: Client, wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        allot.lap(wrong)


def test_inputs_have_names() -> None:
    with pytest.raises(TypeError, match="inputs is a ndarray; expected inputs by name"):
        of("lap", COST, {})


def test_points_are_told_by_side_place_and_name(allot: Client) -> None:
    genes = np.random.default_rng(0).random((4, 5))
    holes, flat = genes.copy(), genes.copy()
    holes[2, 3], flat[1] = np.nan, 2.0
    names = ["c0", "c1", "c2", "c3"]
    with pytest.raises(ValueError, match=r"^x holds nan at \[2, 3\], the row 'c2'; expected finite"):
        allot.uot(x=Cells(holes, names), y=Cells(genes, names), metric="correlation")
    with pytest.raises(ValueError, match=r"^y has a constant point in row 1 \('c1'\), which has no correlation"):
        allot.uot(x=Cells(genes, names), y=Cells(flat, names), metric="correlation")


def test_a_sparse_matrix_is_told_where_it_belongs(allot: Client) -> None:
    graph = csr_array(np.eye(3))
    for call in (
        lambda: allot.lap(graph), lambda: allot.lap([graph, graph]), lambda: allot.submit("lap", {"cost": graph}),
        lambda: list(allot.map(allot.lap, [graph])), lambda: allot.lap(graph, cost_limit=1.0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"^cost is sparse; expected a dense matrix \(client.auction takes sparse"):
            call()
    for name, told in (
        ("flow", lambda: allot.qap(graph, graph)), ("x", lambda: allot.uot(x=graph, y=graph)),
        ("x", lambda: allot.uot(x=[graph], y=[graph])), ("x", lambda: allot.lap(x=[graph], y=[graph])),
        ("a", lambda: allot.uot(graph, a=graph)), ("u0", lambda: allot.lap(np.eye(3), u0=graph)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{name} is sparse"):
            told()
    assert allot.auction(graph).objective == 3


def test_labels_are_one_for_each_column(allot: Client) -> None:
    plan = allot.uot(COST, reg=1.0)
    for wrong in ("cell_type", ["a"], [["a", "b"]]):
        with pytest.raises(ValueError, match="expected a label for each of 2 columns"):
            plan.transfer_labels(wrong)
    assert plan.transfer_labels(["a", "b"])[0].shape == (2,)


def test_an_answer_is_shown_in_a_line(allot: Client) -> None:
    shown = repr(allot.lap([np.ones((5, 6))] * 300))
    assert len(shown) < 400
    assert shown.startswith("LapResult(optimal, verified=True, objective=1500.0, gap=")
    assert "assignment[300, 5]" in shown


def test_an_address_may_name_the_version() -> None:
    assert settings("http://there:8000/v1/", None)[0] == "http://there:8000"
    assert settings("http://there/allot", None)[0] == "http://there/allot"


def test_a_page_of_something_else_is_not_printed() -> None:
    page = Answer(501, {"content-type": "text/html; charset=utf-8"}, b"<html><h1>No</h1></html>")
    assert (
        problem(page)["detail"] == "HTTP 501 with a page of text/html, which is no answer of Allot; is ALLOT_URL right?"
    )
    assert problem(Answer(502, {}, b"gone"))["detail"] == "gone"


def test_what_the_service_says_of_it(allot: Client) -> None:
    with pytest.raises(InvalidInput, match=r"^options\.reg: input should be greater than 0, or 'auto'$"):
        allot.uot(COST, reg=0)
    with pytest.raises(InvalidInput, match=r"^warm_start: is 'abc'; expected the id of a job"):
        allot.lap(COST, warm_start="abc")
    with pytest.raises(InvalidInput, match="reg: is 1e\\+308; expected at most 1e\\+300"):
        allot.uot(COST, reg=1e308)
    answer = httpx.post(f"{allot.url}/v1/jobs", content="null")
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "body: is null; expected an object with solver and inputs",
    )


def test_a_frame_that_holds_no_number_is_named(allot: Client) -> None:
    frames = [np.ones((2, 2)), np.ones((0, 3)), np.array([[1, 2, 3], [np.nan, 4, 5]])]
    for limit in (None, 0.5):
        with pytest.raises(InvalidInput, match=r"holds nan in matrix 2 at \[1, 0\]; expected finite numbers"):
            allot.lap(frames, cost_limit=limit)
