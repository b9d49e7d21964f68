"""Workbooks whose sheets are the inputs of one problem, as a plan of departments and rooms is kept."""

from __future__ import annotations

import re
from pathlib import Path

from allot_client.tables import Table, UnreadableTable, read_table, sheet_names

INPUTS = (
    "cost", "benefit", "flow", "distance", "linear", "a", "b", "x", "y", "x_distance", "y_distance", "histograms",
    "support", "reject_rows", "reject_cols", "reject",
)  # fmt: skip
"""Titles of sheets that say what a sheet is."""
APART = re.compile(r"distan|met(er|re)s?\b|\bkm\b|\bapart\b|\bfar\b", re.IGNORECASE)
"""In the title of a sheet of distances."""


def parts(path: Path, names: str = "auto", solver: str | None = None) -> dict[str, Table] | None:
    """Inputs by name, where more than one sheet is one; None where the first sheet is all of the problem.

    Sheets called like inputs are these. So are two square tables with the same names on both sides, or of any names for
    the solver qap: trips, and distances. Of two sizes the larger must be called distances, unless the solver is named.

    Raises:
        UnreadableTable: a sheet called like an input is no table of numbers.
        OSError: the file cannot be read.
    """
    titles = sheet_names(path)
    called = {title: title.strip().lower() for title in titles if title.strip().lower() in INPUTS}
    if len(called) > 1:
        return {name: read_table(path, names, title) for title, name in called.items()}
    square = {}
    for title in titles if len(titles) > 1 else ():
        try:
            table = read_table(path, names, title)
        except UnreadableTable:  # notes, positions, a list
            continue
        among_themselves = table.row_names is not None and table.row_names == table.column_names
        if table.values.shape[0] == table.values.shape[1] and (among_themselves or solver == "qap"):
            square[title] = table
    if len(square) != 2 or solver not in (None, "qap"):
        return None
    flow, distance = sorted(square, key=lambda title: square[title].values.size)
    if square[flow].values.shape != square[distance].values.shape:  # there may be more rooms than departments
        if solver is None and not (APART.search(distance) and not APART.search(flow)):
            return None
    elif APART.search(flow) and not APART.search(distance):
        flow, distance = distance, flow
    return {"flow": square[flow], "distance": square[distance]}
