"""How much of a gap float32's exponents may hide."""

import math
from typing import Any

import numpy as np

LOG2E = math.log2(math.e)
SAFE = 0.8
"""Of the tolerance is aimed at, so that rounding does not lift a gap above it."""


def off_by(reach: Any, reg: Any) -> Any:
    """How far exponents are off that are put together from parts of at most `reach`, in units of the cost."""
    return 2e-6 + 2.0**-24 * reach * LOG2E / reg


def hidden_gap(delta: Any, mass: Any, spread: Any, dual: Any, reg_m: tuple[float, float]) -> Any:
    """Relative gap that may be hidden, of one problem or of each of several: r KL ~ r mass delta^2.

    Args:
        delta: how far exponents are off.
        mass: of the side with more of it.
        spread: largest less least cost.
        dual: the value.
    """
    strengths = sum(r if np.isfinite(r) else spread for r in reg_m)
    # Between two balanced sides the rounding error of the sums itself must be moved, at the price of the spread.
    moved = delta * spread if np.isinf(reg_m).all() else 0.0
    return mass * (strengths * delta * delta + moved) / np.maximum(abs(dual), 1e-300)
