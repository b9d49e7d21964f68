"""What spreadsheets are read as, and what is refused before it is read."""

import io
import math
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from app.web import heat, tables, understood
from app.web.cells import number
from app.web.heat import heat_of, heat_of_sparse
from app.web.samples import SAMPLES
from app.web.tables import Sheet, letters, read_text, read_workbook
from app.web.understood import facts_of, understand
from kernels import Csr
from workers.store.codec import InvalidUpload


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("", None),
        ("  ", None),
        ("12", 12),
        ("-3.5", -3.5),
        ("\u22127", -7),
        ("1,234", 1234),
        ("1,234.5", 1234.5),
        ("1 234", 1234),
        ("1e3", 1000.0),
        ("∞", math.inf),
        ("n/a", "n/a"),
        ("nan", "nan"),
        ("12 km", "12 km"),
        ("=1+1", "=1+1"),
        ("€4.50", 4.5),
        ("-$1,200", -1200),
        ("3 €", 3),
        ("40%", 0.4),
        ("€", "€"),
        ("-", "-"),
        ("%", "%"),
        ("€" * 5000 + "5", "€" * 200),
        ("9" * 30, 1e30),
    ],
)
def test_a_cell(text: str, cell: object) -> None:
    assert number(text) == cell


def test_a_decimal_comma_is_known_by_what_separates_cells() -> None:
    assert read_text(b"1,5;2,25\n3;4", "t").rows == [[1.5, 2.25], [3, 4]]
    assert read_text(b"1,5\n3,4", "t").rows == [[1, 5], [3, 4]]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(encoding: str) -> None:
    assert read_text("a\tCafé\nb\t1".encode(encoding), "t").rows[0] == ["a", "Café"]


def test_columns_have_the_names_that_spreadsheets_give() -> None:
    assert [letters(j) for j in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]


def test_names_are_kept_and_a_bad_cell_is_told_by_its_address() -> None:
    rows = [["trips", "A", "B"], ["A", None, 3], ["B", "n/a", 0]]
    found = understand(Sheet("Trips", rows), 0.0)  # type: ignore[arg-type]
    assert (found.role, found.corner, found.row_names, found.column_names) == (
        "matrix",
        "trips",
        ["A", "B"],
        ["A", "B"],
    )
    assert found.values is not None
    assert found.values.tolist() == [[0, 3], [0, 0]]
    assert found.missing == 1
    assert found.faults == [{"cell": "B3", "row": 1, "column": 0, "found": "n/a", "names": ["B", "A"]}]


def test_an_empty_cell_counts_as_what_the_caller_says() -> None:
    found = understand(Sheet("t", [[1, None], [2, 3]]), math.inf)
    assert found.values is not None
    assert found.values.tolist() == [[1, math.inf], [2, 3]]


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        (b"worker,101,102,103\nann,4,1,3\nbob,2,0,5\ncat,3,2,2\n", ["ann", "bob", "cat"], ["101", "102", "103"]),
        (b"worker_id,a,b\n17,4,1\n23,2,0\n9,3,2\n", ["17", "23", "9"], ["a", "b"]),
        (b",0,1\n0,4,1\n1,2,0\n", ["0", "1"], ["0", "1"]),
        (b",5,9\n3,4,1\n1,2,0\n", None, None),
        (b"a,b\n1,n/a\nn/a,2\n3,4\n", None, ["a", "b"]),
    ],
)
def test_numbers_that_are_names(text: bytes, rows: list[str] | None, columns: list[str] | None) -> None:
    """As the command line has it: `allot_client.lines.guessed`."""
    found = understand(read_text(text, "t"), 0.0)
    assert (found.row_names, found.column_names) == (rows, columns)


