"""From a call in Python to a job: which arguments are inputs, and what the service calls the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allot_client import body as bodies
from allot_client.arrays import Given, given, pad
from allot_client.flows import Task
from allot_client.results import Home

JOB_FIELDS = ("device", "time_limit_s", "result_ttl_s", "warm_start", "keep_inputs", "priority")
"""Arguments that belong to the job; all others are options of its solver."""
NO_HOME = Home(lambda array: array)


def task(solver: str, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> Task:
    """A job of `solver`; inputs that are None are left out, and so are options."""
    job: dict[str, Any] = {"solver": solver}
    chosen = {}
    for name, value in options.items():
        if value is None:
            continue
        if name in JOB_FIELDS:
            job[name] = getattr(value, "id", value) if name == "warm_start" else value
        else:
            chosen[name] = value
    if chosen:
        job["options"] = chosen
    taken: dict[str, bodies.Input] = {}
    home = NO_HOME
    for name, value in inputs.items():
        if value is None:
            continue
        one, found = _input(value)
        taken[name] = one
        if found is not None and home is NO_HOME:
            home = Home(found.bring, found.row_names, found.column_names)
    return Task(job, taken, home)


def _input(value: Any) -> tuple[bodies.Input, Given | None]:
    if isinstance(value, (bodies.Blob, bodies.File)):
        return value, None
    found = given(value)
    return found.value, found


def lap(cost: Any, options: Mapping[str, Any], warm: Mapping[str, Any]) -> Task:
    """A linear assignment, or a batch where `cost` is a list of matrices of different sizes."""
    if _is_ragged(cost):
        batch, sizes = pad(cost)
        made = task("lap", {"cost": batch, "sizes": sizes, **warm}, options)
        return Task(made.job, made.inputs, Home(given(cost[0]).bring))
    return task("lap", {"cost": cost, **warm}, options)


def _is_ragged(cost: Any) -> bool:
    if not isinstance(cost, (list, tuple)) or not cost:
        return False
    shapes = [getattr(one, "shape", None) for one in cost]
    return all(shape is not None and len(shape) == 2 for shape in shapes)


def quadratic(flow: Any, distance: Any, linear: Any, options: Mapping[str, Any]) -> Task:
    """A quadratic assignment from matrices, or from a QAPLIB file when `flow` is a path and there is no distance."""
    if distance is None:
        path = Path(os.fspath(flow))
        return task("qap", {"qaplib": bodies.File(path.name, path.read_bytes())}, options)
    return task("qap", {"flow": flow, "distance": distance, "linear": linear}, options)
