"""What the lines of a table are, by its cells alone: numbers, names of lines, or pairs one below the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
IDENTITIES = {
    "id", "ids", "key", "name", "names", "no", "nr", "num", "number", "index", "row", "code", "label", "unnamed",
}  # fmt: skip
"""Last words of what stands above a column that says which line each is."""
MEASURES = {
    "amount", "benefit", "cost", "costs", "distance", "distances", "from", "h", "hours", "km", "kosten", "m", "metres",
    "meters", "min", "minutes", "price", "prices", "s", "score", "seconds", "time", "times", "to", "value", "weight",
    "worth",
}  # fmt: skip
"""What stands in the corner of a table, and is nobody's name."""
MISSING = {"-", "–", "—", "?", "n/a", "na", "nan", "nil", "none", "null", "tbd", "#n/a"}
"""What stands where a number is missing, and is no name of anything."""
ENDS = {"from", "to", "source", "target", "origin", "destination", "src", "dst", "start", "end"}
LINES = {"i", "j", "row", "col", "column"}
"""What columns are called whose numbers stand for things: of one kind on both sides, or rows and columns."""
YEARS = range(1900, 2101)
SURELY = 3
"""So many numbers in a row count up by chance less often than they are names."""
Cell = str | int | float | None
Row = list[Any]
Listed = tuple[list[str], list[str], dict[tuple[int, int], int]]
"""Names of rows, names of columns, and which line tells of each pair."""


class Heads(NamedTuple):
    """Which lines of a table are names, and what is in doubt of them; "" where nothing is."""

    by_row: bool
    """The first column names the rows."""
    by_column: bool
    """The first row names the columns."""
    doubt: str = ""


def heads(rows: list[Row], by_words: Callable[[Sequence[Cell]], bool] | None = None) -> Heads:
    """Where the names of a table are, whose rows are of one length.

    Words are names: one of them in a line, or as `by_words` says. Whole numbers, none of them twice, may be names, too.
    In one line, beside names of the other side, they are where the corner is empty or says so: `id`, `cost`. So are
    years of a row, and numbers of a row that count up, unless the table is square with it. On both sides they are under
    a word, and under an empty corner where both rise. Where they rise and the table is square only without them, or its
    diagonal may be what is empty, nobody can tell.
    """
    names = by_words or _any_word
    side, top, corner = [row[0] for row in rows[1:]], rows[0][1:], rows[0][0]
    empty = corner in ("", None)
    if not side:
        return Heads(bool(top) and names([corner]), False)
    by_column = names(top or [corner])
    by_row = bool(top) and names(side if by_column else [corner, *side])
    if not top or not (empty or _is_word(corner)) or (by_row and by_column):
        return Heads(by_row, by_column or (not top and _is_word(corner)))
    if by_column:
        return _beside(side, corner, rows) if not by_row else Heads(True, True)
    if by_row and any(map(_is_word, side)):
        return _above(top, corner, rows)
    if _is_word(corner):
        both = str(corner).strip().lower() not in MISSING
        return Heads(both, both)
    above, beside = _labels(top), _labels(side)
    return Heads(by_row, by_column) if above is None or beside is None else _beside_nothing(above, beside, rows)


def _beside(side: Row, corner: Cell, rows: list[Row]) -> Heads:
    """Of a table with names above: whether numbers of its first column are names, too."""
    labels, extents = _labels(side), (len(side), len(rows[0]) - 1)
    if corner in ("", None):
        return Heads(labels is not None or all(cell not in ("", None) for cell in side), True)
    if labels is None or _last_word(corner) in IDENTITIES:
        return Heads(labels is not None, True)
    doubt = len(labels) >= SURELY and _rises(labels) and extents[0] == extents[1]
    return Heads(False, True, "its first column may hold names or numbers" if doubt else "")


def _above(top: Row, corner: Cell, rows: list[Row]) -> Heads:
    """Of a table with names beside it: whether numbers of its first row are names, too."""
    labels, extents = _labels(top), (len(top), len(rows) - 1)
    if corner in ("", None):
        return Heads(True, labels is not None or all(cell not in ("", None) for cell in top))
    if labels is None:
        return Heads(True, False)
    if _last_word(corner) in IDENTITIES or _are_years(labels, rows):
        return Heads(True, True)
    if extents[0] == extents[1] + 1:
        return Heads(True, False)
    if _last_word(corner) in MEASURES:
        return Heads(True, True)
    if len(labels) >= SURELY and _counts(labels):
        return Heads(True, True)
    doubt = len(labels) > 1 and _rises(labels) and extents[0] == extents[1]
    return Heads(True, False, "its first row may hold names or numbers" if doubt else "")


