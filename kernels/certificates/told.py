"""Numbers that an answer tells of its run: the gap or the epsilon that it was asked for."""

import math
from typing import Any


def number_of(told: Any) -> float | None:
    """The number, None where it is none that float64 holds. A boolean is none."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    try:
        found = float(told)
    except OverflowError:  # an integer beyond float64
        return None
    return found if math.isfinite(found) else None
