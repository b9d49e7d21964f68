import math
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from allot_client import tables
from allot_client.arrays import FORBIDDEN_INTEGER
from allot_client.tables import (
    UnreadableTable,
    cell_name,
    parse_text,
    read_table,
    write_table,
)

PEOPLE, TASKS = ("Anna", "Bob"), ("wash", "cook", "1 rest")


def excel(path: Path, rows: list[list[object]], sheet: str = "costs") -> Path:
    book: Any = openpyxl.Workbook()
    book.active.title = "notes"
    page = book.create_sheet(sheet)
    for row in rows:
        page.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("1,2\n3,4\n", None, None),
        ("a,b\n1,2\n3,4\n", None, ("a", "b")),
        ("r,1,2\ns,3,4\n", ("r", "s"), None),
        (",a,b\nr,1,2\ns,3,4\n", ("r", "s"), ("a", "b")),
        ("who,a,b\nr,1,2\ns,3,4\n", ("r", "s"), ("a", "b")),
        (",2020,2021\nr,1,2\ns,3,4\n", ("r", "s"), ("2020", "2021")),
        ("id,10,20\n7,1,2\n8,3,4\n", ("7", "8"), ("10", "20")),
        (",0,1\n0,1,2\n1,3,4\n", ("0", "1"), ("0", "1")),
        (",7,8\n7,1,2\n8,3,4\n", ("7", "8"), ("7", "8")),
        ("worker_id,a,b\n101,1,2\n7,3,4\n", ("101", "7"), ("a", "b")),
        ("workerId,a,b\n1,1,2\n2,3,4\n", ("1", "2"), ("a", "b")),
        ("No.,a,b\n1,1,2\n2,3,4\n", ("1", "2"), ("a", "b")),
        ("Name,5,3\nr,1,2\ns,3,4\n", ("r", "s"), ("5", "3")),
        ("paid,a\n1,2\n3,4\n", None, ("paid", "a")),
        ("id,a\n1,2\n1,4\n", None, ("id", "a")),
        ("\ufeffa;b\n1;2\n3;4\n\n", None, ("a", "b")),
        ("1\t2\t\n3\t4\t\n", None, None),
    ],
)
def test_names_are_found(text: str, rows: tuple[str, ...] | None, columns: tuple[str, ...] | None) -> None:
    table = parse_text(text.encode())
    assert (table.row_names, table.column_names) == (rows, columns)
    assert table.values[:, -2:].tolist() in ([[1, 2], [3, 4]], [[1, 2], [1, 4]])
    assert table.values.shape[1] == len(columns or (1, 2))
    assert table.values.dtype == np.int64


COUNTED = "who,1,2,3\nr,1,2,3\ns,4,5,6\nt,7,8,9\nu,1,1,1\n"


def test_numbers_that_count_up_above_a_table_are_names() -> None:
    """Unless it is square with them: its first row may then be that of somebody's costs."""
    table = parse_text(COUNTED.encode())
    assert (table.row_names, table.column_names) == (("r", "s", "t", "u"), ("1", "2", "3"))
    square = parse_text(COUNTED[: COUNTED.index("t,")].encode())
    assert (square.row_names, square.column_names) == (("who", "r", "s"), None)
    indexed = parse_text(b",11,12,13\n4,1,2,3\n5,4,5,6\n6,7,8,9\n")  # as pandas writes it
    assert (indexed.row_names, indexed.column_names) == (("4", "5", "6"), ("11", "12", "13"))
    assert indexed.values.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (",1,2\n1,,1\n2,1,\n", None),
        (",2,5,9\n1,4,5,6\n3,7,8,9\n8,7,8,9\n", None),
        ("who,3,7\nr,1,2\ns,3,4\n", None),
        ("x,y\n0,3\n1,5\n2,9\n", (3, 2)),
        ("cost,a,b\n5,1,2\n9,3,4\n", (2, 3)),
        ("cost,a,b,c\n5,1,2,1\n9,3,4,1\n12,1,1,1\n", None),
        ("cost,a,b\n9,1,2\n5,3,4\n", (2, 3)),
        ("who,7,3\nr,1,2\ns,3,4\n", (3, 2)),
        ("who,1.5,2.5\nr,1,2\ns,3,4\n", (3, 2)),
        (",5,3,9\n1,4,5,6\n3,7,8,9\n8,7,8,9\n", (4, 4)),
    ],
)
def test_where_nobody_can_tell_numbers_from_names_it_is_asked(text: str, shape: tuple[int, int] | None) -> None:
    if shape is not None:
        assert parse_text(text.encode()).values.shape == shape
        return
    with pytest.raises(UnreadableTable, match=r"names or numbers; expected --names both, rows"):
        parse_text(text.encode())
    rows, columns = len(text.splitlines()), text.count(",") // len(text.splitlines()) + 1
    assert parse_text(text.encode(), names="both").values.shape == (rows - 1, columns - 1)


def test_an_empty_corner_is_a_forbidden_pair_beside_plain_numbers() -> None:
    table = parse_text(b",5\n6,7\n")
    assert table.row_names is None
    assert table.filled(math.inf).tolist() == [[FORBIDDEN_INTEGER, 5], [6, 7]]


def test_what_is_a_name_can_be_said() -> None:
    text = b"7,8\n1,2\n"
    assert parse_text(text, names="columns").column_names == ("7", "8")
    both = parse_text(text, names="both")
    assert (both.row_names, both.column_names, both.values.tolist()) == (("1",), ("8",), [[2]])
    assert parse_text(b"a,1\n", names="rows").row_names == ("a",)


