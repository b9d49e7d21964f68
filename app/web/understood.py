"""What a table is taken for: where its names are, which cells are numbers, and what stands where a number should.

matrix   numbers by named or unnamed rows and columns          list     one number a row
points   columns x and y (or r, g, b), and what else there is   pairs    two names a row
text     none of these
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from allot_client.lines import Heads, Listed, as_list, heads

from app.web.cells import Cell, mostly_text
from app.web.tables import Sheet, check_extent, letters
from kernels import Array

MOST_FAULTS = 20
EXACT = 2**53
"""Whole numbers up to this are what they are in float64."""
PIECE, TILE = 1 << 20, 1024
"""Entries, and lines of a square, that are looked at together."""
PLACE, COLOUR = list("xy"), list("rgb")
COORDINATES = (set(PLACE), set(COLOUR), {"red", "green", "blue"})
"""Names of columns, by which a table is one of points."""
BESIDE = {"w", "h", "width", "height", "weight", "mass", "amount", "count", "angle"}
"""Columns of a table of points that are no coordinates."""


@dataclass
class Understood:
    """A sheet with a reading. `values` is float64 or int64, `faults` lists the first cells that are no numbers."""

    name: str
    role: str
    corner: str = ""
    row_names: list[str] | None = None
    column_names: list[str] | None = None
    values: Array | None = None
    missing: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)
    fault_count: int = 0
    pairs: list[list[str]] | None = None
    order: list[int] | None = None
    first: tuple[int, int] = (0, 0)
    listed: int = 0
    """How many pairs it was written as a list of, one a line."""
    doubt: str = ""
    """What nobody can tell of it but who wrote it: which lines may hold names or numbers."""
    rounded: dict[str, Any] | None = None
    """The first whole number that its 64 bits do not hold: `cell`, `found`, `read`, and `count` of all."""


def understand(sheet: Sheet, missing: float, doubtful: str = "") -> Understood:
    """Read a sheet; an empty cell, or one that is no number, counts as `missing`.

    Lines that may be names or numbers are what `doubtful` says ("names", "numbers"), or by "" what is likelier.
    """
    top = next(index for index, row in enumerate(sheet.rows) if any(cell is not None for cell in row))
    rows = sheet.rows[top:]
    while rows and all(cell is None for cell in rows[-1]):
        rows = rows[:-1]
    width = max(j + 1 for row in rows for j, cell in enumerate(row) if cell is not None)
    check_extent(len(rows), width, sheet.name)
    cells = [(row + [None] * (width - len(row)))[:width] for row in rows]
    if title := _title(cells):
        top, cells = top + title, cells[title:]
    names, header, doubt = _named(cells, doubtful)
    body = [row[names:] for row in cells[header:]]
    if listed := as_list(cells[0] if header else None, cells[header:]):
        return _as_table(sheet.name, listed, cells, top + header, missing)
    found = Understood(sheet.name, "text", first=(top + header, int(names)), doubt=doubt)
    found.corner = _shown(cells[0][0]) if header and names else ""
    found.row_names = [_shown(row[0]) for row in cells[header:]] if names else None
    found.column_names = [_shown(cell) for cell in cells[0][names:]] if header else None
    if all(mostly_text(row, 0.75) for row in body[:50]):
        return _as_pairs(found, body)
    _take_numbers(found, body, missing)
    found.role = _role(found)
    return found


def _named(cells: list[list[Cell]], doubtful: str) -> Heads:
    """Which lines are names, as who wrote the table says where nobody else can tell."""
    seen = heads(cells, mostly_text)
    if not seen.doubt or not doubtful:
        return seen
    if doubtful == "names":
        return Heads(True, True, seen.doubt)
    above, beside = mostly_text(cells[0][1:]), mostly_text([row[0] for row in cells[1:]])
    return Heads(beside, above, seen.doubt)


def _title(cells: list[list[Cell]]) -> int:
    """How many lines stand above the names of columns: at most one text in each, and nothing of the table."""
    wide = next((i for i, row in enumerate(cells) if sum(cell is not None for cell in row) > 1), 0)
    above = [[cell for cell in row if cell is not None] for row in cells[:wide]]
    lone = all(isinstance(cell, str) for line in above for cell in line)
    return wide if above and lone and mostly_text(cells[wide][1:]) else 0


def _as_table(name: str, listed: Listed, cells: list[list[Cell]], top: int, missing: float) -> Understood:
    """A list of pairs as the table that it stands for."""
    rows, columns, told = listed
    check_extent(len(rows), len(columns), name)
    found = Understood(name, "matrix", _shown(cells[0][2]), rows, columns, first=(top, 2), listed=len(told))
    body = cells[len(cells) - len(told) :]
    values, long = np.full((len(rows), len(columns)), float(missing)), dict[tuple[int, int], tuple[int, str]]()
    for (i, j), line in told.items():
        cell = body[line][2]
        if isinstance(cell, int | float):
            values[i, j] = cell
            if not -EXACT <= cell <= EXACT and isinstance(cell, int):
                long[i, j] = cell, f"{letters(2)}{top + line + 1}"
        elif cell is None:
            found.missing += 1
        else:
            _note_fault(found, line, 0, cell, [rows[i], columns[j]])
    found.missing += values.size - len(told)
    _keep(found, values, long)
    return found


def _keep(found: Understood, values: Array, long: Mapping[tuple[int, int], tuple[int, str]]) -> None:
    """As int64 where every number is whole. `long` are whole numbers that float64 may not hold, and their cells."""
    most = max((abs(cell) for cell, _ in long.values()), default=0)
    whole = bool(np.isfinite(values).all() and (values == np.rint(values)).all() and most < 2**63)
    if whole and np.abs(values).max(initial=0, where=_but(values, long)) < 2**53:
        found.values = np.where(_but(values, long), values, 0).astype(np.int64)
        for at, (cell, _) in long.items():
            found.values[at] = cell
        return
    found.values = values
    lost = [(cell, address, int(values[at])) for at, (cell, address) in long.items() if int(values[at]) != cell]
    if lost:
        cell, address, read = lost[0]
        found.rounded = {"cell": address, "found": str(cell), "read": str(read), "count": len(lost)}


def _but(values: Array, long: Mapping[tuple[int, int], Any]) -> Array:
    """Where the others are."""
    others = np.ones(values.shape, bool)
    for at in long:
        others[at] = False
    return others


def _as_pairs(found: Understood, body: list[list[Cell]]) -> Understood:
    """Two names a row: who is where."""
    columns = ([found.row_names] if found.row_names else []) + [
        [_shown(row[j]) for row in body] for j in range(len(body[0]))
    ]
    if len(columns) >= 2:
        found.role, found.pairs = "pairs", [list(pair) for pair in zip(columns[0], columns[1], strict=True)]
    return found


def _take_numbers(found: Understood, body: list[list[Cell]], missing: float) -> None:
    values, long = np.empty((len(body), len(body[0]))), dict[tuple[int, int], tuple[int, str]]()
    top, left = found.first
    for i, row in enumerate(body):
        for j, cell in enumerate(row):
            if isinstance(cell, int | float):
                values[i, j] = cell
                if not -EXACT <= cell <= EXACT and isinstance(cell, int):
                    long[i, j] = cell, f"{letters(left + j)}{top + i + 1}"
                continue
            values[i, j] = missing
            if cell is None:
                found.missing += 1
            else:
                _note_fault(found, i, j, cell)
    _keep(found, values, long)


def _note_fault(found: Understood, i: int, j: int, cell: str, where: list[str] | None = None) -> None:
    found.fault_count += 1
    if len(found.faults) < MOST_FAULTS:
        top, left = found.first
        where = where or [
            found.row_names[i] if found.row_names else "",
            found.column_names[j] if found.column_names else "",
        ]
        address = f"{letters(left + j)}{top + i + 1}"
        found.faults.append({"cell": address, "row": i, "column": j, "found": cell[:40], "names": where})


def _role(found: Understood) -> str:
    assert found.values is not None
    named = {name.lower().strip() for name in found.column_names or []}
    if any(wanted <= named for wanted in COORDINATES):
        return "points"
    return "list" if found.values.shape[1] == 1 else "matrix"


def coordinates(found: Understood) -> list[int]:
    """Which columns of a table of points say where they are."""
    names = [re.sub(r"\W.*", "", name.lower().strip()) for name in found.column_names or []]
    return [j for j, name in enumerate(names) if name not in BESIDE]


def weights(found: Understood) -> int | None:
    """The column that says how much a point weighs, if there is one."""
    names = [name.lower().strip() for name in found.column_names or []]
    return next((j for j, name in enumerate(names) if name in {"weight", "mass", "amount", "count"}), None)


def _shown(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def facts_of(values: Array) -> dict[str, Any]:
    """Range, sum and the like of an array, of what is finite in it.

    It is looked at in pieces: few bytes inflate to an array whose copy in a wider type would take a gigabyte.
    """
    low, high, total, count, zeros, whole = None, None, 0, 0, 0, True
    flat = values.ravel(order="K")
    for at in range(0, flat.size, PIECE):
        there = np.asarray(flat[at : at + PIECE])
        if there.dtype.kind == "f":
            there = there[np.isfinite(there)].astype(np.float64, copy=False)
            whole = whole and bool((there == np.rint(there)).all())
        if there.size:
            low = there.min().item() if low is None else min(low, there.min().item())
            high = there.max().item() if high is None else max(high, there.max().item())
            total += there.sum().item()
            zeros += there.size - int(np.count_nonzero(there))
            count += there.size
    return {
        "min": low,
        "max": high,
        "sum": total if count else None,
        "zero_share": zeros / count if count else 0.0,
        "whole_numbers": bool(count) and whole,
        "symmetric": _symmetric(values) if values.ndim == 2 and values.shape[0] == values.shape[1] else None,
        "infinite": int(flat.size) - count,
    }


def _symmetric(square: Array) -> bool:
    """Whether it is its own transpose, a tile beside its mirror image at a time."""
    starts = range(0, len(square), TILE)
    pairs = ((row, column) for row in starts for column in starts if column >= row)
    return all(
        np.array_equal(square[r : r + TILE, c : c + TILE], square[c : c + TILE, r : r + TILE].T) for r, c in pairs
    )
