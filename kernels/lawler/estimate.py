"""What Lawler's quadratic assignment will need. Constants are from one core of a server, rounded up."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kernels.card import Device, Estimate
from kernels.outline import dense
from kernels.pace import cores, pace
from kernels.problems import Inputs, InvalidProblem
from kernels.problems.lawler import LawlerAssignment

if TYPE_CHECKING:
    from kernels.lawler import LawlerOptions

FIXED = 24 << 20
CALL_S = 2e-3
ENTRY_S = 2e-8
"""Of reading a cost into integers, and of pairing it up."""
MOVE_S, EXCHANGE_S = 1e-6, 3e-9
"""Of an iteration, and of one exchange and the costs that an iteration reads beside it."""
SWEEP_S, STEP_S = 1e-4, 1e-9
"""Of a sweep, divided by k^5: k^2 assignment problems, each somewhat less than k^3."""
PROOF_S = 6e-8
"""Of a certificate, divided by n^4."""
EVERY_S = 8e-2
"""Of pricing every permutation of eight facilities."""
LARGEST_EVERY = 8
ROUNDS, SWEEPS = 60, 150
"""Without a time limit, as in `cpu/run.py`."""


def estimate(problem: LawlerAssignment, options: "LawlerOptions", device: Device) -> Estimate:
    """What the rules without a time limit come to; a bound that meets the objective ends it earlier."""
    n, k = problem.n, problem.free
    entries = n**4
    first_s = CALL_S + entries * ENTRY_S
    certify_s = CALL_S + entries * PROOF_S + (EVERY_S if k <= LARGEST_EVERY else 0.0)
    seconds = first_s
    if k > LARGEST_EVERY:
        searches = (options.starts or max(8, 2 * cores())) * (options.rounds or ROUNDS)
        iterations = options.iterations or max(500, 40 * k)
        search_s = searches * iterations * (MOVE_S + k * k * EXCHANGE_S) / cores()
        sweeps = SWEEPS if options.sweeps is None else options.sweeps
        seconds += search_s + sweeps * (SWEEP_S + k**5 * STEP_S)
    host = FIXED + 8 * 10 * entries
    on_device = FIXED + 8 * 3 * entries if device == "gpu" else 0
    return Estimate(host, on_device, pace() * seconds, pace() * certify_s, pace() * first_s)


def outline(inputs: Inputs, maximize: bool, fixed: Mapping[int, int]) -> LawlerAssignment:
    """A problem of the size of its costs. Raises InvalidProblem where they are missing, or have another shape."""
    cost = dense(inputs, "cost", (4,))
    if cost.shape[:2] != cost.shape[2:]:
        raise InvalidProblem("cost", f"has shape {cost.shape}; expected (m, n, m, n)")
    kind = np.int64 if cost.dtype.kind in "iu" else np.float64
    return LawlerAssignment(np.broadcast_to(kind(0), cost.shape), maximize, fixed)
