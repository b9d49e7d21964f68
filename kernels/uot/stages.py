"""A solve around its sweeps, the same on both devices.

What carries no plan is taken out, potentials are found at falling reg, and the answer is put together; of a batch, one
after the other.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Array, Floats
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination
from kernels.uot.outer import schedule
from kernels.uot.support import support
from kernels.uot.units import Translated, fits_float32, near_one

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

BEST_TO_WORST = (
    Termination.GAP_REACHED,
    Termination.CONVERGED,
    Termination.ITERATION_LIMIT,
    Termination.TIME_LIMIT,
    Termination.STOPPED,
    Termination.INFEASIBLE,
)
"""A batch ends with the worst word of its problems."""


DEEPEST = 1e3
"""Potentials are at most costs and DEEPEST regs, times reg_m / reg; a start beyond is dropped."""


@dataclass(frozen=True)
class Run:
    """Potentials of a problem whose masses are all positive, on the host, and how they were reached."""

    f: Any
    g: Any
    gap: float
    dual: float
    termination: Termination
    iterations: int
    rejected: int = 0
    storage: str = "float32"
    stages: tuple[float, ...] = ()  # the regs gone through, where they are others than planned


@dataclass(frozen=True)
class Steps:
    """What a device brings: the published system's module, potentials at the last of some regs, an answer from them.

    `find` takes problem, options, deadline, the spread of the costs and the regs, and returns the method's name too.
    """

    published: str
    find: Callable[[UnbalancedTransport, Any, Deadline, float, list[float]], tuple[str, Run]]
    answer: Callable[..., Solution]


def follow(problem: UnbalancedTransport, options: "TransportOptions", deadline: Deadline, steps: Steps) -> Solution:
    """Solve one problem (no batch axis) by a device's steps."""
    part = support(problem)
    if part.infeasible:
        return Solution(Termination.INFEASIBLE, "support", {})
    facts: dict[str, Any] = {"tolerance": options.tolerance}
    if part.empty:
        nothing = np.empty(0), np.empty(0)
        return steps.answer(part, options, nothing, Termination.GAP_REACHED, "support", facts, deadline)
    if options.method == "map-uot":
        published: Solution = importlib.import_module(steps.published).solve(part, options, deadline)
        return published
    reduced, unit = near_one(in_proportion(part.reduced))
    low, high = reduced.cost_bounds
    stages = schedule(reduced.reg, high - low, reduced.g0 is not None) if options.acceleration else [reduced.reg]
    heard = deadline if unit == 1 else Translated(deadline, unit)
    method, run = steps.find(reduced, options, heard, high - low, stages)
    facts |= {
        "stages": [reg * unit for reg in run.stages or stages],
        "rejected": run.rejected,
        "storage": run.storage,
        "gap": run.gap,
    }
    potentials = run.f * unit, run.g * unit
    solution = steps.answer(part, options, potentials, run.termination, method, facts, deadline)
    solution.iterations = run.iterations
    return solution


def in_proportion(problem: UnbalancedTransport) -> UnbalancedTransport:
    """The problem without a start that no potentials of it can be near, and whose digits would swamp theirs.

    Of each problem of a batch by itself. Where both sides are balanced a constant that is taken from g and added to f
    changes nothing: there the start is moved to the middle of its values, so that no such constant stays in the answer.
    """
    if problem.g0 is None:
        return problem
    start, held = problem.g0, problem.b > 0
    if np.isinf(problem.reg_m).all():
        high = start.max(axis=-1, keepdims=True, where=held, initial=-np.inf)
        low = start.min(axis=-1, keepdims=True, where=held, initial=np.inf)
        middle = high / 2 + low / 2
        start = np.where(held, start - np.where(np.isfinite(middle), middle, 0.0), 0.0)
    largest = max(map(abs, problem.cost_bounds)) + DEEPEST * problem.reg
    relaxed = [strength for strength in problem.reg_m if np.isfinite(strength)]
    limit = largest * (1 + min(relaxed, default=0.0) / problem.reg)
    near = abs(start).max(axis=-1, keepdims=True, where=held, initial=0.0) <= limit
    if not near.any():
        return replace(problem, f0=None, g0=None)
    return problem if start is problem.g0 and near.all() else replace(problem, f0=None, g0=np.where(near, start, 0.0))


def wants_float64(problem: UnbalancedTransport, options: "TransportOptions", spread: float, cheap: bool) -> bool:
    """Where storage is left to us: for small problems, and where float32 has too few digits for what is asked.

    Whatever storage is asked for: where costs or reg leave the range of float32.
    """
    if not fits_float32(problem):
        return True
    if options.storage != "auto":
        return bool(options.storage == "float64")
    return cheap or options.tolerance < 1e-7 or spread / problem.reg > 1e5


def batched(
    problem: UnbalancedTransport,
    options: "TransportOptions",
    deadline: Deadline,
    solve: Callable[[UnbalancedTransport, Any, Deadline], Solution],
) -> Solution:
    """Solve one problem after the other; each stops by itself, and the batch ends like its worst."""
    parts = [solve(problem.one(k), options, deadline) for k in range(problem.batch or 0)]
    return collect(problem.shape[0], parts, options)


def collect(rows: int, parts: list[Solution], options: "TransportOptions") -> Solution:
    """The solution of a batch from those of its problems: each keeps its own end, the whole has its worst."""
    solution = collected(parts, options)
    solution.arrays = stacked(rows, [part.arrays for part in parts])
    return solution


def stacked(rows: int, each: list[dict[str, Array]]) -> dict[str, Array]:
    """The arrays of problems of one shape, along a batch axis."""
    names = dict.fromkeys(name for arrays in each for name in arrays)
    return {name: _stacked(rows, name, [arrays.get(name) for arrays in each]) for name in names}


def collected(parts: list[Solution], options: "TransportOptions") -> Solution:
    """The same without its arrays."""
    ends, swept = [part.termination for part in parts], [part.iterations for part in parts]
    return together(ends, swept, parts[0].method, options)


def together(ends: list[Termination], swept: list[int], method: str, options: "TransportOptions") -> Solution:
    """The solution of a batch whose problems ended so, after so many sweeps, without its arrays."""
    facts: dict[str, Any] = {
        "tolerance": options.tolerance,
        "terminations": [str(end) for end in ends],
        "iterations": swept,
    }
    if Termination.INFEASIBLE in ends:
        facts["problem"] = ends.index(Termination.INFEASIBLE)
    return Solution(max(ends, key=BEST_TO_WORST.index), method, {}, iterations=max(swept), facts=facts)


def _stacked(rows: int, name: str, arrays: list[Floats | None]) -> Floats:
    """One array for a batch; zeros stand where a problem has none, and after lists that are shorter.

    Indices of entries are -1 there, and `hall_rows` become marks of rows.
    """
    if name == "hall_rows":
        marks = np.zeros((len(arrays), rows), bool)
        for k, found in enumerate(arrays):
            marks[k, [] if found is None else found] = True
        return marks
    given = [array for array in arrays if array is not None]
    shape = np.max([array.shape for array in given], axis=0)
    nothing = -1 if name in ("entry_rows", "entry_columns") else 0
    out = np.full((len(arrays), *shape), nothing, np.result_type(*given))
    for k, array in enumerate(arrays):
        if array is not None:
            out[k][tuple(slice(size) for size in array.shape)] = array
    return out
