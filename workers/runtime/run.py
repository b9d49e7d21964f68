"""One job, from its record to its result: load, build, solve, certify, store. Runs in a worker's child.

Whatever happens ends as data in the job's record. The exceptions that leave `ending_of` are `DeviceLost` (the child
must be replaced; the job runs again) and Redis being away for longer than it is waited for.
"""

import functools
import importlib.metadata
import json
import logging
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import redis

from kernels import (
    SOLVERS,
    Array,
    Certificate,
    Csr,
    Deadline,
    Device,
    InvalidProblem,
    Solution,
    Solver,
    Termination,
    solve_and_prove,
)
from workers.jobs.failure import Failure, failure
from workers.jobs.job import State, StoreFull, UnknownBlob
from workers.jobs.records import Ending, Order, Records
from workers.runtime import gpu_memory, logs, traces
from workers.runtime.aside import Aside
from workers.runtime.outlast import AWAY, outlast
from workers.runtime.watch import Watch, plain
from workers.store import inline
from workers.store.codec import InvalidUpload
from workers.store.reference import names
from workers.store.store import Store

PACKAGES = ("allot", "numpy", "numba", "scipy", "cupy-cuda13x")
WORTH_TELLING_S = 0.5
"""Jobs that owe their answer sooner are within anybody's patience."""
log = logging.getLogger(__name__)
T = TypeVar("T")


class DeviceLost(Exception):
    """The CUDA context is broken; no further call in this process can succeed."""


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


@dataclass(frozen=True)
class Bench:
    """What a child works with, made once."""

    records: Records
    store: Store
    device: Device
    device_name: str
    staging: gpu_memory.Staging | None = None

    @functools.cached_property
    def aside(self) -> Any:
        """The records for a running solve, which waits for no Redis."""
        return Aside(self.records)


@dataclass
class Solved:
    """A solved job before it is written down."""

    solution: Solution
    certificate: Certificate
    timings_ms: dict[str, float]


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


def told(endings: Sequence[Ending], queue: str, worker: str, bench: Bench) -> list[str]:
    """Write results; of each job "done", or "fenced" where another execution has it by now."""
    answers = outlast(lambda: bench.records.finish(endings, queue, worker))
    return ["done" if answer else "fenced" for answer in answers]


def concluded(order: Order, solved: Solved, bench: Bench, deadline: Deadline | None = None) -> Ending:
    """The ending of a job that was solved: its arrays are kept and its document is written.

    Raises:
        JobFails: its certificate does not hold.
    """
    record, solution, certificate = order.record, solved.solution, solved.certificate
    if not certificate.holds:
        raise JobFails(
            "certificate",
            "The certificate does not hold",
            f"{record['solver']} claims {solution.termination.value}, which the check refutes: {certificate.proved}",
            certificate=plain(vars(certificate)),
        )
    if solution.termination is Termination.STOPPED and certificate.objective is None:
        return Ending(order.job_id, order.execution, State.CANCELLED, {"timings_ms": _json(solved.timings_ms)})
    references, digests = _store(solved, record["owner"], bench.store, deadline or Deadline())
    solved.timings_ms["total"] = 1e3 * (outlast(bench.records.now) - float(record["created_at"]))
    document = _document(order, solved, references, bench)
    fields = {"timings_ms": json.dumps(document["timings_ms"]), "termination": solution.termination.value}
    result = json.dumps(document, allow_nan=False)
    return Ending(order.job_id, order.execution, State.SUCCEEDED, fields, result, digests)


def _explained(error: Exception, record: Mapping[str, str]) -> Failure:
    """What the owner reads of an exception; what nobody foresaw is our bug, and is logged."""
    if isinstance(error, JobFails):
        return error.failure
    if isinstance(error, StoreFull):
        return failure("store-full", "There is no room for the result", str(error))
    log.error("a job of solver %s failed", record.get("solver"), exc_info=error)
    detail = f"{type(error).__name__}: {error}"[:2000]
    return failure("internal", "The solver failed, which is our bug", detail)


def queued_ms(record: Mapping[str, str]) -> float:
    """For how long the job waited."""
    return max(0.0, 1e3 * (float(record["begun_at"]) - float(record["created_at"])))


