"""A clerk: a process that does one errand after another, each under limits of memory and time, and can be killed.

    python -m app.intake.clerk      errands come as lines of JSON on standard input, answers go to standard output

Before it writes a file it asks for the bytes, {"charge": n}, and waits for {"granted": true}. An errand ends with
{"done": ...} or {"failed": ...}. One that needs more memory than it may have fails; one that needs more time than it
may have takes the process with it.
"""

import json
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from app.http.refusal import Invalid, Refusal
from app.intake import errands
from kernels import InvalidProblem
from workers.jobs.job import StoreFull
from workers.store.codec import InvalidUpload
from workers.store.disk import room

SWOLLEN_BYTES = 384 << 20
"""A clerk that holds more after an errand makes room for a fresh one."""
NICENESS = 5
"""Answers of the service come before readings."""


class NotGranted(Exception):
    """The process that asked refuses the bytes, and knows why."""


class Limits:
    """Of one errand: address space and processor time, which grow with the bytes that it was given or granted."""

    def __init__(self, memory_bytes: int, seconds: float, given: int) -> None:
        self._memory = _status("VmSize") + memory_bytes
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self._seconds = usage.ru_utime + usage.ru_stime + seconds
        self.widen(given)

    def widen(self, count: int) -> None:
        """Allow for so many bytes more: read, mapped and worked on."""
        self._memory += 4 * count
        self._seconds += count / errands.BYTES_PER_S
        resource.setrlimit(resource.RLIMIT_AS, (self._memory, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(self._seconds) + 1, resource.RLIM_INFINITY))


def _status(field: str) -> int:
    """Bytes of this process, as the kernel counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def failure(error: Exception) -> dict[str, Any]:
    """An error that the client is told, as JSON."""
    if isinstance(error, Invalid):
        return {"kind": "invalid", "errors": error.extra["errors"], "detail": error.detail}
    if isinstance(error, Refusal):
        return {"kind": "refusal", "status": error.status, "detail": error.detail}
    if isinstance(error, InvalidProblem | InvalidUpload):
        kind = "problem" if isinstance(error, InvalidProblem) else "upload"
        return {"kind": kind, "field": error.field, "message": error.message}
    if isinstance(error, MemoryError):
        return {"kind": "memory"}
    if isinstance(error, StoreFull):
        return {"kind": "full", "detail": str(error)}
    if isinstance(error, NotGranted):
        return {"kind": "not granted"}
    return {"kind": "bug", "detail": f"{type(error).__name__}: {error}"[:2000]}


def serve(asked: IO[bytes], answers: IO[bytes]) -> None:
    """Do errands until standard input ends, or the process has swollen."""

    def say(told: Mapping[str, Any]) -> None:
        answers.write(json.dumps(told).encode() + b"\n")
        answers.flush()

    say({"ready": True})
    for line in asked:
        errand = json.loads(line)
        limits = Limits(errand["memory_bytes"], errand["seconds"], errand["given_bytes"])

        def charge(count: int, limits: Limits = limits) -> None:
            say({"charge": count})
            if not json.loads(asked.readline())["granted"]:
                raise NotGranted
            limits.widen(count)

        try:
            with room():
                told = {"done": errands.run(errand, charge)}
        except Exception as error:
            told = {"failed": failure(error)}
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        last = _status("VmRSS") > SWOLLEN_BYTES
        say({**told, "last": last})
        if last:
            return


def main() -> None:
    """Serve on the standard streams; what anything prints goes to standard error."""
    os.nice(NICENESS)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
