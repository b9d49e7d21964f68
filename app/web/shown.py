"""What a file holds, in words, figures and small pictures. A clerk does this: it reads what strangers sent.

Arrays go to `keep`, whose answer stands for them in what is shown.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from app.web.heat import heat_of, heat_of_sparse
from app.web.tables import Sheet, elsewhere, is_table, read_tables
from app.web.understood import EXACT, Understood, coordinates, facts_of, understand, weights
from kernels import Array, Csr
from workers.store.codec import Decoded, InvalidUpload
from workers.store.sniff import looks_like_a_table, sniff

WHOLE_CELLS = 10_000
HEAD_ROWS, HEAD_COLUMNS = 12, 12
MOST_NAMES = 200_000
MOST_POINTS = 60_000
Keep = Callable[[Array | Csr], Any]


def is_written(path: Path, filename: str) -> bool:
    """True for what people write: a table, whatever its file is called, or an order of places."""
    named = filename.lower().endswith(".sln") or is_table(filename) or elsewhere(filename) != ""
    return named or (sniff(path, filename) is None and looks_like_a_table(path))


def written(
    keep: Keep, path: Path, filename: str, missing: float, charge: Callable[[int], object], doubtful: str = ""
) -> list[dict[str, Any]]:
    """Every sheet, or an order of places. `charge` is asked for what it inflates to. Raises InvalidUpload."""
    if form := elsewhere(filename):
        raise InvalidUpload("file", f"is {form}, which is not read here; save the table as .xlsx or .csv")
    if filename.lower().endswith(".sln"):
        return [_order(keep, path, filename)]
    return [table(keep, sheet, missing, doubtful) for sheet in read_tables(path, filename, charge)]


def arrays(keep: Keep, value: Decoded, filename: str) -> list[dict[str, Any]]:
    """Every array of a file. Raises InvalidUpload."""
    found = value if isinstance(value, dict) else {Path(filename).stem: value}
    return [_array(keep, name, one) for name, one in found.items()]


def table(keep: Keep, sheet: Sheet, missing: float, doubtful: str = "") -> dict[str, Any]:
    """One sheet."""
    found = understand(sheet, missing, doubtful)
    shown = _described(found) | _cells(sheet)
    if found.values is not None:
        shown |= _numbers(keep, found)
    return shown


def _described(found: Understood) -> dict[str, Any]:
    return {
        "name": found.name,
        "role": found.role,
        "corner": found.corner,
        "row_names": found.row_names and found.row_names[:MOST_NAMES],
        "column_names": found.column_names and found.column_names[:MOST_NAMES],
        "missing": found.missing,
        "faults": found.faults,
        "fault_count": found.fault_count,
        "pairs": found.pairs,
        "first": list(found.first),
        "listed": found.listed,
        "doubt": found.doubt,
        "rounded": found.rounded,
    }


def _cells(sheet: Sheet) -> dict[str, Any]:
    """The cells as they were written: all of a small sheet, which may be edited, else its first corner. A page reads
    numbers as float64, so a longer one is told as its digits."""
    width = max(len(row) for row in sheet.rows)
    whole = width * len(sheet.rows) <= WHOLE_CELLS
    rows = sheet.rows if whole else [row[:HEAD_COLUMNS] for row in sheet.rows[:HEAD_ROWS]]
    rows = [[str(cell) if isinstance(cell, int) and abs(cell) > EXACT else cell for cell in row] for row in rows]
    return {"cells": rows, "cells_whole": whole, "cells_shape": [len(sheet.rows), width]}


def _numbers(keep: Keep, found: Understood) -> dict[str, Any]:
    values = found.values
    assert values is not None
    shown: dict[str, Any] = {"shape": list(values.shape), "facts": facts_of(values)}
    if found.role == "points":
        where = np.ascontiguousarray(values[:, coordinates(found)], dtype=np.float64)
        shown["reference"] = keep(where)
        weight = weights(found)
        shown["weights"] = None if weight is None else keep(np.ascontiguousarray(values[:, weight]))
        shown["points"] = values.tolist() if values.size <= MOST_POINTS else None
        return shown
    array = values[:, 0] if found.role == "list" else values
    shown["reference"] = keep(np.ascontiguousarray(array))
    shown["heat"] = heat_of(values)
    return shown


def _array(keep: Keep, name: str, value: Array | Csr) -> dict[str, Any]:
    """One array of a file that holds arrays and no names."""
    found = Understood(name, "matrix")
    shown = _described(found) | {"cells": [], "cells_whole": False, "cells_shape": [0, 0]}
    if isinstance(value, Csr):
        _check_sparse(name, value)
        facts = facts_of(value.values) | {"stored": len(value.values), "symmetric": None}
        heat = heat_of_sparse(value)
        shown |= {"role": "sparse", "shape": list(value.shape), "facts": facts, "heat": heat}
        return shown | {"reference": keep(value)}
    if value.dtype.kind not in "iuf" or not value.size:
        raise InvalidUpload("file", f"{name} holds {value.dtype} in shape {value.shape}; expected numbers")
    shown |= {"shape": list(value.shape), "facts": facts_of(value), "reference": keep(value)}
    if value.ndim == 2:
        return shown | {"heat": heat_of(value)}
    return shown | {"role": "list" if value.ndim == 1 else "stack"}


def _check_sparse(name: str, matrix: Csr) -> None:
    """Files say shape, lines and places apart from each other. Raises InvalidUpload where these contradict."""
    rows, columns = matrix.shape
    indptr, indices, stored = matrix.indptr, matrix.indices, len(matrix.values)
    lines = len(indptr) == rows + 1 > 0 and indptr[0] == 0 and indptr[-1] == stored == len(indices)
    if not lines or (indptr[1:] < indptr[:-1]).any():  # a difference could leave int64
        raise InvalidUpload(
            "file", f"{name} is no sparse matrix: indptr does not count {stored} entries in {rows} rows"
        )
    if stored and not 0 <= indices.min() <= indices.max() < columns:
        raise InvalidUpload("file", f"{name} is no sparse matrix: indices are not all in [0, {columns})")


def _order(keep: Keep, path: Path, filename: str) -> dict[str, Any]:
    """A QAPLIB solution: n, its value, and where each facility goes, from 1."""
    try:
        numbers = [int(word) for word in path.read_text("ascii")[: 1 << 20].replace(",", " ").split()]
    except (ValueError, UnicodeDecodeError):
        raise InvalidUpload("file", "is not a QAPLIB solution; expected n, a value and a permutation") from None
    places = numbers[2:]
    if not places or numbers[0] != len(places) or sorted(places) != list(range(1, len(places) + 1)):
        raise InvalidUpload("file", "is not a QAPLIB solution; expected n, a value and a permutation from 1 to n")
    found = Understood(Path(filename).stem, "order")
    array = np.array(places, dtype=np.int64) - 1
    shown = _described(found) | {"cells": [], "cells_whole": False, "cells_shape": [0, 0]}
    return shown | {"shape": [len(places)], "facts": facts_of(array), "reference": keep(array)}