def loaded(card: Solver, order: Order, bench: Bench, deadline: Deadline | None = None) -> tuple[Any, Any]:
    """The problem of a job, built anew, and its options. Raises InvalidProblem, InvalidUpload, UnknownBlob."""
    record = order.record
    options = card.options(**json.loads(record["options"]))
    references = inline.together(json.loads(record["inputs"]), order.data)
    return card.build(_load(references, record["owner"], bench, deadline or Deadline()), options), options


def _solved(order: Order, bench: Bench, deadline: Deadline) -> Solved:
    card = SOLVERS[order.record["solver"]]
    timings: dict[str, float] = {"queued": queued_ms(order.record)}
    try:
        with _clock(timings, "load"):
            problem, options = loaded(card, order, bench, deadline)
        needs = card.estimate(problem, options, bench.device)
        _expect(order, bench.records, deadline.elapsed_s + needs.first_seconds, needs.certify_seconds)
        safely = partial(_safely, bench.device)
        solution, certificate = solve_and_prove(card, problem, options, deadline, bench.device, safely, needs)
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
    return Solved(solution, certificate, timings)


def _load(references: Mapping[str, Any], owner: str, bench: Bench, deadline: Deadline) -> dict[str, Array | Csr]:
    deadline.enter("load")
    inputs: dict[str, Array | Csr] = {}
    for done, (name, reference) in enumerate(references.items(), 1):
        inputs[name] = outlast(partial(bench.store.resolve, reference, owner), deadline)
        deadline.advance(done / (len(references) + 1))  # building the problem is the rest
    return inputs if bench.staging is None else bench.staging.stage(inputs)


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
            if gpu_memory.is_sticky(error):
                raise DeviceLost(f"{type(error).__name__}: {error}") from error
            if not gpu_memory.is_out_of_memory(error):
                raise
            message = str(error)
            gpu_memory.forget(error)
        gpu_memory.free_pool()
    raise DeviceFull(message, gpu_memory.memory()[0])


def _store(solved: Solved, owner: str, store: Store, deadline: Deadline) -> tuple[dict[str, Any], list[str]]:
    """Where the arrays of an answer are: small ones in its document, others in the store; and the names of those."""
    arrays = solved.solution.arrays
    references: dict[str, dict[str, Any]] = {}
    done, total = 0, sum(array.nbytes for array in arrays.values())
    if total <= inline.MOST_BYTES:
        return {name: inline.pack(array) for name, array in arrays.items()}, []
    deadline.enter("store")
    with _clock(solved.timings_ms, "store"):
        for name, array in arrays.items():
            references[name] = outlast(partial(store.put_array, array, owner, brief=True), deadline)
            done += array.nbytes
            deadline.advance(done / max(1, total))
    return references, names(references, owner)


def _document(order: Order, solved: Solved, references: dict[str, Any], bench: Bench) -> dict[str, Any]:
    solution, certificate = solved.solution, plain(vars(solved.certificate))
    record = order.record
    document: dict[str, Any] = plain(
        {
            "id": order.job_id,
            "solver": record["solver"],
            "state": State.SUCCEEDED.value,
            "termination": solution.termination.value,
            "objective": certificate.pop("objective"),
            "certificate": certificate,
            "method": solution.method,
            "iterations": solution.iterations,
            "seed": solution.seed,
            "options": json.loads(record["options"]),
            "facts": solution.facts,
            "timings_ms": {name: round(value, 3) for name, value in solved.timings_ms.items()},
            "device": bench.device,
            "device_name": bench.device_name,
            "versions": versions(),
            "input_digests": {
                name: outlast(partial(bench.store.complete, reference, record["owner"]))
                for name, reference in json.loads(record["inputs"]).items()
            },
            "attempt": int(record["attempt"]),
            "arrays": references,
        }
    )
    return document


@functools.cache
def versions() -> dict[str, str]:
    """Of everything that can change an answer."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class _clock:
    """Adds the milliseconds of a `with` block to `timings[name]`."""

    def __init__(self, timings: dict[str, float], name: str) -> None:
        self._timings, self._name = timings, name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._timings[self._name] = 1e3 * (time.perf_counter() - self._start)


def _json(value: Any) -> str:
    return json.dumps(plain(value), allow_nan=False)
