"""What a transport among three measures will need. Constants are from one core of a server, rounded up."""

from typing import TYPE_CHECKING

from kernels.card import Device, Estimate
from kernels.multimarginal.sums import MOST_KEPT
from kernels.pace import pace
from kernels.problems.multimarginal import Multimarginal

if TYPE_CHECKING:
    from kernels.multimarginal import MultimarginalOptions

FIXED = 32 << 20
"""Bytes of every job."""
CALL_S, PRODUCT_S, TERM_S, EXP_S = 1e-4, 1e-10, 8e-10, 1.2e-8
"""Seconds of an iteration; by entry of the tensor: of a product of matrices, of a tensor's entry, of an exponential."""
PROOF_S, CERTIFY_S = 4e-8, 1e-3
"""Of an exponential of the certificate, and of one certificate."""
VARIABLE_S, VARIABLE_BYTES = 1e-7, 900
"""Of a linear programme, by variable: seconds (to the power 1.4) and bytes."""
USUAL = 300
"""Iterations that are usual."""
LAUNCHED_S, GPU_FASTER = 4e-4, 50
"""Of an iteration on a GPU, and how many times faster it is than a core."""
HELD = 1 << 24
"""Entries that the certificate keeps."""


def estimate(problem: Multimarginal, options: "MultimarginalOptions", device: Device) -> Estimate:
    """Seconds for a usual number of iterations."""
    rows, m, n = problem.sizes
    entries, flat = rows * m * n, rows * m + rows * n + m * n
    there = FIXED if device == "gpu" else 0  # what a GPU does not solve is solved beside it
    costs = sum(part.size for part in problem.parts)
    plan = entries if options.output == "plan" else 0
    host = FIXED + 8 * (4 * costs + 12 * flat + 4 * plan)
    if problem.reg == 0:
        host += (VARIABLE_BYTES + 64) * entries
        seconds = pace() * (1e-2 + VARIABLE_S * float(entries) ** 1.4)
        first_s = pace() * (1e-2 + 100 * TERM_S * entries + 8 * EXP_S * entries)
        certify_s = pace() * (CERTIFY_S + 2 * PROOF_S * entries)
        return Estimate(host, there, max(seconds, first_s), certify_s, min(first_s, 0.9))
    runs = min(USUAL, options.iterations)
    products = problem.tensor is None
    kept = not products and entries <= MOST_KEPT
    held = 8 * (costs + 10 * flat + (0 if products else entries if kept else 0)) + (0 if products else 3 << 24)
    passes = 3.0 if entries > HELD else 1.0
    certify_s = 12 * PRODUCT_S * entries if products else passes * PROOF_S * entries
    certify_s = pace() * (CERTIFY_S + certify_s + 3e-7 * flat + 2 * PROOF_S * plan)
    once = 2 * entries * (PRODUCT_S if products else TERM_S if kept else EXP_S)
    first_s = 2 * once if products else 4 * EXP_S * entries
    host += 0 if products else 8 * (8 * min(entries, 1 << 20) + 2 * min(entries, HELD))
    if device == "gpu":
        once = LAUNCHED_S + once / GPU_FASTER
        return Estimate(host, FIXED + held, 2e-2 + runs * once, certify_s, 2e-2 + pace() * first_s / GPU_FASTER)
    host += held
    once = pace() * (CALL_S + once)
    first_s = pace() * (CALL_S + first_s) + once
    return Estimate(host, 0, first_s + runs * once, certify_s, first_s)
