"""Which jobs may be solved in one go: those of the same form.

A worker that takes a job takes along what waits of the same form. So a form must say all on which a solver, or the
order of its work, depends: solver, options, kinds and shapes of the arrays, and the queue. A job has company only if it
is short, so that none waits long for the others, and starts from nothing.
"""

import functools
import hashlib
import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from kernels import Csr, Estimate, OptionsOf, Problem, Solver
from workers.jobs.job import AskedDevice, Device, WorkerInfo
from workers.runtime import devices

SHORT_S = 0.01
"""Estimated seconds, certificate and all, of a job that may have company."""
LEAST_LIMIT_S = 1.0
"""Jobs with less time than this run alone: those before them would use it up."""


@dataclass(frozen=True)
class Placed:
    """Where a problem goes: its queue, its form ("" for a job without company) and its estimated seconds."""

    queue: Device
    form: str
    seconds: float


def placed(
    card: Solver[Problem, OptionsOf],
    problem: Problem,
    options: OptionsOf,
    asked: AskedDevice,
    workers: list[WorkerInfo],
) -> Placed:
    """Where a problem goes. Raises InvalidProblem, NoSuchDevice, DoesNotFit."""
    queue, needs = devices.place(card, problem, options, asked, workers)
    return Placed(queue, form_of(card, problem, options, queue, needs), needs.seconds + needs.certify_seconds)


def form_of(
    card: Solver[Problem, OptionsOf], problem: Problem, options: OptionsOf, queue: Device, needs: Estimate
) -> str:
    """The form of a problem as a short hash, "" when it is solved alone."""
    if not needs.seconds + needs.certify_seconds < SHORT_S:
        return ""
    shapes = []
    starts = card.warm_start.values()
    kind: Any = type(problem)
    for name in _names(kind):
        value = getattr(problem, name)
        if value is not None:
            if name in starts:
                return ""
            shapes.append((name, _shape(value)))
    model: Any = type(options)
    said = options.model_dump_json() if options.model_fields_set else _unsaid(model)
    return _hashed(card.name, queue, said, (kind.__name__, *shapes))


@functools.lru_cache(4096)
def _hashed(solver: str, queue: str, options: str, shapes: tuple[Any, ...]) -> str:
    said = json.dumps([solver, queue, options, shapes], default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:12]


@functools.cache
def _unsaid(kind: Any) -> str:
    """The options of a solver where none is said."""
    return str(kind().model_dump_json())


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(spec.name for spec in fields(kind))


def _shape(value: Any) -> Any:
    """What of an array matters: its type and its shape; sparse ones count as alike by their shape alone.

    A number's type is said too: 1, 1.0 and True are one and the same to whoever looks for a form that was seen.
    """
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape
    if isinstance(value, Csr):
        return "csr", value.values.dtype.str, value.shape
    return type(value).__name__, value if isinstance(value, str | int | float) else ""