def test_a_title_above_a_table_is_no_part_of_it() -> None:
    found = understand(read_text(b"Costs of 2026,,\n,,\nminutes,J1,J2\nAnn,4,x\nBen,2,0\n", "t"), 0.0)
    assert (found.corner, found.row_names, found.column_names) == ("minutes", ["Ann", "Ben"], ["J1", "J2"])
    assert found.faults[0]["cell"] == "C4"
    lone = understand(read_text(b"Ann,\nBen,1\nCy,2\n", "t"), 0.0)  # somebody without a number, and no title
    assert lone.row_names == ["Ann", "Ben", "Cy"]


def test_a_list_of_pairs_is_the_table_that_it_stands_for() -> None:
    text = b"rider,taxi,minutes\nAnn,T1,4\nAnn,T2,n/a\nBen,T2,7\nBen,T1,\nCy,T2,1\n"
    found = understand(read_text(text, "t"), math.inf)
    assert (found.role, found.corner, found.listed) == ("matrix", "minutes", 5)
    assert (found.row_names, found.column_names) == (["Ann", "Ben", "Cy"], ["T1", "T2"])
    assert found.values is not None
    assert found.values.tolist() == [[4, math.inf], [math.inf, 7], [math.inf, 1]]
    assert found.missing == 2
    assert found.faults[0] | {"found": ""} == {"cell": "C3", "row": 1, "column": 0, "found": "", "names": ["Ann", "T2"]}


def test_trips_as_a_list_have_every_place_on_both_sides() -> None:
    found = understand(read_text(b"from,to,trips\nA,B,4\nA,C,2\nB,C,7\n", "t"), 0.0)
    assert found.row_names == found.column_names == ["A", "B", "C"]
    assert found.values is not None
    assert found.values.tolist() == [[0, 4, 2], [0, 0, 7], [0, 0, 0]]
    once = understand(read_text(b"from,to,trips\nA,B,4\nA,C,2\nB,D,7\n", "t"), 0.0)  # nobody is twice a goal
    assert once.row_names == once.column_names == ["A", "B", "C", "D"]


@pytest.mark.parametrize(
    "text",
    [
        b"team,J1,J2\nAnn,1,2\nAnn,3,4\nBen,5,6\n",  # two columns of numbers
        b"team,room,size\nAnn,R1,2\nBen,R2,4\nCy,R3,6\n",  # nobody is named twice
        b"rider,taxi,minutes\nAnn,T1,4\nAnn,T1,5\nBen,T1,5\n",  # a pair is
        b"Ann,T1,4\nAnn,T2,5\nBen,T1,5\n",  # no header
    ],
)
def test_what_is_no_list_of_pairs(text: bytes) -> None:
    assert understand(read_text(text, "t"), 0.0).listed == 0


def test_names_of_a_long_list_make_no_huge_table() -> None:
    lines = "".join(f"r{i},c{i},1\nr{i},c{i + 1},1\n" for i in range(3000))
    with pytest.raises(InvalidUpload, match="more than"):
        understand(read_text(b"a,b,c\n" + lines.encode(), "t"), 0.0)


def test_empty_lines_before_and_behind_a_table() -> None:
    found = understand(
        Sheet("t", [[], [None, None, None], ["", "x", "y"], ["p", 1, "?"], [None, None, None, None]]), 0.0
    )
    assert found.role == "points"
    assert found.row_names == ["p"]
    assert found.faults[0]["cell"] == "C4"


@pytest.mark.parametrize(
    ("rows", "role"),
    [
        ([["who", "where"], ["Ann", "R1"], ["Ben", "R2"]], "pairs"),
        ([["who", "amount"], ["Ann", 3], ["Ben", 4]], "list"),
        ([["p", "x", "y"], ["a", 0, 1]], "points"),
        ([["hello"]], "text"),
        ([[1, 2], [3, 4]], "matrix"),
    ],
)
def test_what_a_sheet_is_taken_for(rows: list[list[object]], role: str) -> None:
    assert understand(Sheet("t", rows), 0.0).role == role  # type: ignore[arg-type]


