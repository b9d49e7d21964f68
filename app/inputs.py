"""From what a request says of its inputs to checked arrays, and to the references that a job holds.

An input is a nested list, {"data"}, {"blob"}, {"part"} or (where the solver takes it) {"csr"}. Nothing is kept in
the store before the whole problem has been checked: until then a `Source` only knows how to keep its array.
"""

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.json_arrays import array_from_lists
from app.media import DIGEST
from app.multipart import Part
from app.schemas import BUNDLES, takes_qaplib
from kernels import FORBIDDEN, Array, Csr, InvalidProblem, Solver
from workers.codec import Decoded, Form, decode, decode_solution, describe
from workers.job import InputRef
from workers.store import Store

CSR_PARTS = ("indptr", "indices", "values")


@dataclass(frozen=True)
class Source:
    """One input: its array, and how to keep it for the job."""

    value: Array | Csr
    keep: Callable[[], InputRef]


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
                self._take_bundle(name, self._referenced(name, value)[0])
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
            return self._kept_later(self._csr(f"{field}.csr", value["csr"]))
        decoded, keep = self._referenced(name, value)
        if isinstance(decoded, dict):
            raise InvalidProblem(field, f"holds {', '.join(sorted(decoded))[:200]}; name one of them as member")
        if isinstance(decoded, Csr) and not self._specs[name].sparse:
            raise InvalidProblem(field, f"is sparse; {self._card.name} takes a dense {name}")
        return Source(decoded, keep)

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

    def _csr(self, field: str, given: Any) -> Csr:
        """A sparse matrix in its three arrays, each inline or a reference."""
        wanted = {*CSR_PARTS, "shape"}
        if not isinstance(given, dict) or set(given) != wanted:
            raise InvalidProblem(field, "expected an object with exactly indptr, indices, values and shape")
        shape = given["shape"]
        if not isinstance(shape, list) or len(shape) != 2 or any(type(extent) is not int for extent in shape):
            raise InvalidProblem(f"{field}.shape", f"is {reprlib.repr(shape)}; expected [n_rows, n_cols]")
        arrays = {}
        for part in CSR_PARTS:
            value = given[part]
            if isinstance(value, dict):
                value, _ = self._referenced(f"{field}.{part}", value)
            else:
                value = self._inline(f"{field}.{part}", value, None)
            if not isinstance(value, np.ndarray) or value.ndim != 1:
                raise InvalidProblem(f"{field}.{part}", "expected a list of numbers")
            arrays[part] = value
        for part in ("indptr", "indices"):
            if arrays[part].size and arrays[part].dtype.kind not in "iu":
                raise InvalidProblem(f"{field}.{part}", f"has dtype {arrays[part].dtype}; expected integers")
        indptr, indices = arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int64)
        return Csr(indptr, indices, arrays["values"], (shape[0], shape[1]))

    def _referenced(self, name: str, value: Any) -> tuple[Decoded, Callable[[], InputRef]]:
        """What {"blob"} or {"part"} refers to, and how to keep it."""
        field = name if name.startswith("inputs.") or name in BUNDLES else f"inputs.{name}"
        kind = next((key for key in ("blob", "part") if isinstance(value, dict) and key in value), None)
        text, member = (value.get(kind), value.get("member")) if kind else (None, None)
        if (
            kind is None
            or set(value) - {kind, "member"}
            or not isinstance(text, str)
            or not isinstance(member, str | None)
        ):
            also = ', {"csr": {...}}' if self._card.inputs and any(s.sparse for s in self._card.inputs) else ""
            expected = f'nested lists, {{"data": ...}}, {{"blob": "sha256:..."}}, {{"part": "..."}}{also}'
            raise InvalidProblem(field, f"is {reprlib.repr(value)}; expected {expected}")
        return self._blob(field, text, member) if kind == "blob" else self._part(field, text, member)

    def _blob(self, field: str, digest: str, member: str | None) -> tuple[Decoded, Callable[[], InputRef]]:
        info = self._store.stat(digest, self._owner) if DIGEST.fullmatch(digest) else None
        if info is None:
            raise InvalidProblem(field, f"refers to the unknown blob {digest:.80}; upload it with POST /v1/blobs")
        decoded = self._store.load(digest)
        if member is not None:
            array = _member(field, decoded, member)
            return array, lambda: self._store.put(array, self._owner)
        return decoded, lambda: {"kind": "array", "digest": digest}

    def _part(self, field: str, name: str, member: str | None) -> tuple[Decoded, Callable[[], InputRef]]:
        part = self._parts.get(name)
        if part is None:
            there = f"the file parts are {', '.join(self._parts)}" if self._parts else "no file part came"
            raise InvalidProblem(field, f"refers to the part {name!r:.80}; {there}")
        self._unused.discard(name)
        form = Form(filename=part.filename or "", content_type=part.content_type)
        decoded = decode(part.sink.flush(), form, name, self._store.limits)
        if member is not None:
            array = _member(field, decoded, member)
            return array, lambda: self._store.put(array, self._owner)

        def keep() -> InputRef:
            info = self._store.adopt(part.sink, self._owner, describe(decoded), form)
            return {"kind": "array", "digest": info.digest}

        return decoded, keep

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


def _member(field: str, decoded: Decoded, member: str) -> Array:
    if not isinstance(decoded, dict) or member not in decoded:
        there = ", ".join(sorted(decoded))[:200] if isinstance(decoded, dict) else "one array only"
        raise InvalidProblem(field, f"has no member {member!r:.60}; it holds {there}")
    return decoded[member]
