"""Answers read from the result document and its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from allot_client.answers import (
    SOURCE,
    AuctionResult,
    BarycenterResult,
    Certificate,
    GromovResult,
    Home,
    LapResult,
    LowRankResult,
    MultimarginalResult,
    Problem,
    Result,
    relative,
)
from allot_client.arrays import Array, padded, pairs
from allot_client.layouts import QuadraticResult
from allot_client.transported import TransportResult

__all__ = [
    "SOURCE",
    "AuctionResult",
    "BarycenterResult",
    "Certificate",
    "GromovResult",
    "Home",
    "LapResult",
    "LowRankResult",
    "MultimarginalResult",
    "Problem",
    "QuadraticResult",
    "Result",
    "TransportResult",
    "read_result",
    "relative",
]

WHOLE = (
    "assignment", "assignments", "hall_rows", "hall_cols", "permutation", "label", "top_columns", "entry_rows",
    "entry_columns",
)  # fmt: skip
"""Arrays of whole numbers: places of lines, and codes."""
GROUPS = ("duals", "potentials")
"""Members of the result document that hold arrays of their own."""

KINDS: dict[str, type[Result]] = {
    "lap": LapResult,
    "auction": AuctionResult,
    "uot": TransportResult,
    "qap": QuadraticResult,
    "barycenter": BarycenterResult,
    "gromov": GromovResult,
    "lowrank": LowRankResult,
    "multimarginal": MultimarginalResult,
    "lawler": QuadraticResult,
}


def read_result(document: Mapping[str, Any], arrays: Mapping[str, Array] | None, home: Home) -> Result:
    """The result of a document, with the arrays that it holds in line unless `arrays` holds all of them."""
    found = inline_arrays(document) if arrays is None else arrays
    if home.within is not None:
        found = _cut(found, *home.within)
    shown: Mapping[str, Any]
    if home.sizes is not None:
        shown = _ByProblem(found, home)
    else:
        shown = {name: home.bring(array) for name, array in found.items()}
    certificate = {name: document["certificate"].get(name) for name in Certificate.__dataclass_fields__}
    kind = KINDS.get(document["solver"], Result)
    return kind(
        id=document["id"],
        termination=document["termination"],
        objective=document["objective"],
        certificate=Certificate(**{**certificate, "facts": certificate["facts"] or {}}),
        timings_ms=document["timings_ms"],
        method=document["method"],
        device=document["device"],
        iterations=document["iterations"],
        arrays=shown,
        document=document,
        row_names=home.row_names,
        column_names=home.column_names,
        home=home,
    )


def array_entries(document: Mapping[str, Any]) -> dict[str, Any]:
    """By name, what the document holds of each array: nested lists, or a link."""
    entries: dict[str, Any] = {}
    for name, value in document.items():
        if name in GROUPS and isinstance(value, Mapping):
            entries.update(value)
        elif isinstance(value, list) or (isinstance(value, Mapping) and "href" in value):
            entries[name] = value
    return entries


LINES = {"assignment": 0, "u": 0, "hall_rows": 0, "v": 1, "hall_cols": 1}
"""Arrays of an assignment, by the side whose lines they are about."""


class _ByProblem(Mapping[str, Any]):
    """The arrays of a ragged batch with a problem a row, as long as the longest; each is made when it is asked for."""

    def __init__(self, found: Mapping[str, Array], home: Home) -> None:
        self._found, self._bring = found, home.bring
        self._sizes = home.sizes or ()
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """The array. Raises KeyError."""
        if name not in self._made:
            array = self._found[name]
            if name in LINES and array.ndim == 1:
                counts = pairs(self._sizes, len(self._sizes)).T[LINES[name]]
                array = padded(array, counts, -1 if name == "assignment" else 0)
            self._made[name] = self._bring(array)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self._found)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        """Whether there is one of that name; none is made for it."""
        return name in self._found


def _cut(found: Mapping[str, Array], n_rows: int, n_cols: int) -> dict[str, Array]:
    """The arrays of an assignment without the lines that stand for none."""
    shown = dict(found)
    for name in ("assignment", "assignments"):
        if name in shown:
            own = shown[name][..., :n_rows]
            shown[name] = np.where(own < n_cols, own, -1)
    for name, count in (("u", n_rows), ("v", n_cols)):
        if name in shown:
            shown[name] = shown[name][..., :count]
    return shown


def has_links(document: Mapping[str, Any]) -> bool:
    """True when an array is too large to stand in the document."""
    return any(isinstance(entry, Mapping) for entry in array_entries(document).values())


def inline_arrays(document: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of a document without links. null stands for a potential of -inf, that of a point without mass."""
    arrays = {name: np.asarray(entry) for name, entry in array_entries(document).items()}
    return {name: _in_its_type(name, array) for name, array in arrays.items()}


def _in_its_type(name: str, array: Array) -> Array:
    """An array that was read from digits. Where there are none, NumPy takes it for floats."""
    if array.size == 0 and name in WHOLE:
        return array.astype(np.int64)
    return np.where(array == None, -np.inf, array).astype(np.float64) if array.dtype == object else array  # noqa: E711