def workbook(path: Path, cells: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in cells:
        sheet.append(row)
    book.save(path)
    return path


def test_a_workbook(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", [["", "Ä", "b"], ["c", 1, 2.5], ["d", True, "x"]])
    (sheet,) = read_workbook(path)
    assert sheet.rows == [[None, "Ä", "b"], ["c", 1, 2.5], ["d", "True", "x"]]


def test_a_zip_bomb_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * (tables.MAX_INFLATED + 1))
    with pytest.raises(InvalidUpload, match="inflates to"):
        read_workbook(path)


def test_a_small_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"0" * (100 << 20))
    with pytest.raises(InvalidUpload, match="times its size"):
        read_workbook(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nonsense", b"hello"])
def test_what_is_no_workbook(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(content)
    with pytest.raises(InvalidUpload, match="not a workbook"):
        read_workbook(path)


def test_a_zip_that_is_no_workbook(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(InvalidUpload, match="cannot be read"):
        read_workbook(path)


def test_too_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_CELLS", 5)
    with pytest.raises(InvalidUpload, match="more than"):
        read_text(b"1,2,3\n4,5,6", "t")


def test_a_picture_keeps_means_and_sums() -> None:
    matrix = np.arange(100 * 130, dtype=float).reshape(100, 130)
    matrix[0, 0] = math.inf
    heat = heat_of(matrix, 10)
    finite = np.where(np.isfinite(matrix), matrix, 0)
    assert heat["rows"][3] == pytest.approx(finite[30:40].sum(), rel=1e-4)
    assert heat["columns"][2] == pytest.approx(finite[:, 26:39].sum(), rel=1e-4)
    assert heat["values"][11] == pytest.approx(matrix[10:20, 13:26].mean(), rel=1e-4)
    assert heat["values"][0] == pytest.approx(matrix[:10, :13].ravel()[1:].mean(), rel=1e-4)


def test_a_block_without_a_number_is_empty() -> None:
    assert heat_of(np.array([[math.inf, 1.0]]), 2)["values"] == [None, 1.0]


def test_a_sparse_picture() -> None:
    matrix = Csr(np.array([0, 2, 3]), np.array([0, 2, 1]), np.array([4.0, 6.0, 5.0]), (2, 3))
    heat = heat_of_sparse(matrix, 3)
    assert heat["values"] == [4.0, None, 6.0, None, 5.0, None]
    assert heat["rows"] == [10.0, 5.0]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_always_the_same_and_has_no_bad_cell(name: str) -> None:
    sheets = SAMPLES[name]()
    assert sheets == SAMPLES[name]()
    assert all(understand(sheet, 0.0).fault_count == 0 for sheet in sheets)
    assert io.StringIO(sheets[0].name).read()


def test_one_long_row_among_many_short_ones_makes_no_huge_table() -> None:
    sheet = read_text(b"1\n" * 100_000 + b"1," * 100_000, "t")
    with pytest.raises(InvalidUpload, match="more than"):
        understand(sheet, 0.0)


def test_a_cell_without_an_end_is_refused() -> None:
    with pytest.raises(InvalidUpload, match="is no table of text"):
        read_text(b'"' + b"x" * 200_000, "t")


def test_lines_end_in_any_way() -> None:
    assert read_text(b"1,2\r3,4\r\n5,6\n", "t").rows == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("shape", [(7, 7), (1, 500), (500, 1), (130, 129), (65, 3), (3, 200)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int64"])
def test_pieces_make_what_the_whole_makes(shape: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 50, shape).astype(dtype)
    if values.dtype.kind == "f":
        values[rng.random(shape) < 0.1] = np.inf
        values[0, 0] = 0.5
    whole = heat_of(values), facts_of(values)
    for module in (heat, understood):
        monkeypatch.setattr(module, "PIECE", 11)
    monkeypatch.setattr(understood, "TILE", 3)
    pieces = heat_of(values), facts_of(values)
    assert pieces == whole
    there = values[np.isfinite(values)]
    assert whole[1]["sum"] == there.sum()
    assert whole[1]["infinite"] == values.size - there.size
    assert sum(whole[0]["columns"]) == pytest.approx(there.sum(), rel=1e-3)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 10])
def test_what_is_symmetric(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(understood, "TILE", 3)
    square = np.add.outer(np.arange(n), np.arange(n))
    assert facts_of(square)["symmetric"]
    if n > 1:
        square[0, -1] += 1
        assert not facts_of(square)["symmetric"]


def test_a_matrix_of_two_thousand_lines_comes_with_its_names() -> None:
    head = "," + ",".join(f"c{j}" for j in range(2000))
    rows = [f"r{i}," + ",".join(["1"] * 2000) for i in range(2000)]
    sheet = read_text("\n".join([head, *rows]).encode(), "costs")
    assert (len(sheet.rows), len(sheet.rows[2000])) == (2001, 2001)


@pytest.mark.parametrize(
    "text", ["7", "-7", "7.25", "0.5", "123456789012345678", "1234567890123456789", "7.", "+7", "1e3"]
)
def test_usual_cells_are_read_as_all_others(text: str) -> None:
    assert number(text) == number(f" {text} ")
    assert float(str(number(text))) == float(text)
    assert type(number(text)) is type(number(f" {text} "))


@pytest.mark.parametrize("missing", [0.0, math.inf])
def test_whole_numbers_of_64_bits_are_what_is_written(missing: float) -> None:
    found = understand(read_text(b"cost,A,B\nAnn,9007199254740993,-1\nBen,2,9223372036854775807\n", "t"), missing)
    assert found.values is not None
    assert found.values.tolist() == [[9007199254740993, -1], [2, 9223372036854775807]]
    assert found.rounded is None


def test_a_whole_number_that_is_rounded_is_told() -> None:
    text = b"cost,A,B\nAnn,9007199254740993,0.5\nBen,9007199254740992,100000000000000000000001\n"
    found = understand(read_text(text, "t"), 0.0)
    assert found.values is not None
    assert found.values[0].tolist() == [2.0**53, 0.5]
    told = {"cell": "B2", "found": "9007199254740993", "read": "9007199254740992", "count": 2}
    assert found.rounded == told
    listed = b"who,what,cost\nAnn,A,9007199254740993\nAnn,B,1\nBen,A,2\n"
    assert understand(read_text(listed, "t"), math.inf).rounded == {**told, "cell": "C2", "count": 1}
    exact = understand(read_text(listed, "t"), 0.0)
    assert exact.values is not None
    assert exact.values.tolist() == [[9007199254740993, 1], [2, 0]]


@pytest.mark.parametrize(
    ("text", "doubt", "numbers", "names"),
    [
        ("firm,101,305\nAnn,4,1\nBen,2,3\n", "its first row may hold names or numbers", (3, 2), (2, 2)),
        ("hours,A,B,C\n1,4,1,2\n2,2,0,3\n5,3,3,1\n", "its first column may hold names or numbers", (3, 4), (3, 3)),
        (",2,5,9\n2,,1,2\n5,1,,3\n9,2,3,\n", "its first row and column may hold names or numbers", (4, 4), (3, 3)),
        ("firm,A,B\nAnn,4,1\nBen,2,3\n", "", (2, 2), (2, 2)),
    ],
)
def test_what_nobody_can_tell_is_told_and_may_be_said(
    text: str, doubt: str, numbers: tuple[int, int], names: tuple[int, int]
) -> None:
    for said, shape in (("numbers", numbers), ("names", names)):
        found = understand(read_text(text.encode(), "t"), 0.0, said)
        assert found.values is not None
        assert (found.doubt, found.values.shape) == (doubt, shape)
    assert understand(read_text(text.encode(), "t"), 0.0).doubt == doubt
