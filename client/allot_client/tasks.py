"""From a call in Python to a job: which arguments are inputs, and what the service calls the rest."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from allot_client import body as bodies
from allot_client import limits, points
from allot_client.arrays import Given, Sparse, given, pad, without_holes
from allot_client.flows import Task
from allot_client.results import Home

JOB_FIELDS = ("device", "time_limit_s", "result_ttl_s", "warm_start", "keep_inputs", "priority")
"""Arguments that belong to the job; all others are options of its solver."""
NO_HOME = Home()
SIDES = (("x", "y"), ("flow", "distance"))
"""Inputs whose lines are the rows and the columns of the answer, where no matrix has both."""


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
    forbidden = -math.inf if solver == "auction" or chosen.get("maximize") else math.inf
    taken: dict[str, bodies.Input] = {}
    known: dict[str, Given] = {}
    for name, value in inputs.items():
        if value is None:
            continue
        taken[name], found = _input(value, forbidden)
        if found is not None:
            known[name] = found
    _points_by_metric(solver, taken, chosen)
    if chosen:
        job["options"] = chosen
    return Task(job, taken, _home(known))


def _home(known: Mapping[str, Given]) -> Home:
    if not known:
        return NO_HOME
    first = next(iter(known.values()))
    for left, right in SIDES:
        if left in known and right in known:
            return Home(known[left].bring, known[left].row_names, known[right].row_names)
    return Home(first.bring, first.row_names, first.column_names)


def _input(value: Any, forbidden: float) -> tuple[bodies.Input, Given | None]:
    if isinstance(value, (bodies.Blob, bodies.File, Sparse)):
        return value, None
    found = given(value)
    return found.value if isinstance(found.value, Sparse) else without_holes(found.value, forbidden), found


def _points_by_metric(solver: str, taken: dict[str, bodies.Input], chosen: dict[str, Any]) -> None:
    """Points of a metric that the service does not take, as points of one that it does, or as costs."""
    x, y, metric = taken.get("x"), taken.get("y"), chosen.get("metric", "sqeuclidean")
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return
    if solver == "lap":
        del taken["x"], taken["y"]
        chosen.pop("metric", None)
        taken["cost"] = points.cost_matrix(x, y, metric)
    elif metric in points.AS_POINTS:
        taken["x"], taken["y"] = (points.as_points(side, metric) for side in (x, y))
        chosen["metric"] = "sqeuclidean"


def lap(cost: Any, options: Mapping[str, Any], others: Mapping[str, Any]) -> Task:
    """A linear assignment, or a batch where `cost` is a list of matrices of different sizes."""
    options = dict(options)
    limit = options.pop("cost_limit", None)
    if limit is not None and options.get("maximize"):
        raise ValueError("cost_limit is for costs, and maximize is set; give the negative of the benefits")
    forbidden = -math.inf if options.get("maximize") else math.inf
    if not _is_ragged(cost):
        made = task("lap", {"cost": cost, **others}, options)
        return made if limit is None else _limited(made, limit)
    problems = [without_holes(np.asanyarray(given(one).value), forbidden) for one in cost]
    own = tuple((int(one.shape[0]), int(one.shape[1])) for one in problems)
    sent = problems if limit is None else [limits.with_way_out(one, limit) for one in problems]
    batch, sizes = pad(sent)
    made = task("lap", {"cost": batch, "sizes": sizes, **others}, options)
    return replace(made, home=Home(given(cost[0]).bring, sizes=own, limited=None if limit is None else own))


def of(solver: str, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> Task:
    """A job of any solver, with what `lap` does for lists of matrices and `cost_limit`."""
    if solver != "lap":
        return task(solver, inputs, options)
    others = dict(inputs)
    return lap(others.pop("cost", None), options, others)


def _limited(made: Task, limit: float) -> Task:
    """The same task with a way out for each line."""
    cost = made.inputs.get("cost")
    if not isinstance(cost, np.ndarray) or cost.ndim not in (2, 3):
        raise ValueError("cost_limit needs a cost matrix, a batch or a list of them, and no reference to a blob")
    problems = len(cost) if cost.ndim == 3 else 1
    shapes = ((int(cost.shape[-2]), int(cost.shape[-1])),) * problems
    inputs = {**made.inputs, "cost": limits.with_way_out(cost, limit)}
    return replace(made, inputs=inputs, home=replace(made.home, limited=shapes))


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


def to_upload(array: Any) -> list[bodies.Piece]:
    """The bytes of one array that is sent before its job. Raises TypeError."""
    value = given(array).value
    if isinstance(value, Sparse):
        raise TypeError("sparse matrices are sent with their job; upload indptr, indices and values one by one")
    return bodies.npy_pieces(value)
