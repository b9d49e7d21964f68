"""Exactly so many pairs, the least largest cost, and lists of the best assignments."""

from typing import Any

import numpy as np

from kernels import FORBIDDEN
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, barred, chance, floats, integers, narrowed, polls, time_limit

HEADROOM = 32 * 4
"""Beside forbidden integers weights may have this much less than int64 holds, over the number of lines."""


def draw(draw: Draw, device: str) -> Case:
    """One case of one matrix."""
    shape = draw.whole(1, 7), draw.whole(1, 7)
    whole, maximize = chance(draw, 45), chance(draw, 30)
    kind, cost = integers(draw, shape, (2**63 - 1) // (HEADROOM * sum(shape))) if whole else floats(draw, shape)
    if chance(draw, 35):
        never: Any = FORBIDDEN if whole else (-np.inf if maximize else np.inf)
        cost, kind = np.where(barred(draw, shape), never, cost), f"{kind}, forbidden"
    else:
        cost = narrowed(draw, cost)
    options: dict[str, Any] = {"maximize": True} if maximize else {}
    if chance(draw, 40) and min(shape) <= 4:
        options["k_best"] = draw.whole(1, 40)
        return Case("lap", f"ranked: {kind}", {"cost": cost}, options, time_limit(draw), polls=polls(draw))
    if chance(draw, 50):
        options["objective"] = "bottleneck"
    if "objective" not in options or chance(draw, 50):
        options["cardinality"] = draw.whole(1 if "objective" in options else 0, min(shape))
    family = f"selected: {'largest' if 'objective' in options else 'sum'}, {kind}"
    return Case("lap", family, {"cost": cost}, options, time_limit(draw), polls=polls(draw))
