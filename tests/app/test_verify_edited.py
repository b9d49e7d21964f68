"""`allot verify` of answers that somebody edited: nothing in them may be read in two ways, or break it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.cli.main import main

Printed = pytest.CaptureFixture[str]
COST = [[4.0, 1.5, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.25]]
MASSES = {"a": [0.5, 0.25, 0.25], "b": [0.25, 0.5, 0.25]}
ASKED: dict[str, list[str]] = {
    "lap": [],
    "list": ["--option", "k_best=2"],
    "exact": ["--option", "method=exact", "--option", "reg_m=inf"],
}


@pytest.fixture
def problem(tmp_path: Path) -> dict[str, list[str]]:
    """What each answer is given for."""
    for name, values in {"cost": COST, **MASSES}.items():
        np.save(tmp_path / f"{name}.npy", np.array(values))
    costs, masses = f"cost={tmp_path / 'cost.npy'}", [f"{name}={tmp_path / name}.npy" for name in MASSES]
    return {"lap": [costs], "list": [costs], "exact": [costs, *masses]}


def solved(capsys: Printed, name: str, problem: dict[str, list[str]]) -> dict[str, Any]:
    solver = "uot" if name == "exact" else "lap"
    assert main(["solve", *problem[name], "--solver", solver, *ASKED[name], "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def judged(tmp_path: Path, capsys: Printed, text: str, *arguments: str) -> tuple[int, str]:
    (tmp_path / "answer.json").write_text(text)
    status = main(["verify", str(tmp_path / "answer.json"), *arguments])
    return status, capsys.readouterr().out


def edited(document: dict[str, Any], place: str, text: str) -> str:
    """The answer with other text at `place`, names and numbers with points between them."""
    *way, last = [int(step) if step.isdigit() else step for step in place.split(".")]
    at: Any = document
    for step in way:
        at = at[step]
    at[last] = "@@"
    return json.dumps(document).replace('"@@"', text)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("name", ASKED)
def test_what_was_not_edited_holds(tmp_path: Path, capsys: Printed, problem: dict[str, list[str]], name: str) -> None:
    document = solved(capsys, name, problem)
    assert judged(tmp_path, capsys, json.dumps(document), *problem[name])[0] == 0


@pytest.mark.parametrize(("name", "place", "text"), [
    ("lap", "objective", '"5.75"'), ("lap", "objective", "[5.75]"), ("lap", "objective", "1e400"),
    ("lap", "certificate.bound", '"0"'), ("lap", "certificate.gap_rel", '"1/3"'),
    ("lap", "certificate.gap_abs", "false"), ("lap", "certificate.gap_rel", "true"),
    ("lap", "certificate.max_violation", '"nan"'),
    ("lap", "certificate.holds", '"no"'), ("lap", "certificate.holds", "null"), ("lap", "certificate.holds", "0.5"),
    ("lap", "certificate.verified", "1"), ("lap", "certificate.proved", "false"), ("lap", "certificate.proved", "{}"),
    ("lap", "certificate", "null"), ("lap", "certificate", "[1]"), ("lap", "facts", "[1]"), ("lap", "options", '"x"'),
    ("lap", "options.maximize", "0.5"), ("lap", "solver", "[1]"), ("lap", "duals.v.0", "{}"), ("lap", "duals.v", DEEP),
    ("lap", "assignment.0", "true"), ("lap", "duals.u.1", str(10**400)), ("lap", "termination", "[1]"),
    ("lap", "duals.v.0", "[" * 40 + "]" * 40), ("lap", "assignment.0", "0.5"),
    ("list", "assignment", "0.5"), ("list", "assignment", '"1/3"'),
    ("exact", "plan.0.0", "{}"), ("exact", "plan.0.0", '""'), ("exact", "plan.0.1", "true"),
    ("exact", "plan.0.1", '"0.5"'),
    ("exact", "plan.0.0", str(-(10**400))), ("exact", "certificate.facts", "0.5"),
])  # fmt: skip
def test_what_is_no_number_no_word_and_no_array_is_refused(
    tmp_path: Path, capsys: Printed, problem: dict[str, list[str]], name: str, place: str, text: str
) -> None:
    """Some held before, as `true` counts as 1, and `{}` in a plan as no mass; some ended in AttributeError."""
    document = solved(capsys, name, problem)
    document.setdefault("options", {})
    status, out = judged(tmp_path, capsys, edited(document, place, text), *problem[name])
    assert status in (1, 2), out


@pytest.mark.parametrize("place", ["objective", "certificate", "assignment"])
def test_a_name_that_stands_twice_is_refused(
    tmp_path: Path, capsys: Printed, problem: dict[str, list[str]], place: str
) -> None:
    """This reader took the last one. Another may take the first."""
    text = json.dumps(solved(capsys, "lap", problem)).replace(f'"{place}":', f'"{place}": -7, "{place}":', 1)
    status, out = judged(tmp_path, capsys, text, *problem["lap"])
    assert status == 2
    assert f"'{place}' stands there twice" in out


def test_options_are_read_as_those_of_a_job(tmp_path: Path, capsys: Printed, problem: dict[str, list[str]]) -> None:
    """The text "false" counted as true."""
    document = solved(capsys, "lap", problem)
    for word, status in (("false", 0), ("False", 0), ("true", 1), ("perhaps", 2)):
        asked = ["--option", f"maximize={word}"]
        assert judged(tmp_path, capsys, json.dumps(document), *problem["lap"], *asked)[0] == status, word


def test_arrays_of_more_problems_and_of_texts_are_refused(tmp_path: Path, capsys: Printed) -> None:
    """What came behind the last problem was not looked at, and the text "0.5" in a file of arrays was a number."""
    np.save(tmp_path / "cost.npy", np.array([COST, COST[::-1]]))
    costs = f"cost={tmp_path / 'cost.npy'}"
    assert main(["solve", costs, "--solver", "lap", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert judged(tmp_path, capsys, json.dumps(document), costs)[0] == 0
    assignment = np.array(document.pop("assignment"))
    arrays = ["--arrays", str(tmp_path / "result.npz")]
    for given, status in ((assignment, 0), (np.concatenate([assignment] * 2), 1), (assignment.astype("U4"), 2)):
        np.savez(tmp_path / "result.npz", assignment=given, u=np.array(document["duals"]["u"]))
        assert judged(tmp_path, capsys, json.dumps(document), costs, *arrays)[0] == status
