"""Workbooks of several sheets, as a planner keeps them."""

from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from allot_client.books import parts
from allot_client.files import Wanted, read_for_service, read_job
from allot_client.tables import UnreadableTable

WARDS, ROOMS = ["ward A", "ward B", "ward C"], ["r1", "r2", "r3"]
TRIPS, METRES = [[0, 5, 2], [5, 0, 1], [2, 1, 0]], [[0, 9, 4], [9, 0, 6], [4, 6, 0]]
NOTES: list[list[Any]] = [["whose", "when"], ["the clinic's", 2026]]


def book(path: Path, **sheets: Any) -> str:
    """A workbook; a sheet is (names, matrix), or rows as they are."""
    made: Any = openpyxl.Workbook()
    made.remove(made.active)
    for title, sheet in sheets.items():
        names, rows = sheet if isinstance(sheet, tuple) else (None, sheet)
        page = made.create_sheet(title)
        for row in (
            rows if names is None else [[None, *names], *([one, *row] for one, row in zip(names, rows, strict=True))]
        ):
            page.append(row)
    made.save(path)
    return str(path)


@pytest.mark.parametrize("order", [("trips", "Distances in m"), ("Distances in m", "trips")])
def test_a_layout_is_read_whole(tmp_path: Path, order: tuple[str, str]) -> None:
    known = {"trips": (WARDS, TRIPS), "Distances in m": (ROOMS, METRES)}
    path = book(tmp_path / "clinic.xlsx", notes=NOTES, **{title: known[title] for title in order})
    read = read_job([path], Wanted(), read_for_service)
    assert read.solver == "qap"
    assert (read.inputs["flow"].tolist(), read.inputs["distance"].tolist()) == (TRIPS, METRES)
    assert (read.row_names, read.column_names) == (tuple(WARDS), tuple(ROOMS))


def test_a_layout_may_have_more_rooms_than_departments(tmp_path: Path) -> None:
    rooms = [f"r{k}" for k in range(5)]
    far = [[abs(i - j) for j in range(5)] for i in range(5)]
    known: dict[str, Any] = {"in metres": (rooms, far), "trips": (WARDS, TRIPS)}
    read = read_job([book(tmp_path / "clinic.xlsx", **known)], Wanted(), read_for_service)
    assert (read.solver, read.inputs["flow"].tolist(), read.inputs["distance"].tolist()) == ("qap", TRIPS, far)
    plain = book(tmp_path / "plain.xlsx", north=(rooms, far), south=(WARDS, TRIPS))
    assert read_job([plain], Wanted(), read_for_service).solver == "lap"
    assert read_job([plain], Wanted("qap"), read_for_service).inputs["flow"].tolist() == TRIPS


def test_sheets_may_be_called_like_inputs(tmp_path: Path) -> None:
    path = book(tmp_path / "p.xlsx", Cost=[[1.5, 2], [3, 4]], a=[[1], [2]], b=[[2, 1]], notes=NOTES)
    read = read_job([path], Wanted(), read_for_service)
    assert (read.solver, sorted(read.inputs)) == ("uot", ["a", "b", "cost"])
    assert read.inputs["a"].tolist() == [1, 2]
    with pytest.raises(UnreadableTable, match="B2"):
        read_job([book(tmp_path / "q.xlsx", flow=TRIPS, distance=[[0, 1], [2, "x"]])], Wanted(), read_for_service)


def test_one_sheet_by_its_name(tmp_path: Path) -> None:
    path = book(tmp_path / "clinic.xlsx", one=(WARDS, TRIPS), other=(ROOMS, METRES))
    read = read_job([f"flow={path}:other", f"distance={path}:one"], Wanted(), read_for_service)
    assert (read.inputs["flow"].tolist(), read.inputs["distance"].tolist()) == (METRES, TRIPS)
    assert read_job([path], Wanted(sheet="other"), read_for_service).inputs["cost"].tolist() == METRES
    with pytest.raises(UnreadableTable, match="no sheet 'third'"):
        read_job([f"cost={path}:third"], Wanted(), read_for_service)


def test_what_is_no_layout_is_its_first_sheet(tmp_path: Path) -> None:
    costs = [[None, "day", "late", "night"], *([name, *row] for name, row in zip(WARDS, TRIPS, strict=True))]
    beside: tuple[dict[str, Any], ...] = ({"notes": NOTES}, {"last year": costs}, {"distance": (ROOMS, METRES)})
    for k, others in enumerate(beside):
        path = tmp_path / f"{k}.xlsx"
        read = read_job([book(path, costs=costs, **others)], Wanted(), read_for_service)
        assert (read.solver, np.asarray(read.inputs["cost"]).tolist()) == ("lap", TRIPS)
    assert parts(Path(path), solver="qap") is not None  # which says that both are
