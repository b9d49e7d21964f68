"""From what a request says of its inputs to checked arrays, and to the references that a job holds.

An input is a nested list, {"data"}, {"blob"}, {"part"} or (where the solver takes it) {"csr"}. A blob and a part may
say how they are to be read (format, member, dtype, shape); what they leave out, their bytes must say. Nothing is kept
in the store before the whole problem has been checked: until then a `Source` only knows how to keep its array.
"""

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.http.schemas import BUNDLES, takes_qaplib
from app.intake.json_arrays import array_from_lists
from app.intake.multipart import Part
from kernels import FORBIDDEN, Array, Csr, InvalidProblem, Solver
from workers.jobs.job import InputRef, UnknownBlob
from workers.store.codec import Decoded, Form, Reading, decode_solution, read, several, sparse
from workers.store.reference import CSR_PARTS, FIELDS, NOTES, form_of, frozen
from workers.store.store import Store


@dataclass(frozen=True)
class Source:
    """One input: its array, and how to keep it for the job."""

    value: Array | Csr
    keep: Callable[[], InputRef]


@dataclass(frozen=True)
class Found:
    """What a reference leads to: one matrix or several, and how to keep it for the job."""

    value: Decoded
    keep: Callable[[], InputRef]

    def one(self, field: str) -> Source:
        """The one matrix. Raises InvalidProblem when there are several."""
        if isinstance(self.value, dict):
            raise InvalidProblem(f"{field}.member", several(self.value))
        return Source(self.value, self.keep)


