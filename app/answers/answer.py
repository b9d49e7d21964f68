"""From results to bytes: JSON that every parser reads, arrays in line or as links, npz and safetensors."""

import functools
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from fastapi import Response
from pydantic_core import from_json, to_json

from app.http.media import JSON
from app.intake.visit import brief
from kernels import SOLVERS
from workers.jobs.job import InputRef, Job
from workers.jobs.queue import Jobs
from workers.jobs.shown import Seen
from workers.store.folded import unfolded
from workers.store.inline import is_inline, unpack
from workers.store.reference import written
from workers.store.store import Store

AT_ONCE_BYTES = 1 << 20
"""Of all arrays of an answer, which take a millisecond to read and send."""
TIMES = b',"timings_ms":{'
"""Before the times of a stored result; no text holds it, as quotes are escaped there."""


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """`value` as JSON. NaN and infinities, which JSON does not have, become null.

    In a potential null stands for a point without mass, whose potential is -inf; in a bound or a gap for "none".
    """
    return to_json(value, inf_nan_mode="null", indent=indent, fallback=lambda numpy: numpy.tolist())


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`value` as a JSON response."""
    return Response(json_bytes(value), status, headers=dict(headers or {}), media_type=JSON)


class Worded(Response):
    """JSON that is there, and headers that are: a response of Starlette's makes both of anything."""

    def __init__(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.status_code, self.media_type, self.background, self.body = 200, JSON, None, body
        self.raw_headers = [(_raw(name), value.encode("latin-1")) for name, value in headers.items()]
        self.raw_headers += (b"content-length", b"%d" % len(body)), (b"content-type", JSON.encode())


@functools.lru_cache(256)
def _raw(name: str) -> bytes:
    return name.lower().encode("latin-1")


def document_of(jobs: Jobs, store: Store, job: Job, inline_elements: int) -> dict[str, Any]:
    """The result document of an ended job. Raises what `Jobs.result` does."""
    return shown(store, job, jobs.result(job.id, job.owner), inline_elements)


def shown(store: Store, job: Job, stored: Mapping[str, Any], inline_elements: int) -> dict[str, Any]:
    """A result document as the client gets it, of the one that the worker stored.

    Arrays of more than `inline_elements` are links, unless they are in the document; with -1 none stands there.
    """
    document = dict(unfolded(stored))
    entries = document.pop("arrays").items()
    arrays = {name: _shown(store, job, written(entry), inline_elements) for name, entry in entries}
    return {
        "id": job.id,
        "solver": job.solver,
        **document,
        **SOLVERS[job.solver].grouped(arrays),
        "links": links_of(job),
    }


def is_at_hand(store: Store, stored: Mapping[str, Any]) -> bool:
    """Whether the arrays of a result that has just been stored are read in less time than a thread takes to begin.

    They are in it, or they are short and in a local folder, where they were written a moment ago.
    """
    size = 0
    for entry in stored["arrays"].values():
        if not is_inline(entry):
            size += int(np.dtype(entry["dtype"]).itemsize * math.prod(entry["shape"]))
    return size == 0 or (size <= AT_ONCE_BYTES and store.is_local)


def worded(store: Store, job: Job, seen: Seen, inline_elements: int) -> tuple[bytes, str]:
    """The JSON of the result that was seen, as `shown` shows it, and its times as a Server-Timing header.

    Raises Damaged, and what reading an array does.
    """
    document = shown(store, job, seen.document(), inline_elements)
    times = responded(document["timings_ms"], seen)
    return json_bytes(document), times


def worded_at_once(job: Job, seen: Seen) -> tuple[bytes, str] | None:
    """The same of a result whose arrays are in it; None where they are not, or are not its last part.

    What a worker wrote before the times and the arrays (workers/runtime/document.py) goes on as it came.
    """
    head, cut, tail = (seen.result or b"").rpartition(TIMES)
    try:
        told = from_json(b"{" + cut[1:] + tail)
        if not cut or told.keys() != {"timings_ms", "arrays"}:
            return None
        arrays = {name: unpack(entry).tolist() for name, entry in told["arrays"].items()}
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    spent = told["timings_ms"]
    times = responded(spent, seen)
    end = {"timings_ms": spent, **SOLVERS[job.solver].grouped(arrays), "links": links_of(job)}
    return head + b"," + json_bytes(end)[1:], times


def responded(spent: dict[str, float], seen: Seen) -> str:
    """Count the way back, from the job's end to now, in a document's times; they then add up to what the client saw.

    Returns:
        The same as a Server-Timing header.
    """
    if ended_at := seen.ended_at:
        respond = max(0.0, 1000 * (time.time() - ended_at))
        spent["respond"] = brief(respond)
        spent["total"] = brief(spent.get("total", 0.0) + respond)
    return ", ".join([f"{name};dur={ms:.1f}" for name, ms in spent.items()])


def _shown(store: Store, job: Job, reference: InputRef, inline_elements: int) -> Any:
    """One array: nested lists, or a reference to it and where to get it."""
    if "data" in reference and inline_elements < 0:
        return {name: said for name, said in reference.items() if name != "data"}
    if "data" in reference:
        return unpack(reference).tolist()
    if is_inline(reference) or math.prod(reference["shape"]) <= inline_elements:
        return store.open_array(reference, job.owner).tolist()
    return {**reference, "href": f"/v1/blobs/{reference['blob']}"}


def links_of(job: Job) -> dict[str, str]:
    """Where a job's pages are."""
    here = f"/v1/jobs/{job.id}"
    return {"self": here, "result": f"{here}/result", "events": f"{here}/events", "cancel": f"{here}/cancel"}
