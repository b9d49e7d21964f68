"""What files and options call lines by their names: layouts that are fixed, and labels of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from allot_client.arrays import Array
from allot_client.labels import coded
from allot_client.lines import Row

Names = tuple[str, ...] | None


def fixed_by_number(options: Mapping[str, Any], rows: Names, columns: Names) -> dict[str, Any]:
    """Options of a layout whose `fixed` has numbers where it had names: JSON has words alone for facilities.

    Raises:
        ValueError: a name that no line has, or a number that is the name of another line.
    """
    fixed = options.get("fixed")
    if not isinstance(fixed, Mapping):
        return dict(options)
    places = {_number(str(one), rows, "flow"): _number(other, columns, "distance") for one, other in fixed.items()}
    if len(places) < len(fixed):
        raise ValueError("fixed tells of one facility twice, by its name and by its number; expected each once")
    return {**options, "fixed": places}


def _number(line: Any, names: Names, matrix: str) -> Any:
    """Of a line that is told by its name, or by its number as a word."""
    if not isinstance(line, str) or names is None:
        return line
    if line not in names:
        if line.isascii() and line.isdigit():
            return int(line)
        known = ", ".join(names[:5])
        raise ValueError(f"fixed names {line!r}, which is no line of {matrix}; these begin with {known}")
    at = names.index(line)
    if line.isascii() and line.isdigit() and int(line) != at and int(line) < len(names):
        raise ValueError(f"fixed says {line}, which is the name of line {at} of {matrix} and the number of another; "
                         "expected --names none, and numbers")  # fmt: skip
    return at


def labels_of(rows: Sequence[Row], columns: Names, n: int | None) -> tuple[Array, tuple[Any, ...] | None]:
    """The labels of columns from the cells of a table: codes, and what each stands for, as `coded` has them.

    The table has a line for each column, maybe under a header: its label, or its name and its label. An empty cell is a
    missing label.

    Args:
        columns: the names of the columns, whose order counts where the table has the same names.
        n: how many columns there are, None where nobody knows.

    Raises:
        ValueError: it is no such table.
    """
    if max(map(len, rows), default=0) == 2:
        rows = [row for row in rows if any(cell not in ("", None) for cell in row)]
    if not rows or len(rows[0]) > 2 or len({len(row) for row in rows}) > 1:
        raise ValueError("labels are no list; expected a label a line, or a name and a label")
    lines = list(rows[1:] if n is not None and len(rows) == n + 1 else rows)
    if n is not None and len(lines) != n:
        raise ValueError(f"labels has {len(lines)} lines; expected {n}, one for each column")
    told = [row[-1] for row in lines]
    if len(lines[0]) == 2 and columns is not None:
        by_name = {str(name): label for name, label in lines}
        if set(by_name) == set(columns) and len(by_name) == len(lines):
            told = [by_name[name] for name in columns]
    if all(isinstance(one, int) or (str(one).isascii() and str(one).isdigit()) for one in told):
        return coded(np.array([int(one) for one in told]))
    return coded([None if one in ("", None) else one for one in told])
