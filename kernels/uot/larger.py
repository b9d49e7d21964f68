"""Transports that take other ways on a GPU than small ones: a loop of the host's, whose vectors are CuPy's.

CuPy compiles a sum or a largest number anew for other lengths.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels.problems import Inputs

CLOUDS = ((700, 3), (4096, 3), (20_000, 3), (5000, 50))
"""Points, and their coordinates."""
WIDE, SQUARE = (700, 900), (3000, 3000)


def larger() -> Iterator[tuple[Inputs, dict[str, Any]]]:
    """Points and costs in both types of floats, relaxed and balanced."""
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for n, dimension in CLOUDS:
            x, y = rng.random((2, n, dimension)).astype(dtype)
            yield {"x": x, "y": y}, {"output": "potentials"}
        yield {"cost": rng.random(SQUARE).astype(dtype)}, {}
        yield {"cost": rng.random(WIDE).astype(dtype)}, {"reg_m": "inf"}
