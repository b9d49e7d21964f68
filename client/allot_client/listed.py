"""The best so many assignments of a matrix whose lines may stay alone, or that has none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from allot_client import points
from allot_client.arrays import FORBIDDEN_INTEGER
from allot_client.flows import Task


def listed(made: Task, limit: float | None) -> Task | None:
    """A list of the best with lines that may stay alone, or of a matrix without lines; None for any other."""
    made = written_out(made)
    cost = made.inputs.get("cost")
    if isinstance(cost, np.ndarray) and cost.ndim == 2 and cost.size == 0:  # one way alone, and the service lists none
        options = {name: value for name, value in made.job["options"].items() if name != "k_best"}
        return replace(
            made, job={**made.job, "options": options}, home=replace(made.home, within=(cost.shape[0], cost.shape[1]))
        )
    return None if limit is None else _ways_out(made, limit)


def _ways_out(made: Task, limit: float) -> Task:
    """The same task with pairs above the limit forbidden, and a line for each line of the shorter side to stay alone.

    So every way to pair some of the lines is one assignment, and no other: what a list of the best needs.
    """
    cost = made.inputs.get("cost")
    if not isinstance(cost, np.ndarray) or cost.ndim != 2:
        raise ValueError("k_best with cost_limit is for one matrix; expected one call for each, as `map` makes them")
    whole = cost.dtype.kind in "iu" and limit == int(limit)
    kept = cost.astype(np.int64 if whole else np.float64)
    none = FORBIDDEN_INTEGER if whole else math.inf
    forbidden = kept > limit
    if cost.dtype == np.int64:
        forbidden |= cost == FORBIDDEN_INTEGER
    alone = np.where(np.eye(min(cost.shape), dtype=bool), int(limit) if whole else limit, none)
    larger = np.concatenate([np.where(forbidden, none, kept), alone], axis=int(cost.shape[0] <= cost.shape[1]))
    within = (int(cost.shape[0]), int(cost.shape[1]))
    return replace(made, inputs={**made.inputs, "cost": larger}, home=replace(made.home, within=within))


def written_out(made: Task) -> Task:
    """The same task with costs instead of points, for what the service does with a matrix alone."""
    inputs, options = dict(made.inputs), dict(made.job.get("options", {}))
    x, y = inputs.pop("x", None), inputs.pop("y", None)
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return made
    inputs["cost"] = points.cost_matrix(x, y, options.pop("metric", "sqeuclidean"))
    job = {name: value for name, value in made.job.items() if name != "options"}
    return replace(made, job={**job, "options": options} if options else job, inputs=inputs)
