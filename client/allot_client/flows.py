"""Every conversation with the service, once, for the plain and the asyncio client alike.

A flow is a generator: it yields what is to be sent (`Call`) or slept (`Pause`) and is sent back the `Answer`, or asks
what the client knows of its service (`Knowing`). The two clients differ only in how they carry that out, so retries,
waiting and errors are the same in both.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from allot_client import body as bodies
from allot_client import facts
from allot_client.digests import digest_of
from allot_client.errors import InvalidInput, JobCancelled, JobFailed, NotFound, Unreachable, WaitedTooLong, refusal
from allot_client.ragged import with_prices
from allot_client.results import Home, Result, has_links, read_result
from allot_client.safetensors import Safetensors

SAFETENSORS = "application/x-safetensors"
A_FILE = f"{SAFETENSORS};{facts.ASKED}, application/json;q=0.9"
"""What is taken for an answer that may be long: digits of 90,000 numbers take 60 ms to read."""
WORTH_A_FILE = 1 << 15
"""Bytes of a body for whose answer the arrays come at once, as a file, and not by a second request."""
LONGEST_POLL_S = 20.0
TRIED_AGAIN = (429, 502, 503, 504)


@dataclass(frozen=True)
class Call:
    """One request. `safe` ones may be sent again when the connection breaks."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    body: bodies.Body | None = None
    safe: bool = True
    timeout_s: float = 60.0


@dataclass(frozen=True)
class Pause:
    """Seconds to do nothing."""

    seconds: float


@dataclass
class Known:
    """What a client has found out of its service.

    `frames`: whether it takes frames as points. Earlier services take their costs alone.
    """

    frames: bool = True


@dataclass(frozen=True)
class Knowing:
    """Asks the client for what it knows of its service; it sends back its `Known`, to read and to write."""


@dataclass(frozen=True)
class Answer:
    """One response; `broken` says what happened where none came."""

    status: int
    headers: Mapping[str, str]
    content: bytes | memoryview
    broken: str | None = None

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(bytes(self.content))


T = TypeVar("T")
Flow = Generator[Call | Pause | Knowing, Any, T]
OF_FRAMES = ("inputs.x", "inputs.y", "inputs.sizes", "inputs.reject_rows", "inputs.reject_cols", "options.cost_limit")
OF_BEFORE = (
    "is given beside x or y", "belongs to a matrix of costs, and x and y are given", "is unknown",
    "is missing or sparse; expected points",
)  # fmt: skip
"""What services say of these fields that take no frames as points, or none whose sides are one array."""


@dataclass(frozen=True)
class Retry:
    """How often and how patiently a request is sent again.

    Pauses double from `first_s` to `longest_s`, each shortened at random by up to half, so that clients that were
    refused together do not come back together. A Retry-After of the service is obeyed.
    """

    attempts: int = 6
    first_s: float = 0.1
    longest_s: float = 10.0

    def pause_s(self, attempt: int, call: Call, answer: Answer) -> float | None:
        """Seconds before attempt + 1, None when there is to be none."""
        if attempt >= self.attempts or not (answer.status in TRIED_AGAIN or (answer.broken and call.safe)):
            return None
        asked = answer.headers.get("retry-after", "")
        backoff = min(self.longest_s, self.first_s * 2 ** (attempt - 1)) * random.uniform(0.5, 1)
        return max(backoff, min(float(asked), self.longest_s)) if asked.isdigit() else float(backoff)


def after_break(job_id: str, attempt: int, retry: Retry, error: Exception) -> float:
    """Seconds before the events of a job, which broke off, are asked for again. Raises Unreachable after the last."""
    if attempt >= retry.attempts:
        raise Unreachable(f"the events of job {job_id} broke off: {error}") from error
    return float(min(retry.longest_s, retry.first_s * 2**attempt))


def send(call: Call, retry: Retry) -> Flow[Answer]:
    """Send until there is an answer that counts.

    Raises:
        AllotError: for an answer of at least 400, or when nothing answers.
    """
    attempt = 0
    while True:
        attempt += 1
        answer: Answer = yield call
        pause = retry.pause_s(attempt, call, answer)
        if pause is not None:
            yield Pause(pause)
        elif answer.broken:
            raise Unreachable(f"{answer.broken} ({call.method} {call.path}, {attempt} attempts)")
        elif answer.status >= 400:
            raise refusal(answer.status, problem(answer))
        else:
            return answer


