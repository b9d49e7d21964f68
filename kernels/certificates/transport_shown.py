"""What an answer says of its plan beside it: marginals and largest entries, held against the plan that is certified."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.certificates.rounded import sum_up
from kernels.problems.arrays import Array


class Shown:
    """Looks at the plan as it goes by, block of rows by block of rows."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.marginals = [arrays.get(name) for name in ("row_marginal", "column_marginal")]
        self.columns, self.values = arrays.get("top_columns"), arrays.get("top_values")
        self.entries = self.columns is not None and self.columns.shape[1] > 0
        self.within = 0.0

    def look(self, part: slice, plan: Array) -> None:
        """Compare the largest entries of some rows with the plan's: each value, and what was left out."""
        if self.columns is None or self.values is None:
            return
        columns, values = self.columns[part], self.values[part].astype(np.float64)
        if not columns.size:
            return
        twice = (np.diff(np.sort(columns, axis=1), axis=1) == 0).any()
        if columns.min() < 0 or columns.max() >= plan.shape[1] or twice:
            self.within = np.inf
            return
        columns = columns.astype(np.int64)
        wanted = np.take_along_axis(plan, columns, axis=1)
        rest = plan.copy()
        np.put_along_axis(rest, columns, 0.0, axis=1)
        left_out = rest.max(axis=1) - wanted.min(axis=1)
        off = np.maximum(abs(values - wanted).max(axis=1), left_out)
        largest = wanted.max(axis=1)
        within = np.divide(off, largest, out=np.where(off > 0, np.inf, 0.0), where=largest > 0)
        self.within = float(np.maximum(self.within, within.max()))  # NaN stays

    def facts(self, rows: tuple[Array, Array], columns: tuple[Array, Array]) -> dict[str, Any]:
        """How far what is shown may be from the plan, from bounds on its marginals."""
        facts: dict[str, Any] = {}
        for name, given, (low, high) in zip(("row", "column"), self.marginals, (rows, columns), strict=True):
            if given is not None:
                away = np.maximum(abs(given - low), abs(given - high))
                facts[f"{name}_marginal_within"] = sum_up(away) if np.isfinite(away).all() else None
        if self.entries:
            facts["top_values_within"] = self.within if np.isfinite(self.within) else None
        return facts
