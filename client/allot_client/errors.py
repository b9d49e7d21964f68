"""What can go wrong, as exceptions that carry the service's own words: the field at fault and what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class AllotError(Exception):
    """Anything that this client raises on purpose."""


class Unreachable(AllotError):
    """Nothing answers at the service's address, or the connection broke more often than it was tried again."""


class UnusableKey(AllotError, ValueError):
    """The API key that was given cannot be one."""


class WaitedTooLong(AllotError):
    """The job has not ended within the time that the caller gave; it goes on, and `job_id` names it."""

    def __init__(self, job_id: str, seconds: float) -> None:
        super().__init__(f"job {job_id} has not ended within {seconds:g} s; it goes on, and Job.wait() waits for it")
        self.job_id = job_id


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request: which field, and what was found and expected there."""

    field: str
    message: str


class Refused(AllotError):
    """The service answered with a problem document.

    Attributes:
        status: the HTTP status.
        title: the kind of problem in a few words.
        detail: one sentence.
        faults: the fields at fault, where input was.
        document: everything that the service said.
    """

    hint = ""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status = status
        self.title = str(document.get("title", f"HTTP {status}"))
        self.detail = str(document.get("detail", ""))
        self.faults = tuple(
            Fault(str(entry.get("field", "")), str(entry.get("message", ""))) for entry in document.get("errors", ())
        )
        self.document = document
        words = self.detail or self.title
        super().__init__(f"{words} ({self.hint})" if self.hint else words)


class InvalidInput(Refused):
    """A field cannot be taken; `faults` says which and why."""


class Unauthorized(Refused):
    """No key, or one that the service does not know."""

    hint = "give Client(api_key=...) or set ALLOT_API_KEY"


class NotFound(Refused):
    """Not there, or another owner's."""


class NotReady(Refused):
    """There is no result in this state."""


class Gone(Refused):
    """It was there and has expired."""


class TooLarge(Refused):
    """The body is larger than the service takes."""

    hint = "the operator sets ALLOT_MAX_UPLOAD_BYTES"


class Busy(Refused):
    """Too many jobs wait, also after every retry."""


class Unavailable(Refused):
    """Redis, the store or the device is not there now, also after every retry."""


class NoRoom(Refused):
    """The problem fits no device, or the store is full."""


class JobFailed(AllotError):
    """The job failed for a fault of the service; `error` is what it says of it."""

    def __init__(self, job_id: str, error: Mapping[str, Any]) -> None:
        self.job_id, self.error = job_id, error
        super().__init__(f"job {job_id} failed: {error.get('detail') or error.get('title') or 'no reason was given'}")


class JobCancelled(AllotError):
    """The job was cancelled before there was anything to keep."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"job {job_id} was cancelled before it had an answer")


_BY_STATUS: dict[int, type[Refused]] = {
    400: InvalidInput,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: NotReady,
    410: Gone,
    413: TooLarge,
    415: InvalidInput,
    416: InvalidInput,
    422: InvalidInput,
    429: Busy,
    503: Unavailable,
    507: NoRoom,
}


def refusal(status: int, document: Mapping[str, Any]) -> AllotError:
    """The exception for an answer of at least 400."""
    return _BY_STATUS.get(status, Refused)(status, document)
