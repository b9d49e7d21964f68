"""What transport on the entries of a sparse cost will need. Constants are fitted as benchmarks/estimates.py does."""

import math

from kernels.card import Device, Estimate
from kernels.pace import cores, pace
from kernels.problems.sparse_transport import SparseTransport

MIB = 1 << 20
CALL_S, SWEEP_S = 4e-4, 2e-4
"""Of a call and of one sweep, however small."""
ENTRY_S, LINE_S = 1.2e-8, 2e-7
"""Of one entry, and of one row or column, in one sweep on one core."""
ONCE_S, FLOW_S = 2e-7, 8e-7
"""Of one entry: its two orders and the plan; and between two exact sides the flows."""
PROOF_S, PROVED_S, LINE_PROVED_S = 2e-3, 3e-7, 1e-6
"""Of a certificate, of one entry and of one line of it."""
LARGE = 1 << 20
"""Entries from which every core sweeps."""
ENTRY_BYTES, LINE_BYTES, BLOCKS = 150, 64 * 8, 64 * MIB
"""At the peak, of an entry and of a line; and of the certificate's blocks."""
GPU_CALL_S, GPU_SWEEP_S, GPU_ENTRY_S = 1e-2, 1e-3, 2e-11
"""Of a call on a GPU, of one sweep that the host sends, and of one entry of it."""
GPU_ENTRY_BYTES = 24


def of_sparse(problem: SparseTransport, sweeps: float, device: Device) -> Estimate:
    """Bytes and seconds by entries and lines."""
    entries, lines = problem.nnz, sum(problem.shape)
    host = problem.cost.nbytes + entries * ENTRY_BYTES + lines * LINE_BYTES + BLOCKS
    once_s = CALL_S + entries * (ONCE_S + (FLOW_S if all(map(math.isinf, problem.reg_m)) else 0.0))
    certify_s = pace() * (PROOF_S + entries * PROVED_S + lines * LINE_PROVED_S)
    if device == "gpu":
        held = entries * GPU_ENTRY_BYTES + lines * LINE_BYTES + (1 << 16)
        first_s = GPU_CALL_S + pace() * once_s
        return Estimate(host, held, first_s + sweeps * (GPU_SWEEP_S + entries * GPU_ENTRY_S), certify_s, first_s)
    sweep_s = SWEEP_S + entries * ENTRY_S / (cores() if entries >= LARGE else 1) + lines * LINE_S
    return Estimate(host, 0, pace() * (once_s + sweeps * sweep_s), certify_s, pace() * (once_s + sweep_s))
