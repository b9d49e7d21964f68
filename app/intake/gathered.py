"""Third station: every input is there as a checked array, and knows how to be kept for the job.

A blob and a part may say how they are to be read (format, member, dtype, shape); what they leave out, their bytes must
say. Nothing is kept in the store before the whole problem has been checked: until then a `Source` only knows how to
keep its array.
"""

import reprlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from app.http.refusal import Invalid, fault
from app.intake.document import allowed_inputs
from app.intake.json_ragged import is_series, one_after_the_other
from app.intake.keeper import Keeper
from app.intake.parsed import Parsed
from app.intake.reading import in_place, outlined, read_upload
from app.intake.visit import Visit
from kernels import Array, Bundle, Csr, InvalidProblem, Solver
from workers.jobs.job import Expired, InputRef, JobFailed, UnknownBlob, UnknownJob
from workers.store.codec import Decoded, Form, Reading, read_text, several, sparse
from workers.store.doors import NotOpen
from workers.store.handles import Handle, hand
from workers.store.in_place import handle_of
from workers.store.inline import is_inline
from workers.store.reference import CSR_PARTS, FIELDS, NOTES, form_of, frozen, names, of_array, written
from workers.store.unpack import Scratch
from workers.store.upload import Writer

DOORS = ("file", "url")
"""What the operator has, and may let an owner name."""
REFERENCES = ("blob", "part", *DOORS)
WORTH_OUTLINING = 1 << 16
"""Arrays of fewer entries are read even for an estimate, which is better for it."""


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Source:
    """One input: its array, and how to keep it for the job.

    `name` tells the same reference without keeping anything, for an array that came with the request. `sink` is the
    upload that holds it, where it came in one.
    """

    value: Array | Csr
    keep: Callable[[], InputRef]
    name: Callable[[], InputRef] | None = None
    sink: Writer | None = None

    def hand(self, folder: Path, scratch: Scratch) -> Handle:
        """Where the array lies, for another process."""
        return handle_of(self.value, self.sink) or hand(self.value, folder, scratch)


@dataclass(frozen=True)
class Found:
    """What a reference leads to: one matrix or several, and how to keep it for the job."""

    value: Decoded
    keep: Callable[[], InputRef]
    name: Callable[[], InputRef] | None = None
    sink: Writer | None = None

    def one(self, field: str) -> Source:
        """The one matrix. Raises InvalidProblem when there are several."""
        if isinstance(self.value, dict):
            raise InvalidProblem(f"{field}.member", several(self.value))
        return Source(self.value, self.keep, self.name, self.sink)


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Gathered:
    """All that a problem is built from.

    Attributes:
        texts: of files beside the inputs that say an option.
        outlined: the arrays are stand-ins, of which only shape and type count.
    """

    visit: Visit
    card: Solver
    request: Any
    sources: Mapping[str, Source]
    texts: Mapping[str, str]
    outlined: bool = False


async def gather(parsed: Parsed, outlines: bool = False) -> Gathered:
    """Follow every reference of the request.

    With `outlines`, arrays that are large and whose first bytes say shape and type are not read: for estimates.

    Raises:
        InvalidProblem, InvalidUpload, Invalid: the first input that cannot be taken.
    """
    begun, request = time.perf_counter(), parsed.document.request
    hand = _Hand(parsed, outlines and parsed.card.outline is not None)
    await hand.gather(parsed.document.inputs)
    warm = {} if request.warm_start is None else await run_in_threadpool(_warm, parsed, request.warm_start)
    sources = {**warm, **hand.sources}
    parsed.visit.spent("build", begun)
    return Gathered(parsed.visit, parsed.card, request, sources, hand.texts, hand.outlined)


def _warm(parsed: Parsed, job_id: str) -> dict[str, Source]:
    """The arrays of an earlier answer that this solver can start from."""
    card, desk, owner, keeper = parsed.card, parsed.visit.desk, parsed.visit.owner, Keeper(parsed.visit)
    try:
        arrays = desk.jobs.result(job_id, owner)["arrays"]
    except (UnknownJob, Expired, JobFailed) as wrong:
        raise Invalid(fault("warm_start", f"has no result: {wrong}", job_id)) from None
    found = {}
    for array, name in card.warm_start.items():
        if array in arrays:
            reference = written(arrays[array])
            value = desk.store.open_array(reference, owner)
            if is_inline(reference):
                found[name] = Source(value, partial(keeper.put, value), partial(of_array, value))
            else:
                found[name] = Source(value, partial(InputRef, reference))
    if not found:
        wanted = ", ".join(card.warm_start) or "nothing"
        raise Invalid(
            fault("warm_start", f"that job's answer has none of what {card.name} starts from: {wanted}", job_id)
        )
    return found


