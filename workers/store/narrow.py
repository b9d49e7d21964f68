"""Numbers that travel in fewer bytes than they are solved in: bfloat16, and small integers with a scale.

Both widen without rounding, so that the problem that is solved and certified is the one of the numbers that came.
bfloat16 is the upper half of a float32. A `scale` s makes a matrix q of integers of 16 bits at most the real matrix
s * q, held in float64: s has at most 37 significant bits, as every float32 has, so that no product takes more than 53.
"""

import math
from typing import Any

import numpy as np

from kernels import Array, Floats
from workers.store.layouts import BRAIN, BadLayout, Brain

NARROW = ("int8", "uint8", "int16", "uint16")
SCALE_BITS = 37
LARGEST_SCALE = 2.0**1000
"""Its products are finite."""


def whole(value: Array) -> Array:
    """The array itself; bfloat16, which comes as its bits, in float32."""
    if not isinstance(value, Brain):
        return value
    wide = value.view(np.ndarray).astype(np.uint32) << np.uint32(16)
    found: Array = wide.view(np.float32)
    return found


def name_of(value: Array) -> str:
    """What the type of an array is called."""
    return BRAIN if isinstance(value, Brain) else str(value.dtype)


def scaled(value: Array, scale: float) -> Floats:
    """Each integer times `scale`, which is exact. Raises BadLayout where they are no integers of 16 bits at most."""
    if name_of(value) not in NARROW:
        raise BadLayout(f"is given for {name_of(value)}; it goes with {', '.join(NARROW)}", "scale")
    found: Floats = np.multiply(value.view(np.ndarray), np.float64(scale), dtype=np.float64)
    return found


def checked_scale(given: Any) -> float:
    """A scale that a reference names. Raises BadLayout where it is none, or would round a product."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise BadLayout(f"is {str(given)[:50]!r}; expected a number", "scale")
    if not 0 < given < LARGEST_SCALE:
        raise BadLayout(f"is {str(given)[:50]}; expected a positive number, whose products are finite", "scale")
    scale = float(given)
    numerator, _ = scale.as_integer_ratio()
    if scale != given or (numerator >> ((numerator & -numerator).bit_length() - 1)).bit_length() > SCALE_BITS:
        with np.errstate(over="ignore", under="ignore"):
            near = float(np.float32(scale))
        there = f", as {near!r} has" if 0 < near < math.inf else ""
        raise BadLayout(
            f"is {given}, whose products would be rounded; expected {SCALE_BITS} significant bits at most{there}",
            "scale",
        )
    return scale
