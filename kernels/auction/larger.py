"""Auctions that take other ways on a GPU than small ones: of points, whose last look at the prices is CuPy's."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels.problems import Inputs


def larger() -> Iterator[tuple[Inputs, dict[str, Any]]]:
    """Points in both types of floats."""
    x, y = np.random.default_rng(0).random((2, 4096, 3))
    for dtype in (np.float64, np.float32):
        yield {"x": x.astype(dtype), "y": y.astype(dtype)}, {}
