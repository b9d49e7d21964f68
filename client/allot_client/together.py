"""Small assignments that wait at the same moment, sent as one job of many sizes, and taken apart again.

A request costs the service and this process milliseconds, and a small assignment microseconds. So while requests of
`map` are under way, whatever small problem comes next waits, and all that wait go together in the next request. A
problem that finds a request free is sent at once: nothing waits for a clock.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from allot_client import flows
from allot_client.arrays import Array, laid_flat, pairs
from allot_client.errors import AllotError, InvalidInput, JobFailed, NoRoom, TooLarge
from allot_client.ragged import PRICES
from allot_client.results import GROUPS, Certificate, Home, LapResult, Result, relative

LARGEST = 1 << 14
"""Entries of a problem that goes with others."""
MOST = 1 << 18
"""Entries of all that go together."""
AT_ONCE = 2
"""Requests under way: the service solves one while the next is written and the last is read."""
JOB_FIELDS = {"solver", "device", "priority", "options"}
OPTIONS = {"maximize", "cost_limit", "method", "deterministic"}
"""Options that mean the same for each problem of a batch as for one."""
POINTS = ("x", "y")
ARRAYS = {"assignment", "u", "v", "hall_rows", "hall_cols"}
"""What an answer can be taken apart by; with others among them, each problem is solved alone."""
OWN_FAULTS = (InvalidInput, TooLarge, NoRoom, JobFailed)
"""What one problem can do to all that go with it."""


def likeness(task: flows.Task) -> Hashable | None:
    """What tasks that may go together have in common; None for one that goes alone."""
    between = task.as_costs is not None and "sizes" not in task.inputs  # one pair of clouds
    options, names = task.job.get("options", {}), POINTS if between else ("cost",)
    if task.job["solver"] != "lap" or not task.job.keys() <= JOB_FIELDS:
        return None
    if not options.keys() <= OPTIONS | ({"metric"} if between else set()):
        return None
    given = [task.inputs.get(name) for name in names]
    if not task.inputs.keys() <= {*names, *PRICES} or not all(map(_is_small, given)):
        return None
    shape = _shape(task)
    if shape[0] * shape[1] > LARGEST:
        return None
    kinds = [(name, one.dtype.str, one.shape[1] if between else 0) for name, one in zip(names, given, strict=True)]  # type: ignore[union-attr]  # arrays: `_is_small`
    for side, name in enumerate(PRICES):
        prices = task.inputs.get(name)
        if prices is None:
            continue
        if not isinstance(prices, np.ndarray) or prices.shape != shape[side : side + 1]:
            return None
        kinds.append((name, prices.dtype.str, 0))
    return (json.dumps(task.job, sort_keys=True, default=repr), *kinds)


def _is_small(one: Any) -> bool:
    """Whether an input is a matrix, or a cloud, of so many numbers at most."""
    return isinstance(one, np.ndarray) and one.ndim == 2 and one.size <= LARGEST and one.dtype.kind in "iuf"


def _shape(task: flows.Task) -> tuple[int, int]:
    """Rows and columns of a problem that is one matrix, or one pair of clouds."""
    if "cost" in task.inputs:
        return task.inputs["cost"].shape  # type: ignore[union-attr]  # a matrix: `likeness`
    return len(task.inputs["x"]), len(task.inputs["y"])  # type: ignore[arg-type]  # clouds: `likeness`


@dataclass
class Waiting:
    """A problem that may go with others of its `kind`, and where its answer or error goes."""

    task: flows.Task
    kind: Hashable
    outcome: Any = None

    @property
    def entries(self) -> int:
        """Of its costs."""
        rows, columns = _shape(self.task)
        return rows * columns


W = TypeVar("W", bound=Waiting)


def gathered(first: W, waiting: list[W]) -> list[W]:
    """`first` and what goes with it, the longest waiting first; that is taken out of `waiting`."""
    along, rest, room = [first], list[W](), MOST - first.entries
    for one in waiting:
        if one.kind == first.kind and one.entries <= room:
            room -= one.entries
            along.append(one)
        else:
            rest.append(one)
    waiting[:] = rest
    return along


def solve_all(tasks: Sequence[flows.Task], retry: flows.Retry) -> flows.Flow[list[Result | AllotError]]:
    """The answer or the error of each task, in their order.

    Where all are refused for what may be the fault of one, halves are tried, and at last each by itself. So a problem
    that cannot be solved has the same error as without company, and costs the others a few more requests.
    """
    try:
        answer = yield from flows.solve(_joined(tasks), None, retry)
        if answer.arrays.keys() <= ARRAYS:
            return [*_apart(answer, tasks)]
    except OWN_FAULTS:
        if len(tasks) > 1:
            half = len(tasks) // 2
            first = yield from solve_all(tasks[:half], retry)
            return first + (yield from solve_all(tasks[half:], retry))
    except AllotError as wrong:
        return [wrong] * len(tasks)
    found = list[Result | AllotError]()
    for task in tasks:
        found.append((yield from _alone(task, retry)))
    return found


def _alone(task: flows.Task, retry: flows.Retry) -> flows.Flow[Result | AllotError]:
    try:
        return (yield from flows.solve(task, None, retry))
    except AllotError as wrong:
        return wrong


def _joined(tasks: Sequence[flows.Task]) -> flows.Task:
    """One task of all, also of one alone: so a problem is solved in the same way whatever company it has."""
    inputs: dict[str, Any] = {
        name: np.concatenate([np.asarray(task.inputs[name]) for task in tasks])
        for name in (*POINTS, *PRICES) if name in tasks[0].inputs
    }  # fmt: skip
    if "x" in inputs:
        inputs["sizes"] = pairs(map(_shape, tasks), len(tasks))
        return flows.Task(
            tasks[0].job, inputs, Home(), as_file=True,
            as_costs=lambda: _joined([task.as_costs() for task in tasks if task.as_costs is not None]),
        )  # fmt: skip
    entries, sizes = laid_flat([task.inputs["cost"] for task in tasks])  # type: ignore[misc]  # arrays: `likeness`
    return flows.Task(tasks[0].job, {"cost": entries, "sizes": sizes, **inputs}, Home(), as_file=True)


def _apart(answer: Result, tasks: Sequence[flows.Task]) -> list[Result]:
    shapes = [_shape(task) for task in tasks]
    told = answer.certificate.facts["problems"]
    shared = {name: value for name, value in answer.document.items() if name not in ARRAYS | set(GROUPS)}
    results, row, column = list[Result](), 0, 0
    for k, (task, (rows, columns)) in enumerate(zip(tasks, shapes, strict=True)):
        lines = {"v": slice(column, column + columns), "hall_cols": slice(column, column + columns)}
        own = {name: array[lines.get(name, slice(row, row + rows))] for name, array in answer.arrays.items()}
        row, column = row + rows, column + columns
        results.append(_one(k, answer, shared, {name[:-1]: told[name][k] for name in told}, own, task.home))
    return results


def _one(
    k: int, answer: Result, shared: Mapping[str, Any], told: Mapping[str, Any], own: Mapping[str, Array], home: Any
) -> Result:
    """Problem k as the answer that it would have alone."""
    infeasible = told["termination"] == "infeasible"
    names = ("hall_rows", "hall_cols") if infeasible else ("assignment", "u", "v")
    arrays = {name: np.flatnonzero(own[name]) if infeasible else own[name].copy() for name in names if name in own}
    proof = _proof(answer.certificate, told, arrays, k)
    document = {
        **shared, "termination": told["termination"], "objective": told["objective"], **arrays,
        "certificate": {name: getattr(proof, name) for name in Certificate.__dataclass_fields__},
    }  # fmt: skip
    home = replace(home, n_rows=len(own["assignment"]))
    return LapResult(
        answer.id, told["termination"], told["objective"], proof, answer.timings_ms, answer.method, answer.device,
        answer.iterations, {name: home.bring(array) for name, array in arrays.items()}, document, home.row_names,
        home.column_names, home,
    )  # fmt: skip


def _proof(whole: Certificate, told: Mapping[str, Any], arrays: Mapping[str, Array], k: int) -> Certificate:
    """What the certificate of all says of problem k."""
    objective, bound, ended = told["objective"], told["bound"], told["termination"]
    problems = len(whole.facts["problems"]["terminations"])
    words = whole.proved.partition("; problem ")[0]
    if ended == "infeasible":
        rows, columns = (len(arrays.get(name, ())) for name in ("hall_rows", "hall_cols"))
        words = f"infeasible: {rows} rows have permitted entries in {columns} columns only"
    return Certificate(
        bound=bound,
        gap_abs=told["gap"],
        gap_rel=relative(told["gap"], objective, bound),
        max_violation=whole.max_violation,
        holds=whole.holds,
        proved=words,
        facts={"problem": k, "problems": problems},
        verified=whole.holds if ended in ("optimal", "infeasible") else None,
    )
