"""Several transport problems by the solver of one, and what an answer says of its strengths."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.arrays import Array
from kernels.problems.several import SeveralTransports, joined
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution
from kernels.uot.build import Entropic
from kernels.uot.stages import collected, stacked

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

Solve = Callable[[UnbalancedTransport, Any, Deadline], Solution]


def told(
    problem: Entropic,
    options: "TransportOptions",
    deadline: Deadline,
    solve: Solve,
    stack: Callable[[SeveralTransports, Any, Deadline], Solution | list[Solution] | None] = lambda *_: None,
) -> Solution:
    """Solve the problem, and say in the facts which strengths it had.

    Args:
        solve: solves one problem, or a batch with the same strengths.
        stack: solves problems of one shape together, and answers with a batch axis or by problem; None where it cannot.
    """
    if not isinstance(problem, SeveralTransports):
        return _stated(problem, solve(problem, options, deadline))
    parts = stack(problem, options, deadline)
    if parts is None:
        parts = [solve(part, options, deadline) for part in problem.parts]
    if isinstance(parts, Solution):
        return of_all(problem, parts)
    return _stated(problem, _together(problem, parts, options))


def of_all(problem: Entropic, solution: Solution) -> Solution:
    """The solution of a job from that of all its problems at once, whose arrays have a batch axis if it has several."""
    if isinstance(problem, SeveralTransports) and problem.form == "flat":
        solution.arrays = {name: array.reshape(-1, *array.shape[2:]) for name, array in solution.arrays.items()}
    return _stated(problem, solution)


def _stated(problem: Entropic, solution: Solution) -> Solution:
    """The solution, whose facts say which strengths the problem had."""
    if isinstance(problem, SeveralTransports):
        each = problem.parts
        solution.facts |= {
            "reg": [part.reg for part in each],
            "reg_m": [[_spelled(one) for one in part.reg_m] for part in each],
        }
        for name in dict.fromkeys(name for part in each for name in part.told):
            solution.facts[name] = [part.told.get(name) for part in each]
    else:
        solution.facts |= {"reg": problem.reg, "reg_m": [_spelled(one) for one in problem.reg_m], **problem.told}
    return solution


def _together(problem: SeveralTransports, parts: list[Solution], options: "TransportOptions") -> Solution:
    solution, start = collected(parts, options), 0
    for suffix, group in problem.groups:
        each = [part.arrays for part in parts[start : start + len(group)]]
        start += len(group)
        if problem.form == "one":
            arrays = each[0]
        elif problem.form == "stack":
            arrays = stacked(group[0].shape[0], each)
        else:
            arrays = joined(group, each)
        solution.arrays |= {name + suffix: array for name, array in arrays.items()}
    if problem.divergence and options.gradients:
        _debias(problem, solution.arrays)
    return solution


def _debias(problem: SeveralTransports, arrays: dict[str, Array]) -> None:
    """Derivatives of the divergences in place of those of their three values: a side's own one has it on both sides."""
    for side, own in ((("x", "a"), "_xx"), (("y", "b"), "_yy")):
        for k, name in enumerate(side):
            both = [arrays.pop(f"grad_{one}{own}", None) for one in ("xy", "ab")[k]]
            here = arrays.get(f"grad_{name}")
            if here is not None and both[0] is not None and both[1] is not None:
                arrays[f"grad_{name}"] = here - (both[0] + both[1]) / 2
    parts = problem.groups[0][1]
    for of, name in enumerate(("grad_a", "grad_b")):
        apart = [(1 - 2 * of) * part.reg * float(part.a.sum() - part.b.sum()) for part in parts]
        if name in arrays:
            lines = [part.shape[of] for part in parts]
            arrays[name] = arrays[name] + np.repeat(apart, lines).reshape(arrays[name].shape)


def _spelled(strength: float) -> float | str:
    return "inf" if math.isinf(strength) else strength
