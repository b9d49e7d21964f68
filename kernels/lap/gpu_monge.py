"""Costs that sorting solves (`monge.py`), on the GPU: the guess is sorted there, the proof's sweep decides."""

from typing import Any

import cupy
import numpy as np

from kernels.lap import monge
from kernels.lap.proof.gpu_proof import named, prove


def solve_on_device(cost: Any, negate: bool, at: tuple[int, int]) -> tuple[monge.Guess, dict[str, int | float]] | None:
    """Sort and prove; None when the costs have no Monge order.

    Args:
        cost: (n, n) on the device.
        at: what `monge.corner` answered for it.
    Returns:
        The assignment (n,) int32 and the duals of the minimisation, on the device, and their proof.
    """
    found = monge.guess(cost, -1 if negate else 1, at, cupy)
    if found is None:
        return None
    answer = monge.Guess(found.assignment.astype(np.int32), found.u, found.v)
    proof = named(prove(cost, negate, answer.u, answer.v, answer.assignment))
    if not max(proof["violation"], proof["slack"]) <= monge.tolerance(cost):
        return None
    return answer, proof
