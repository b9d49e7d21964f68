"""Lines by their names on the command line: facilities that are fixed, and labels of columns, here and at a service."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from allot_client.called import fixed_by_number, labels_of
from allot_client.cli import main

from app.cli.main import main as allot
from tests.app.conftest import Service

TABLES = {
    "flow": "trips,ward,lab,store\nward,0,5,2\nlab,5,0,1\nstore,2,1,0\n",
    "distance": "m,R1,R2,R3\nR1,0,10,20\nR2,10,0,15\nR3,20,15,0\n",
    "cost": "cost,a,b,c\nx,1,2,3\ny,4,0,1\n",
}
Told = Callable[..., dict[str, Any]]


@pytest.fixture(params=["here", "service"])
def told(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Told:
    """The answer of `solve` to inputs by name, solved in this process or at a service; "" for what was refused."""
    run = allot if request.param == "here" else main
    if request.param == "service":
        service: Service = request.getfixturevalue("service")
        monkeypatch.setenv("ALLOT_URL", service.url)

    def solve(*arguments: str, **texts: str) -> dict[str, Any]:
        for name, text in texts.items():
            (tmp_path / f"{name}.csv").write_text(text)
        files = [f"{name}={tmp_path / name}.csv" for name in texts]
        status, shown = run(["solve", *files, *arguments, "--json"]), capsys.readouterr()
        return json.loads(shown.out) if status == 0 else {"refused": shown.err}

    return solve


def test_facilities_are_fixed_by_name(told: Told) -> None:
    tables = {name: TABLES[name] for name in ("flow", "distance")}
    for fixed in ('{"ward": "R3"}', '{"ward": 2}', '{"0": "R3"}', '{"0": 2}'):
        assert told("-o", f"fixed={fixed}", **tables)["permutation"][0] == 2
    assert "fixed names 'nurse', which is no line of flow" in told("-o", 'fixed={"nurse": 1}', **tables)["refused"]


@pytest.mark.parametrize(
    "labels", ["T\nB\nB\n", "kind\nT\nB\nB\n", "cell,kind\na,T\nb,B\nc,B\n", "cell,kind\nc,B\na,T\nb,B\n"]
)
def test_labels_are_words_of_a_table(told: Told, labels: str) -> None:
    found = told("--solver", "uot", "-o", "reg=0.01", cost=TABLES["cost"], labels=labels)
    assert [found["label_names"][code] for code in found["label"]] == ["T", "B"]


def test_labels_of_another_number_are_refused(told: Told) -> None:
    found = told("--solver", "uot", cost=TABLES["cost"], labels="T\nB\n")
    assert "labels has 2 lines; expected 3, one for each column" in found["refused"]


def test_an_empty_line_is_a_missing_label() -> None:
    codes, names = labels_of([["kind"], ["T"], [""], ["B"]], None, 3)
    assert (codes.tolist(), names) == ([1, 2, 0], ("B", "T"))
    codes, names = labels_of([["2"], ["0"], ["2"]], None, 3)
    assert (codes.tolist(), names) == ([2, 0, 2], None)
    with pytest.raises(ValueError, match="labels are no list"):
        labels_of([["a", "b", "c"]], None, None)


def test_a_number_that_is_a_name_of_another_line_is_refused() -> None:
    rooms = ("1", "2", "3")
    assert fixed_by_number({"fixed": {"ward": "3"}}, ("ward", "lab", "store"), rooms) == {"fixed": {0: 2}}
    assert fixed_by_number({"fixed": {"0": 1}}, rooms, rooms) == {"fixed": {0: 1}}
    with pytest.raises(ValueError, match="fixed says 1, which is the name of line 0 of flow and the number of another"):
        fixed_by_number({"fixed": {"1": 1}}, rooms, rooms)
    with pytest.raises(ValueError, match="twice"):
        fixed_by_number({"fixed": {"ward": 1, "0": 2}}, ("ward", "lab", "store"), None)
    assert fixed_by_number({"seed": 3}, None, None) == {"seed": 3}
