"""Third station: every input is there as a checked array, and knows how to be kept for the job.

A blob and a part may say how they are to be read (format, member, dtype, shape); what they leave out, their bytes must
say. Nothing is kept in the store before the whole problem has been checked: until then a `Source` only knows how to
keep its array.
"""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from app.http.errors import Invalid, fault
from app.intake.multipart import Part
from app.intake.parsed import Parsed, allowed_inputs
from app.intake.visit import Visit
from kernels import Array, Bundle, Companion, Csr, InvalidProblem, Solver
from workers.jobs.job import Expired, InputRef, JobFailed, UnknownBlob, UnknownJob
from workers.store.codec import Decoded, Form, Reading, read, read_text, several, sparse
from workers.store.reference import CSR_PARTS, FIELDS, NOTES, form_of, frozen, written
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


@dataclass(frozen=True)
class Gathered:
    """All that a problem is built from."""

    visit: Visit
    card: Solver
    request: Any
    options: Any
    sources: Mapping[str, Source]


async def gather(parsed: Parsed) -> Gathered:
    """Follow every reference of the request.

    Raises:
        InvalidProblem, InvalidUpload, Invalid: the first input that cannot be taken.
    """
    with parsed.visit.timed("gather"):
        return await run_in_threadpool(_gather, parsed)


def _gather(parsed: Parsed) -> Gathered:
    request, desk, owner = parsed.document.request, parsed.visit.desk, parsed.visit.owner
    hand = _Hand(parsed.card, desk.store, owner, parsed.parts)
    sources = hand.gather(parsed.document.inputs)
    options = request.options.model_copy(update=hand.said) if hand.said else request.options
    if request.warm_start is not None:
        sources = {**_warm(parsed, request.warm_start), **sources}
    return Gathered(parsed.visit, parsed.card, request, options, sources)


def _warm(parsed: Parsed, job_id: str) -> dict[str, Source]:
    """The arrays of an earlier answer that this solver can start from."""
    card, desk, owner = parsed.card, parsed.visit.desk, parsed.visit.owner
    try:
        arrays = desk.jobs.result(job_id, owner)["arrays"]
    except (UnknownJob, Expired, JobFailed) as wrong:
        raise Invalid(fault("warm_start", f"has no result: {wrong}", job_id)) from None
    found = {}
    for array, name in card.warm_start.items():
        if array in arrays:
            reference = written(arrays[array])
            found[name] = Source(desk.store.open_array(reference, owner), partial(InputRef, reference))
    if not found:
        wanted = ", ".join(card.warm_start) or "nothing"
        raise Invalid(
            fault("warm_start", f"that job's answer has none of what {card.name} starts from: {wanted}", job_id)
        )
    return found


class _Hand:
    """Collects the inputs of one request."""

    def __init__(self, card: Solver, store: Store, owner: str, parts: Mapping[str, Part]) -> None:
        self._card, self._store, self._owner, self._parts = card, store, owner, parts
        self._unused = set(parts)
        self._kept: set[str] = set()
        self.sources: dict[str, Source] = {}
        self.said: dict[str, int | float] = {}
        """Options that a file beside the inputs said."""

    def gather(self, inputs: Mapping[str, Any]) -> dict[str, Source]:
        """Every input of the request by name."""
        bundles = {bundle.name: bundle for bundle in self._card.bundles}
        companions = {companion.name: companion for companion in self._card.companions}
        for name, value in inputs.items():
            if name in bundles:
                self._take_bundle(bundles[name], self._referenced(name, value).value)
            elif name not in companions:
                self.sources[name] = self._source(name, value)
        if unknown := self._unused - companions.keys():
            raise InvalidProblem(min(unknown), f"is a part that nothing refers to; {allowed_inputs(self._card)}")
        missing = [spec.name for spec in self._card.inputs if spec.required and spec.name not in self.sources]
        if missing:
            raise InvalidProblem(f"inputs.{missing[0]}", f"is missing; {allowed_inputs(self._card)}")
        for name in inputs.keys() & companions.keys():
            self._take_companion(companions[name], inputs[name])
        return self.sources

    def _source(self, name: str, value: Any) -> Source:
        field, sparse_too = f"inputs.{name}", self._card.specs[name].sparse
        if isinstance(value, np.ndarray):
            return self._kept_later(value)
        if set(value) == {"csr"} and sparse_too:
            return self._csr(f"{field}.csr", value["csr"])
        source = self._referenced(field, value).one(field)
        if isinstance(source.value, Csr) and not sparse_too:
            raise InvalidProblem(field, f"is sparse; {self._card.name} takes a dense {name}")
        return source

    def _kept_later(self, value: Array | Csr) -> Source:
        return Source(value, lambda: self._store.put(value, self._owner))

    def _csr(self, field: str, given: Mapping[str, Any]) -> Source:
        """A sparse matrix in its three arrays."""
        shape = given["shape"]
        parts = {part: self._csr_part(f"{field}.{part}", given[part]) for part in CSR_PARTS}
        matrix = sparse({part: source.value for part, source in parts.items()}, shape, field)
        return Source(matrix, lambda: {"csr": {**{part: parts[part].keep() for part in CSR_PARTS}, "shape": shape}})

    def _csr_part(self, field: str, value: Any) -> Source:
        return self._kept_later(value) if isinstance(value, np.ndarray) else self._referenced(field, value).one(field)

    def _referenced(self, field: str, value: Any) -> Found:
        """What {"blob"} or {"part"} leads to, read as it says."""
        kind = next((key for key in ("blob", "part") if isinstance(value, dict) and key in value), None)
        known = {kind, *FIELDS, *(NOTES if kind == "blob" else ())}
        if kind is None or set(value) - known or not isinstance(value[kind], str):
            also = ', {"csr": {...}}' if any(spec.sparse for spec in self._card.inputs) else ""
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

    def _take_bundle(self, bundle: Bundle, decoded: Decoded) -> None:
        """The arrays of the file become inputs of their names."""
        if not isinstance(decoded, dict) or not set(bundle.fills) <= decoded.keys():
            raise InvalidProblem(bundle.name, f"is not a {bundle.kind}; expected {bundle.expected}")
        for inner, array in decoded.items():
            if inner in self.sources:
                raise InvalidProblem(f"inputs.{inner}", f"is given twice, by itself and in {bundle.name}")
            self.sources[inner] = self._kept_later(array)

    def _take_companion(self, companion: Companion, value: Any) -> None:
        """The number in the file becomes an option; it is checked against the inputs."""
        name = value.get("part") if isinstance(value, dict) and set(value) == {"part"} else None
        if not isinstance(name, str) or name not in self._parts:
            expected = f'expected a file part, as in -F {companion.name}=@FILE, or {{"part": "..."}}'
            raise InvalidProblem(companion.name, expected)
        self._unused.discard(name)
        text = read_text(self._parts[name].sink.flush(), companion.name)
        arrays = {name: source.value for name, source in self.sources.items()}
        try:
            self.said[companion.option] = companion.read(text, arrays)
        except InvalidProblem as wrong:
            field = f"inputs.{wrong.field}" if wrong.field in self._card.specs else companion.name
            raise InvalidProblem(field, wrong.message) from None
