"""What comes back: typed answers with their certificates, read from the result document and its arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from allot_client.arrays import Array, Bring

GROUPS = ("duals", "potentials")
"""Members of the result document that hold arrays of their own."""


@dataclass(frozen=True)
class Certificate:
    """What other code than the solver's proved of the answer.

    `bound` is proved for the problem as given: no answer is better. `gap_abs` = |objective - bound|, and `gap_rel`
    divides it by the larger of the two. `verified` is True where the word optimal or infeasible was proved, False where
    it is the word of a search that nobody checked, None beside other words. `proved` says in words what was proved, and
    in which arithmetic.
    """

    bound: float | None
    gap_abs: float | None
    gap_rel: float | None
    max_violation: float | None
    holds: bool
    proved: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    verified: bool | None = None


@dataclass(frozen=True)
class Result:
    """An answer, whatever the solver.

    `arrays` holds every array of the answer by name, in the library and on the device of the first input.
    """

    id: str
    termination: str
    objective: float | None
    certificate: Certificate
    timings_ms: Mapping[str, float]
    method: str
    device: str
    iterations: int
    arrays: Mapping[str, Any] = field(repr=False)
    document: Mapping[str, Any] = field(repr=False)
    row_names: tuple[Any, ...] | None = field(default=None, repr=False)
    column_names: tuple[Any, ...] | None = field(default=None, repr=False)

    @property
    def gap(self) -> float | None:
        """The certificate's relative gap: 0 when the answer is proved to be the best, None when there is no bound."""
        return self.certificate.gap_rel

    @property
    def optimal(self) -> bool:
        """True when the answer is called optimal; `verified` says whether that was proved."""
        return self.termination == "optimal"

    @property
    def verified(self) -> bool | None:
        """Of an answer that is called optimal or infeasible: whether the certificate proved it. Else None."""
        return self.certificate.verified

    def _array(self, name: str) -> Any:
        try:
            return self.arrays[name]
        except KeyError:
            there = ", ".join(self.arrays) or "none"
            raise AttributeError(f"this answer ({self.termination}) has no {name}; its arrays: {there}") from None


@dataclass(frozen=True)
class _Pairs(Result):
    @property
    def assignment(self) -> Any:
        """The column of each row, -1 for a row that stays unassigned; with a batch axis in front for a batch."""
        return self._array("assignment")

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Assigned pairs (row, column) of one problem, by their names where the input had names."""
        for row, column in enumerate(np.asarray(self.assignment).tolist()):
            if column >= 0:
                yield (
                    self.row_names[row] if self.row_names else row,
                    self.column_names[column] if self.column_names else column,
                )


@dataclass(frozen=True)
class LapResult(_Pairs):
    """A linear assignment."""

    @property
    def u(self) -> Any:
        """Duals of the rows."""
        return self._array("u")

    @property
    def v(self) -> Any:
        """Duals of the columns."""
        return self._array("v")


@dataclass(frozen=True)
class AuctionResult(_Pairs):
    """An assignment by auction."""

    @property
    def prices(self) -> Any:
        """Prices of the columns."""
        return self._array("prices")

    @property
    def profits(self) -> Any:
        """Profits of the rows."""
        return self._array("profits")


@dataclass(frozen=True)
class TransportResult(Result):
    """A transport plan, or its potentials."""

    @property
    def plan(self) -> Any:
        """Mass moved from each row to each column."""
        return self._array("plan")

    @property
    def f(self) -> Any:
        """Potentials of the rows."""
        return self._array("f")

    @property
    def g(self) -> Any:
        """Potentials of the columns."""
        return self._array("g")


@dataclass(frozen=True)
class QuadraticResult(Result):
    """A quadratic assignment."""

    @property
    def permutation(self) -> Any:
        """The location of each facility, from 0."""
        return self._array("permutation")


KINDS: dict[str, type[Result]] = {
    "lap": LapResult,
    "auction": AuctionResult,
    "uot": TransportResult,
    "qap": QuadraticResult,
}


@dataclass(frozen=True)
class Home:
    """Where the arrays of an answer go: the caller's library and device, and the names of the input's lines."""

    bring: Bring
    row_names: tuple[Any, ...] | None = None
    column_names: tuple[Any, ...] | None = None


def read_result(document: Mapping[str, Any], arrays: Mapping[str, Array] | None, home: Home) -> Result:
    """The result of a document, with the arrays that it holds in line unless `arrays` holds all of them."""
    found = inline_arrays(document) if arrays is None else arrays
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
        arrays={name: home.bring(array) for name, array in found.items()},
        document=document,
        row_names=home.row_names,
        column_names=home.column_names,
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


def has_links(document: Mapping[str, Any]) -> bool:
    """True when an array is too large to stand in the document."""
    return any(isinstance(entry, Mapping) for entry in array_entries(document).values())


def inline_arrays(document: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of a document without links. null stands for a potential of -inf, that of a point without mass."""
    arrays = {name: np.asarray(entry) for name, entry in array_entries(document).items()}
    return {
        name: np.where(array == None, -np.inf, array).astype(np.float64) if array.dtype == object else array  # noqa: E711
        for name, array in arrays.items()
    }


@dataclass(frozen=True)
class Safetensors:
    """Reads the safetensors format: 8 bytes of length, a JSON header, then the arrays' bytes."""

    DTYPES: ClassVar[dict[str, str]] = {
        "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
        "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
    }  # fmt: skip

    @classmethod
    def read(cls, data: bytes) -> dict[str, Array]:
        """Arrays by name; they share the memory of `data` and are read-only."""
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        header.pop("__metadata__", None)
        arrays = {}
        for name, entry in header.items():
            start, stop = (8 + length + offset for offset in entry["data_offsets"])
            flat = np.frombuffer(
                data[start:stop] if start % 8 else memoryview(data)[start:stop], cls.DTYPES[entry["dtype"]]
            )
            arrays[name] = flat.reshape(entry["shape"])
        return arrays
