"""Spreadsheets as cells: CSV, TSV, XLSX and (annotated.py) AnnData, read as if their writer meant harm.

A cell is None (empty), a number or a text. What a workbook inflates to is checked before it is inflated, and how many
rows and cells it holds while it is read.
"""

import csv
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allot_client.text import NoText, decoded, divided

from app.web.cells import LONGEST_CELL, POINT, Cell, Marks, marks_of, number
from workers.store.codec import InvalidUpload

MIB = 1 << 20
MAX_TEXT = 64 * MIB
MAX_INFLATED = 256 * MIB
MAX_RATIO = 200
MAX_MEMBERS = 2000
MAX_SHEETS = 32
MAX_ROWS = 200_000
MAX_CELLS = 2049 * 2049
"""A matrix of 2048 lines on both sides, with their names."""
ELSEWHERE = {
    ".xls": "an old Excel workbook",
    ".xlsb": "a binary Excel workbook",
    ".ods": "an OpenDocument spreadsheet",
    ".numbers": "a Numbers spreadsheet",
    ".pdf": "a PDF",
    ".docx": "a Word document",
    ".png": "a picture",
    ".jpg": "a picture",
    ".jpeg": "a picture",
}
"""What people have tables in, beside what is read here."""
MANY_DOTS = re.compile(r"\d\.\d{3}\.\d{3}")


@dataclass(frozen=True)
class Sheet:
    """One table as it was written: rows of cells, not all of the same length."""

    name: str
    rows: list[list[Cell]]


def is_table(filename: str) -> bool:
    """True for the names of files that are read here."""
    return filename.lower().endswith((".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".h5ad"))


def elsewhere(filename: str) -> str:
    """What a file is by its name, if it is of a kind that is known and not read; else ""."""
    return ELSEWHERE.get(Path(filename.lower()).suffix, "")


def read_tables(path: Path, filename: str, charge: Callable[[int], object]) -> list[Sheet]:
    """Every sheet of a file. `charge` is asked for the bytes that a workbook inflates to, before it does.

    Raises:
        InvalidUpload: says what is wrong with it.
    """
    if filename.lower().endswith((".xlsx", ".xlsm")):
        return read_workbook(path, charge)
    if filename.lower().endswith(".h5ad"):
        from app.web.annotated import read_annotated

        return read_annotated(path)
    if path.stat().st_size > MAX_TEXT:
        raise InvalidUpload("file", f"is larger than {MAX_TEXT // MIB} MiB of text; send it as .npy or .npz")
    return [read_text(path.read_bytes(), Path(filename).stem)]


def read_text(data: bytes, name: str) -> Sheet:
    """Text with tabs, semicolons, bars, commas or spaces between cells. Raises InvalidUpload."""
    try:
        text = decoded(data)
    except NoText:
        raise InvalidUpload("file", "holds no text; expected a table of numbers") from None
    rows: list[list[Cell]] = []
    count = 0
    try:
        marks = _marks(text)
        for line in divided(text)[0]:
            rows.append([number(cell, marks) for cell in line])
            count += len(line)
            _check_size(len(rows), count, name)
    except csv.Error as wrong:
        raise InvalidUpload("file", f"is no table of text: {wrong}") from None
    if not any(cell is not None for row in rows for cell in row):
        raise InvalidUpload("file", "holds no cells; expected a table of numbers")
    return Sheet(name or "Table", rows)


def _marks(text: str) -> Marks:
    """What commas and dots say in its numbers. Who separates cells by semicolons most often writes decimal commas."""
    lines, mark = divided(text)
    telling = '"' in text if mark == "," else "," in text or MANY_DOTS.search(text)
    return marks_of(lines, mark == ";") if telling else POINT


def read_workbook(path: Path, charge: Callable[[int], object] = lambda count: None) -> list[Sheet]:
    """Every sheet of an .xlsx that holds anything, values only."""
    charge(_inflated(path))
    try:
        import openpyxl
    except ImportError:
        raise InvalidUpload(
            "file", "is a workbook, and this service was installed without allot[tables]; save it as CSV"
        ) from None
    try:
        with path.open("rb") as file:  # by its name, openpyxl would judge the suffix
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = [Sheet(sheet.title, list(_rows(sheet))) for sheet in book.worksheets[:MAX_SHEETS]]
    except InvalidUpload:
        raise
    except Exception as wrong:  # openpyxl raises whatever its parsers do
        raise InvalidUpload("file", f"cannot be read as a workbook: {type(wrong).__name__}") from None
    filled = [sheet for sheet in sheets if any(cell is not None for row in sheet.rows for cell in row)]
    if not filled:
        raise InvalidUpload("file", "holds no cells; expected a table of numbers")
    return filled


def _inflated(path: Path) -> int:
    """A workbook is a zip: the bytes that it says it inflates to, before anything is. zipfile stops at what it says."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, struct.error, ValueError, OSError):
        raise InvalidUpload("file", "is not a workbook (.xlsx); it may be damaged or of an older form") from None
    inflated = sum(member.file_size for member in members)
    if len(members) > MAX_MEMBERS or inflated > MAX_INFLATED:
        raise InvalidUpload("file", f"inflates to {inflated} bytes; at most {MAX_INFLATED} are taken")
    if inflated > MAX_RATIO * max(path.stat().st_size, MIB // 4):
        raise InvalidUpload("file", f"inflates to more than {MAX_RATIO} times its size, which no spreadsheet does")
    return inflated


def _rows(sheet: Any) -> Iterator[list[Cell]]:
    count = 0
    for index, row in enumerate(sheet.iter_rows(values_only=True)):
        cells = [_cell(value) for value in row]
        while cells and cells[-1] is None:
            cells.pop()
        count += len(cells)
        _check_size(index + 1, count, sheet.title)
        yield cells


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, str):
        return None if value is None else number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)[:LONGEST_CELL]
    return value if isinstance(value, int) or not value.is_integer() or abs(value) > 2**53 else int(value)


def check_extent(rows: int, width: int, name: str) -> None:
    """Raise InvalidUpload where a few long rows among many short ones would make a huge table."""
    _check_size(rows, rows * width, name)


def _check_size(rows: int, cells: int, name: str) -> None:
    if rows > MAX_ROWS or cells > MAX_CELLS:
        raise InvalidUpload(
            "file", f"sheet {name[:60]} has more than {MAX_ROWS} rows or {MAX_CELLS} cells; send it as .npy"
        )


def letters(column: int) -> str:
    """The name of a column, from 0: A, B, ..., Z, AA."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name