LIST = "worker,task,cost\nann,wash,4\nann,cook,1\nbob,wash,\nbob,rest,0.5\ncy,wash,3\n"


def test_a_list_of_pairs_is_the_matrix_that_it_stands_for() -> None:
    """A pair that is not named is forbidden, and so is one without a number."""
    table = parse_text(LIST.encode())
    assert (table.row_names, table.column_names) == (("ann", "bob", "cy"), ("wash", "cook", "rest"))
    inf = math.inf
    assert table.filled(inf).tolist() == [[4, 1, inf], [inf, inf, 0.5], [3, inf, inf]]
    whole = parse_text(LIST.replace("0.5", "5").encode())
    assert whole.values.dtype == np.int64
    assert whole.missing.sum() == 5
    flows = parse_text(b"from,to,trips\nA,B,1\nB,A,2\nA,C,3\n")  # one thing on both sides
    assert flows.row_names == flows.column_names == ("A", "B", "C")
    edges = parse_text(b"from,to,trips\n10,9,1\n9,10,2\n10,11,3\n")
    assert edges.row_names == edges.column_names == ("9", "10", "11")
    assert edges.missing.sum() == 6
    sparse = parse_text(b"i,j,cost\n0,1,5\n1,0,6\n1,1,7\n")
    assert sparse.filled(inf).tolist() == [[FORBIDDEN_INTEGER, 5], [6, 7]]
    with pytest.raises(UnreadableTable, match="cell C3 holds 'one'"):
        parse_text(LIST.replace("cook,1", "cook,one").encode())
    with pytest.raises(UnreadableTable, match="cell B2 holds 'wash'"):
        parse_text(LIST.encode(), names="both")


def test_a_list_of_too_many_names_is_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_LISTED", 8)
    with pytest.raises(UnreadableTable, match=r"pairs of 3 rows and 3 columns, .* expected a sparse matrix"):
        parse_text(LIST.encode())


def test_decimal_commas_and_infinities() -> None:
    table = parse_text(b"1,5;-2e3\n;inf\n")
    assert table.filled(-math.inf).tolist() == [[1.5, -2000.0], [-math.inf, math.inf]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1,2\n3,4,5\n", r"row 2 has 3 cells; expected 2"),
        ("a,b\n1,2\n3,x\n", r"cell B3 holds 'x'"),
        ("a,b\n1,nan\n", r"cell B2 holds 'nan'"),
        ("\n\n", r"is empty"),
        ("a,b\n", r"names alone"),
        ('a,b\n"1,000",2\n', r"cell A2 holds '1,000'"),
    ],
)
def test_bad_cells_are_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(UnreadableTable, match=rf"^bad\.csv: .*{told}"):
        read_table(path, names="columns" if text.startswith("a") else "auto")


def test_excel_in(tmp_path: Path) -> None:
    rows: list[list[object]] = [[None, *TASKS], ["Anna", 1, 2.0, None], ["Bob", 3, 4, 5]]
    path = excel(tmp_path / "c.xlsx", rows)
    table = read_table(path, sheet="costs")
    assert (table.row_names, table.column_names) == (PEOPLE, TASKS)
    assert table.filled(math.inf).tolist() == [[1, 2, FORBIDDEN_INTEGER], [3, 4, 5]]
    with pytest.raises(UnreadableTable, match="its sheets: notes, costs"):
        read_table(path, sheet="prices")
    (tmp_path / "broken.xlsx").write_bytes(b"PK no")
    with pytest.raises(UnreadableTable, match="no Excel file"):
        read_table(tmp_path / "broken.xlsx")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "nothing.xlsx")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plan{suffix}"
    write_table(path, [("", *TASKS), ("Anna", 0.25, 1e-17, None), ("Bob", 1.0, 2.0, 3.5)])
    table = read_table(path)
    assert (table.row_names, table.column_names) == (PEOPLE, TASKS)
    assert table.filled(math.inf).tolist() == [[0.25, 1e-17, math.inf], [1.0, 2.0, 3.5]]


def test_cells_have_the_names_of_spreadsheets() -> None:
    assert [cell_name(0, 0), cell_name(6, 1), cell_name(0, 25), cell_name(1, 26), cell_name(0, 702)] == [
        "A1", "B7", "Z1", "AA2", "AAA1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "values", "missing"),
    [
        ("1,,3\n4,5,\n", [[1, 0, 3], [4, 5, 0]], [[0, 1, 0], [0, 0, 1]]),
        ("1.5,,3\n4,5,\n", [[1.5, 0, 3], [4, 5, 0]], [[0, 1, 0], [0, 0, 1]]),
        ("-1,+2\n9223372036854775808,3\n", [[-1, 2], [2.0**63, 3]], [[0, 0], [0, 0]]),
        ("inf,2\n1e3,3\n", [[np.inf, 2], [1000, 3]], [[0, 0], [0, 0]]),
    ],
)
def test_rows_with_gaps_are_read_like_others(text: str, values: Any, missing: Any) -> None:
    table = parse_text(text.encode(), names="none")
    assert table.values.tolist() == values
    assert table.values.dtype == np.array(values).dtype
    assert table.missing.tolist() == np.array(missing, bool).tolist()
    for wrong in ("1,2-3\n", "1,--2\n", "1,2 3\n"):
        with pytest.raises(UnreadableTable, match="cell B1 holds"):
            parse_text(wrong.encode(), names="none")