class Gatherer:
    """Collects the inputs of one request.

    Args:
        card: the solver.
        store, owner: where arrays are kept, and for whom.
        parts: the file parts of a multipart body.
        maximize: whether the costs are maximised, so that null is -inf; a benefit always is.
    """

    def __init__(self, card: Solver, store: Store, owner: str, parts: Mapping[str, Part], maximize: bool) -> None:
        self._card, self._store, self._owner, self._parts = card, store, owner, dict(parts)
        self._maximize = maximize
        self._specs = {spec.name: spec for spec in card.inputs}
        self._unused = set(parts)
        self._kept: set[str] = set()
        self.sources: dict[str, Source] = {}
        self.best_known: float | None = None

    def gather(self, named: Any) -> dict[str, Source]:
        """Every input of the request by name.

        Raises:
            InvalidProblem, InvalidUpload: the first input that cannot be taken.
        """
        values = self._with_parts({} if named is None else named)
        solution = values.pop("sln", None)
        for name, value in values.items():
            if name in BUNDLES:
                self._take_bundle(name, self._referenced(name, value).value)
            else:
                self.sources[name] = self._source(name, value)
        if self._unused - {"sln"}:
            name = min(self._unused - {"sln"})
            raise InvalidProblem(name, f"is a part that nothing refers to; {self._allowed()}")
        missing = [spec.name for spec in self._card.inputs if spec.required and spec.name not in self.sources]
        if missing:
            raise InvalidProblem(f"inputs.{missing[0]}", f"is missing; {self._allowed()}")
        if solution is not None:
            self._take_solution(solution)
        return self.sources

    def _with_parts(self, named: Any) -> dict[str, Any]:
        """`inputs` with each file part of an input's name put in, after checking the names."""
        if not isinstance(named, dict):
            raise InvalidProblem("inputs", f"is a JSON {type(named).__name__}; expected an object of inputs by name")
        known = self._specs.keys() | (set(BUNDLES) if takes_qaplib(self._card) else set())
        for name in named:
            if name not in known:
                raise InvalidProblem(f"inputs.{name:.60}", f"is unknown; {self._allowed()}")
        values = {name: value for name, value in named.items() if value is not None}
        for name in self._parts:
            if name in known:
                if name in values and values[name] != {"part": name}:
                    raise InvalidProblem(f"inputs.{name}", "is given twice, in inputs and as a file part")
                values[name] = {"part": name}
        return values

    def _allowed(self) -> str:
        names = [spec.name + ("" if spec.required else " (optional)") for spec in self._card.inputs]
        also = "; a QAPLIB file goes into qaplib" if takes_qaplib(self._card) else ""
        return f"the inputs of {self._card.name} are {', '.join(names)}{also}"

    def _source(self, name: str, value: Any) -> Source:
        field = f"inputs.{name}"
        if isinstance(value, list):
            return self._kept_later(self._matrix(name, field, value))
        if not isinstance(value, dict):
            self._inline(field, value, None)
        if set(value) == {"data"}:
            return self._kept_later(self._matrix(name, f"{field}.data", value["data"]))
        if set(value) == {"csr"} and self._specs[name].sparse:
            return self._csr(f"{field}.csr", value["csr"])
        source = self._referenced(field, value).one(field)
        if isinstance(source.value, Csr) and not self._specs[name].sparse:
            raise InvalidProblem(field, f"is sparse; {self._card.name} takes a dense {name}")
        return source

    def _kept_later(self, value: Array | Csr) -> Source:
        return Source(value, lambda: self._store.put(value, self._owner))

    def _forbidden(self, name: str) -> float:
        """What null stands for in this input."""
        return -math.inf if self._maximize or name == "benefit" else math.inf

    def _matrix(self, name: str, field: str, data: Any) -> Array:
        """An input given as lists; null keeps integers exact where the solver takes such a mask."""
        integer = FORBIDDEN if self._specs[name].masked else None
        return self._inline(field, data, self._forbidden(name), integer)

    def _inline(self, field: str, data: Any, forbidden: float | None, integer: int | None = None) -> Array:
        matrix = isinstance(data, list) and bool(data) and isinstance(data[0], list)
        forbidden, integer = (forbidden, integer) if matrix else (None, None)
        return array_from_lists(field, data, forbidden, self._store.limits.max_elements, integer)

    def _csr(self, field: str, given: Any) -> Source:
        """A sparse matrix in its three arrays, each inline or a reference."""
        wanted = {*CSR_PARTS, "shape"}
        if not isinstance(given, dict) or set(given) != wanted:
            raise InvalidProblem(field, "expected an object with exactly indptr, indices, values and shape")
        shape = given["shape"]
        if not isinstance(shape, list) or len(shape) != 2 or any(type(extent) is not int for extent in shape):
            raise InvalidProblem(f"{field}.shape", f"is {reprlib.repr(shape)}; expected [n_rows, n_cols]")
        parts = {part: self._csr_part(f"{field}.{part}", given[part]) for part in CSR_PARTS}
        matrix = sparse({part: source.value for part, source in parts.items()}, shape, field)
        return Source(matrix, lambda: {"csr": {**{part: parts[part].keep() for part in CSR_PARTS}, "shape": shape}})

    def _csr_part(self, field: str, value: Any) -> Source:
        if isinstance(value, dict):
            return self._referenced(field, value).one(field)
        return self._kept_later(self._inline(field, value, None))

    def _referenced(self, field: str, value: Any) -> Found:
        """What {"blob"} or {"part"} leads to, read as it says."""
        kind = next((key for key in ("blob", "part") if isinstance(value, dict) and key in value), None)
        known = {kind, *FIELDS, *(NOTES if kind == "blob" else ())}
        if kind is None or set(value) - known or not isinstance(value[kind], str):
            also = ', {"csr": {...}}' if self._card.inputs and any(s.sparse for s in self._card.inputs) else ""
            expected = f'nested lists, {{"data": ...}}, {{"blob": "sha256:..."}}, {{"part": "..."}}{also}'
            raise InvalidProblem(field, f"is {reprlib.repr(value)}; expected {expected}")
        form = form_of(field, value)
        return self._blob(field, value[kind], form) if kind == "blob" else self._part(field, value[kind], form)

    def _blob(self, field: str, digest: str, form: Form) -> Found:
        try:
            reading = self._store.read(digest, self._owner, form, field)
        except UnknownBlob:
            message = f"refers to the unknown blob {digest:.80}; upload it with POST /v1/blobs"
            raise InvalidProblem(field, message) from None
        return Found(reading.value, lambda: frozen(digest, reading))

    def _part(self, field: str, name: str, form: Form) -> Found:
        part = self._parts.get(name)
        if part is None:
            there = f"the file parts are {', '.join(self._parts)}" if self._parts else "no file part came"
            raise InvalidProblem(field, f"refers to the part {name!r:.80}; {there}")
        self._unused.discard(name)
        form = replace(form, filename=part.filename or "", content_type=part.content_type)
        reading = read(part.sink.flush(), form, field, self._store.limits)
        return Found(reading.value, lambda: self._keep_part(part, reading))

    def _keep_part(self, part: Part, reading: Reading) -> InputRef:
        """Keep the file, once however many inputs are read from it."""
        if part.name not in self._kept:
            self._store.adopt(part.sink, self._owner)
            self._kept.add(part.name)
        return frozen(part.sink.digest, reading)

    def _take_bundle(self, name: str, decoded: Decoded) -> None:
        """The arrays of a QAPLIB file become inputs of their names."""
        if not isinstance(decoded, dict) or not {"flow", "distance"} <= decoded.keys():
            raise InvalidProblem(name, "is not a QAPLIB .dat file; expected n, then two n x n matrices")
        for inner, array in decoded.items():
            if inner in self.sources:
                raise InvalidProblem(f"inputs.{inner}", f"is given twice, by itself and in {name}")
            self.sources[inner] = self._kept_later(array)

    def _take_solution(self, value: Any) -> None:
        """The objective of a .sln file is the best-known value; it is checked against the matrices."""
        kind, name = next(iter(value.items())) if isinstance(value, dict) and value else ("", None)
        self._unused.discard("sln")
        flow, distance = self.sources["flow"].value, self.sources["distance"].value
        assert isinstance(flow, np.ndarray)
        assert isinstance(distance, np.ndarray)
        if kind != "part" or name not in self._parts:
            raise InvalidProblem("sln", 'expected a file part, as in -F sln=@nug12.sln, or {"part": "..."}')
        self._unused.discard(name)
        self.best_known = decode_solution(self._parts[name].sink.flush(), flow, distance, "sln")[1]
