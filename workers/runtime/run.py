"""One job, from its record to its result: load, build, solve, certify, store. Runs in a worker's child.

Whatever happens ends as data in the job's record. The exceptions that leave `ending_of` are `DeviceLost` (the child
must be replaced; the job runs again) and Redis being away for longer than it is waited for.
"""

import functools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import redis
from pydantic_core import from_json, to_json

from kernels import (
    SOLVERS,
    Array,
    Asker,
    Csr,
    Deadline,
    Device,
    InputChanged,
    InvalidProblem,
    Solution,
    Solver,
    Termination,
    deriving,
    solve_and_prove,
)
from workers.jobs.failure import Failure, failure
from workers.jobs.job import State, StoreFull, Unavailable, UnknownBlob
from workers.jobs.records import Ending, Order, Records
from workers.runtime import gpu_memory, logs, traces
from workers.runtime.document import Bench, Beside, Solved, begun, clock, document_of, ended_with, stored
from workers.runtime.outlast import AWAY, outlast
from workers.runtime.watch import Watch, plain
from workers.store import inline
from workers.store.codec import InvalidUpload

SETTLED_S = 20.0
"""After its submission the bytes of a job are where every worker finds them, or nobody was told that they are kept."""
WORTH_TELLING_S = 0.5
"""Jobs that owe their answer sooner are within anybody's patience."""
log = logging.getLogger(__name__)
T = TypeVar("T")


class DeviceLost(Exception):
    """The CUDA context is broken, or device memory holds what it should not; the next job needs another process."""


class DeviceFull(MemoryError):
    """The GPU has no room, not even with its pool empty."""

    def __init__(self, message: str, free: int) -> None:
        super().__init__(message)
        self.free = free


