"""What the lines of a table are, by its cells alone: numbers, names of lines, or pairs one below the other."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
IDENTITY = re.compile(r"(?i:(.*[^a-z])?(ids?|index|nr|no\.?|names?|key|label|#)|unnamed: 0)|.*[a-z](Id|ID)")
"""What stands above a column that says which line each is."""
SURELY = 3
"""So many numbers in a row count up by chance less often than they are names."""
Cell = str | int | float | None
Row = list[Any]
Listed = tuple[list[str], list[str], dict[tuple[int, int], int]]
"""Names of rows, names of columns, and which line tells of each pair."""


def guessed(rows: list[Row]) -> tuple[bool, bool, str]:
    """(the first column holds names, the first row holds names, what is in doubt; "" where nothing is).

    Words are names. A corner that is empty belongs to names on both sides, and so does a word above numbers alone.
    Whole numbers in the first row or column are names under a corner such as "id". So are those of a row that count up,
    unless the table is square with it. Where they rise, and the table is square only without them, nobody can tell.
    """
    side, top, corner = [row[0] for row in rows[1:]], rows[0][1:], rows[0][0]
    by_row, by_column = any(map(_is_word, side)), any(map(_is_word, top))
    if corner in ("", None) and top:
        return _beside_nothing(rows) if not (by_row or by_column) else (True, True, "")
    if not _is_word(corner) or (by_row and by_column):
        return by_row, by_column, ""
    if not by_row and not by_column:
        return bool(top), bool(side), ""  # a word above numbers heads them, also where they are names
    line, place, extents = (side, "column", (len(side), len(top))) if by_column else (top, "row", (len(top), len(side)))
    numbers = _whole(line)
    if numbers is not None and IDENTITY.fullmatch(corner) and len(set(numbers)) == len(numbers):
        return True, True, ""
    if numbers is None or extents[0] == extents[1] + 1:
        return by_row, by_column, ""
    if by_row and len(numbers) >= SURELY and _counts(numbers):
        return True, True, ""
    doubt = len(numbers) >= (SURELY if by_column else 2) and _rises(numbers) and extents[0] == extents[1]
    return by_row, by_column, f"its first {place} may hold names or numbers" if doubt else ""


def _beside_nothing(rows: list[Row]) -> tuple[bool, bool, str]:
    """The same of numbers under an empty corner: 0, 1, 2, ... on both sides are names, as pandas writes them."""
    top, side = _whole(rows[0][1:]), _whole([row[0] for row in rows[1:]])
    if top is None or side is None or not (_rises(top) and _rises(side)):
        return False, False, ""
    least = min(len(top), len(side))
    alike = top[0] == side[0] == 0 or (top == side and least > 1)
    counted = _counts(top) and _counts(side) and (alike or least >= SURELY)
    if counted and rows[1][1] not in ("", None):  # else the diagonal may be empty, of a matrix of distances
        return True, True, ""
    doubt = counted or least >= SURELY
    return False, False, "its first row and column may hold names or numbers" if doubt else ""


def _whole(cells: list[Any]) -> list[int] | None:
    """The whole numbers of a line, none below 0; None where it holds anything else, or nothing."""
    told = [str(cell) for cell in cells]
    return [int(one) for one in told] if told and all(one.isascii() and one.isdigit() for one in told) else None


def _counts(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _rises(numbers: list[int]) -> bool:
    return all(one < other for one, other in pairwise(numbers))


def as_list(header: Row | None, body: list[Row]) -> Listed | None:
    """Of a table written as a list, one pair a line: who, what, how much. None where it is none.

    Returned are names of rows, names of columns, and which line tells of each pair. A list has a header, two columns of
    names and one of numbers. It names somebody twice on either side (on one, where both have a name in common), and no
    pair twice. Where one thing stands on both sides (trips from A to B), both sides have all names, in one order.
    """
    if header is None or len(header) != 3 or len(body) < 3 or not all(map(_is_word, header)):
        return None
    if not all(_is_word(line[j]) for line in body for j in (0, 1)):
        return None
    if sum(_is_number(line[2]) for line in body) * 2 < len(body):
        return None
    ones, others = (list(dict.fromkeys(str(line[j]) for line in body)) for j in (0, 1))
    both, once = set(ones) & set(others), [len(names) == len(body) for names in (ones, others)]
    if all(once) or (any(once) and not both):
        return None
    if both:
        ones = others = list(dict.fromkeys(ones + others))
    rows, columns = ({name: at for at, name in enumerate(names)} for names in (ones, others))
    told = {(rows[str(line[0])], columns[str(line[1])]): at for at, line in enumerate(body)}
    return (ones, others, told) if len(told) == len(body) else None


def _is_word(cell: Cell) -> bool:
    return isinstance(cell, str) and bool(cell) and not NUMBER.fullmatch(cell)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) or (isinstance(cell, str) and NUMBER.fullmatch(cell) is not None)
