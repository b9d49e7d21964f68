"""Tables as text: how its bytes are read, what divides the cells of a line, and lines that belong to no table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from allot_client.lines import NUMBER

MARKS = "\t;|,"
"""What divides cells; of several that divide as many lines the first, as commas may be decimal."""
BLANKS = " "
"""Stands for any number of blanks."""
HEAD_LINES, HEAD_TEXT = 20, 1 << 16
"""Of a text so much is looked at to know what divides it."""
SAYS = re.compile(r"\"?sep=(.)\"?", re.IGNORECASE)
"""The first line of a file that says what divides its cells, as Excel has it."""
REMARKS = ("#", "%")
"""What remarks begin with."""
SPACED = re.compile(r"[-+]?\d{1,3}([ '’]\d{3})+([.,]\d+)?")
"""Thousands apart by blanks, or by apostrophes as in Switzerland."""
READ_AHEAD = 1 << 14
"""Bytes of a file that are looked at to know what it is."""


class NoText(ValueError):
    """Bytes that no text holds."""


def decoded(content: bytes) -> str:
    """Text in UTF-8, in UTF-16 with its mark, or as Windows has it in the west. Raises NoText."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    if b"\0" in content:
        raise NoText
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def divided(text: str, mark: str | None = None) -> tuple[Iterator[list[str]], str]:
    """The cells of each line, and what divides them: `mark`, or what cuts most of the first lines, outside of quotes.

    Remarks above the table are left away: lines that begin with # or % and have fewer cells than the first that does
    not. So are all among numbers that blanks divide, as NumPy's savetxt writes them, and a line that says what divides
    the others.

    Raises:
        csv.Error: from the iterator, where the text is none.
    """
    first, _, rest = text.partition("\n")
    if said := SAYS.fullmatch(first.rstrip("\r")):
        text, mark = rest, mark or said[1]
    head = text[:HEAD_TEXT].splitlines()
    whole = head if len(text) <= HEAD_TEXT else head[:-1]
    lines = [line for line in whole if line.strip() and not _is_remark(line)][:HEAD_LINES]
    mark = mark or _mark_of(lines)
    if mark == BLANKS:
        return (line.split() for line in text.splitlines() if not _is_remark(line)), mark
    cells = max((len(row) for row in _cut(lines[:1], mark)), default=0)
    while _is_remark(text) and max(map(len, _cut([text.partition("\n")[0]], mark)), default=0) < cells:
        text = text.partition("\n")[2]
    return csv.reader(io.StringIO(text, newline=""), delimiter=mark), mark


def _is_remark(line: str) -> bool:
    return line.startswith(REMARKS)


def _mark_of(lines: list[str]) -> str:
    """What cuts at least half of them, else what cuts most; blanks, where nothing else cuts any."""
    count = {mark: sum(len(row) > 1 for row in _cut(lines, mark)) for mark in MARKS}
    if not any(count.values()):
        return BLANKS if _are_numbers_apart(lines) else ","
    usual = next((mark for mark in MARKS if 2 * count[mark] >= len(lines)), None)
    return usual or max(MARKS, key=lambda mark: count[mark])


def _cut(lines: Iterable[str], mark: str) -> Iterator[list[str]]:
    """Lines as cells. A quote that never ends is told of where all is read."""
    rows = csv.reader(lines, delimiter=mark)
    while True:
        try:
            yield next(rows)
        except (StopIteration, csv.Error):
            return


def _are_numbers_apart(lines: list[str]) -> bool:
    """Whether blanks divide lines of one length: numbers, beside names. 1 234 on each is a list of thousands."""
    rows = [line.split() for line in lines]
    if not rows or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1:
        return False
    if len(rows[0]) == 2 and all(SPACED.fullmatch(line.strip()) for line in lines):
        return False
    body = [row[1:] for row in rows[1:]] or rows
    return all(NUMBER.fullmatch(one) for row in body for one in row)


def is_text_table(path: Path) -> bool:
    """Whether a file called .txt is a table, and not one of QAPLIB's, whose first line is shorter than its others."""
    if path.suffix.lower() != ".txt":
        return False
    try:
        with path.open("rb") as file:
            head = decoded(file.read(READ_AHEAD))
    except (OSError, NoText):
        return False
    lines = [line for line in head.splitlines() if line.strip() and not _is_remark(line)]
    if len(head) >= READ_AHEAD // 2 and len(lines) > 2:  # the last may be cut
        lines.pop()
    whole = all(token.isdigit() for line in lines[:1] for token in line.split())
    return not whole or len({len(line.split()) for line in lines[:HEAD_LINES]}) == 1
