"""Whether costs may be Monge up to the order of their lines: the first look of `monge.py`, compiled.

On costs that are not it ends after a few of the sample's entries, where the look itself takes 18 to 35 us: as long as
it takes to solve 64 x 64. It may see a corner in costs that have none; never none in costs that have one.
"""

import numpy as np

from kernels.lap import monge
from kernels.lap.cpu.shortlist import jit
from kernels.lap.monge import SAMPLE
from kernels.problems.arrays import Costs, Floats

NOT_FINITE = 1.0e308
NONE, UNSURE = -1, -2


def corner_of(cost: Costs) -> tuple[int, int] | None:
    """The row and the column of `monge.corner`."""
    view = monge.sample(cost)
    if view is None:
        return None
    found: int = _look(np.array(view, np.float64, order="C"), cost.dtype.kind == "i")
    if found == UNSURE:
        return monge.corner(cost, 1)
    return None if found == NONE else monge.scaled((found // SAMPLE, found % SAMPLE), len(cost))


@jit
def _look(view: Floats, exact: bool) -> int:
    """SAMPLE * row + column of the corner; UNSURE of integers beyond 2^50, whose turns are rounded here.

    All turns have the signs of a product, and neighbouring lines the order of the corner.
    """
    most = 0.0
    for i in range(SAMPLE):
        for j in range(SAMPLE):
            most = max(most, abs(view[i, j]))
    if most > NOT_FINITE:
        return NONE
    noise = 0.0 if exact and most <= 2.0**50 else 64 * 2.0**-52 * most
    turns, signs = np.zeros((SAMPLE, SAMPLE)), np.zeros((SAMPLE, SAMPLE))
    row, col, at, largest = -1, -1, 0, -1.0
    for i in range(SAMPLE):
        for j in range(SAMPLE):
            turn = view[i, j] - view[i, 0] - view[0, j] + view[0, 0]
            turns[i, j] = turn
            signs[i, j] = np.sign(turn) if abs(turn) > noise else 0.0
            if abs(turn) > largest:
                at, largest = i * SAMPLE + j, abs(turn)
            if row < 0 and signs[i, j] != 0:
                row, col = i, j
            elif row >= 0 and signs[i, j] * signs[i, col] * signs[row, j] * signs[row, col] < 0:
                return NONE
    if exact and noise > 0:
        return UNSURE
    row, col, own = at // SAMPLE, at % SAMPLE, signs[at // SAMPLE, at % SAMPLE]
    if own == 0:
        return NONE
    for i in range(SAMPLE):
        for j in range(SAMPLE):
            pattern = signs[i, col] * signs[row, j] * own
            if signs[i, j] * pattern < 0 or (pattern == 0 and signs[i, j] != 0):
                return NONE
    for i in range(SAMPLE - 1):
        down = np.sign(turns[i + 1, col] - turns[i, col]) * own
        for j in range(SAMPLE - 1):
            minor = (view[i + 1, j + 1] - view[i, j + 1]) - (view[i + 1, j] - view[i, j])
            order = np.sign(turns[row, j + 1] - turns[row, j]) * down
            if abs(minor) > noise and minor * order < 0:
                return NONE
    return at