class _Hand:
    """Collects the inputs of one request."""

    def __init__(self, parsed: Parsed, outlines: bool) -> None:
        self._visit, self._card, self._parts = parsed.visit, parsed.card, parsed.parts
        self._store, self._owner = parsed.visit.desk.store, parsed.visit.owner
        self._outlines = outlines
        self._unused = set(self._parts)
        self._keeper = Keeper(parsed.visit)
        self._brought: dict[tuple[str, str], str] = {}
        self.sources: dict[str, Source] = {}
        self.texts: dict[str, str] = {}
        self.outlined = False

    async def gather(self, inputs: Mapping[str, Any]) -> None:
        """Every input of the request by name, and the texts beside them."""
        bundles = {bundle.name: bundle for bundle in self._card.bundles}
        companions = {companion.name for companion in self._card.companions}
        for name, value in inputs.items():
            if name in bundles:
                self._take_bundle(bundles[name], (await self._referenced(name, value)).value)
            elif name not in companions:
                self.sources |= await self._sources(name, value)
        if unknown := self._unused - companions:
            raise InvalidProblem(min(unknown), f"is a part that nothing refers to; {allowed_inputs(self._card)}")
        missing = [spec.name for spec in self._card.inputs if spec.required and spec.name not in self.sources]
        if missing:
            raise InvalidProblem(f"inputs.{missing[0]}", f"is missing; {allowed_inputs(self._card)}")
        for name in inputs.keys() & companions:
            self.texts[name] = self._text(name, inputs[name])

    async def _sources(self, name: str, value: Any) -> dict[str, Source]:
        """An input by its name; matrices of different sizes in one file are two, their entries and their sizes."""
        field = f"inputs.{name}"
        if self._card.specs[name].ragged != "matrices" or isinstance(value, np.ndarray):
            return {name: await self._source(name, value)}
        found = await self._referenced(field, value)
        if not isinstance(found.value, dict) or not is_series(found.value):
            return {name: self._dense_enough(name, found.one(field))}
        told = self._card.specs[name].sizes
        if told in self.sources:
            raise InvalidProblem(
                f"inputs.{told}", f"is given beside several matrices in {name}, which say it themselves"
            )
        flat, sizes = one_after_the_other(field, found.value)
        return {name: self._kept_later(flat), told: self._kept_later(sizes)}

    async def _source(self, name: str, value: Any) -> Source:
        field, sparse_too = f"inputs.{name}", self._card.specs[name].sparse
        if isinstance(value, np.ndarray):
            return self._kept_later(value)
        if set(value) == {"csr"} and sparse_too:
            return await self._csr(f"{field}.csr", value["csr"])
        return self._dense_enough(name, (await self._referenced(field, value)).one(field))

    def _dense_enough(self, name: str, source: Source) -> Source:
        if isinstance(source.value, Csr) and not self._card.specs[name].sparse:
            raise InvalidProblem(f"inputs.{name}", f"is sparse; {self._card.name} takes a dense {name}")
        return source

    def _kept_later(self, value: Array | Csr) -> Source:
        return Source(value, partial(self._keeper.put, value), partial(of_array, value))

    async def _csr(self, field: str, given: Mapping[str, Any]) -> Source:
        """A sparse matrix in its three arrays."""
        shape = given["shape"]
        parts = {part: await self._csr_part(f"{field}.{part}", given[part]) for part in CSR_PARTS}
        matrix = sparse({part: source.value for part, source in parts.items()}, shape, field)

        def kept() -> InputRef:
            return {"csr": {**{part: parts[part].keep() for part in CSR_PARTS}, "shape": shape}}

        names = [source.name for source in parts.values() if source.name is not None]
        if len(names) < len(CSR_PARTS):
            return Source(matrix, kept)
        return Source(matrix, kept, lambda: {"csr": {**{p: n() for p, n in zip(CSR_PARTS, names, strict=True)},
                                                     "shape": shape}})  # fmt: skip

    async def _csr_part(self, field: str, value: Any) -> Source:
        if isinstance(value, np.ndarray):
            return self._kept_later(value)
        return (await self._referenced(field, value)).one(field)

    async def _referenced(self, field: str, value: Any) -> Found:
        """What {"blob"}, {"part"}, {"file"} or {"url"} leads to, read as it says."""
        kind = next((key for key in REFERENCES if isinstance(value, dict) and key in value), None)
        known = {kind, *FIELDS, *(NOTES if kind == "blob" else ())}
        if kind is None or set(value) - known or not isinstance(value[kind], str):
            also = ', {"csr": {...}}' if any(spec.sparse for spec in self._card.inputs) else ""
            expected = f'nested lists, {{"data": ...}}, {{"blob": "sha256:..."}}, {{"part": "..."}}{also}'
            raise InvalidProblem(field, f"is {reprlib.repr(value)}; expected {expected}")
        form = form_of(field, value)
        if kind in DOORS:
            digest = await self._through(field, kind, value[kind])
            return await self._blob(field, digest, replace(form, filename=value[kind].rpartition("/")[2]))
        return await (self._blob if kind == "blob" else self._part)(field, value[kind], form)

    async def _through(self, field: str, kind: str, name: str) -> str:
        """Copy what an input names into the store, once, as an upload; its digest is what the job keeps."""
        if (kind, name) not in self._brought:
            self._brought[kind, name] = await run_in_threadpool(self._bring, field, kind, name)
        return self._brought[kind, name]

    def _bring(self, field: str, kind: str, name: str) -> str:
        most, desk = self._store.limits.max_bytes, self._visit.desk
        with self._store.writer() as writer:
            try:
                desk.doors.copy(kind, name, self._owner, writer, most, self._visit.held.take)
            except NotOpen as wrong:
                raise InvalidProblem(field, str(wrong)) from None
            if writer.size == 0:
                raise InvalidProblem(field, f"names {name[:80]!r}, which is empty; expected the bytes of an array")
            self._store.adopt(writer, self._owner, brought=True)
            self._visit.laid.brought += names({"": {"blob": writer.digest}}, self._owner)
            return writer.digest

    async def _blob(self, field: str, digest: str, form: Form) -> Found:
        try:
            path = await run_in_threadpool(self._store.find, digest, self._owner)
        except UnknownBlob:
            message = f"refers to the unknown blob {digest:.80}; upload it with POST /v1/blobs"
            raise InvalidProblem(field, message) from None
        reading = await self._read(path, form, field)
        await run_in_threadpool(self._store.recall, digest, self._owner, reading.value)
        return Found(reading.value, lambda: frozen(digest, reading))

    async def _part(self, field: str, name: str, form: Form) -> Found:
        part = self._parts.get(name)
        if part is None:
            there = f"the file parts are {', '.join(self._parts)}" if self._parts else "no file part came"
            raise InvalidProblem(field, f"refers to the part {name!r:.80}; {there}")
        self._unused.discard(name)
        form = replace(form, filename=part.filename or "", content_type=part.content_type)
        if part.sink.short is None:
            part.sink.look()
        reading = None if self._outlines else in_place(self._visit, self._card, part.sink, form, field)
        if reading is None:
            reading = await self._read(part.sink.path, form, field, at_hand=True)
            if (sight := part.sink.sight) is not None:
                sight.tell(reading.value)
        keep = partial(self._keeper.keep, part, reading)
        return Found(reading.value, keep, lambda: frozen(part.sink.digest, reading), part.sink)

    async def _read(self, path: Path, form: Form, field: str, at_hand: bool = False) -> Reading:
        """What a file holds: or, where an outline will do and is told, a stand-in for it.

        `at_hand`: its bytes have just come.
        """
        main = self._card.main
        wanted = self._outlines and main is not None and field == f"inputs.{main.name}"
        seen = await outlined(self._visit, path, form) if wanted else None
        if seen is not None and seen.size > WORTH_OUTLINING:
            self.outlined = True
            return Reading("", None, seen)
        return await read_upload(self._visit, path, form, field, at_hand)

    def _take_bundle(self, bundle: Bundle, decoded: Decoded) -> None:
        """The arrays of the file become inputs of their names."""
        if not isinstance(decoded, dict) or not set(bundle.fills) <= decoded.keys():
            raise InvalidProblem(bundle.name, f"is not a {bundle.kind}; expected {bundle.expected}")
        for inner, array in decoded.items():
            if inner in self.sources:
                raise InvalidProblem(f"inputs.{inner}", f"is given twice, by itself and in {bundle.name}")
            self.sources[inner] = self._kept_later(array)

    def _text(self, companion: str, value: Any) -> str:
        """The text of a file that says an option; whoever builds the problem reads it."""
        name = value.get("part") if isinstance(value, dict) and set(value) == {"part"} else None
        if not isinstance(name, str) or name not in self._parts:
            expected = f'expected a file part, as in -F {companion}=@FILE, or {{"part": "..."}}'
            raise InvalidProblem(companion, expected)
        return read_text(self._parts[name].sink.flush(), companion)
