"""Assignments that take other ways on a GPU than small ones: starts from old duals, whose steps are CuPy's."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels.problems import Inputs

N, WIDE = 2048, 2100


def larger() -> Iterator[tuple[Inputs, dict[str, Any]]]:
    """Each type of costs, square and wide, with duals of both sides and of either."""
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32, np.int64, np.int32):
        wide = (1000 * rng.random((N, WIDE))).astype(dtype)
        dual = np.int64 if wide.dtype.kind == "i" else np.float64
        for cost in (np.ascontiguousarray(wide[:, :N]), wide):
            duals = {"u0": cost.min(axis=1).astype(dual), "v0": np.zeros(cost.shape[1], dual)}
            yield {"cost": cost, **duals}, {}
            for name, one in duals.items():
                yield {"cost": cost, name: one}, {}
