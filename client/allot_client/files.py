"""Problems in files: which inputs a file holds, for which solver, and what its lines are called."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from allot_client.arrays import Array, Sparse
from allot_client.body import File
from allot_client.books import parts
from allot_client.called import fixed_by_number, labels_of
from allot_client.extents import SIDES, Extents, extents, shapes_of
from allot_client.features import same_names
from allot_client.lines import Row
from allot_client.tables import READ, Table, UnreadableTable, read_cells, read_table
from allot_client.text import is_text_table
from allot_client.words import maximizes

VECTORS = ("a", "b", "c", "pair_weights", "f0", "g0", "u0", "v0", "reject", "prices0", "assignment0")
"""Inputs that are one row of numbers."""
MAIN = {
    "lap": "cost", "uot": "cost", "auction": "benefit", "qap": "qaplib", "gromov": "x_distance",
    "barycenter": "histograms", "lowrank": "cost", "multimarginal": "cost", "lawler": "cost",
}  # fmt: skip
LAYOUTS = ("qap", "lawler")
OTHERS = {
    ".json": "lists are read by numpy.array(json.load(file)), and a job's JSON is posted, as by curl --json @FILE",
    **dict.fromkeys((".xls", ".xlsb", ".ods"), "save it as .xlsx or .csv"),
    **dict.fromkeys((".parquet", ".feather"), "pandas reads it and writes .csv"),
    **dict.fromkeys((".h5", ".hdf5", ".mat"), "numpy.save writes an array of it as .npy"),
    **dict.fromkeys((".pkl", ".pickle"), "it may hold a program; numpy.save writes an array as .npy"),
}
"""What people have numbers in, and how they come to be read."""
Reader = Callable[[Path], Any]


@dataclass
class Read:
    """What one job is made of: inputs by name, and the names of the answer's rows and columns.

    `label_names` is what the codes of labels stand for; `options` are those wanted, with numbers where lines had names.
    """

    solver: str
    inputs: dict[str, Any]
    row_names: tuple[str, ...] | None = None
    column_names: tuple[str, ...] | None = None
    label_names: tuple[Any, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def weights(self) -> Array | None:
        """The costs or benefits as a matrix, where they are one."""
        found = self.inputs.get("cost", self.inputs.get("benefit"))
        return found if isinstance(found, np.ndarray) and found.ndim == 2 else None

    @property
    def extents(self) -> Extents:
        """How many rows and columns the answer has."""
        return extents(shapes_of(self.inputs))

    @property
    def within(self) -> tuple[int, int] | None:
        """Facilities and locations of a layout, of which the answer may place more than were given."""
        facilities, locations = self.extents
        if self.solver not in LAYOUTS or facilities is None or locations is None:
            return None
        return facilities, locations


@dataclass(frozen=True)
class Wanted:
    """What the command line says about files: see `allot solve --help`."""

    solver: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    names: str = "auto"
    sheet: str | None = None


def option_values(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON, and a bare word is a string. Raises: ValueError."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--option {pair} is not NAME=VALUE")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def jobs_of(given: Sequence[str]) -> list[list[str]]:
    """Arguments as jobs: NAME=FILE ones together are the inputs of one, any other is a job of its own."""
    named = [one for one in given if _name_and_file(one) is not None]
    return [[one] for one in given] if len(named) < len(given) or not named else [list(given)]


def _name_and_file(text: str) -> tuple[str, Path] | None:
    name, equals, file = text.partition("=")
    return (name, Path(file)) if equals and name.isidentifier() and not Path(text).exists() else None


def read_job(given: Sequence[str], wanted: Wanted, read_other: Reader) -> Read:
    """The inputs of one job.

    Args:
        given: one file, or NAME=FILE for each input.
        wanted: solver, options and how tables are read.
        read_other: reads what is no table: an array, a dictionary of arrays, or anything that the solver takes.

    Raises:
        UnreadableTable, ValueError: says what is wrong with which file.
        OSError: a file cannot be read.
    """
    found: dict[str, Any] = {}
    for text in given:
        pair = _name_and_file(text)
        name, path = pair or (None, Path(text))
        _refuse_others(path)
        value = _table(path, wanted, name) if is_table(_without_sheet(path)[0]) else read_other(path)
        if isinstance(value, dict) and len(value) == 1 and name is not None and name not in value:
            value = next(iter(value.values()))  # the only one there is, whatever it is called there
        if isinstance(value, dict):
            if name is not None and name not in value:
                raise ValueError(f"{path} holds {_some(value)}; expected {name} among them")
            found |= {key: one for key, one in value.items() if name is None or key == name}
        else:
            called = name or ("benefit" if _is_sparse(value) else "cost")
            if called in found:
                raise ValueError(f"{text} is a second {called}; say NAME=FILE for each input, as flow={path}")
            found[called] = value
    solver = wanted.solver or guess_solver(found)
    main = MAIN[solver]
    if main not in found and len(found) == 1 and next(iter(found)) in ("cost", "benefit"):
        found = {main: next(iter(found.values()))}
    return _named(solver, found, wanted)


def _refuse_others(path: Path) -> None:
    """Refuse by its name a file of another program, and say what to make of it. Raises ValueError."""
    advice = OTHERS.get(path.suffix.lower())
    if advice is not None and path.is_file():
        raise ValueError(f"{path} is not read here; expected a table (.csv, .xlsx), .npy, .npz, .mtx or .dat: {advice}")


def _table(path: Path, wanted: Wanted, name: str | None) -> Table | dict[str, Table] | list[Row]:
    """A table, or those of a workbook that holds several inputs; `name` is what the command line calls it."""
    path, sheet = _without_sheet(path)
    sheet = sheet or wanted.sheet
    if name == "labels" and path.suffix.lower() != ".h5ad":
        return read_cells(path, sheet)
    if path.suffix.lower() == ".xlsx" and sheet is None and name is None:
        found = parts(path, wanted.names, wanted.solver)
        if found is not None:
            return found
    return read_table(path, wanted.names, sheet)


def _without_sheet(path: Path) -> tuple[Path, str | None]:
    """FILE.xlsx:SHEET as a file and its sheet."""
    file, colon, sheet = path.name.rpartition(":")
    if not colon or not file.lower().endswith(".xlsx") or path.exists():
        return path, None
    return path.with_name(file), sheet


def is_table(path: Path) -> bool:
    """Whether a file is read as a table."""
    return path.suffix.lower() in READ or is_text_table(path)


def _is_sparse(value: Any) -> bool:
    return hasattr(value, "indptr")


TELLING = {
    "qap": {"flow", "distance", "qaplib"},
    "gromov": {"x_distance", "y_distance", "x_features", "y_features", "plan0"},
    "auction": {"benefit", "reject", "prices0"},
    "barycenter": {"histograms", "support"},
    "multimarginal": {"z", "c", "pair_weights"},
    "uot": {"x", "y", "a", "b"},
    "lap": {"cost"},
}
"""Inputs by which a solver is known; the first solver counts."""
NAMED = 5
"""So many names of what a file holds are shown."""


def guess_solver(inputs: Mapping[str, Any]) -> str:
    """The solver that takes these inputs. Raises: ValueError."""
    for solver, names in TELLING.items():
        if names & set(inputs):
            return solver
    raise ValueError(f"the file holds {_some(inputs)}, by which no solver is known; name one with --solver")


def _some(names: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    shown = sorted(names)
    more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + more or "nothing"


def _named(solver: str, found: dict[str, Any], wanted: Wanted) -> Read:
    tables = {name: value for name, value in found.items() if isinstance(value, Table)}
    forbidden = -math.inf if maximizes(solver, wanted.options) else math.inf
    if "x" in tables and "y" in tables and solver != "gromov":
        found = {**found, "y": _in_order(tables["x"], tables["y"])}
    cells = found["labels"] if isinstance(found.get("labels"), list) else None
    inputs = {name: _value(name, value, forbidden, solver) for name, value in found.items() if value is not cells}
    first: Table | None = next(iter(tables.values()), None)
    rows, columns = (first.row_names, first.column_names) if first is not None else (None, None)
    for left, right in SIDES:
        if left in found or right in found:
            rows, columns = (tables[one].row_names if one in tables else None for one in (left, right))
    options = fixed_by_number(wanted.options, rows, columns) if solver in LAYOUTS else wanted.options
    read = Read(solver, inputs, rows, columns, options=options)
    if cells is None:
        return read
    codes, names = labels_of(cells, columns, read.extents[1])
    return replace(read, inputs={**inputs, "labels": codes}, label_names=names)


def _in_order(x: Table, y: Table) -> Table:
    """The table `y` with its columns in the order of those of `x`, where both name them and share a name."""
    left, right = x.column_names, y.column_names
    if left is None or right is None or left == right or not set(left) & set(right):
        return y
    order = same_names(left, right)
    return replace(y, values=y.values[:, order], missing=y.missing[:, order], column_names=left)


def _value(name: str, value: Any, forbidden: float, solver: str) -> Any:
    if not isinstance(value, Table):
        return value
    if name in VECTORS:
        try:
            return value.vector()
        except UnreadableTable as wrong:
            raise UnreadableTable(f"{name} {wrong}") from None
    if value.missing.any() and (solver == "qap" or name in ("x", "y", "z")):
        raise UnreadableTable(f"{name} has an empty cell, and nothing can be forbidden there; expected a number")
    if solver == "uot" and value.missing.any():  # no forbidden entry among its integers
        return np.where(value.missing, forbidden, value.values)
    return value.filled(forbidden)


EDGES = b"%%matrixmarket matrix coordinate"
"""How a file of MatrixMarket begins that is sparse."""
GZIP = b"\x1f\x8b"
"""How a file begins that gzip packed."""


def read_for_service(path: Path) -> Any:
    """A file that is no table: arrays where NumPy reads them, else the file itself, which the service reads."""
    if path.suffix == ".npy":
        return np.load(path, mmap_mode="r", allow_pickle=False)
    if path.suffix == ".npz":
        try:
            members = dict(np.load(path, allow_pickle=False))
        except (ValueError, zipfile.BadZipFile) as wrong:
            raise ValueError(f"{path.name} is no npz file of arrays ({wrong})") from None
        layout = members.get("format", np.array("csr" if "indptr" in members else 0))
        if {"data", "shape"} <= members.keys() and layout.dtype.kind in "SU":
            return _sparse(path, members, layout.astype(str).item())
        if len(members) == 1 and not set(members) <= set().union(*TELLING.values()):
            return next(iter(members.values()))  # `np.savez` calls it arr_0
        return members
    content = path.read_bytes()
    kind, begins = path.suffix, content[: len(EDGES)]
    if content.startswith(GZIP):
        kind, begins = Path(path.stem).suffix, _unpacked(content, len(EDGES))
    known = {".dat": "qaplib", ".sln": "sln"}
    name = known.get(kind, "benefit" if begins.lower() == EDGES else "cost")
    return {name: File(path.name, content)}


def _sparse(path: Path, members: Mapping[str, Any], layout: str) -> Sparse:
    """A matrix as SciPy saves it. Of one that is not laid out by rows SciPy makes one that is."""
    if layout != "csr":
        try:
            from scipy import sparse
        except ImportError:
            raise ValueError(
                f"{path.name} is sparse in layout {layout}; expected csr (.tocsr() before saving)"
            ) from None
        matrix = sparse.load_npz(path).tocsr()
        if layout == "bsr":  # zeros that fill its blocks up are no entries
            matrix.eliminate_zeros()
        members = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data, "shape": matrix.shape}
    n_rows, n_cols = (int(extent) for extent in members["shape"])
    return Sparse(members["indptr"], members["indices"], members["data"], (n_rows, n_cols))


def _unpacked(content: bytes, most: int) -> bytes:
    """The first bytes of what gzip packed; fewer where it is damaged, of which the service says more."""
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(content, most)
    except zlib.error:
        return b""
