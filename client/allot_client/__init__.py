"""Client of Allot: assignment and transport problems over HTTP, answered with a proof.

Names are imported when they are first used, so that the command line answers `--help` without loading httpx and NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from allot_client.aio import AsyncClient, AsyncJob
    from allot_client.body import Blob, File
    from allot_client.client import Client, Job, as_completed
    from allot_client.errors import (
        AllotError,
        Busy,
        Fault,
        Gone,
        InvalidInput,
        JobCancelled,
        JobFailed,
        NoRoom,
        NotFound,
        NotReady,
        Refused,
        TooLarge,
        Unauthorized,
        Unavailable,
        Unreachable,
        UnusableKey,
        WaitedTooLong,
    )
    from allot_client.events import Event
    from allot_client.flows import Retry
    from allot_client.results import (
        AuctionResult,
        BarycenterResult,
        Certificate,
        GromovResult,
        LapResult,
        LowRankResult,
        MultimarginalResult,
        QuadraticResult,
        Result,
        TransportResult,
    )

__version__ = "0.1.0"

__all__ = [
    "AllotError",
    "AsyncClient",
    "AsyncJob",
    "AuctionResult",
    "BarycenterResult",
    "Blob",
    "Busy",
    "Certificate",
    "Client",
    "Event",
    "Fault",
    "File",
    "Gone",
    "GromovResult",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobFailed",
    "LapResult",
    "LowRankResult",
    "MultimarginalResult",
    "NoRoom",
    "NotFound",
    "NotReady",
    "QuadraticResult",
    "Refused",
    "Result",
    "Retry",
    "TooLarge",
    "TransportResult",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "UnusableKey",
    "WaitedTooLong",
    "as_completed",
]

_HOMES = {
    "AllotError": "errors",
    "AsyncClient": "aio",
    "AsyncJob": "aio",
    "AuctionResult": "results",
    "BarycenterResult": "results",
    "Blob": "body",
    "Busy": "errors",
    "Certificate": "results",
    "Client": "client",
    "Event": "events",
    "Fault": "errors",
    "File": "body",
    "Gone": "errors",
    "GromovResult": "results",
    "InvalidInput": "errors",
    "Job": "client",
    "JobCancelled": "errors",
    "JobFailed": "errors",
    "LapResult": "results",
    "LowRankResult": "results",
    "MultimarginalResult": "results",
    "NoRoom": "errors",
    "NotFound": "errors",
    "NotReady": "errors",
    "QuadraticResult": "results",
    "Refused": "errors",
    "Result": "results",
    "Retry": "flows",
    "TooLarge": "errors",
    "TransportResult": "results",
    "Unauthorized": "errors",
    "Unavailable": "errors",
    "Unreachable": "errors",
    "UnusableKey": "errors",
    "WaitedTooLong": "errors",
    "as_completed": "client",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'allot_client' has no attribute {name!r}")
    value = getattr(import_module(f"allot_client.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
