"""POST /v1/previews: read a file and say what it was taken for, before anything is solved.

The arrays that were found are kept as blobs, so that a job can name them and the file is sent only once.
"""

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from app.answers.answer import json_response
from app.http.auth import owner as owner_of
from app.intake.body import slices
from app.intake.reading import read_upload
from app.intake.visit import Desk
from app.web.heat import heat_of, heat_of_sparse
from app.web.samples import sample_sheets
from app.web.tables import Sheet, is_table, read_tables
from app.web.understood import Understood, coordinates, facts_of, understand, weights
from kernels import Array, Csr
from workers.store.codec import Decoded, Form, InvalidUpload
from workers.store.store import Store

Owner = Annotated[str, Depends(owner_of)]
MISSING = {"zero": 0.0, "inf": math.inf, "-inf": -math.inf}
WHOLE_CELLS = 10_000
HEAD_ROWS, HEAD_COLUMNS = 12, 12
MOST_NAMES = 200_000
MOST_POINTS = 60_000
Missing = Annotated[str, Query(pattern="^(zero|inf|-inf)$", description="what an empty cell stands for")]


async def post(
    request: Request,
    owner: Owner,
    filename: Annotated[str, Query(max_length=255)] = "table.csv",
    missing: Missing = "zero",
) -> Response:
    """Read a table or a file of arrays, and say what it holds: shape, range, names, faults, and a small picture."""
    state = request.app.state
    desk: Desk = state.desk
    with desk.visit(owner) as visit:
        path = visit.aside()
        with path.open("wb") as file:
            async for piece in slices(request, state.settings.max_upload_bytes, visit.held.take):
                await run_in_threadpool(file.write, piece)
        size = path.stat().st_size
        if size == 0:
            raise InvalidUpload("file", "is empty")
        if filename.lower().endswith(".sln") or is_table(filename):
            shown = await run_in_threadpool(_written, state.store, owner, path, filename, MISSING[missing])
        else:
            reading = await read_upload(visit, path, Form(filename=filename), "file")
            shown = await run_in_threadpool(_arrays, state.store, owner, reading.value, filename)
    return json_response({"filename": filename, "bytes": size, "sheets": shown})


async def sample(request: Request, owner: Owner, name: str, missing: Missing = "zero") -> Response:
    """Give a sample as if its file had been sent."""
    sheets = sample_sheets(name)
    store: Store = request.app.state.store

    def work() -> dict[str, Any]:
        return {"filename": name, "sheets": [_table(store, owner, sheet, MISSING[missing]) for sheet in sheets]}

    return json_response(await run_in_threadpool(work))


def _written(store: Store, owner: str, path: Path, filename: str, missing: float) -> list[dict[str, Any]]:
    """What people write: a table, or an order of places."""
    if filename.lower().endswith(".sln"):
        return [_order(store, owner, path, filename)]
    return [_table(store, owner, sheet, missing) for sheet in read_tables(path, filename)]


def _arrays(store: Store, owner: str, value: Decoded, filename: str) -> list[dict[str, Any]]:
    found = value if isinstance(value, dict) else {Path(filename).stem: value}
    return [_array(store, owner, name, one) for name, one in found.items()]


def _table(store: Store, owner: str, sheet: Sheet, missing: float) -> dict[str, Any]:
    found = understand(sheet, missing)
    shown = _described(found) | _cells(sheet)
    if found.values is not None:
        shown |= _numbers(store, owner, found)
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
    }


def _cells(sheet: Sheet) -> dict[str, Any]:
    """The cells as they were written: all of a small sheet, which may be edited, else its first corner."""
    width = max(len(row) for row in sheet.rows)
    whole = width * len(sheet.rows) <= WHOLE_CELLS
    rows = sheet.rows if whole else [row[:HEAD_COLUMNS] for row in sheet.rows[:HEAD_ROWS]]
    return {"cells": rows, "cells_whole": whole, "cells_shape": [len(sheet.rows), width]}


def _numbers(store: Store, owner: str, found: Understood) -> dict[str, Any]:
    values = found.values
    assert values is not None
    shown: dict[str, Any] = {"shape": list(values.shape), "facts": facts_of(values)}
    if found.role == "points":
        where = np.ascontiguousarray(values[:, coordinates(found)], dtype=np.float64)
        shown["reference"] = store.put(where, owner)
        weight = weights(found)
        shown["weights"] = None if weight is None else store.put(np.ascontiguousarray(values[:, weight]), owner)
        shown["points"] = values.tolist() if values.size <= MOST_POINTS else None
        return shown
    array = values[:, 0] if found.role == "list" else values
    shown["reference"] = store.put(np.ascontiguousarray(array), owner)
    shown["heat"] = heat_of(values)
    return shown


def _array(store: Store, owner: str, name: str, value: Array | Csr) -> dict[str, Any]:
    """One array of a file that holds arrays and no names."""
    found = Understood(name, "matrix")
    shown = _described(found) | {"cells": [], "cells_whole": False, "cells_shape": [0, 0]}
    if isinstance(value, Csr):
        facts = facts_of(value.values) | {"stored": len(value.values), "symmetric": None}
        heat = heat_of_sparse(value)
        shown |= {"role": "sparse", "shape": list(value.shape), "facts": facts, "heat": heat}
        return shown | {"reference": store.put(value, owner)}
    if value.dtype.kind not in "iuf" or not value.size:
        raise InvalidUpload("file", f"{name} holds {value.dtype} in shape {value.shape}; expected numbers")
    shown |= {"shape": list(value.shape), "facts": facts_of(value), "reference": store.put(value, owner)}
    if value.ndim == 2:
        return shown | {"heat": heat_of(value)}
    return shown | {"role": "list" if value.ndim == 1 else "stack"}


def _order(store: Store, owner: str, path: Path, filename: str) -> dict[str, Any]:
    """A QAPLIB solution: n, its value, and where each facility goes, from 1."""
    try:
        numbers = [int(word) for word in path.read_text("ascii")[: 1 << 20].replace(",", " ").split()]
    except (ValueError, UnicodeDecodeError):
        raise InvalidUpload("file", "is not a QAPLIB solution; expected n, a value and a permutation") from None
    places = numbers[2:]
    if not places or sorted(places) != list(range(1, numbers[0] + 1)):
        raise InvalidUpload("file", "is not a QAPLIB solution; expected n, a value and a permutation from 1 to n")
    found = Understood(Path(filename).stem, "order")
    array = np.array(places, dtype=np.int64) - 1
    shown = _described(found) | {"cells": [], "cells_whole": False, "cells_shape": [0, 0]}
    return shown | {"shape": [len(places)], "facts": facts_of(array), "reference": store.put(array, owner)}
