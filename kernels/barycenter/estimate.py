"""What a barycenter will need."""

from dataclasses import replace
from typing import TYPE_CHECKING

from kernels.card import Device, Estimate
from kernels.pace import pace
from kernels.problems.barycenter import Barycenter, FreeBarycenter

if TYPE_CHECKING:
    from kernels.barycenter import BarycenterOptions

FIXED = 24 << 20
"""Bytes of every job."""
CALL_S, TERM_S, EXP_S, CERTIFY_S = 2e-5, 5e-10, 1.2e-8, 6e-8
"""Seconds of an iteration, and by entry and measure: of a product, of an exponential, of the certificate."""
VARIABLE_S, VARIABLE_BYTES = 4e-7, 900
"""Of a linear programme, by variable: seconds (to the power 1.4) and bytes."""
PIVOT_S = 2e-7
"""Of an exact transport, by entry of its costs."""
USUAL, MOVES = 500, 10
"""Iterations of projections and of moving points that are usual."""
LAUNCHED_S, DEVICE_S = 2e-4, 2e-11
"""Of an iteration on a GPU, and by entry and measure."""


def estimate(problem: Barycenter | FreeBarycenter, options: "BarycenterOptions", device: Device) -> Estimate:
    """Seconds for a usual number of iterations."""
    k, m, n = problem.sizes
    entries = k * m * n
    certify_s = pace() * (1e-4 * k + CERTIFY_S * entries)
    there = FIXED if device == "gpu" else 0  # what a GPU does not solve is solved beside it
    if isinstance(problem, FreeBarycenter):
        return replace(_free(problem, certify_s, min(MOVES, options.iterations)), device_bytes=there)
    costs = problem.cost.size
    if problem.reg == 0:
        host = FIXED + 8 * (3 * entries + 6 * costs) + VARIABLE_BYTES * entries
        seconds = pace() * (5e-3 + VARIABLE_S * float(entries) ** 1.4)
        first_s = pace() * (5e-3 + 200 * EXP_S * entries * 2)
        return Estimate(host, there, max(seconds, first_s), certify_s, min(first_s, 0.9))
    logs = bool(problem.cost.max() - problem.cost.min() > 150 * problem.reg)
    kept = 8 * entries if logs and entries <= 1 << 27 else 0
    by_entry = 2 * (EXP_S if logs and not kept else 2 * TERM_S if kept else TERM_S)
    host = FIXED + 8 * (7 * costs + 6 * k * (m + n)) + 8 * 12 * min(m * n, (1 << 16) + n) + kept
    held = 8 * ((1 + 2 * logs) * costs + 2 * m * n + 8 * k * (m + n)) + FIXED + kept
    runs = min(USUAL, options.iterations)
    if device == "gpu":
        once = LAUNCHED_S * (k if logs else 1) + DEVICE_S * entries
        return Estimate(host, held, 1e-2 + runs * once, certify_s, 1e-2 + once)
    once = pace() * (CALL_S * (k if logs else 1) + by_entry * entries)
    first_s = pace() * (CALL_S * k + 3 * EXP_S * entries) if logs else once
    return Estimate(host, 0, first_s + runs * once, certify_s, first_s)


def _free(problem: FreeBarycenter, certify_s: float, moves: int) -> Estimate:
    k, m, n = problem.sizes
    d, pairs = problem.clouds.shape[2], k * (k - 1) // 2
    once = pace() * k * (1e-3 + PIVOT_S * m * n)
    between = pace() * pairs * (1e-3 + PIVOT_S * n * n)
    host = FIXED + 8 * (4 * k * m * n + 10 * max(m, n) * n + 3 * k * n * d + 2 * pairs * n)
    certify_s += pace() * pairs * (1e-4 + 1e-8 * n * n)
    return Estimate(host, 0, moves * once + between, certify_s, once)
