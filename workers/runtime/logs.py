"""Log lines, for people as text and for machines as JSON, each with what it belongs to: request, job, owner, trace.

What a line belongs to is set around the work (`about`) and goes along into threads and down calls, so that no function
has to be handed it. A job carries it in its record from the API to the worker (`carried`, `of_record`).
"""

import contextlib
import contextvars
import functools
import json
import logging
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any

FORMATS = ("text", "json")
FIELDS = ("request_id", "job_id", "owner", "traceparent")
TEXT = "%(asctime)s %(name)s %(message)s"
TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
AUDIT = logging.getLogger("allot.audit")
SLOW = logging.getLogger("allot.slow")
_about: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar("about", default={})  # noqa: B039


@contextlib.contextmanager
def about(**fields: str | None) -> Iterator[None]:
    """Every line that is written within belongs to these; None leaves one as it is."""
    token = _about.set({**_about.get(), **{name: value for name, value in fields.items() if value}})
    try:
        yield
    finally:
        _about.reset(token)


def told() -> Mapping[str, str]:
    """What the present work belongs to."""
    return _about.get()


def carried() -> dict[str, str]:
    """What a job's record keeps of the request that made it."""
    return {name: value for name, value in told().items() if name in ("request_id", "traceparent")}


def of_record(job_id: str, record: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
    """`about` a job, from its record."""
    known = {name: record.get(name) for name in ("request_id", "traceparent", "owner")}
    return about(job_id=job_id, **known)


def new_traceparent(given: str | None = None) -> str:
    """The trace that a caller names, or a new one that nobody has sampled."""
    if given and TRACEPARENT.fullmatch(given):
        return given
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"


def audit(action: str, **fields: Any) -> None:
    """Write down who did what; secrets never."""
    AUDIT.info("%s", action, extra={"fields": {"action": action, **fields}})


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
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Text(TEXT))
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


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, what it belongs to, and the fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": f"{_utc(int(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
            **told(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class Text(logging.Formatter):
    """The same for people: the message, and behind it what it belongs to."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """The time of this place, to the millisecond."""
        return f"{_here(int(record.created))},{int(record.msecs):03d}"

    def format(self, record: logging.LogRecord) -> str:
        """The line; newlines of strangers' text cannot begin another one."""
        fields = {name: value for name, value in told().items() if name in ("request_id", "job_id")}
        fields |= getattr(record, "fields", {})
        record.message = record.getMessage()
        line = super().format(record).split("\n", 1)
        shown = "".join(f" {name}={value}" for name, value in fields.items() if name != "action")
        return "\n".join([line[0] + shown.replace("\n", " "), *line[1:]])
