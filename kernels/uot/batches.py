"""Batches of transport problems on either device: one after the other, and one solution out of many."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.deadline import Deadline
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination


def batched(
    problem: UnbalancedTransport,
    options: Any,
    deadline: Deadline,
    solve: Callable[[UnbalancedTransport, Any, Deadline], Solution],
) -> Solution:
    """Solve one problem after the other; each stops by itself, and the batch ends like its worst."""
    return collect([solve(problem.one(k), options, deadline) for k in range(problem.batch or 0)], options)


def collect(parts: list[Solution], options: Any) -> Solution:
    """The solution of a batch from those of its problems."""
    ends = [part.termination for part in parts]
    if Termination.INFEASIBLE in ends:
        facts: dict[str, Any] = {"problem": ends.index(Termination.INFEASIBLE)}
        return Solution(Termination.INFEASIBLE, parts[0].method, {}, facts=facts)
    unfinished = [end for end in ends if end is not Termination.GAP_REACHED]
    return Solution(
        unfinished[0] if unfinished else Termination.GAP_REACHED,
        parts[0].method,
        {name: np.stack([part.arrays[name] for part in parts]) for name in parts[0].arrays},
        iterations=max(part.iterations for part in parts),
        facts={"tolerance": options.tolerance, "terminations": [str(end) for end in ends]},
    )
