"""What separates cells, how their numbers are written, and which lines are names: what a table does not say itself."""

import math

import numpy as np
import pytest

from app.web import cells
from app.web.cells import Marks, marks_of, number
from app.web.tables import read_text
from app.web.understood import Understood, understand


def read(text: str, missing: float = math.inf) -> Understood:
    return understand(read_text(text.encode(), "t"), missing)


def values(text: str) -> list[list[float]]:
    found = read(text).values
    assert found is not None
    told: list[list[float]] = found.tolist()
    return told


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("4 1 3\n2 0 5\n", [[4, 1, 3], [2, 0, 5]]),  # np.savetxt with fmt="%d": it was 413 and 205
        ("412 133 820\n201 330 511\n", [[412, 133, 820], [201, 330, 511]]),
        ("  4   1\n 12   0\n", [[4, 1], [12, 0]]),
        ("# of May\n4e0 1e0\n2e0 0e0\n", [[4, 1], [2, 0]]),
        ("who A B\nAnn 4 1\nBob 2 0\n", [["who", "A", "B"], ["Ann", 4, 1], ["Bob", 2, 0]]),
        ("1 234\n5 678\n", [[1234], [5678]]),  # thousands
        ("Ann Lee\nBob Ray\n", [["Ann Lee"], ["Bob Ray"]]),
        ("12 km\n13 km\n", [["12 km"], ["13 km"]]),
        ('cost,"Smith; John",B\nAnn,4,1\nBob,2,0\n', [["cost", "Smith; John", "B"], ["Ann", 4, 1], ["Bob", 2, 0]]),
        ("cost|A|B\nX|1|2\n", [["cost", "A", "B"], ["X", 1, 2]]),
        ("Offers, May\n\njob;price\nA;1,5\nB;2,5\n", [["Offers, May"], [], ["job", "price"], ["A", 1.5], ["B", 2.5]]),
        ("1,5;2\n3,5\n4,5\n5,5;\n", [[1.5, 2], [3.5], [4.5], [5.5, None]]),
    ],
)
def test_what_stands_between_cells(text: str, rows: list[list[object]]) -> None:
    assert read_text(text.encode(), "t").rows == rows


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("1.234,50;2,5;1.234", [1234.5, 2.5, 1234]),  # 1.234 was read as little more than one
        ("1.234.567;1.234", [1234567, 1234]),
        ("1.234;2.500", [1.234, 2.5]),  # could be either: as a computer writes it
        ("1,234;2,500", [1.234, 2.5]),  # and as who uses semicolons does
        ("1,234;2.5", [1234, 2.5]),
        ("1,234\t2,500.5", [1234, 2500.5]),  # cells copied from a sheet: 1,234 was read as little more than one
        ("1,234\t17", [1234, 17]),
        ("1,5\t1,234", [1.5, 1.234]),
        ("0,125\t1,234", [0.125, 1.234]),
        ("1,5\t1.234\t0.5", [1.5, 1.234, 0.5]),
        ('"1,5","2,25"', [1.5, 2.25]),
        ('"1,234","2.5"', [1234, 2.5]),
        ("1\u202f234,50;1\u00a0000,5", [1234.5, 1000.5]),  # France
        ("1'234.50;2’000;CHF", [1234.5, 2000, "CHF"]),  # Switzerland
        ("€ 1.234,50;-2,5 %", [1234.5, -0.025]),
        ("4 1;12 30;1,2,3", ["4 1", "12 30", "1,2,3"]),  # no number: two were put together to one
    ],
)
def test_how_a_table_writes_its_numbers(text: str, row: list[object]) -> None:
    assert read_text(text.encode(), "t").rows == [row]