class JobFails(Exception):
    """The job ends here, and this is why."""

    def __init__(self, code: str, title: str, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.failure = failure(code, title, detail, **facts)


def ending_of(order: Order, bench: Bench) -> Ending:
    """Solve a job. Its result is written by `told`.

    Raises:
        DeviceLost: the child must exit.
    """
    taken = float(order.record["begun_at"])
    try:
        with logs.of_record(order.job_id, order.record), traces.job(order.job_id, order.record, taken) as phases:
            watch = Watch(bench.aside, order.job_id, order.execution)
            told = phases.watched(watch.progress)
            deadline = Deadline(float(order.record["time_limit_s"]), watch.cancelled, told)
            solved = _solved(order, bench, deadline)
            watch.flush()
            return concluded(order, solved, bench, deadline)
    except (DeviceLost, *AWAY):
        raise
    except Exception as error:
        fields = {"error": _json(_explained(error, order.record))}
        return Ending(order.job_id, order.execution, State.FAILED, fields)


def told(endings: Sequence[Ending], queue: str, worker: str, bench: Bench, last: bool) -> tuple[list[str], bool]:
    """Write results: of each job "done", or "fenced" where another execution has it by now.

    With the `last` ones, also whether the worker waits from then on, as there is no other job.
    """
    answers, waits = outlast(lambda: bench.records.finish_all(endings, queue, worker, last))
    if bench.auditor is not None:
        for ending, answer in zip(endings, answers, strict=True):
            bench.auditor.answered(ending.job_id, bool(answer))
    return ["done" if answer else "fenced" for answer in answers], waits


def concluded(order: Order, solved: Solved, bench: Bench, deadline: Deadline | None = None) -> Ending:
    """The ending of a job that was solved: its arrays are kept and its document is written.

    Raises:
        JobFails: its certificate does not hold.
    """
    record, solution, certificate = order.record, solved.solution, solved.certificate
    if certificate.holds is False:
        raise JobFails(
            "certificate",
            "The certificate does not hold",
            f"{record['solver']} claims {solution.termination.value}, which the check refutes: {certificate.proved}",
            certificate=plain(certificate.stated(solution.termination)),
        )
    if solution.termination is Termination.STOPPED and certificate.objective is None:
        return Ending(order.job_id, order.execution, State.CANCELLED, {"timings_ms": _json(solved.timings_ms)})
    document = document_of(order, solved, bench)
    text, last = begun(document)  # while the last arrays are kept: of a thousand problems it is as long as that
    references, digests = stored(solved, record["owner"], bench.store, deadline or Deadline())
    if bench.auditor is not None:
        bench.auditor.note(order, solution, certificate)
    since = 1e3 * (outlast(bench.records.now) - float(record["created_at"]))
    solved.timings_ms["total"] = since + sum(before(record).values())
    if solved.timings_ms["total"] > 1e3 * bench.slow_s:
        with logs.of_record(order.job_id, record):
            logs.slow(record["solver"], solved.timings_ms)
    timings_ms = {name: round(value, 3) for name, value in solved.timings_ms.items()}
    fields = {
        "timings_ms": to_json(timings_ms).decode(),
        "termination": solution.termination.value,
        "verified": to_json(document["certificate"]["verified"]).decode(),
    }
    text = ended_with(text, timings_ms, references, last)
    return Ending(order.job_id, order.execution, State.SUCCEEDED, fields, text, digests)


def _explained(error: Exception, record: Mapping[str, str]) -> Failure:
    """What the owner reads of an exception; what nobody foresaw is our bug, and is logged."""
    if isinstance(error, JobFails):
        return error.failure
    if isinstance(error, StoreFull):
        return failure("store-full", "There is no room for the result", str(error))
    log.error("a job of solver %s failed", record.get("solver"), exc_info=error)
    detail = f"{type(error).__name__}: {error}"[:2000]
    return failure("internal", "The solver failed, which is our bug", detail)


def before(record: Mapping[str, str]) -> dict[str, float]:
    """How long the request took before it was a job, by station."""
    return dict(from_json(record.get("timings_ms") or "{}"))


def until_begun(record: Mapping[str, str], now: float) -> dict[str, float]:
    """Milliseconds until `now`, when the job's child begins with it, by station: the last is the queue."""
    return {**before(record), "queued": max(0.0, 1e3 * (now - float(record["created_at"])))}


@functools.lru_cache(256)
def _options(solver: str, text: str) -> Any:
    return SOLVERS[solver].options(**from_json(text))


def loaded(card: Solver, order: Order, bench: Bench, deadline: Deadline | None = None) -> tuple[Any, Any]:
    """The problem of a job, built anew, and its options. Raises InvalidProblem, InvalidUpload, UnknownBlob."""
    record = order.record
    options = _options(card.name, record["options"])
    references = inline.together(from_json(record["inputs"]), order.data)
    inputs = _load(references, record, bench, deadline or Deadline())
    return card.build(inputs, options), options


def told_before(record: Mapping[str, str]) -> deriving:
    """A block in which what was worked out as the job came need not be worked out again."""
    return deriving(from_json(record.get("derived") or "[]"))


def _solved(order: Order, bench: Bench, deadline: Deadline) -> Solved:
    card = SOLVERS[order.record["solver"]]
    timings = until_begun(order.record, outlast(bench.records.now))
    try:
        with clock(timings, "load"), told_before(order.record):
            problem, options = loaded(card, order, bench, deadline)
            bench.held[:] = [problem]
            needs = card.estimate(problem, options, bench.device)
        _expect(order, bench.records, deadline.elapsed_s + needs.first_seconds, needs.certify_seconds)
        beside: list[Beside | None] = []

        def keep(found: Solution) -> None:
            beside.append(Beside.of(found, order.record["owner"], bench.store))

        asker = Asker(partial(_safely, bench.device), needs, keep)
        solution, certificate = solve_and_prove(card, problem, options, deadline, bench.device, asker)
        timings |= solution.timings_ms
    except (InvalidProblem, InvalidUpload) as error:
        raise JobFails("invalid-problem", "The input is wrong", str(error), field=error.field) from error
    except UnknownBlob as error:
        raise JobFails("unknown-blob", "An input is gone", str(error)) from error
    except DeviceFull as error:
        detail = f"the solve needs about {needs.device_bytes} bytes on the device and {error.free} are free: {error}"
        facts = {"bytes_needed": needs.device_bytes, "bytes_free": error.free}
        raise JobFails("out-of-memory", "Out of memory on the GPU", detail, **facts) from error
    except MemoryError as error:
        raise JobFails("out-of-memory", "Out of memory on the host", str(error) or "allocation failed") from error
    return Solved(solution, certificate, timings, beside=beside[0] if beside else None)


def _found(reference: Any, record: Mapping[str, str], bench: Bench) -> Array | Csr:
    """An input of a job. One whose owner waits may run here before its bytes have left the machine that took them.

    Raises:
        Unavailable: they may still come.
        UnknownBlob: they are gone.
    """
    try:
        return bench.store.resolve(reference, record["owner"])
    except UnknownBlob as error:
        if record.get("reply") and bench.records.now() - float(record["created_at"]) < SETTLED_S:
            raise Unavailable(str(error)) from error
        raise


def _load(
    references: Mapping[str, Any], record: Mapping[str, str], bench: Bench, deadline: Deadline
) -> dict[str, Array | Csr]:
    deadline.enter("load")
    inputs: dict[str, Array | Csr] = {}
    for done, (name, reference) in enumerate(references.items(), 1):
        inputs[name] = outlast(partial(_found, reference, record, bench), deadline)
        deadline.advance(done / (len(references) + 1))  # building the problem is the rest
    return inputs if bench.staging is None else bench.staging.stage(inputs, SOLVERS[record["solver"]].unread)


def _expect(order: Order, records: Records, first_s: float, certify_s: float) -> None:
    """Tell the worker, which kills what is too late, how long this job may have to take (see patience.py).

    Most jobs are short: theirs is not worth a trip to Redis.
    """
    if first_s + certify_s > WORTH_TELLING_S:
        try:
            records.expect(order.job_id, order.execution, {"first_s": first_s, "certify_s": certify_s})
        except redis.RedisError as error:
            log.warning("cannot tell how long %s will take: %s", order.job_id, error)


def _safely(device: Device, call: Callable[[], T]) -> T:
    """Call the card's code; on a GPU that runs out of memory, once more with the pool's blocks given back.

    Raises:
        DeviceFull: twice.
        DeviceLost: the child must exit.
    """
    if device == "cpu":
        return call()
    for _ in range(2):
        try:
            found = call()
            gpu_memory.synchronize()
            return found
        except Exception as error:
            if gpu_memory.is_sticky(error) or isinstance(error, InputChanged):
                raise DeviceLost(f"{type(error).__name__}: {error}") from error
            if not gpu_memory.is_out_of_memory(error):
                raise
            message = str(error)
            gpu_memory.forget(error)
        gpu_memory.free_pool()
    raise DeviceFull(message, gpu_memory.memory()[0])


def _json(value: Any) -> str:
    return json.dumps(plain(value), allow_nan=False)