def problem(answer: Answer) -> Mapping[str, Any]:
    """The problem document of an answer, or its first bytes as the detail of one."""
    try:
        document = answer.json()
    except ValueError:
        document = None
    if isinstance(document, dict):
        return document
    kind = answer.headers.get("content-type", "no type").partition(";")[0]
    if kind in ("text/html", "text/plain"):  # of a proxy, or of something else that listens there
        words = f"HTTP {answer.status} with a page of {kind}, which is no answer of Allot; is ALLOT_URL right?"
        return {"detail": words}
    return {"detail": bytes(answer.content[:500]).decode(errors="replace")}


@dataclass(frozen=True)
class Task:
    """A job before it is sent. With `as_file` the arrays of its answer come as a file, however few they are.

    `as_costs`: what makes the same job of the costs of frames that go as points, for a service that takes costs alone.
    """

    job: Mapping[str, Any]
    inputs: Mapping[str, bodies.Input]
    home: Home
    as_file: bool = False
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    as_costs: Callable[[], Task] | None = field(default=None, compare=False)

    def call(self, wait_s: float) -> Call:
        """The request. The key makes it safe to send twice: the service then answers with the job it has."""
        inputs = with_prices(self.inputs, self.job.get("options", {})) if self.job["solver"] == "lap" else self.inputs
        body = bodies.job_body(self.job, inputs)
        headers = {"Content-Type": body.media_type, "Idempotency-Key": self.key}
        if wait_s > 0:
            headers["Prefer"] = f"wait={wait_s:g}"
            if self.as_file or body.length > WORTH_A_FILE:
                headers["Accept"] = A_FILE
        return Call("POST", "/v1/jobs", headers, body=body, timeout_s=wait_s + 60.0)


def submit(task: Task, retry: Retry) -> Flow[dict[str, Any]]:
    """Place the job; returns its view."""

    def placed(one: Task) -> Flow[dict[str, Any]]:
        answer = yield from send(one.call(0.0), retry)
        return dict(answer.json())

    return (yield from _as_it_takes_them(task, placed))


def solve(task: Task, timeout_s: float | None, retry: Retry) -> Flow[Result]:
    """Place the job and wait for its answer."""
    return (yield from _as_it_takes_them(task, lambda one: _solved(one, timeout_s, retry)))


def _as_it_takes_them(task: Task, flow: Callable[[Task], Flow[T]]) -> Flow[T]:
    """What `flow` makes of a task, or of its costs where the service takes no frames as points. That is asked once."""
    if task.as_costs is None:
        return (yield from flow(task))
    known: Known = yield Knowing()
    if known.frames:
        try:
            return (yield from flow(task))
        except InvalidInput as refused:
            if not any(one.field in OF_FRAMES and one.message.startswith(OF_BEFORE) for one in refused.faults):
                raise
            known.frames = False
    return (yield from flow(replace(task.as_costs(), key=uuid.uuid4().hex)))


def _solved(task: Task, timeout_s: float | None, retry: Retry) -> Flow[Result]:
    give_up = _give_up(timeout_s)
    answer = yield from send(task.call(_poll_s(give_up)), retry)
    if answer.status == 200:
        return (yield from _read(answer, task.home, retry))
    return (yield from result(answer.json()["id"], task.home, give_up, timeout_s, retry))


def _read(answer: Answer, home: Home, retry: Retry) -> Flow[Result]:
    if not answer.headers.get("content-type", "").startswith(SAFETENSORS):
        return (yield from _with_arrays(answer.json(), home, retry))
    told, arrays = Safetensors.read(answer.content)
    document = json.loads(told)
    facts.put_back(document, arrays)
    return read_result(document, arrays, home)


def wait(job_id: str, timeout_s: float | None, retry: Retry) -> Flow[dict[str, Any]]:
    """Wait for a job's end; returns its view."""
    return (yield from _wait(job_id, _give_up(timeout_s), timeout_s, retry))


