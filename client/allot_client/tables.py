"""Matrices in CSV, TSV, XLSX and AnnData files, with the names of their rows and columns.

An empty cell is a pair that is forbidden, and so is one that a list of pairs does not name. A first row and a first
column of words are names; `names` says so where a file leaves it open. Excel files need openpyxl (`pip install
"allot[tables]"` or `"allot-client[tables]"`).
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from allot_client.arrays import FORBIDDEN_INTEGER, Array, given
from allot_client.lines import NUMBER, Cell, Listed, Row, as_list, heads
from allot_client.text import NoText, decoded, divided

SUFFIXES = (".csv", ".tsv", ".xlsx")
READ = (*SUFFIXES, ".h5ad")
"""What is read as a table; AnnData files need anndata."""
PLAIN = re.compile(r"[0-9.eE+ -]*")

MOST_LISTED = 1 << 26
"""Entries of the largest matrix that a list of pairs is written out as, 512 MiB."""


class UnreadableTable(ValueError):
    """A file that is no table of numbers. The message is one sentence that names the cell."""


@dataclass(frozen=True)
class Table:
    """A matrix and the names of its lines.

    `values` is int64 where every number is whole, else float64; it is 0 where `missing` is True.
    """

    values: Array
    missing: Array
    row_names: tuple[str, ...] | None = None
    column_names: tuple[str, ...] | None = None

    def filled(self, forbidden: float) -> Array:
        """The matrix with `forbidden` (+inf or -inf) in empty cells; whole numbers stay whole."""
        if not self.missing.any():
            return self.values
        entry: float = FORBIDDEN_INTEGER if self.values.dtype.kind == "i" else forbidden
        return np.where(self.missing, entry, self.values).astype(self.values.dtype)

    def vector(self) -> Array:
        """The numbers of a table that has one row or one column. Raises: UnreadableTable."""
        if 1 not in self.values.shape or self.missing.any():
            raise UnreadableTable(f"has {self.values.shape[0]} rows and {self.values.shape[1]} columns; expected one "
                                  "row or one column without empty cells")  # fmt: skip
        return self.values.reshape(-1)


def read_table(path: Path, names: str = "auto", sheet: str | None = None) -> Table:
    """The table of a file; of an Excel file the first sheet, or the one of that name.

    Args:
        path: ends in .csv, .tsv, .txt, .xlsx or .h5ad.
        names: which lines hold names: "both", "rows" (the first column names the rows), "columns", "none" or "auto".
        sheet: of an Excel file.

    Raises:
        UnreadableTable: says which cell, what it holds and what was expected.
        OSError: the file cannot be read.
    """
    try:
        if path.suffix.lower() == ".h5ad":
            return _annotated(path)
        if path.suffix.lower() == ".xlsx":
            return parse_rows(_excel_rows(path, sheet), names)
        return parse_text(path.read_bytes(), "\t" if path.suffix.lower() == ".tsv" else None, names)
    except UnreadableTable as wrong:
        raise UnreadableTable(f"{path.name}: {wrong}") from None


def read_cells(path: Path, sheet: str | None = None) -> list[Row]:
    """The cells of a table as they are written, whatever they are: an empty line is one empty cell. Raises as
    `read_table`."""
    try:
        if path.suffix.lower() == ".xlsx":
            return _excel_rows(path, sheet)
        rows = _text_rows(path.read_bytes(), "\t" if path.suffix.lower() == ".tsv" else None)[0]
        return [row or [""] for row in rows]
    except UnreadableTable as wrong:
        raise UnreadableTable(f"{path.name}: {wrong}") from None


def parse_text(content: bytes, delimiter: str | None = None, names: str = "auto") -> Table:
    """The table of a text: see `text.divided`. Where semicolons divide its cells a comma is a decimal point."""
    rows, mark = _text_rows(content, delimiter)
    if mark == ";":
        rows = [[_with_point(cell) for cell in row] for row in rows]
    return parse_rows(rows, names)


def _text_rows(content: bytes, delimiter: str | None) -> tuple[list[Row], str]:
    try:
        lines, mark = divided(decoded(content), delimiter)
        return [[cell.strip() for cell in row] for row in lines], mark
    except NoText:
        raise UnreadableTable("holds no text; expected a table of numbers") from None
    except csv.Error as wrong:
        raise UnreadableTable(f"is no table of text ({wrong})") from None


def parse_rows(rows: list[Row], names: str = "auto") -> Table:
    """The table of rows of cells. Empty rows at the end, and empty columns at the end, are left away."""
    rows = _trimmed(rows)
    if not rows:
        raise UnreadableTable("is empty; expected a matrix of numbers")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise UnreadableTable(f"row {i + 1} has {len(row)} cells; expected {len(rows[0])} like the first")
    by_row, by_column, doubt = names in ("both", "rows"), names in ("both", "columns"), ""
    if names == "auto":
        if listed := as_list(rows[0], rows[1:]):
            return _of_list(listed, rows)
        by_row, by_column, doubt = heads(rows)
    if doubt:
        raise UnreadableTable(f"{doubt}; expected --names both, rows, columns or none to say which")
    row_names = tuple(_shown(row[0]) for row in rows[by_column:]) if by_row else None
    column_names = tuple(_shown(cell) for cell in rows[0][by_row:]) if by_column else None
    body = [row[by_row:] for row in rows[by_column:]]
    if not body or not body[0]:
        raise UnreadableTable("holds names alone; expected a matrix of numbers")
    values, missing = _numbers(body, int(by_column), int(by_row))
    return Table(values, missing, row_names, column_names)


def _of_list(listed: Listed, rows: list[Row]) -> Table:
    """The matrix of a list of pairs; a pair that it does not name is forbidden."""
    ones, others, told = listed
    if len(ones) * len(others) > MOST_LISTED:
        raise UnreadableTable(
            f"lists pairs of {len(ones)} rows and {len(others)} columns, too many for a matrix of all; expected a "
            "sparse matrix, as an .npz file of scipy.sparse.save_npz or an .mtx file"
        )
    numbers, empty = _numbers([row[2:] for row in rows[1:]], 1, 2)
    values, missing = np.zeros((len(ones), len(others)), numbers.dtype), np.ones((len(ones), len(others)), bool)
    for place, at in told.items():
        values[place], missing[place] = numbers[at, 0], empty[at, 0]
    return Table(values, missing, tuple(ones), tuple(others))


def _annotated(path: Path) -> Table:
    """The cells of an AnnData file by their names."""
    try:
        import anndata
    except ImportError:
        how = f"{sys.executable or 'python'} -m pip install anndata"
        raise UnreadableTable(f"is an AnnData file, which needs anndata ({how}); or save it as .npy") from None
    if not path.is_file():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    try:
        found = given(anndata.read_h5ad(path))
    except Exception as wrong:  # whatever a broken file makes of h5py and anndata
        raise UnreadableTable(f"is no AnnData file ({type(wrong).__name__})") from None
    values = np.asarray(found.value)
    names = [None if one is None else tuple(map(str, one)) for one in (found.row_names, found.column_names)]
    return Table(values, np.zeros(values.shape, bool), names[0], names[1])


def write_table(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows of cells as .csv, .tsv or .xlsx; None leaves a cell empty."""
    if path.suffix.lower() == ".xlsx":
        book = _openpyxl().Workbook(write_only=True)
        page = book.create_sheet("answer")
        for row in rows:
            page.append(list(row))
        book.save(path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", lineterminator="\n").writerows(rows)


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        how = f"install it with {sys.executable or 'python'} -m pip install openpyxl"
        raise UnreadableTable(f"Excel files need openpyxl; {how}") from None
    return openpyxl


def sheet_names(path: Path) -> list[str]:
    """The titles of an Excel file's sheets. Raises: UnreadableTable, OSError."""
    try:
        return list(_book(path).sheetnames)
    except UnreadableTable as wrong:
        raise UnreadableTable(f"{path.name}: {wrong}") from None


def _book(path: Path) -> Any:
    openpyxl = _openpyxl()
    if not path.is_file():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as wrong:  # whatever a broken archive makes of zipfile, the XML parser or openpyxl
        raise UnreadableTable(f"is no Excel file ({type(wrong).__name__})") from None


def _excel_rows(path: Path, sheet: str | None) -> list[Row]:
    book = _book(path)
    if sheet is not None and sheet not in book.sheetnames:
        raise UnreadableTable(f"has no sheet {sheet!r}; its sheets: {', '.join(book.sheetnames)}")
    page = book[sheet] if sheet is not None else book.worksheets[0]
    rows: list[Row] = [[_excel_cell(cell) for cell in row] for row in page.iter_rows(values_only=True)]
    width = max(map(len, rows), default=0)  # empty cells at the end of a row are not in the file
    return [row + [""] * (width - len(row)) for row in rows]


def _excel_cell(cell: Any) -> Cell:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return "" if cell is None else str(cell).strip()
    return int(cell) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53 else cell


def _trimmed(rows: list[Row]) -> list[Row]:
    rows = [row for row in rows if row]
    while rows and all(cell in ("", None) for cell in rows[-1]):
        rows = rows[:-1]
    width = max((len(row) for row in rows), default=0)
    while width and all(len(row) < width or row[width - 1] in ("", None) for row in rows):
        width -= 1
    return [row[:width] for row in rows]


def _with_point(cell: str) -> str:
    pointed = cell.replace(",", ".", 1)
    return pointed if NUMBER.fullmatch(pointed) else cell


def _shown(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def _numbers(body: list[Row], row_offset: int, column_offset: int) -> tuple[Array, Array]:
    """The numbers, int64 where every one is whole, and which cells are empty."""
    values, missing = [], np.zeros((len(body), len(body[0])), bool)
    for i, row in enumerate(body):
        if "" in row or None in row:
            missing[i] = [cell == "" or cell is None for cell in row]
        found = _plain_row(row)
        if found is None:
            cells = [_number(cell, i + row_offset, j + column_offset) for j, cell in enumerate(row)]
            found = np.array(cells, np.int64 if all(isinstance(cell, int) for cell in cells) else np.float64)
        values.append(found)
    return np.stack(values), missing


def _plain_row(row: Row) -> Array | None:
    """A row of text that holds digits, points and exponents alone, without a look at each cell; None for others."""
    try:
        text = " ".join(row)
        if not PLAIN.fullmatch(text):
            return None
        digits = text.replace(" ", "").replace("-", "").replace("+", "")
        if (digits.isdigit() or not digits) and len(max(row, key=len)) < 19:  # an empty row is as whole as others
            return np.array([int(cell or 0) for cell in row], np.int64)
        return np.array([float(cell or 0) for cell in row], np.float64)
    except (TypeError, ValueError):  # numbers of a spreadsheet, two points
        return None


def _number(cell: Cell, i: int, j: int) -> int | float:
    if isinstance(cell, int | float):
        number: int | float = cell
    elif not cell:
        return 0
    elif NUMBER.fullmatch(cell):
        number = int(cell) if cell.lstrip("+-").isdigit() else float(cell)
    else:
        raise UnreadableTable(
            f"cell {cell_name(i, j)} holds {cell!r}, which is no number; expected a number, or nothing where a pair "
            "is forbidden"
        )
    if isinstance(number, int) and abs(number) >= 2**63:
        return float(number)
    return math.inf if number == math.inf else number


def cell_name(i: int, j: int) -> str:
    """Row i and column j, from 0, as spreadsheets name them: 0, 0 is A1."""
    letters = ""
    j += 1
    while j:
        j, digit = divmod(j - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return f"{letters}{i + 1}"
