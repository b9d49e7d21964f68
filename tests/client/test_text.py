"""Tables as text, as other programs write them."""

import csv
from pathlib import Path

import numpy as np
import pytest
from allot_client.files import Wanted, read_for_service, read_job
from allot_client.tables import UnreadableTable, parse_text, read_table
from allot_client.text import divided, is_text_table

from app.cli.solve import read_other

MATRIX = [[4.0, 1.5], [2.0, 0.25]]


@pytest.mark.parametrize(
    "text",
    [
        "4,1.5\n2,0.25\n",
        "4;1,5\n2;0,25\n",
        "4\t1.5\r\n2\t0.25\r\n",
        "# costs of May\n4,1.5\n2,0.25\n",
        "# of May, in euros\n#\n4;1,5\n2;0,25\n",
        "sep=;\n4;1,5\n2;0,25\n",
        '"sep=;"\r\n4;1.5\r\n2;0.25\r\n',
        "sep=\t\n4\t1.5\n2\t0.25\n",
        "sep=|\n4|1.5\n2|0.25\n",
        "4 1.5\n2 0.25\n",
        "  4.0e+00   1.5\n\n  2.0   2.5e-1  \n",
        "# 4 5 6\n4 1.5\n# 7 8\n2 0.25",
        "4, 1.5\n2, 0.25\n",
    ],
)
def test_what_divides_cells(text: str) -> None:
    table = parse_text(text.encode())
    assert table.values.tolist() == MATRIX
    assert table.row_names is table.column_names is None


def test_what_numpy_writes_is_read(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((7, 4)) - 0.5
    for name, told in (
        ("a.txt", {}), ("b.csv", {"delimiter": ","}), ("c.txt", {"delimiter": ";"}), ("d.csv", {"header": "of May"}),
        ("e.csv", {"delimiter": ",", "header": "of May"}), ("f.tsv", {"delimiter": "\t"}),
    ):  # fmt: skip
        np.savetxt(tmp_path / name, values, **told)
        assert np.array_equal(read_table(tmp_path / name).values, values)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(encoding: str) -> None:
    table = parse_text("who,Zürich,Bern\nÄnne,1,2\nBo,3,4\n".encode(encoding))
    assert (table.row_names, table.column_names) == (("Änne", "Bo"), ("Zürich", "Bern"))


def test_names_with_blanks_and_marks_stay_whole() -> None:
    table = parse_text(b"who,New York,Los Angeles\nAnn; Bo,1,2\nCy Dee,3,4\n")
    assert (table.row_names, table.column_names) == (("Ann; Bo", "Cy Dee"), ("New York", "Los Angeles"))
    assert parse_text(b"New York\n1\n2\n").values.tolist() == [[1], [2]]
    headed = parse_text(b"# who,a,b\nr,1,2\ns,3,4\n")
    assert (headed.row_names, headed.column_names) == (("r", "s"), ("a", "b"))


def test_what_is_no_text_is_said() -> None:
    with pytest.raises(UnreadableTable, match="is no table of text"):
        parse_text(b"1,2\n" + b"3," + b"4" * (csv.field_size_limit() + 1))
    for content in (b"", b"#", b"# nothing", b"\n \n", b"sep=;", b"\xff\xfe"):
        with pytest.raises(UnreadableTable):
            parse_text(content)
        list(divided(content.decode("latin-1"))[0])


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("4 1\n2 0\n", True), ("4.0\n2.0\n", True), ("a,b\n1,2\n", True), ("1,2,3\n", True), ("# x\n\n1 2 3\n", True),
        ("7\n8\n9\n", True), ("1 2 3\n" * 9999, True), ("4 5\n" * 9999, True), ("who,New York\nAnn,1\n", True),
        ("3\n\n0 1 2\n", False), ("3 57\n1 2 3\n", False), ("\n 4\n1 2\n3 4\n", False), ("999\n" + "1 " * 9999, False),
    ],
)  # fmt: skip
def test_a_text_file_may_be_of_qaplib(tmp_path: Path, text: str, table: bool) -> None:
    file = tmp_path / "a.txt"
    file.write_text(text)
    assert is_text_table(file) == table
    assert not is_text_table(tmp_path / "b.txt")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.json", "posted"),
        ("A.XLS", r"\.xlsx or \.csv"),
        ("a.parquet", "pandas"),
        ("a.mat", "numpy.save"),
        ("a.pkl", "program"),
    ],
)
def test_files_of_other_programs_are_told_apart_by_name(tmp_path: Path, name: str, advice: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"[[1, 2], [3, 4]]")
    for read in (read_for_service, read_other):
        with pytest.raises(ValueError, match=rf"{name} is not read here; expected .*\.npy.*: .*{advice}"):
            read_job([f"cost={file}"], Wanted(), read)
    with pytest.raises(FileNotFoundError):
        read_job([str(tmp_path / f"no.{name}")], Wanted(), read_for_service)
