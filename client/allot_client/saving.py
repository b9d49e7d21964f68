"""An answer as a file: every array (.npz), one line of JSON (.json), or a table with names (.csv, .tsv, .xlsx)."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from allot_client.arrays import Array
from allot_client.layouts import placed
from allot_client.results import GROUPS, Result
from allot_client.tables import SUFFIXES, write_table

OUT_SUFFIXES = (".npz", ".json", *SUFFIXES)


class NoTable(ValueError):
    """An answer without pairs, a plan, a layout or potentials of two sides."""


def check_suffix(path: Path) -> None:
    """Raise ValueError for a file that `save` could not write, before anything is solved for it."""
    if path.suffix.lower() not in OUT_SUFFIXES:
        raise ValueError(f"--out {path}: expected a name that ends in {', '.join(OUT_SUFFIXES)}")


def save(result: Result, path: Path, weights: Array | None = None) -> None:
    """Write the answer; `weights` are the costs or benefits that a table of pairs shows beside each pair.

    It is written beside the file and renamed when it is whole, so that a file that is there stays as it is until then.

    Raises:
        NoTable: the file's name asks for a table, and the answer is none.
        OSError: it cannot be written.
    """
    check_suffix(path)
    kept = path.resolve()  # a link stays one
    if kept.exists() and not kept.is_file():  # a pipe has nothing to lose
        _write(result, path, weights)
        return
    aside = kept.with_name(f".{os.getpid()}-{kept.name}")
    try:
        _write(result, aside, weights)
        if kept.exists():
            shutil.copymode(kept, aside)
        aside.replace(kept)
    except OSError as wrong:
        wrong.filename = str(path)  # whose name is known
        raise
    finally:
        aside.unlink(missing_ok=True)


def _write(result: Result, path: Path, weights: Array | None) -> None:
    suffix = path.suffix.lower()
    if suffix == ".npz":
        names = _names(result)
        arrays: dict[str, Any] = {name: np.asarray(array) for name, array in result.arrays.items()}
        arrays |= {name: np.array(value, str) for name, value in names.items() if value}
        with path.open("wb") as file:  # of a name that ends in .NPZ numpy would make another
            np.savez(file, **arrays)
    elif suffix == ".json":
        path.write_text(one_line(result) + "\n")
    else:
        write_table(path, table_rows(result, weights))


def one_line(result: Result) -> str:
    """The whole answer as one line of JSON, names and arrays among it; what is not finite is null."""
    document = {name: value for name, value in result.document.items() if name != "links"}
    if not result.id:  # solved without a service
        document.pop("id", None)
    lists = {name: _plain(np.asarray(array).tolist()) for name, array in result.arrays.items()}
    for group in GROUPS:
        if isinstance(document.get(group), dict):
            document[group] = {name: lists.pop(name, value) for name, value in document[group].items()}
    names = _names(result)
    document |= lists | {name: list(value) for name, value in names.items() if value}
    return json.dumps(_plain(document), allow_nan=False, default=str)


def _names(result: Result) -> dict[str, tuple[Any, ...] | None]:
    """What lines are called, and what codes of labels stand for."""
    labels = result.home.label_names
    return {"row_names": result.row_names, "column_names": result.column_names, "label_names": labels}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table_rows(result: Result, weights: Array | None = None) -> Iterator[Sequence[Any]]:
    """The answer as rows of cells, the first of them headings. Raises NoTable before the first."""
    arrays = {name: np.asarray(array) for name, array in result.arrays.items()}
    several = "assignment" in arrays and arrays["assignment"].ndim == 2  # of which some may have pairs
    if result.termination == "infeasible" and not several:
        raise NoTable("this answer is infeasible, so nothing was written")
    if "plan" in arrays and arrays["plan"].ndim == 2:
        yield from _matrix(arrays["plan"], result)
    elif several:
        yield from _several(arrays["assignment"])
    elif "assignment" in arrays:
        yield from _pairs(arrays, result, weights)
    elif "permutation" in arrays:
        yield ("facility", "location")
        for facility, location in enumerate(placed(result).tolist()):
            yield (_name(result.row_names, facility), _name(result.column_names, location))
    elif "f" in arrays and "g" in arrays and arrays["f"].ndim == 1:
        yield ("side", "name", "potential")
        for side, names in (("f", result.row_names), ("g", result.column_names)):
            for k, value in enumerate(arrays[side].tolist()):
                yield (side, _name(names, k), _plain(value))
    else:
        raise NoTable("this answer is no table, so nothing was written; expected --out with .npz or .json")


def _matrix(plan: Array, result: Result) -> Iterator[Sequence[Any]]:
    yield ("", *(_name(result.column_names, j) for j in range(plan.shape[1])))
    for i, row in enumerate(plan.tolist()):
        yield (_name(result.row_names, i), *row)


def _several(assignments: Array) -> Iterator[Sequence[Any]]:
    yield ("problem", "row", "column")
    for k, one in enumerate(assignments.tolist()):
        for row, column in enumerate(one):
            yield (k, row, None if column < 0 else column)


def _pairs(arrays: Mapping[str, Array], result: Result, weights: Array | None) -> Iterator[Sequence[Any]]:
    """The pairs of an assignment; of a list of the best those of each, behind its rank."""
    listed = "assignments" in arrays
    shown = weights if weights is not None and weights.ndim == 2 else None
    yield (*(("rank",) if listed else ()), "row", "column", *(() if shown is None else ("value",)))
    every = arrays["assignments"] if listed else arrays["assignment"][None]
    for rank, assignment in enumerate(every.tolist(), 1):
        for row, column in enumerate(assignment):
            pair = (_name(result.row_names, row), None if column < 0 else _name(result.column_names, column))
            worth = () if shown is None else (None if column < 0 else shown[row, column].item(),)
            yield (*((rank,) if listed else ()), *pair, *worth)


def _name(names: tuple[Any, ...] | None, k: int) -> Any:
    return names[k] if names else k
