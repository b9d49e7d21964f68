"""What is written of a job that was solved: where its arrays are, and its result document."""

import contextlib
import functools
import importlib.metadata
import platform
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic_core import from_json, to_json

from kernels import Array, Certificate, Deadline, Device, Solution
from workers.jobs.job import State
from workers.jobs.records import Order, Records
from workers.runtime import gpu_memory
from workers.runtime.aside import Aside
from workers.runtime.audit import Auditor
from workers.runtime.outlast import outlast
from workers.runtime.version import allot_version
from workers.store import inline
from workers.store.folded import KEY, fold
from workers.store.reference import names
from workers.store.shorts import Short, shorts_of
from workers.store.store import Store
from workers.store.upload import WORTH_A_SLAB

PACKAGES = ("numpy", "numba", "scipy", "cupy-cuda13x")


@dataclass(frozen=True)
class Bench:
    """What a child works with, made once."""

    records: Records
    store: Store
    device: Device
    device_name: str
    staging: gpu_memory.Staging | None = None
    auditor: Auditor | None = None
    slow_s: float = 10.0
    held: list[Any] = field(default_factory=list)
    """What is let go of behind the answer: to unmap the costs of a problem takes 40 us a MiB."""

    @functools.cached_property
    def aside(self) -> Any:
        """The records for a running solve, which waits for no Redis."""
        return Aside(self.records)


@dataclass(frozen=True)
class Beside:
    """The short arrays of an answer that are kept while it is proved: their files, and when that was."""

    arrays: Mapping[str, Array]
    kept: Future[tuple[dict[str, Short], float]]

    @classmethod
    def of(cls, solution: Solution, owner: str, store: Store) -> "Beside | None":
        """Begin with it; None where there are none."""
        arrays = dict(solution.arrays)
        if _bytes(arrays) <= inline.MOST_ANSWER_BYTES or all(one.nbytes >= WORTH_A_SLAB for one in arrays.values()):
            return None

        def keep() -> tuple[dict[str, Short], float]:
            shorts = shorts_of(arrays)
            store.put_shorts(list(shorts.values()), owner)
            return shorts, time.monotonic()

        return cls(arrays, _aside().submit(keep))

    def is_of(self, solution: Solution) -> bool:
        """Whether these are its arrays, and not those of an answer that was mended."""
        own = solution.arrays
        return own.keys() == self.arrays.keys() and all(own[name] is array for name, array in self.arrays.items())


@functools.cache
def _aside() -> ThreadPoolExecutor:
    """A thread that may wait for those of the store."""
    return ThreadPoolExecutor(1, "beside")


@dataclass
class Solved:
    """A solved job before it is written down."""

    solution: Solution
    certificate: Certificate
    timings_ms: dict[str, float]
    shorts: dict[str, Short] | None = None
    """The files of its short arrays, where these are kept already."""
    kept_at: float = 0.0
    """When that was, by the monotonic clock."""
    beside: Beside | None = None


def keep_ahead(several: Sequence[tuple[Solved, str]], store: Store) -> None:
    """Keep the short arrays of several answers, each with its owner, with one trip to Redis for all of an owner.

    What cannot be kept so is left to `stored`, which has more patience, and says what is wrong.
    """
    of_owner: dict[str, list[Solved]] = {}
    for solved, owner in several:
        if _bytes(solved.solution.arrays) > inline.MOST_ANSWER_BYTES:
            of_owner.setdefault(owner, []).append(solved)
    for owner, answers in of_owner.items():
        if len(answers) > 1:
            begun = time.perf_counter()
            with contextlib.suppress(Exception):
                files = [shorts_of(solved.solution.arrays) for solved in answers]
                store.put_shorts([file for each in files for file in each.values()], owner)
                for solved, shorts in zip(answers, files, strict=True):
                    solved.shorts, solved.kept_at = shorts, time.monotonic()
            for solved in answers:
                solved.timings_ms["store"] = 1e3 * (time.perf_counter() - begun) / len(answers)


