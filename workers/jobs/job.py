"""What a job is.

Life of a job (state in capitals; every arrow is one Lua script, so a state never half changes):

    submit --> QUEUED --take---> RUNNING --finish--> SUCCEEDED   an answer with a certificate that holds
                 |  ^               |  \\--finish--> FAILED       our bug, lost hardware, a certificate that fails
                 |  |               |
                 |  +---requeue-----+   its worker died: again elsewhere, `attempts` times in all, then FAILED
                 |                  |
                 +--cancel--> CANCELLED <--finish--+   stopped before there was anything to keep
    ended jobs: --result_ttl_s--> EXPIRED (a tombstone) --tombstone_ttl_s--> unknown

A running job that is cancelled keeps its best answer: it SUCCEEDS with termination "stopped".

Delivery is at least once. `execution` is the fencing token: each run of a job has its own, `take` writes it, and
`finish` of any other run changes nothing.

Redis keys (all ours start with allot:, RQ's with rq:):

    allot:job:{id}         hash    the record; fields of `Job` and owner, execution, cancel, discard, queue, form,
                                   priority, seconds (estimated), retries, reply, among and alone (see lose.lua),
                                   note (see notes.py), derived (see kernels/problems/derived.py)
    allot:arrays:{id}      string  data of small inputs (store/inline.py) as JSON, until the job ends
    allot:result:{id}      string  the result document as JSON, expires with the job
    allot:shares:{id}      hash    links that show the job: shares.py
    allot:events:{id}      stream  state changes, progress, incumbents of a job that runs for a while
    allot:line:... and others      who is served next: drawn in lines.lua
    allot:jobs:{owner}     zset    ids by time of creation
    allot:idem:{n}:{owner}:{key} hash  fingerprint and id of the job that an Idempotency-Key made; n = bytes of owner
    allot:tomb:{id}        string  owner of an expired job
    allot:gone:{owner}     list    ids of their jobs that are gone, newest first, each with the key of its allot:idem
    allot:expiry           zset    ids of ended jobs by the time they expire
    allot:active           zset    ids of jobs that have not ended
    allot:told             channel "id state version" at every change, a line a job; state is "gone" once it is deleted
    allot:handed:{worker}  string  id of the job that a waiting worker was handed last, and a channel with all of it
    allot:listeners:{queue} hash   workers that hear that channel, with their device; allot:bell:{queue} channel for all
    allot:reply:{process}  channel {"id", "job", "result"} of an ended job, to the API process that waits for it
    allot:workers          hash    worker name -> JSON, allot:counts hash of counters
    allot:seconds:{solver}:{device} string  histograms of how long jobs take: seconds.py
    allot:blob:{name}      hash    owner -> until when they keep it; names.name_of makes a name of digest and owner
    allot:refs:{name}      set     ids of the jobs that hold it; allot:blobs zset of names by next look
    allot:brought          hash    names of blobs that came with jobs alone: drawn in keep.lua
    allot:quota:{owner} and others limits of owners, and what they have: drawn in quotas.lua
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

LOCAL = "local"
"""Whose everything is where there are no keys."""


class State(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """True when the job will not change any more."""
        return self not in (State.QUEUED, State.RUNNING)


Device = Literal["cpu", "gpu"]
"""Also the name of its queue."""
AskedDevice = Literal["auto", "gpu", "cpu"]
InputRef = dict[str, Any]
"""What a job is given: the digest of the bytes and how they are to be read, as reference.py draws it."""


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
class Submission:
    """A request that has passed HTTP: inputs lie in the store. `fingerprint` is a hash of the body.

    Small arrays may come in their references instead (store/inline.py). `queue`, `form` and `seconds` are what
    `Jobs.assess` answered; without `queue`, `Jobs.submit` loads the inputs and asks for itself. Of one owner's jobs
    those of higher `priority` (-9 to 9) go first. `reply` names a channel on which somebody waits for the answer.
    `spent_ms` says how long what went before took, by station. `derived` are numbers that building and weighing found,
    and that its worker need not work out again. `brought` names the blobs that were kept for this job, each as often as
    it was.
    """

    owner: str
    solver: str
    inputs: dict[str, InputRef]
    options: dict[str, Any] = field(default_factory=dict)
    device: AskedDevice = "auto"
    time_limit_s: float | None = None
    idempotency_key: str | None = None
    fingerprint: str = ""
    result_ttl_s: float | None = None
    queue: Device | None = None
    form: str = ""
    seconds: float | None = None
    priority: int = 0
    reply: str | None = None
    spent_ms: dict[str, float] = field(default_factory=dict)
    derived: Sequence[float] = ()
    brought: Sequence[str] = ()


@dataclass(slots=True)  # frozen, it takes three times as long to make, which each request does twice
class Job:
    """A job as its owner sees it, which nobody changes. Times are ISO 8601 in UTC; `version` changes with every change
    (ETag)."""

    id: str
    owner: str
    solver: str
    state: State
    attempt: int
    device: str
    ran_on: str | None
    queue_position: int | None
    progress: dict[str, Any] | None
    timings_ms: dict[str, float]
    termination: str | None
    verified: bool | None
    error: dict[str, Any] | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None
    inputs: dict[str, InputRef]
    options: dict[str, Any]
    time_limit_s: float
    version: int
    noted: bool = False


@dataclass(frozen=True)
class Event:
    """One thing that happened to a job. `kind` is "state", "progress" or "incumbent"."""

    id: str
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True)
class WorkerInfo:
    """A worker that is alive.

    `gpu` holds uuid, name, driver, bytes_total and bytes_free of the first GPU of a GPU worker, how many it owns as
    count, and what each of them tells of itself as readings (see nvml.py). Where the driver tells, it also holds
    bytes_used, utilisation in percent, and use_per_minute of the last hour, of the first. `broken` are the solvers
    whose kernels could not be warmed up on it, and why: they get no jobs here.
    """

    name: str
    device: Device
    queue: str
    state: str
    heartbeat_age_s: float
    host_bytes: int
    gpu: dict[str, Any] | None = None
    broken: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, age_s: float, told: dict[str, Any]) -> "WorkerInfo":
        """What a worker told of itself; one of a later release may tell more than is known here."""
        known = {spec.name for spec in fields(cls)}
        return cls(name=name, heartbeat_age_s=max(0.0, age_s), **{k: v for k, v in told.items() if k in known})


@functools.lru_cache(256)
def iso(timestamp: float | str | None) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC; None and "" stay None. Jobs that ended together say the same ones."""
    if timestamp in (None, ""):
        return None
    return datetime.fromtimestamp(float(timestamp), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JobError(Exception):
    """What can go wrong between a caller and his job. The message is for him."""


class UnknownJob(JobError):
    """No such job, or another owner's."""


class Damaged(UnknownJob):
    """What stands where a job's record should cannot be read."""


class UnknownBlob(JobError):
    """No such blob, or another owner's."""


class Expired(JobError):
    """The job was here; its result has been dropped after its time to live."""


class NotEnded(JobError):
    """There is no result yet."""


class JobFailed(JobError):
    """There is no result and there will be none; `error` says why, `state` is failed or cancelled."""

    def __init__(self, message: str, state: State, error: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.state = state
        self.error = error

    @classmethod
    def of(cls, job: Job) -> "JobFailed":
        """What there is to say of a job that has ended without a result."""
        why = (job.error or {}).get("detail") or "it was stopped before there was an answer"
        return cls(f"job {job.id} {job.state.value}: {why}", job.state, job.error)


class IdempotencyConflict(JobError):
    """The Idempotency-Key was used before with another body."""


class QueueFull(JobError):
    """Too many jobs are waiting; `retry_after_s` is a guess."""

    retry_after_s = 5.0


class OverQuota(JobError):
    """The owner has as much as one may: `policy` names the limit, `most` is it, in `window_s` if that is given."""

    def __init__(self, message: str, policy: str, most: int, retry_after_s: float, window_s: int | None = None) -> None:
        super().__init__(message)
        self.policy, self.most, self.retry_after_s, self.window_s = policy, most, retry_after_s, window_s


class StoreFull(JobError):
    """There is no room on disk or in Redis."""


class QuotaFull(StoreFull):
    """There is none for this owner, who has filled what one may."""


class UploadTooLarge(JobError):
    """More bytes came than one upload may have."""


class DigestMismatch(JobError):
    """The bytes that came do not have the digest that was announced."""


class NoSuchDevice(JobError):
    """The device that was asked for is not here, or the solver has none for it."""


class DoesNotFit(JobError):
    """No device that is here has the memory."""

    def __init__(self, message: str, bytes_needed: int, bytes_available: int) -> None:
        super().__init__(message)
        self.bytes_needed = bytes_needed
        self.bytes_available = bytes_available


class Unavailable(JobError):
    """Redis or the store cannot be reached now; nothing was changed."""

    retry_after_s = 1.0
