"""One half of a sweep over the stored entries, compiled by numba."""

import numpy as np

from kernels.compiling import njit
from kernels.problems.arrays import Floats, Indices, Indices32
from kernels.uot.cpu.exp2 import exp2

GROUP = 2048
"""Entries of lines that are worked on together: one loop over their exponentials is long, and they stay in cache."""


@njit(nogil=True, cache=True, fastmath={"nsz", "arcp", "contract", "reassoc"})
def soft_maxima(
    first: int,
    last: int,
    indptr: Indices,
    indices: Indices32,
    cost: Floats,
    scale: float,
    values: Floats,
    out: Floats,
) -> None:
    """out_i = log2 sum_k 2^(values[indices_k] - scale cost_k) over the entries k of each line i of [first, last).

    Every line has an entry, and all numbers are finite. The largest term of a line is 1, so that its sum is neither 0
    nor above their number; terms below 2^-1000 of it count as that.
    """
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    work = np.empty(max(GROUP, longest))
    tops = np.empty(GROUP)
    i = first
    while i < last:
        base, begun = indptr[i], i
        while i < last and i - begun < GROUP and (i == begun or indptr[i + 1] - base <= GROUP):
            low, high, top = indptr[i] - base, indptr[i + 1] - base, -np.inf
            for k in range(low, high):
                term = values[indices[base + k]] - scale * cost[base + k]
                work[k] = term
                top = max(top, term)
            for k in range(low, high):
                work[k] -= top
            tops[i - begun] = top
            i += 1
        for k in range(indptr[i] - base):
            work[k] = exp2(work[k])
        for line in range(begun, i):
            total = 0.0
            for k in range(indptr[line] - base, indptr[line + 1] - base):
                total += work[k]
            out[line] = np.log2(total) + tops[line - begun]