def test_marks_are_looked_for_in_so_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_LOOKED_AT", 2)
    assert marks_of([["7", "1.234"], ["1,5"]], False) == Marks()
    assert marks_of([["7", "1,5"], ["2.5"]], False) == Marks(comma=True, dots=True)
    assert number("0,5", Marks(comma=True)) == 0.5
    assert number("1.234,50") == 1234.5  # it reads in one way only


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("name,2024,2025,2026\nAnn,4,1,3\nBob,2,0,5\n", ["Ann", "Bob"], ["2024", "2025", "2026"]),
        ("firm,2024,2025,2026\nAnn,4,1,3\nBob,2,0,5\n", ["Ann", "Bob"], ["2024", "2025", "2026"]),
        ("Order no.,7,5,9\nAnn,4,1,3\nBob,2,0,5\n", ["Ann", "Bob"], ["7", "5", "9"]),
        (",7,5,9\nAnn,4,1,3\nBob,2,0,5\n", ["Ann", "Bob"], ["7", "5", "9"]),
        ("id,101,102\n1,4,1\n2,2,0\n", ["1", "2"], ["101", "102"]),
        (",101,102\n1,4,1\n2,2,0\n", ["1", "2"], ["101", "102"]),
        (",0,1\n0,,1\n1,2,\n", ["0", "1"], ["0", "1"]),
        (",A,B\n0,4,1\n1,2,0\n", ["0", "1"], ["A", "B"]),  # pandas' to_csv
        ("driver_id,A,B\n17,4,1\n9,2,0\n", ["17", "9"], ["A", "B"]),
    ],
)
def test_numbers_may_be_names(text: str, rows: list[str], columns: list[str]) -> None:
    """They were rows and columns of costs: years were assigned to somebody called "name"."""
    found = read(text)
    assert (found.row_names, found.column_names, found.fault_count) == (rows, columns, 0)
    assert found.values is not None
    assert found.values.shape == (len(rows), len(columns))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("Ann,1,2,3\nBob,2,0,5\nCy,3,2,2\n", (3, 3)),  # a person
        ("Ann,2024,2025\nBob,2026,2023\nCy,2024,2022\n", (3, 2)),  # who was born when
        ("n/a,3,5\n3,1,2\n5,2,4\n", (3, 3)),  # a bad cell
        (",3,5\n3,,2\n5,2,\n", (3, 3)),  # distances, nothing between a place and itself
        (",3,2\n1,5,6\n2,7,8\n", (3, 3)),  # a pair that is not allowed
        ("x,y\n1,2\n3,4\n5,6\n", (3, 2)),
        ("cost,worth\n1,2\n3,4\n5,6\n", (3, 2)),
        ("4,1,3\n2,0,5\n3,2,2\n", (3, 3)),
    ],
)
def test_numbers_that_are_none(text: str, shape: tuple[int, int]) -> None:
    found = read(text).values
    assert found is not None
    assert found.shape == shape


def test_a_list_of_pairs_may_name_them_by_numbers() -> None:
    """Its first two columns were costs."""
    found = read("from,to,trips\n10,2,4\n2,7,5\n10,7,1\n", 0.0)
    assert (found.row_names, found.column_names, found.listed) == (["2", "7", "10"], ["2", "7", "10"], 3)
    assert found.values is not None
    assert found.values.tolist() == [[0, 5, 0], [0, 0, 0], [4, 1, 0]]
    found = read("row,col,cost\n0,0,4\n0,2,5\n1,0,1\n1,2,n/a\n")
    assert (found.row_names, found.column_names) == (["0", "1"], ["0", "2"])
    assert found.faults[0]["cell"] == "C5"
    assert read("x,y,z\n0,0,4\n0,2,5\n1,0,1\n").listed == 0


def test_points_with_numbers_of_their_own_have_two_coordinates() -> None:
    found = read("id,x,y\n1,0.5,0.25\n2,0.75,1\n")
    assert (found.role, found.row_names, found.column_names) == ("points", ["1", "2"], ["x", "y"])


def test_a_matrix_that_numpy_wrote() -> None:
    matrix = np.random.default_rng(3).random((4, 5))
    text = "\n".join(" ".join(f"{x:.18e}" for x in row) for row in matrix)
    assert values(text) == matrix.tolist()
