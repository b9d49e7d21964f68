"""Last station: the inputs are kept, and the job stands in the line of its device."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from starlette.concurrency import run_in_threadpool

from app.intake.built import Built
from app.intake.gathered import Source
from app.intake.visit import brief
from kernels import Csr
from workers.jobs.entry import BeingDeleted, Counting
from workers.jobs.job import Expired, InputRef, Job, JobError, OverQuota, QuotaFull, Submission, UnknownJob
from workers.store.disk import SPARE_BYTES
from workers.store.inline import MOST_AWAITED_BYTES, MOST_BYTES, carried, size_of

Inputs = tuple[dict[str, InputRef], dict[str, InputRef]]


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
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
    """As `Entry.submit`: up to `most` bytes of the inputs that came with the request travel, the others are kept."""
    travellers, visit, counting = _travellers(built, most), built.visit, None
    all_travel = len(travellers) == len(built.sources)
    if not all_travel:
        with visit.timed("keep", within="hash"):
            counting = await _counting(built, travellers)
    if counting is not None:
        with suppress(BeingDeleted):
            return await _counted(built, travellers, counting, reply)
    visit.laid.counted, visit.laid.at_once = False, all_travel
    if all_travel:
        begun = time.perf_counter()
        kept = _kept(built, travellers)
        visit.spent("keep", begun)
    else:
        with visit.timed("keep", within="hash"):
            kept = await run_in_threadpool(_kept, built, travellers)
    return await visit.desk.entry.submit(_submission(built, *kept, reply))


async def _counting(built: Built, travellers: set[str]) -> Counting | None:
    """What is to be counted of the inputs that stay behind, if all lie in memory and have only to be named then."""
    visit = built.visit
    sinks = [source.sink for name, source in built.sources.items() if name not in travellers]
    there = [sink for sink in sinks if sink is not None and sink.memory is not None]  # these say their names, too
    if not visit.laid.wanted or not sinks or len(there) < len(sinks):
        return None
    with visit.timed("hash"):
        if late := [asyncio.wrap_future(one) for sink in there for one in sink.awaited]:
            await asyncio.wait(late)  # no thread has to be woken for it; `lay` says what is wrong
    sizes, free = {sink.digest: sink.size for sink in there}, visit.desk.store.folder.free
    return Counting(sizes, visit.owner, visit.desk.settings.blob_ttl_s, free, SPARE_BYTES)


async def _counted(built: Built, travellers: set[str], counting: Counting, reply: str | None) -> tuple[Job | None, str]:
    """As `Entry.submit`. The bytes get their name while a worker takes the job: it waits for them, if it must.

    Raises:
        BeingDeleted: they cannot be counted now, and have no name.
    """
    visit, job = built.visit, None
    visit.laid.counted = visit.laid.at_once = True
    try:
        submission = _submission(built, *_named(built, travellers), reply, counting)
        job, job_id = await visit.desk.entry.submit(submission, counting)
    finally:
        if counting.may_be:  # and the job may be there, whatever was heard of it
            await _laid(built, travellers, job)
    return job, job_id


async def _laid(built: Built, travellers: set[str], job: Job | None) -> None:
    """Give counted bytes their name; a job whose bytes cannot be had is deleted again."""
    visit = built.visit
    try:
        try:
            _kept(built, travellers)
        except BlockingIOError:  # another process is at the arena
            visit.laid.at_once = False
            await run_in_threadpool(_kept, built, travellers)
        for source in built.sources.values():
            if source.sink is not None:
                source.sink.foresee()  # whoever waits for an answer mostly asks again
    except (JobError, OSError):
        if job is not None:
            with suppress(JobError):
                await run_in_threadpool(visit.desk.jobs.delete, job.id, visit.owner)
        raise


def _submission(
    built: Built,
    inputs: dict[str, InputRef],
    named: dict[str, InputRef],
    reply: str | None,
    counting: Counting | None = None,
) -> Submission:
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
        brought=built.visit.laid.brought if counting is None else counting.names,
        spent_ms={station: brief(spent) for station, spent in built.visit.spent_ms.items()},
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
    if came and sum([size_of(source.value) if _may_travel(source) else most + 1 for _, source in came]) <= most:
        return set(built.sources)
    sizes = sorted((size_of(source.value), name) for name, source in came if _may_travel(source))
    totals = accumulate(size for size, _ in sizes)
    found = {name for (_, name), total in zip(sizes, totals, strict=True) if total <= most}
    return found if most > MOST_BYTES or len(found) == len(built.sources) else set()


def _may_travel(source: Source) -> bool:
    """Whether the bytes can go along with the job. A sparse matrix of one file is not its three arrays by name."""
    return source.name is not None and not (isinstance(source.value, Csr) and source.sink is not None)


def _kept(built: Built, travellers: set[str]) -> Inputs:
    """Keep the inputs that stay behind; how the job refers to all, and what they are called wherever they are."""
    return _told(built, travellers, lambda source: source.keep())


def _named(built: Built, travellers: set[str]) -> Inputs:
    """The same of inputs that came with the request, without keeping any."""
    return _told(built, travellers, lambda source: None if source.name is None else source.name())


def _told(built: Built, travellers: set[str], stays: Callable[[Source], InputRef | None]) -> Inputs:
    inputs, named = {}, {}
    for name, source in built.sources.items():
        if name in travellers and source.name is not None:
            named[name] = source.name()
            inputs[name] = carried(named[name], source.value)
        else:
            reference = stays(source)
            assert reference is not None
            inputs[name] = named[name] = reference
    return inputs, named
