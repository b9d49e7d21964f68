"""What is compiled ahead is what jobs need: loops know one type of array, whether it may be written to or not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline
from kernels.auction.cpu import paths as cpu_paths
from kernels.auction.cpu import rounds as cpu_rounds
from kernels.lap.cpu import batch as cpu_batch
from kernels.lap.cpu import path as cpu_path
from kernels.lap.cpu import whole_path as cpu_whole_path

LOOPS: dict[str, tuple[Any, ...]] = {
    "lap": (cpu_batch.solve_range, cpu_path.augment, cpu_path.reduce_rows, cpu_whole_path.solve_at_once),
    "auction": (cpu_paths.augment_rows, cpu_paths.reduce_rows, cpu_rounds.run_rounds),
}


def writable(array: Array) -> Array:
    return array.copy()


def mapped(array: Array) -> Array:
    """As the inputs of a job are, which come from bytes."""
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("solver", ["lap", "auction"])
def test_inputs_from_bytes_need_no_other_loops(solver: str, dtype: Any) -> None:
    ties = np.random.default_rng(0).integers(0, 3, (2, 40, 40)).astype(dtype)
    shapes = [ties[0], ties] if solver == "lap" else [ties[0]]
    known = [compiled(solver, shapes, writable), compiled(solver, shapes, mapped)]
    assert known[0]
    assert known[0] == known[1]


def compiled(solver: str, shapes: list[Array], made: Callable[[Array], Array]) -> set[tuple[str, Any]]:
    """The forms that are there once problems of these shapes were solved."""
    card = SOLVERS[solver]
    (name,) = [spec.name for spec in card.inputs if spec.required] or [card.inputs[0].name]
    options = card.options()
    for shape in shapes:
        card.solve(card.build({name: made(shape)}, options), options, Deadline(), "cpu")
    return {(loop.py_func.__name__, form) for loop in LOOPS[solver] for form in loop.signatures}