def _beside_nothing(top: list[int], side: list[int], rows: list[Row]) -> Heads:
    """Of numbers alone under an empty corner: 0, 1, 2, ... on both sides are names, as pandas writes them."""
    least = min(len(top), len(side))
    counted = _counts(top) and _counts(side) and (least > 1 or top[0] == side[0] == 0)
    if not (counted or (least >= SURELY and _rises(top) and _rises(side))):
        return Heads(False, False)
    sure = counted and rows[1][1] not in ("", None)
    doubt = "" if sure else "its first row and column may hold names or numbers"
    open_diagonal = all(row[at] in ("", None) for at, row in enumerate(rows) if at < len(row))
    both = counted or not open_diagonal
    return Heads(both, both, doubt)


def _any_word(cells: Sequence[Cell]) -> bool:
    return any(map(_is_word, cells))


def _last_word(corner: Cell) -> str:
    """`workerId` and `worker_id` are called id."""
    spaced = re.sub(r"(?<=[a-z])(?=I[dD]$)", " ", str(corner).strip())
    words = re.sub(r"[\W\d_]+", " ", spaced).lower().split()
    return words[-1] if words else "id" if str(corner).strip() == "#" else ""


def _labels(cells: Sequence[Cell]) -> list[int] | None:
    """The whole numbers of a line, none below 0 and none twice; None where it holds anything else, or nothing."""
    told = [str(cell) for cell in cells]
    if not told or len(set(told)) < len(told) or not all(one.isascii() and one.isdigit() for one in told):
        return None
    return [int(one) for one in told]


def _counts(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _rises(numbers: list[int]) -> bool:
    return all(one < other for one, other in pairwise(numbers))


def _are_years(top: list[int], rows: list[Row]) -> bool:
    years = {str(year) for year in YEARS}
    body = {str(cell) for row in rows[1:] for cell in row[1:]}
    return len(top) > 1 and _counts(top) and set(map(str, top)) <= years and not body & years


def as_list(header: Row | None, body: list[Row]) -> Listed | None:
    """Of a table written as a list, one pair a line: who, what, how much. None where it is none.

    Returned are names of rows, names of columns, and which line tells of each pair. A list has a header, two columns of
    names and one of numbers. It names somebody twice on either side (on one, where both have a name in common), and no
    pair twice. Where one thing stands on both sides (trips from A to B), both sides have all names, in one order.
    Numbers are names in columns that are called so (`from`, `to`; `i`, `j`), and then in their own order.
    """
    if header is None or len(header) != 3 or len(body) < 3 or not all(map(_is_word, header)):
        return None
    called = {str(cell).strip().lower() for cell in header[:2]}
    numbered = (called <= ENDS or called <= LINES) and all(str(one).isdigit() for line in body for one in line[:2])
    if not numbered and not all(_is_word(line[j]) for line in body for j in (0, 1)):
        return None
    if sum(_is_number(line[2]) for line in body) * 2 < len(body):
        return None
    ones, others = (list(dict.fromkeys(str(line[j]) for line in body)) for j in (0, 1))
    both = set() if numbered and called <= LINES else set(ones) & set(others)
    once = [len(names) == len(body) for names in (ones, others)]
    if all(once) or (any(once) and not both):
        return None
    if both:
        ones = others = list(dict.fromkeys(ones + others))
    if numbered:
        ones, others = sorted(ones, key=int), sorted(others, key=int)
    rows, columns = ({name: at for at, name in enumerate(names)} for names in (ones, others))
    told = {(rows[str(line[0])], columns[str(line[1])]): at for at, line in enumerate(body)}
    return (ones, others, told) if len(told) == len(body) else None


def _is_word(cell: Cell) -> bool:
    return isinstance(cell, str) and bool(cell) and not NUMBER.fullmatch(cell)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) or (isinstance(cell, str) and NUMBER.fullmatch(cell) is not None)
