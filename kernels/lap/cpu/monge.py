"""Whether costs may be Monge up to the order of their lines: the first look of `monge.py`, compiled.

On costs that are not it ends after a few of the sample's entries, where the look itself takes 25 us: as long as it
takes to solve 64 x 64. It may say yes of costs that are not; never no of costs that are.
"""

import numpy as np

from kernels.lap import monge
from kernels.lap.cpu.shortlist import jit
from kernels.lap.monge import SAMPLE
from kernels.problems import Array


def may_be_monge(cost: Array) -> bool:
    """False where the sample's turns c[i, j] - c[i, 0] - c[0, j] + c[0, 0] have not the signs of a product."""
    view = monge.sample(cost)
    return view is not None and bool(_has_signs(np.array(view, np.float64, order="C"), cost.dtype.kind == "i"))


@jit
def _has_signs(view: Array, exact: bool) -> bool:
    """`exact` says that these are integers: no turn is rounded while they lie within 2^50."""
    most = 0.0
    for i in range(SAMPLE):
        for j in range(SAMPLE):
            most = max(most, abs(view[i, j]))
    noise = 0.0 if exact and most <= 2.0**50 else 64 * 2.0**-52 * most
    row, col, signs = -1, -1, np.zeros((SAMPLE, SAMPLE))
    for i in range(SAMPLE):
        for j in range(SAMPLE):
            turn = view[i, j] - view[i, 0] - view[0, j] + view[0, 0]
            signs[i, j] = np.sign(turn) if abs(turn) > noise else 0.0
            if row < 0 and signs[i, j] != 0:
                row, col = i, j
            elif row >= 0 and signs[i, j] * signs[i, col] * signs[row, j] * signs[row, col] < 0:
                return False
    return row >= 0 or (exact and noise > 0)
