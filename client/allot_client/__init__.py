"""Client of Allot: assignment and transport problems over HTTP, answered with a proof."""

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
    WaitedTooLong,
)
from allot_client.events import Event
from allot_client.flows import Retry
from allot_client.results import (
    AuctionResult,
    Certificate,
    LapResult,
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
    "Blob",
    "Busy",
    "Certificate",
    "Client",
    "Event",
    "Fault",
    "File",
    "Gone",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobFailed",
    "LapResult",
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
    "WaitedTooLong",
    "as_completed",
]
