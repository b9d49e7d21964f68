"""Why a job failed, as its owner reads it: a stable code, a title, and one sentence on this case."""

from typing import Any

Failure = dict[str, Any]


def failure(code: str, title: str, detail: str, **facts: Any) -> Failure:
    """`facts` are numbers that a program may want (bytes_needed, field, ...)."""
    return {"code": code, "title": title, "detail": detail, **facts}


def died(last: str) -> Failure:
    """The process that solved it died at every attempt."""
    detail = f"the process that solved it died at every attempt; the last time: {last}"
    return failure("worker-lost", "The job took its worker down too often", detail)


def device_lost(error: str) -> Failure:
    """A CUDA error after which nothing works."""
    return failure("device-lost", "The GPU failed", f"CUDA failed: {error}")


def overran(owed_s: float) -> Failure:
    """It was killed by its worker."""
    detail = f"there was no answer {owed_s:.3g} s after its start, long after its time limit, and it was killed"
    return failure("deadline", "The solver ignored its time limit", detail)


SILENT = failure(
    "worker-lost", "The job took its worker down too often", "every worker that ran it fell silent before it was done"
)
CANCELLED = failure("cancelled", "Cancelled", "the solve did not stop by itself and was killed")
STOPPED = failure("stopped", "Stopped", "an operator stopped the job with RQ's stop command")
SHUTDOWN = failure("shutdown", "The service stopped", "the job goes back to the queue")
"""Never shown: what ends a child at shutdown costs its job no attempt."""
