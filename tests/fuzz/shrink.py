"""Makes a failing case small: fewer options, inputs, lines; plainer numbers; as long as it fails in the same way."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kernels import Array, Csr
from tests.fuzz.case import Case

Fails = Callable[[Case], bool]
LINES: dict[str, tuple[dict[str, Any], ...]] = {
    "lap": ({"cost": -2, "u0": -1, "reject_rows": -1}, {"cost": -1, "v0": -1, "reject_cols": -1}),
    "auction": ({"benefit": 0, "x": 0, "reject": 0, "assignment0": 0}, {"benefit": 1, "y": 0, "prices0": 0}),
    "uot": ({"cost": -2, "x": 0, "a": -1, "f0": -1}, {"cost": -1, "y": 0, "b": -1, "g0": -1}),
    "qap": ({"flow": (0, 1), "distance": (0, 1), "linear": (0, 1)},),
    "barycenter": ({"histograms": -1, "cost": -1}, {"cost": -2, "support": 0}),
    "lowrank": ({"cost": 0, "x": 0, "row_factors": 0, "a": 0}, {"cost": 1, "y": 0, "column_factors": 0, "b": 0}),
    "multimarginal": ({"cost": 0, "x": 0, "a": 0}, {"cost": 1, "y": 0, "b": 0}, {"cost": 2, "z": 0, "c": 0}),
    "gromov": (
        {"x_distance": (0, 1), "x": 0, "a": 0, "cost": 0, "x_features": 0, "plan0": 0},
        {"y_distance": (0, 1), "y": 0, "b": 0, "cost": 1, "y_features": 0, "plan0": 1},
    ),
}
"""By solver: for each kind of line, the axis (or axes) of each input that it cuts."""


def sort_of(why: str) -> str:
    """What a verdict says, without its numbers."""
    words = re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?|\b(inf|None|nan)\b|[^a-zA-Z ]", "", why)
    return " ".join(words.split())[:60]


def shrunk(case: Case, fails: Fails, seconds: float = 10.0) -> Case:
    """The smallest case that was found to fail within so many seconds."""
    give_up = time.monotonic() + seconds
    moved = True
    while moved and time.monotonic() < give_up:
        moved = False
        for smaller in _smaller(case):
            if time.monotonic() > give_up:
                break
            if fails(smaller):
                case, moved = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for name in case.options:
        yield replace(case, options={k: v for k, v in case.options.items() if k != name})
    if case.time_limit_s is not None:
        yield replace(case, time_limit_s=None)
    if case.polls is not None:
        yield replace(case, polls=None)
    for name in list(case.inputs):
        if name not in ("cost", "benefit", "x", "y", "z", "flow", "distance"):
            yield case.with_inputs(**{name: None})
    yield from _of_batch(case)
    yield from _dense(case)
    yield from _fewer_lines(case)
    yield from _plainer(case)


def _of_batch(case: Case) -> Iterator[Case]:
    cost = case.inputs.get("cost")
    if not isinstance(cost, np.ndarray) or cost.ndim != 3 or len({len(value) for value in case.inputs.values()}) > 1:
        return
    for k in range(len(cost)):
        if len(cost) > 1:
            yield case.with_inputs(**{name: value[k : k + 1] for name, value in case.inputs.items()})
            yield case.with_inputs(**{name: np.delete(value, k, 0) for name, value in case.inputs.items()})
    if len(cost) == 1 and "sizes" not in case.inputs:
        yield case.with_inputs(**{name: value[0] for name, value in case.inputs.items()})


def _dense(case: Case) -> Iterator[Case]:
    graph = case.inputs.get("benefit")
    if isinstance(graph, Csr) and graph.values.dtype.kind == "f":
        full = np.full(graph.shape, -np.inf)
        full[np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr)), graph.indices] = graph.values
        yield case.with_inputs(benefit=full)


def _fewer_lines(case: Case) -> Iterator[Case]:
    for kind in LINES[case.solver]:
        there = {name: axes for name, axes in kind.items() if name in case.inputs}
        first = next(iter(there), None)
        if first is None or "sizes" in case.inputs or "permutation0" in case.inputs or "fixed" in case.options:
            continue
        axes = there[first]
        count = case.inputs[first].shape[axes[0] if isinstance(axes, tuple) else axes]
        for k in range(count if count > 1 else 0):
            cut = {name: _without(case.inputs[name], k, axes) for name, axes in there.items()}
            yield case.with_inputs(**cut, **({"assignment0": None} if "assignment0" in case.inputs else {}))


def _without(value: Any, k: int, axes: Any) -> Any:
    if isinstance(value, Csr):
        rows = np.repeat(np.arange(value.shape[0]), np.diff(value.indptr))
        keep = (rows if axes == 0 else value.indices) != k
        rows, columns = rows[keep], value.indices[keep]
        rows, columns = (rows - (rows > k), columns) if axes == 0 else (rows, columns - (columns > k))
        shape = (value.shape[0] - (axes == 0), value.shape[1] - (axes == 1))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
        return Csr(indptr, columns.astype(np.int32), value.values[keep], shape)
    for axis in axes if isinstance(axes, tuple) else (axes,):
        value = np.delete(value, k, axis)
    return value


def _plainer(case: Case) -> Iterator[Case]:
    """One number after another becomes 0, 1 or shorter."""
    for name, value in case.inputs.items():
        array = value.values if isinstance(value, Csr) else value
        if name in ("sizes", "assignment0", "permutation0") or array.size > 64:
            continue
        for at in range(array.size):
            for plain in _shorter(array.ravel()[at].item()):
                copy: Array = array.copy()
                copy.ravel()[at] = plain
                if copy.ravel()[at] != array.ravel()[at]:
                    whole = Csr(value.indptr, value.indices, copy, value.shape) if isinstance(value, Csr) else copy
                    yield case.with_inputs(**{name: whole})


def _shorter(number: Any) -> Iterator[Any]:
    if not np.isfinite(number) or number == 0:
        return
    yield 0
    if isinstance(number, int):
        if abs(number) > 1:
            yield from (1, int(number / 2), number - (1 if number > 0 else -1))
        return
    if number != 1:
        yield 1.0
        for digits in (1, 2, 4, 8):
            short = float(f"{number:.{digits}g}")
            if short != number:
                yield short


def as_python(case: Case) -> str:
    """The case as a few lines that reproduce it."""
    inputs = ",\n    ".join(f'"{name}": {_literal(value)}' for name, value in case.inputs.items())
    limit = case.time_limit_s if case.time_limit_s is not None else 0.5
    return (
        f"import numpy as np; from numpy import inf; from kernels import *; card = SOLVERS[{case.solver!r}]\n"
        f"inputs = {{{inputs}}}\n"
        f"options = card.options(**{case.options!r})\n"
        f"problem = card.build(inputs, options)\n"
        f'print(*solve_and_prove(card, problem, options, Deadline({limit}), "cpu"), sep="\\n")'
    )


def _literal(value: Any) -> str:
    if isinstance(value, Csr):
        parts = ", ".join(_literal(getattr(value, name)) for name in ("indptr", "indices", "values"))
        return f"Csr({parts}, {value.shape})"
    return f"np.array({value.tolist()!r}, np.{value.dtype})"
