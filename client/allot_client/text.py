"""Tables as text: how its bytes are read, what divides the cells of a line, and lines that belong to no table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from allot_client.lines import NUMBER

MARKS = "\t;,"
"""What divides cells; of several on as many lines the first, as commas may be decimal."""
BLANKS = " "
"""Stands for any number of blanks."""
HEAD = 20
"""Lines that are looked at to know."""
SAYS = re.compile(r"\"?sep=(.)\"?", re.IGNORECASE)
"""The first line of a file that says what divides its cells, as Excel has it."""
READ_AHEAD = 1 << 14
"""Bytes of a file that are looked at to know what it is."""
ASIDE = "#"
"""What a remark begins with."""


def decoded(content: bytes) -> str:
    """Text in UTF-8, in UTF-16 with its mark, or as Windows has it in the west."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def divided(text: str, mark: str | None = None) -> tuple[Iterator[list[str]], str]:
    """The cells of each line, and what divides them: `mark`, or what the first lines show.

    Remarks above the table are left away: lines that begin with # and have fewer cells than the first that does not.
    So are all of numbers that blanks divide, as NumPy's savetxt writes them, and a line that says what divides others.

    Raises:
        csv.Error: from the iterator, where the text is none.
    """
    first, _, rest = text.partition("\n")
    if said := SAYS.fullmatch(first.rstrip("\r")):
        text, mark = rest, mark or said[1]
    head = [line for line in text.splitlines()[: 2 * HEAD] if line.strip()]
    lines = [line for line in head if not line.startswith(ASIDE)][:HEAD]
    mark = mark or _mark_of(lines)
    if mark == BLANKS:
        return (line.split() for line in text.splitlines() if not line.startswith(ASIDE)), mark
    cells = lines[0].count(mark) if lines else 0
    while text.startswith(ASIDE) and text.partition("\n")[0].count(mark) < cells:
        text = text.partition("\n")[2]
    return csv.reader(io.StringIO(text, newline=""), delimiter=mark), mark


def _mark_of(lines: list[str]) -> str:
    """What stands on most of them; blanks, where all hold nothing but several numbers."""
    found = max(MARKS, key=lambda mark: sum(mark in line for line in lines))
    if not any(found in line for line in lines):
        tokens = [line.split() for line in lines]
        if all(len(line) > 1 for line in tokens) and all(NUMBER.fullmatch(one) for line in tokens for one in line):
            return BLANKS if lines else ","
        return ","
    return found


def is_text_table(path: Path) -> bool:
    """Whether a file called .txt is a table, and not one of QAPLIB's, whose first line is shorter than its others."""
    if path.suffix.lower() != ".txt":
        return False
    try:
        with path.open("rb") as file:
            head = decoded(file.read(READ_AHEAD))
    except OSError:
        return False
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith(ASIDE)]
    if len(head) >= READ_AHEAD // 2 and len(lines) > 2:  # the last may be cut
        lines.pop()
    whole = all(token.isdigit() for line in lines[:1] for token in line.split())
    return not whole or len({len(line.split()) for line in lines[:HEAD]}) == 1
