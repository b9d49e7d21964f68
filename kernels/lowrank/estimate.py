"""What a low-rank transport will need. Constants are from one core of a server, rounded up."""

from typing import TYPE_CHECKING

import numpy as np

from kernels.card import Device, Estimate
from kernels.outline import dense
from kernels.pace import pace
from kernels.problems import Inputs, InvalidProblem
from kernels.problems.lowrank import LowRankTransport

if TYPE_CHECKING:
    from kernels.lowrank import LowRankOptions

FIXED = 24 << 20
CALL_S, STEP_S = 3e-3, 4e-4
"""Of a solve, and of one step, however small."""
PRODUCT_S, ENTRY_S, EXP_S = 2e-10, 2e-9, 1e-8
"""Of one product of thin matrices, of one entry in a round of a projection, of one exponential."""
SIMPLEX_S = 5e-8
"""Of exact transport, divided by m n (m + n)^0.5."""
STEPPED_S = 1.2e-8
"""Of one that goes on from the last."""
COST_S = 4e-9
"""Of a cost in a pass of the bound, beside its products."""
LARGEST_SIMPLEX, SAMPLE = 1500, 600
"""As in `starts.py`, which a card must not load."""
MOST_EXACT, EXACT_STEPS = 5e7, 30
"""As in `cpu/exact.py`; and usual steps from a start."""
USUAL_STEPS = 150
GPU_CALL_S, GPU_FASTER = 0.05, 30


def estimate(problem: LowRankTransport, options: "LowRankOptions", device: Device) -> Estimate:
    """A guess: how many steps it takes nobody knows before."""
    m, n = problem.shape
    rank, width, both = problem.rank, problem.width, m + n
    exact = device == "cpu" and all(size * rank * (size + rank) ** 0.5 <= MOST_EXACT for size in (m, n))
    rounds = 10 if exact else 100
    products = float(both * width * rank) if problem.cost is None else float(2 * m * n * rank)
    step_s = STEP_S + products * PRODUCT_S + both * rank * (2 * EXP_S + 2 * rounds * ENTRY_S)
    steps = min(options.max_iterations, USUAL_STEPS)
    simplex_s = CALL_S + sum(EXACT_STEPS * STEPPED_S * k * rank * (k + rank) ** 0.5 for k in (m, n)) if exact else 0.0
    small = both <= LARGEST_SIMPLEX
    p, q = (m, n) if small else (min(m, SAMPLE), min(n, SAMPLE))
    sample_s = CALL_S + SIMPLEX_S * p * q * (p + q) ** 0.5
    pass_s = m * n * (COST_S + width * PRODUCT_S) if problem.bounded else 0.0
    seconds = CALL_S + sample_s + (1 if small else 3) * pass_s + options.starts * (2 * simplex_s + steps * step_s)
    if device == "gpu":
        seconds = GPU_CALL_S + sample_s + (seconds - sample_s) / GPU_FASTER
    held = both * (12 * rank + 2 * width + 16)
    costs = 2 * m * n if problem.cost is not None else 0
    drawn = 6 * p * q + (m * q + p * n if costs and not small else 0)
    block = 4 * min(m * n, (1 << 20) + max(m, n))
    host = FIXED + 8 * (held + costs + drawn + block)
    on_device = FIXED + 8 * (held + costs + drawn + block) if device == "gpu" else 0
    certify_s = 2e-3 + pass_s + both * rank * (problem.width + 4) * 4e-9 + 4 * costs * COST_S
    first_s = CALL_S + 10 * both * rank * ENTRY_S + products * PRODUCT_S
    return Estimate(int(host), int(on_device), pace() * seconds, pace() * certify_s, pace() * first_s)


def outline(inputs: Inputs, rank: int) -> LowRankTransport:
    """A problem of the sizes of its inputs. Raises InvalidProblem where one is missing."""
    if "cost" in inputs:
        cost = dense(inputs, "cost")
        m, n = cost.shape
        return LowRankTransport(_weights(m), _weights(n), min(rank, m, n), cost=cost)
    pair = ("x", "y") if "x" in inputs or "y" in inputs else ("row_factors", "column_factors")
    left, right = (dense(inputs, name) for name in pair)
    if left.shape[1] != right.shape[1]:
        raise InvalidProblem(pair[1], f"has {right.shape[1]} columns; expected {left.shape[1]}")
    m, n = left.shape[0], right.shape[0]
    return LowRankTransport(_weights(m), _weights(n), min(rank, m, n), left=left, right=right)


def _weights(size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.broadcast_to(np.float64(1 / size), (size,))
