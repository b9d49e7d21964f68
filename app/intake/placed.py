"""Last station: the inputs are kept, and the job stands in the line of its device."""

import hashlib
import json
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from starlette.concurrency import run_in_threadpool

from app.intake.built import Built
from workers.jobs.job import Expired, InputRef, Job, OverQuota, QuotaFull, Submission, UnknownJob
from workers.store.disk import SPARE_BYTES
from workers.store.inline import MOST_AWAITED_BYTES, MOST_BYTES, carried, size_of


@dataclass(frozen=True)
class Placed:
    """The job; `made` is False when this Idempotency-Key has made it before."""

    job: Job
    made: bool


async def place(built: Built, reply: str | None = None) -> Placed:
    """Keep the inputs and enqueue the job; `reply` is who waits for its answer.

    Where somebody waits, the bytes need not be on the disk by then: `visit.laid` says what is to be settled before
    anything but the answer is told.

    Raises:
        Expired: the Idempotency-Key made a job that is gone.
        what Jobs.submit raises.
    """
    desk, owner = built.visit.desk, built.visit.owner
    built.visit.laid.wanted = reply is not None
    most = MOST_AWAITED_BYTES if reply is not None and desk.entry.is_roomy else MOST_BYTES
    try:
        job, job_id = await _submitted(built, most, reply)
    except (OverQuota, QuotaFull):
        if _travellers(built, most) == _travellers(built, MOST_BYTES):
            raise
        job, job_id = await _submitted(built, MOST_BYTES, reply)  # the owner may have room for files
    if job is not None:
        return Placed(job, True)
    try:
        return Placed(await run_in_threadpool(desk.jobs.get, job_id, owner), False)
    except UnknownJob:  # only the job of an earlier request can be unknown
        gone = "the job that this Idempotency-Key made has been deleted; another job takes another key"
        raise Expired(gone) from None


async def _submitted(built: Built, most: int, reply: str | None) -> tuple[Job | None, str]:
    """As `Entry.submit`, once the inputs are kept: up to `most` bytes that came with the request travel."""
    inputs, named = await _timed(built, most)
    return await built.visit.desk.entry.submit(_submission(built, inputs, named, reply))


async def _timed(built: Built, most: int) -> tuple[dict[str, InputRef], dict[str, InputRef]]:
    """As `_kept`, without the time in which their digests were waited for: that has been counted."""
    spent = built.visit.spent_ms
    hashed = spent.get("hash", 0.0)
    with built.visit.timed("keep"):
        travellers, laid = _travellers(built, most), built.visit.laid
        laid.at_once = len(travellers) == len(built.sources) or await _counted(built, travellers)
        try:
            kept = _kept(built, travellers) if laid.at_once else await run_in_threadpool(_kept, built, travellers)
        except BlockingIOError:  # another process is at the arena
            laid.at_once = False
            kept = await run_in_threadpool(_kept, built, travellers)
    spent["keep"] = max(0.0, spent["keep"] - (spent.get("hash", 0.0) - hashed))
    return kept


async def _counted(built: Built, travellers: set[str]) -> bool:
    """Count the inputs that stay behind as their owner's, if all lie in memory and have only to be named after that.

    Raises as `Entry.keep`.
    """
    visit = built.visit
    visit.laid.counted = False
    sinks = [source.sink for name, source in built.sources.items() if name not in travellers]
    there = [sink for sink in sinks if sink is not None and sink.memory is not None]
    if not visit.laid.wanted or len(there) < len(sinks):
        return False
    if late := [sink for sink in there if not sink.is_hashed]:
        with visit.timed("hash"):
            await run_in_threadpool(lambda: [(sink.flush(), sink.sight) for sink in late])  # `lay` asks for both
    sizes, seconds = {sink.digest: sink.size for sink in there}, visit.desk.settings.blob_ttl_s
    free = visit.desk.store.folder.free
    visit.laid.counted = await visit.desk.entry.keep(sizes, visit.owner, seconds, free, SPARE_BYTES)
    return visit.laid.counted


def _submission(built: Built, inputs: dict[str, InputRef], named: dict[str, InputRef], reply: str | None) -> Submission:
    request = built.request
    said = built.options.model_fields_set
    options = built.options.model_dump(mode="json", exclude_unset=True) if said else {}
    return Submission(
        owner=built.visit.owner,
        solver=built.card.name,
        inputs=inputs,
        options=options,
        device=request.device,
        time_limit_s=request.time_limit_s,
        idempotency_key=built.visit.key,
        fingerprint=_fingerprint(request, options, named) if built.visit.key else "",
        result_ttl_s=request.result_ttl_s,
        queue=built.place.queue,
        form=built.place.form,
        seconds=built.place.seconds,
        priority=request.priority,
        reply=reply,
        derived=built.derived,
        spent_ms={station: round(spent, 3) for station, spent in built.visit.spent_ms.items()},
    )


def _fingerprint(request: Any, options: dict[str, Any], named: dict[str, InputRef]) -> str:
    """Of all that must be the same where an Idempotency-Key comes again."""
    around = request.model_dump(mode="json", exclude={"inputs", "options", "keep_inputs", "priority"})
    return hashlib.sha256(json.dumps([around, options, named], sort_keys=True).encode()).hexdigest()


def _travellers(built: Built, most: int) -> set[str]:
    """Inputs that go along in the job's record: the smallest that came with the request, up to `most` bytes in all.

    Whatever is to be kept stays behind. Where nobody waits for the answer, all go along or none: whoever follows the
    job has all of its inputs by one way.
    """
    came = () if built.request.keep_inputs else built.sources.items()
    sizes = sorted((size_of(source.value), name) for name, source in came if source.name is not None)
    totals = accumulate(size for size, _ in sizes)
    found = {name for (_, name), total in zip(sizes, totals, strict=True) if total <= most}
    return found if most > MOST_BYTES or len(found) == len(built.sources) else set()


def _kept(built: Built, travellers: set[str]) -> tuple[dict[str, InputRef], dict[str, InputRef]]:
    """How the job refers to its inputs, and what they are called wherever they are."""
    inputs, named = {}, {}
    for name, source in built.sources.items():
        if name in travellers and source.name is not None:
            named[name] = source.name()
            inputs[name] = carried(named[name], source.value)
        else:
            inputs[name] = named[name] = source.keep()
    return inputs, named
