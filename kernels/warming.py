"""Compiling ahead of the first job, beyond a solver's own warm-up: a small solve in each type and form of its input.

A compiled loop and a CUDA kernel are each made for one type of array; numba and CuPy keep on disk what they compile,
so this costs a minute once and seconds after that.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kernels.card import Device, Solver
from kernels.deadline import Deadline
from kernels.on_device import certify_small
from kernels.problems import Array, Csr, InvalidProblem

DTYPES = (np.float64, np.int64, np.float32, np.int32)
SOLVE_S = 0.3
STOPPED_AFTER = (0, 1, 2, 3, 5, 8)
"""Looks at the deadline: what completes a stopped answer differs with how far the solve has come."""
SIDE = 40
BATCH = 3
DIMENSION = 3


def solve_each_form(card: Solver, device: Device) -> None:
    """Compile what `card.warm_up` leaves to the first job of its kind. Raises what the solver raises."""
    options = card.options(**card.example.get("options", {}))
    for inputs in variants(card):
        try:
            problem = card.build(inputs, options)
        except InvalidProblem:  # this solver takes no such type or form
            continue
        for looks in STOPPED_AFTER:
            card.solve(problem, options, _stopped_after(looks), device)
        solution = card.solve(problem, options, Deadline(SOLVE_S), device)
        card.certify(problem, solution)
        if device == "gpu":
            certify_small(card, problem, solution)
    for larger, given in card.larger() if device == "gpu" else ():
        options = card.options(**given)
        problem = card.build(larger, options)
        certify_small(card, problem, card.solve(problem, options, Deadline(SOLVE_S), device))


def _stopped_after(looks: int) -> Deadline:
    """A deadline that asks for the best so far at its so many-th look."""
    count = itertools.count()
    return Deadline(SOLVE_S, cancelled=lambda: next(count) >= looks)


def variants(card: Solver) -> Iterator[dict[str, Array | Csr]]:
    """Small inputs in each type: the card's example, and random ones that no shortcut solves."""
    example = card.example.get("inputs", {})
    main = [spec for spec in card.inputs if spec.required] or list(card.inputs[:1])
    random = np.random.default_rng(0).integers(1, 100, (BATCH, SIDE, SIDE))
    for dtype in DTYPES:
        yield {name: _cast(value, dtype) for name, value in example.items()}
        stack = random.astype(dtype)
        yield {spec.name: stack[k] for k, spec in enumerate(main)}
        yield {spec.name: stack for spec in main}
        if main[0].sparse:
            yield {main[0].name: _full(stack[0])}
        if {"x", "y"} <= {spec.name for spec in card.inputs}:
            yield {name: np.ascontiguousarray(stack[k, :, :DIMENSION]) for k, name in enumerate("xy")}


def _cast(value: Any, dtype: Any) -> Array | Csr:
    if isinstance(value, Mapping):
        csr = value["csr"]
        indptr, indices = np.array(csr["indptr"], np.int64), np.array(csr["indices"], np.int64)
        return Csr(indptr, indices, np.array(csr["values"]).astype(dtype), tuple(csr["shape"]))
    return np.array(value).astype(dtype)


def _full(matrix: Array) -> Csr:
    n = len(matrix)
    return Csr(np.arange(0, n * n + 1, n), np.tile(np.arange(n, dtype=np.int32), n), matrix.ravel(), (n, n))