def stored(solved: Solved, owner: str, store: Store, deadline: Deadline) -> tuple[dict[str, Any], list[str]]:
    """Where the arrays of an answer are: small ones in its document, others in the store; and the names of those."""
    arrays = solved.solution.arrays
    references: dict[str, dict[str, Any]] = {}
    done, total, ahead_ms = 0, _bytes(arrays), solved.timings_ms.get("store", 0.0)
    if total <= inline.MOST_ANSWER_BYTES:
        return {name: inline.pack(array) for name, array in arrays.items()}, []
    deadline.enter("store")
    with clock(solved.timings_ms, "store"):
        if solved.beside is not None and solved.beside.is_of(solved.solution):
            with contextlib.suppress(Exception):  # what is wrong is said below, where it is waited for
                solved.shorts, solved.kept_at = solved.beside.kept.result()
        shorts = shorts_of(arrays) if solved.shorts is None else solved.shorts
        put_shorts = partial(store.put_shorts, list(shorts.values()), owner)
        if shorts and solved.shorts is None:
            outlast(put_shorts, deadline)
            solved.kept_at = time.monotonic()
        for name, array in arrays.items():
            if name in shorts:
                references[name] = shorts[name].reference
            else:
                references[name] = outlast(partial(store.put_array, array, owner, brief=True, brought=True), deadline)
            done += array.nbytes
            deadline.advance(done / max(1, total))
        if shorts and time.monotonic() - solved.kept_at > store.brief_s / 2:  # others, or long ones, waited for room
            outlast(put_shorts, deadline)
    solved.timings_ms["store"] += ahead_ms
    return references, names(references, owner)


def _bytes(arrays: Mapping[str, Array]) -> int:
    return sum(array.nbytes for array in arrays.values())


def document_of(order: Order, solved: Solved, bench: Bench) -> dict[str, Any]:
    """The result document without times and arrays; `begun` writes it, and `ended_with` what it lacks."""
    solution, certificate = solved.solution, solved.certificate
    record = order.record
    return {
        "id": order.job_id,
        "solver": record["solver"],
        "state": State.SUCCEEDED.value,
        "termination": solution.termination.value,
        "objective": certificate.objective,
        "certificate": certificate.stated(solution.termination),
        "method": solution.method,
        "iterations": solution.iterations,
        "seed": solution.seed,
        "options": from_json(record["options"]),
        "facts": solution.facts,
        "device": bench.device,
        "device_name": bench.device_name,
        "versions": versions(),
        "input_digests": {
            name: outlast(partial(bench.store.complete, reference, record["owner"]))
            for name, reference in from_json(record["inputs"]).items()
        },
        "attempt": int(record["attempt"]),
    }


def as_json(document: dict[str, Any]) -> str:
    """`document` as it is stored: NumPy's scalars and arrays as Python's, NaN and infinities as null."""
    return to_json(fold(document), inf_nan_mode="null", fallback=_plainly).decode()


def begun(document: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A document as JSON, as far as it is known before its arrays are kept; and what goes behind these."""
    kept = fold(document)
    last = {KEY: kept[KEY]} if KEY in kept else {}
    return as_json({name: value for name, value in kept.items() if name != KEY}), last


def ended_with(text: str, timings_ms: dict[str, float], references: dict[str, Any], last: dict[str, Any]) -> str:
    """What `begun` told, with its times and arrays behind: who answers changes these, and nothing before them."""
    return f"{text[:-1]},{as_json({'timings_ms': timings_ms, 'arrays': references, **last})[1:]}"


def _plainly(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


@functools.cache
def versions() -> dict[str, str]:
    """Of everything that can change an answer."""
    found = {"python": platform.python_version(), "allot": allot_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class clock:
    """Adds the milliseconds of a `with` block to `timings[name]`."""

    def __init__(self, timings: dict[str, float], name: str) -> None:
        self._timings, self._name = timings, name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._timings[self._name] = 1e3 * (time.perf_counter() - self._start)
