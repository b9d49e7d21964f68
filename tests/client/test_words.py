import random
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from allot_client import Client
from allot_client.results import Home, read_result
from allot_client.words import distance_to_best, gap_in_words, in_words

from tests.client.test_inputs import Frame


@pytest.mark.parametrize(
    ("objective", "bound", "maximize", "words"),
    [
        (5, 5, False, "the best possible"),
        (100.34, 100, False, "within 0.35% of the best possible"),
        (10034, 10000, False, "within 0.34% of the best possible"),
        (100, 110, True, "within 9.1% of the best possible"),
        (-110, -100, True, "within 10% of the best possible"),
        (-8, -10, False, "within 20% of the best possible"),
        (1 + 1e-15, 1, False, "within 0.0001% of the best possible"),
        (300, 100, False, "within 200% of the best possible"),
        (1, -1, False, "within 2 of the best possible"),
        (0.5, 0, False, "within 0.5 of the best possible"),
        (2**-30, 0, False, "within 9.4e-10 of the best possible"),
        (5, None, False, "how far from the best possible is not known"),
        (5, float("-inf"), False, "how far from the best possible is not known"),
        (4, 5, False, "beyond its own bound"),
        (10**30, 10**30 - 1, False, "within 0.0001% of the best possible"),
    ],
)
def test_words(objective: float, bound: float | None, maximize: bool, words: str) -> None:
    assert distance_to_best(objective, bound, maximize) == words


@pytest.mark.parametrize("seed", range(200))
def test_the_share_never_says_too_little(seed: int) -> None:
    """Wherever the best is between bound and objective, the answer is at least as near to it as the words say."""
    draw = random.Random(seed)
    objective, bound = (draw.uniform(-1, 1) * 10 ** draw.randint(-5, 5) for _ in range(2))
    maximize = objective < bound
    words = distance_to_best(objective, bound, maximize)
    found = re.fullmatch(r"within (\S+?)(%?) of the best possible", words)
    assert found is not None
    share = Fraction(found[1])
    for part in (0, Fraction(1, 3), 1):
        best = Fraction(bound) + part * (Fraction(objective) - Fraction(bound))
        away = abs(Fraction(objective) - best)
        assert away <= (share / 100 * abs(best) if found[2] else share)


def test_an_answer_without_a_certificate_is_not_called_proved() -> None:
    document = {
        "id": "", "solver": "uot", "termination": "converged", "objective": 1.0, "timings_ms": {}, "method": "fused",
        "device": "cpu", "iterations": 3, "facts": {}, "options": {"certificate": "none"},
        "certificate": {"bound": None, "gap_abs": None, "gap_rel": None, "max_violation": None, "holds": None,
                        "proved": "nothing", "facts": {}, "verified": False},
    }  # fmt: skip
    result = read_result(document, {}, Home())
    assert gap_in_words(result) == "nothing is proved: no certificate was asked for"
    assert "converged (not verified)" in in_words(result)
    assert "HOLD" not in in_words(result)


def test_a_gap_of_rounding_alone_is_no_percentage(allot: Client) -> None:
    costs = np.random.default_rng(3).random((20, 9, 9))
    answers = [allot.lap(cost) for cost in costs]
    told = {gap_in_words(one) for one in answers}
    assert any(one.gap for one in answers)
    assert told == {"the best possible; proved", "the best possible; proved, up to rounding"}


def test_the_pages_say_the_same_words() -> None:
    pages = (Path(__file__).parents[2] / "web/src/words.ts").read_text()
    for words in ("The best possible; proved.", "The best possible; proved, up to rounding.", "of the best possible; "):
        assert words in pages


def test_labels_are_told_as_words_and_large_matrices_by_their_size(allot: Client) -> None:
    random = np.random.default_rng(3)
    told = in_words(allot.uot(random.random((7, 6)), labels=["B", "T"] * 3))
    assert re.search("label = .*'[BT]'", told)
    assert "plan has 7 x 6 entries" in told
    assert len(told.splitlines()) < 10


def test_who_is_short_is_told_by_name(allot: Client) -> None:
    shifts, nurses = ["early", "late", "night"], ["Ada", "Ben", "Cleo"]
    hours = np.array([[1, np.inf, np.inf], [2, np.inf, np.inf], [3, 4, 5]])
    told = in_words(allot.lap(Frame(hours, nurses, shifts)))
    assert "hall_rows = ['Ada' 'Ben']\nhall_cols = ['early']" in told
    assert "hall_rows = ['Ada' 'Ben']" in in_words(allot.uot(Frame(hours, nurses, shifts), method="exact"))
    assert "hall_rows = [0 1]\nhall_cols = [0]" in in_words(allot.lap(hours))
    assert "hall_rows = [[ True  True False]" in in_words(allot.lap(np.stack([hours, hours])))
    linear = np.full((2, 3), np.inf)
    linear[:, 1] = 1
    names = [Frame(1 - np.eye(len(one)), list(one), list(one)) for one in ("ab", "xyz")]
    assert "hall_rows = ['a' 'b']\nhall_cols = ['y']" in in_words(allot.qap(*names, linear=linear))
