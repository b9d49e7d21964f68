"""One cell of a table of text: the number that is written in it, in the manner of its table.

1,234 is a thousand times as much in London as in Berlin. Which of them a table means follows from the cells that can
be read in one way only: 1,5 and 1.234,50 have a decimal comma, 2.5 and 1,234.50 a decimal point.
"""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

from allot_client.text import SPACED

Cell = None | int | float | str
LONGEST_CELL = 200
"""Characters of a text that are kept: a name is shorter, and a longer text is shown cut off anyway."""
USUAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]+)?")
USUAL_COMMA = re.compile(r"-?[0-9]{1,18},[0-9]+")
"""What most cells are: these need no look at marks and spaces."""
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
DOTTED = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+")
DECIMAL_COMMA = re.compile(r"[-+]?([1-9]\d{0,2}(\.\d{3})+|\d+),\d+([eE][-+]?\d+)?")
SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | {"\u2212": "-"})
INFINITE = {"inf": math.inf, "+inf": math.inf, "∞": math.inf, "-inf": -math.inf, "-∞": -math.inf}
MONEY = "€$£¥"
MOST_LOOKED_AT = 100_000
LONGEST_WHOLE = 24
"""Digits of a number that is kept as it is written; who takes it for one of 64 bits says so."""


class Marks(NamedTuple):
    """What a comma and a dot say in a table."""

    comma: bool = False
    """A comma stands before decimals."""
    dots: bool = False
    """Dots stand between thousands."""


POINT = Marks()


def marks_of(rows: Iterable[Sequence[str]], comma: bool) -> Marks:
    """How the numbers of a table are written; `comma` is what a comma stands for where no cell tells."""
    commas = points = False
    for cell in islice(chain.from_iterable(rows), MOST_LOOKED_AT):
        if "," not in cell and "." not in cell:
            continue
        bare = _bare(cell)
        if bare.count(".") > 1 and DOTTED.fullmatch(bare):
            commas = True
        elif DECIMAL_COMMA.fullmatch(bare):
            commas = commas or not THOUSANDS.fullmatch(bare)
        elif "." in bare and not DOTTED.fullmatch(bare):
            points = points or bool(NUMBER.fullmatch(bare) or THOUSANDS.fullmatch(bare))
        if commas and points:
            break
    return Marks(commas or (comma and not points), commas and not points)


def number(text: str, marks: Marks = POINT) -> Cell:
    """What is written in a cell: a number where it reads as one, None where it is empty, else the text."""
    if USUAL.fullmatch(text) and not marks.dots:
        return float(text) if "." in text else int(text)
    if marks.comma and USUAL_COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    text = text.translate(SPACES).strip()
    if not text:
        return None
    if text.lower() in INFINITE:
        return INFINITE[text.lower()]
    plain, of = _plain(_bare(text), marks), 100 if text[-1] == "%" else 1
    if not NUMBER.fullmatch(plain):
        return text[:LONGEST_CELL]
    whole = plain.lstrip("+-").isdigit() and len(plain) <= LONGEST_WHOLE
    value = int(plain) if whole else float(plain)
    return value if of == 1 else value / of


def _plain(bare: str, marks: Marks) -> str:
    """A number with a decimal point and nothing between its thousands."""
    if DOTTED.fullmatch(bare) and (marks.dots or bare.count(".") > 1):
        return bare.replace(".", "")
    if DECIMAL_COMMA.fullmatch(bare) and (marks.comma or "." in bare):
        return bare.replace(".", "").replace(",", ".")
    return bare.replace(",", "") if THOUSANDS.fullmatch(bare) else bare


def _bare(text: str) -> str:
    """A cell without the currency beside its amount, or its percent sign, and with no space between digits."""
    text = text.translate(SPACES).strip()
    sign = text[:1] if text[:1] in ("+", "-") else ""
    rest = text[len(sign) :].lstrip()
    if len(rest) > 1 and rest[0] in MONEY:
        rest = rest[1:].lstrip()
    elif len(rest) > 1 and rest[-1] in MONEY + "%":
        rest = rest[:-1].rstrip()
    return sign + (re.sub("[ '’]", "", rest) if SPACED.fullmatch(rest) else rest)


def mostly_text(cells: Sequence[Cell], share: float = 0.5) -> bool:
    """Whether at least that share of the filled cells are text."""
    filled = [cell for cell in cells if cell is not None]
    return bool(filled) and sum(isinstance(cell, str) for cell in filled) >= share * len(filled)
