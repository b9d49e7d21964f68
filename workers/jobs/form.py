"""Which jobs may be solved in one go: those of the same form.

A worker that takes a job takes along what waits of the same form. So a form must say all on which a solver, or the
order of its work, depends: solver, options, kinds and shapes of the arrays, and the queue. A job has company only if it
is short, so that none waits long for the others, and starts from nothing.
"""

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from kernels import Csr, Estimate, OptionsOf, Problem, Solver
from workers.jobs.job import AskedDevice, Device, WorkerInfo
from workers.runtime import devices

SHORT_S = 0.01
"""Estimated seconds, certificate and all, of a job that may have company."""
LEAST_LIMIT_S = 1.0
"""Jobs with less time than this run alone: those before them would use it up."""


@dataclass(slots=True)  # nobody changes one; frozen, it takes three times as long to make
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
    try:
        shapes = _outline(problem, frozenset(card.warm_start.values()))
    except _Started:
        return ""
    model: Any = type(options)
    said = options.model_dump_json() if options.model_fields_set else _unsaid(model)
    return _hashed(card.name, queue, said, shapes)


class _Started(Exception):
    """The problem, or one of its parts, starts from an earlier answer."""


def _outline(problem: Any, starts: frozenset[str]) -> tuple[Any, ...]:
    """What of a problem matters: its kind, and of each field that is there its name and shape. Raises _Started."""
    kind: Any = type(problem)
    found: list[Any] = [kind.__name__]
    for name in _names(kind):
        value = getattr(problem, name)
        if value is not None:
            if name in starts:
                raise _Started
            found.append((name, _shape(value, starts)))
    return tuple(found)


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
    """The fields of a problem, but for those that only its answer and proof tell of (`metadata` "told")."""
    return tuple(spec.name for spec in fields(kind) if not spec.metadata.get("told"))


def _shape(value: Any, starts: frozenset[str]) -> Any:
    """What of a field matters: of an array its type and its shape; sparse ones count as alike by their shape alone.

    A number's type is said too: 1, 1.0 and True are one and the same to whoever looks for a form that was seen. Of
    several parts each counts, and how many follow one another that are alike. Of names with values the names count: the
    values came with the options. A tuple with names is a note on the entries, which are not of the form.
    """
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape
    if isinstance(value, str | int | float):
        return type(value).__name__, value
    if isinstance(value, Csr):
        return "csr", value.values.dtype.str, value.shape
    if type(value) in (tuple, list):
        return type(value).__name__, _runs(value, starts)
    if isinstance(value, Mapping):
        return type(value).__name__, tuple(map(str, value))
    if is_dataclass(value):
        return _outline(value, starts)
    return type(value).__name__, ""


def _runs(values: Sequence[Any], starts: frozenset[str]) -> tuple[Any, ...]:
    """The shapes of values in their order, each with how many alike follow one another."""
    found: list[tuple[Any, int]] = []
    for k, value in enumerate(values):
        if k and _alike(values[k - 1], value):
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((_shape(value, starts), 1))
    return tuple(found)


def _alike(one: Any, other: Any) -> bool:
    """Whether two values have the same shape, told sooner than by their shapes: most parts are like the one before."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return bool(one.shape == other.shape and one.dtype == other.dtype)
    if isinstance(one, str | int | float):
        return bool(one == other)
    if type(one) in (tuple, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if is_dataclass(one) and not isinstance(one, Csr):
        kind: Any = type(one)
        return all(_alike(getattr(one, name), getattr(other, name)) for name in _names(kind))
    return bool(_shape(one, frozenset()) == _shape(other, frozenset()))
