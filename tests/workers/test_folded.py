"""Lists about each problem of a batch travel as bytes, and are the same lists where somebody reads them."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answers.facts import PREFIX, taken_out
from workers.jobs.job import Damaged
from workers.runtime.document import as_json
from workers.store.folded import KEY, MOST_WORDS, WORTH_ENTRIES, fold, unfolded

FLOATS = [None, 0.0, -0.0, 1.5, 1e-320, -1e308, 0.1]
LONG = WORTH_ENTRIES


def document(problems: Any) -> dict[str, Any]:
    return {"certificate": {"bound": 1, "facts": {"left": 2, "problems": problems}}, "timings_ms": {}, "arrays": {}}


def stored(problems: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(as_json(document(problems)))
    return told


@given(
    floats=st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=LONG, max_size=80),
    words=st.lists(st.sampled_from(["optimal", "converged", "time_limit", '"\\\u2028']), min_size=LONG, max_size=80),
)
def test_they_are_the_same_lists(floats: list[float | None], words: list[str]) -> None:
    told = stored({"gaps": floats, "terminations": words})
    assert told[KEY].keys() == {"gaps", "terminations"}
    back = unfolded(told)
    problems = back["certificate"]["facts"]["problems"]
    assert list(map(repr, problems["gaps"])) == list(map(repr, floats))
    assert problems["terminations"] == words
    assert list(back) == ["certificate", "timings_ms", "arrays"]
    assert list(problems) == ["gaps", "terminations"]
    assert back["certificate"]["facts"]["left"] == 2


def test_what_json_cannot_say_is_null_in_either_form() -> None:
    values = [math.inf, -math.inf, math.nan, 1.0] * LONG
    told = stored({"bounds": values})
    assert unfolded(told)["certificate"]["facts"]["problems"]["bounds"] == [None, None, None, 1.0] * LONG
    _, arrays = taken_out(told)
    assert np.array_equal(arrays[PREFIX + "bounds"][:4], [np.nan, np.nan, np.nan, 1], equal_nan=True)


@pytest.mark.parametrize(
    "values",
    [
        [0.5] * (LONG - 1), [], list(range(LONG)), [0.5] * LONG + [1], ["a"] * LONG + [None], 7, "word" * LONG,
        [str(k) for k in range(MOST_WORDS + 1)], [[0.5]] * LONG, [True] * LONG,
    ],
    ids=["short", "empty", "whole", "whole one", "a null", "number", "word", "many words", "nested", "booleans"],
)  # fmt: skip
def test_others_stay_as_they_are(values: Any) -> None:
    told = stored({"bounds": values})
    assert KEY not in told
    assert told == document({"bounds": values})
    assert unfolded(told) == told


@pytest.mark.parametrize("certificate", [None, {}, {"facts": None}, {"facts": {"problems": None}}])
def test_a_document_without_problems(certificate: Any) -> None:
    told = {"certificate": certificate, "arrays": {}}
    assert fold(told) == unfolded(told) == told
    assert taken_out(told) == (told, {})


def test_lists_that_an_earlier_release_stored_are_arrays_for_who_asks() -> None:
    """It wrote them into the document."""
    problems = {"bounds": FLOATS * LONG, "terminations": ["optimal", "infeasible"] * LONG, "whole": [1] * LONG}
    old = document(problems)
    assert unfolded(old) == old
    (before, of_old), (after, of_new) = taken_out(old), taken_out(stored(problems))
    assert before == after
    assert of_old.keys() == of_new.keys() == {PREFIX + "bounds", PREFIX + "terminations"}
    for name, array in of_old.items():
        assert array.tobytes() == of_new[name].tobytes()
    kept = before["certificate"]["facts"]["problems"]
    assert kept == {"terminations": {"words": ("infeasible", "optimal")}, "whole": [1] * LONG}


def spoilt(**change: Any) -> dict[str, Any]:
    told = stored({"terminations": ["optimal", "converged"] * LONG})
    told[KEY]["terminations"].update(change)
    return told


@pytest.mark.parametrize(
    "told",
    [
        spoilt(words=["optimal"]), spoilt(words=None), spoilt(data="%"), spoilt(data=None), spoilt(shape=[3]),
        spoilt(dtype="<f8"), spoilt(dtype="O"), spoilt(shape=[LONG, 2]),
        {**document({}), KEY: {"bounds": {}}}, {**document({"bounds": None}), KEY: {"bounds": 7}},
        {**document({}), KEY: [1]}, {"certificate": None, KEY: {"bounds": {}}},
    ],
    ids=[
        "few words", "no words", "no base64", "no data", "size", "type", "objects", "table", "no place", "number",
        "list", "no certificate",
    ],
)  # fmt: skip
def test_what_was_spoilt_is_said(told: dict[str, Any]) -> None:
    for read in (unfolded, taken_out):
        with pytest.raises(Damaged):
            read(told)
