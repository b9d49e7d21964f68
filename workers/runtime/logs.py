"""Log lines, for people as text and for machines as JSON, each with what it belongs to: request, job, owner, trace.

What a line belongs to is set around the work (`about`) and goes along into threads and down calls, so that no function
has to be handed it. A job carries it in its record from the API to the worker (`carried`, `of_record`).
"""

import asyncio
import collections
import contextlib
import contextvars
import functools
import json
import logging
import os
import random
import re
import sys
import time
from collections.abc import Mapping
from typing import IO, Any

FORMATS = ("text", "json")
FIELDS = ("request_id", "job_id", "owner", "traceparent")
TEXT = "%(asctime)s %(name)s %(message)s"
TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
AUDIT = logging.getLogger("allot.audit")
SLOW = logging.getLogger("allot.slow")
_about: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar("about", default={})  # noqa: B039


class about:
    """A block: every line that is written within belongs to these fields; None leaves one as it is."""

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: str | None) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        belongs = dict(_about.get())
        for name, value in self._fields.items():
            if value:
                belongs[name] = value
        self._token = _about.set(belongs)

    def __exit__(self, *_: object) -> None:
        _about.reset(self._token)


def told() -> Mapping[str, str]:
    """What the present work belongs to."""
    return _about.get()


def carried() -> dict[str, str]:
    """What a job's record keeps of the request that made it."""
    belongs = _about.get()
    return {name: belongs[name] for name in ("request_id", "traceparent") if name in belongs}


def of_record(job_id: str, record: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
    """`about` a job, from its record."""
    known = {name: record.get(name) for name in ("request_id", "traceparent", "owner")}
    return about(job_id=job_id, **known)


def new_traceparent(given: str | None = None) -> str:
    """The trace that a caller names, or a new one that nobody has sampled."""
    if given and TRACEPARENT.fullmatch(given):
        return given
    return f"00-{1 + random.getrandbits(127):032x}-{1 + random.getrandbits(63):016x}-00"


def new_request_id() -> str:
    """One that nobody has. Neither this nor a trace's id is a secret, so the system's randomness is not asked."""
    return f"{random.getrandbits(128):032x}"


def audit(action: str, **fields: Any) -> None:
    """Write down who did what; secrets never."""
    record(AUDIT, action, {"action": action, **fields}, told())


def record(logger: logging.Logger, message: str, fields: Mapping[str, Any], belongs: Mapping[str, str]) -> None:
    """Write a line of what happened, by a logger of the level INFO.

    The way through `logging` is ten times as long. It is taken where somebody besides `configure` listens.
    """
    lines = _lines_alone(logger)
    if lines is not None:
        lines.put(lines.words.line(time.time(), "info", logger.name, message, belongs, fields))
    else:
        with about(**belongs):
            logger.info("%s", message, extra={"fields": fields})


def _lines_alone(logger: logging.Logger) -> "Lines | None":
    """The handler of `configure`, if a record of this logger would come to it and to nobody else."""
    node, root = logger, logging.root
    if not logger.isEnabledFor(logging.INFO):
        return None
    while node is not None and node is not root:
        if node.handlers or node.filters or not node.propagate:
            return None
        node = node.parent  # type: ignore[assignment]  # the root has none
    found = root.handlers[0] if len(root.handlers) == 1 else None
    return found if type(found) is Lines else None


def slow(solver: str, timings_ms: Mapping[str, float]) -> None:
    """Write down where the time of a job went that took long: its trace is named in the same line."""
    fields = {
        "traceparent": told().get("traceparent"),
        "solver": solver,
        "ms": {name: round(ms, 1) for name, ms in timings_ms.items()},
    }
    SLOW.warning("a slow job: %.1f s", timings_ms["total"] / 1e3, extra={"fields": fields})


def configure(level: int = logging.INFO, form: str = "", stream: IO[str] | None = None) -> None:
    """Send all lines to standard error, as `form` or ALLOT_LOG_FORMAT says. Raises ValueError."""
    form = form or os.environ.get("ALLOT_LOG_FORMAT", "") or "text"
    if form not in FORMATS:
        raise ValueError(f"the log format is {form!r}; expected one of {', '.join(FORMATS)}")
    handler = Lines(stream or sys.stderr, JsonLines() if form == "json" else Text(TEXT))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging._srcfile = None  # no line tells where in the source it was written: nobody need look for it
    logging.logThreads = logging.logMultiprocessing = False
    for name in ("allot.access", "allot.audit"):
        logging.getLogger(name).setLevel(logging.INFO)


@functools.lru_cache(4)
def _utc(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


@functools.lru_cache(4)
def _here(second: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))


class Lines(logging.StreamHandler[IO[str]]):
    """Writes lines; those that one turn of an event loop puts here go out in one write, at the end of the turn."""

    def __init__(self, stream: IO[str], words: "JsonLines | Text") -> None:
        super().__init__(stream)
        self.words = words
        self.setFormatter(words)
        self._kept: collections.deque[str] = collections.deque()
        self._loop: asyncio.AbstractEventLoop | None = None

    def put(self, line: str) -> None:
        """Write a line soon, or now where no event loop runs."""
        first = not self._kept
        self._kept.append(line)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        if first or loop is not self._loop:
            self._loop = loop
            loop.call_soon(self.flush)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, behind what came before it."""
        if self._kept:
            self.flush()
        super().emit(record)

    def flush(self) -> None:
        """Write what was put."""
        with self.lock or contextlib.nullcontext():
            kept = []
            while self._kept:
                kept.append(self._kept.popleft())
            if kept:
                with contextlib.suppress(OSError, ValueError):  # nobody is left to tell
                    self.stream.write("\n".join(kept) + "\n")
        super().flush()


ENCODER = json.JSONEncoder(default=str)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, what it belongs to, and the fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = getattr(record, "fields", {})
        if record.exc_info:
            fields = {**fields, "traceback": self.formatException(record.exc_info)}
        return self.line(record.created, record.levelname.lower(), record.name, record.getMessage(), told(), fields)

    def line(
        self, at: float, level: str, name: str, message: str, belongs: Mapping[str, str], fields: Mapping[str, Any]
    ) -> str:
        """The same of a record's parts."""
        second = int(at)
        return ENCODER.encode(
            {
                "time": f"{_utc(second)}.{int(1000 * (at - second)):03d}Z",
                "level": level,
                "logger": name,
                "message": message,
                "pid": os.getpid(),
                **belongs,
                **fields,
            }
        )


class Text(logging.Formatter):
    """The same for people: the message, and behind it what it belongs to."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """The time of this place, to the millisecond."""
        return _time_here(record.created)

    def format(self, record: logging.LogRecord) -> str:
        """The line; newlines of strangers' text cannot begin another one."""
        record.message = record.getMessage()
        line = super().format(record).split("\n", 1)
        return "\n".join([line[0] + _shown(told(), getattr(record, "fields", {})), *line[1:]])

    def line(
        self, at: float, level: str, name: str, message: str, belongs: Mapping[str, str], fields: Mapping[str, Any]
    ) -> str:
        """The same of a record's parts."""
        return f"{_time_here(at)} {name} {message}".replace("\n", " ") + _shown(belongs, fields)


def _time_here(at: float) -> str:
    second = int(at)
    return f"{_here(second)},{int(1000 * (at - second)):03d}"


def _shown(belongs: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    """What a line for people says behind its message."""
    said = ""
    for name in ("request_id", "job_id"):
        if name in belongs and name not in fields:
            said += f" {name}={belongs[name]}"
    for name, value in fields.items():
        if name != "action":
            said += f" {name}={value}"
    return said.replace("\n", " ")