def _wait(job_id: str, give_up: float, timeout_s: float | None, retry: Retry) -> Flow[dict[str, Any]]:
    while True:
        poll_s = _poll_s(give_up)
        call = Call("GET", f"/v1/jobs/{job_id}", params={"wait": f"{poll_s:g}"}, timeout_s=poll_s + 60.0)
        view = (yield from send(call, retry)).json()
        if view["state"] not in ("queued", "running"):
            return dict(view)
        if time.monotonic() >= give_up:
            raise WaitedTooLong(job_id, timeout_s or 0.0)


def result(job_id: str, home: Home, give_up: float, timeout_s: float | None, retry: Retry) -> Flow[Result]:
    """Wait for a job's answer and fetch it."""
    view = yield from _wait(job_id, give_up, timeout_s, retry)
    if view["state"] == "failed":
        raise JobFailed(job_id, view["error"] or {})
    if view["state"] == "cancelled":
        raise JobCancelled(job_id)
    call = Call("GET", f"/v1/jobs/{job_id}/result", {"Accept": A_FILE}, timeout_s=600.0)
    return (yield from _read((yield from send(call, retry)), home, retry))


def result_of(job_id: str, home: Home, timeout_s: float | None, retry: Retry) -> Flow[Result]:
    """As `result`, within `timeout_s` seconds from now."""
    return (yield from result(job_id, home, _give_up(timeout_s), timeout_s, retry))


def _with_arrays(document: Mapping[str, Any], home: Home, retry: Retry) -> Flow[Result]:
    if not has_links(document):
        return read_result(document, None, home)
    path = f"/v1/jobs/{document['id']}/result"
    answer = yield from send(Call("GET", path, {"Accept": SAFETENSORS}, timeout_s=600.0), retry)
    return read_result(document, Safetensors.read(answer.content)[1], home)


def upload(pieces: list[bodies.Piece], params: Mapping[str, str], retry: Retry) -> Flow[bodies.Blob]:
    """Upload a file as a blob unless it is there already; its digest is checked on the other side."""
    digest = digest_of(pieces)
    if params.keys() <= {"filename"} and (yield from _is_there(digest, retry)):
        return bodies.Blob({"blob": digest})
    body = bodies.Body(pieces, "application/octet-stream")
    headers = {"Content-Type": body.media_type}
    call = Call("POST", "/v1/blobs", headers, {**params, "digest": digest}, body, timeout_s=600.0)
    document = (yield from send(call, retry)).json()
    known = {
        name: document[name] for name in ("blob", "format", "member", "dtype", "shape", "scale") if document.get(name)
    }
    return bodies.Blob({"blob": digest, **known})


def _is_there(digest: str, retry: Retry) -> Flow[bool]:
    try:
        yield from send(Call("HEAD", f"/v1/blobs/{digest}"), retry)
    except NotFound:
        return False
    return True


def view(job_id: str, retry: Retry) -> Flow[dict[str, Any]]:
    """Look at a job."""
    return dict((yield from send(Call("GET", f"/v1/jobs/{job_id}"), retry)).json())


def page(params: Mapping[str, str], retry: Retry) -> Flow[dict[str, Any]]:
    """One page of the caller's jobs, newest first."""
    return dict((yield from send(Call("GET", "/v1/jobs", params=params), retry)).json())


def cancel(job_id: str, retry: Retry) -> Flow[dict[str, Any]]:
    """Stop a job; what it has found so far is its answer."""
    return dict((yield from send(Call("POST", f"/v1/jobs/{job_id}/cancel"), retry)).json())


def delete(job_id: str, retry: Retry) -> Flow[None]:
    """Stop a job and forget it. Forgetting twice is no error."""
    try:
        yield from send(Call("DELETE", f"/v1/jobs/{job_id}"), retry)
    except NotFound:
        return


def document(path: str, retry: Retry) -> Flow[Any]:
    """GET a JSON document."""
    return (yield from send(Call("GET", path), retry)).json()


def _give_up(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else time.monotonic() + timeout_s


def _poll_s(give_up: float) -> float:
    return max(0.0, min(LONGEST_POLL_S, give_up - time.monotonic()))
