"""Whether the arrays and facts of a transport answer have the types and shapes that a certificate can read."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.certificates.told import number_of
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Solution, Termination

WITH_ROWS = ("f", "row_marginal", "rest_a")
WITH_COLUMNS = ("g", "column_marginal", "rest_b")
TOGETHER = (("rest_a", "rest_b"), ("entry_rows", "entry_columns", "entry_values"), ("top_columns", "top_values"))
"""Arrays that mean something beside each other alone."""
KINDS = dict.fromkeys(("entry_rows", "entry_columns", "top_columns"), "iu") | {"hall_rows": "iub"}
"""Of NumPy, of arrays that name rows or columns; all others hold numbers."""


def malformed(problem: UnbalancedTransport, arrays: Mapping[str, Any], potentials: bool) -> str | None:
    """What of one problem's arrays cannot be read, None where all can; `potentials` says that f and g must be there."""
    m, n = problem.shape
    shapes = {"plan": (m, n)} | dict.fromkeys(WITH_ROWS, (m,)) | dict.fromkeys(WITH_COLUMNS, (n,))
    for name in ("f", "g") if potentials else ():
        if name not in arrays:
            return f"{name} is missing"
    for name, array in arrays.items():
        kinds = KINDS.get(name, "fiu")
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
            return f"{name} does not hold {'places' if name in KINDS else 'numbers'}"
        if name in shapes and array.shape != shapes[name]:
            return f"{name} has shape {array.shape}, expected {shapes[name]}"
    return _apart(arrays, m)


def _apart(arrays: Mapping[str, Array], m: int) -> str | None:
    """What is wrong with arrays that belong together."""
    for names in TOGETHER:
        there = [name for name in names if name in arrays]
        if there and len(there) < len(names):
            return f"{there[0]} stands alone"
        if len({arrays[name].shape for name in there}) > 1 and names[0] != "rest_a":
            return f"{' and '.join(names)} differ in shape"
    for name in ("entry_rows", "hall_rows"):
        if name in arrays and arrays[name].ndim != 1:
            return f"{name} has {arrays[name].ndim} axes, expected 1"
    if "top_columns" in arrays and (arrays["top_columns"].ndim != 2 or len(arrays["top_columns"]) != m):
        return "top_columns has not one line for each row"
    return None


def tolerance_of(solution: Solution) -> float:
    """The gap that was asked for; 0, which none reaches, where the answer does not say."""
    return number_of(solution.facts.get("tolerance")) or 0.0


def claims_of(solution: Solution, batch: int) -> list[Termination] | None:
    """The word of each problem of a batch; None where they are no words, or too few."""
    told = solution.facts.get("terminations", [solution.termination] * batch)
    if not isinstance(told, list | tuple) or len(told) != batch:
        return None
    words = set(Termination)
    return [Termination(word) for word in told] if all(isinstance(w, str) and w in words for w in told) else None


def by_problem(arrays: Mapping[str, Array], batch: int) -> list[dict[str, Any]] | None:
    """The arrays that each problem of a batch has; None where one has not an entry for each."""
    if any(not isinstance(array, np.ndarray) or array.ndim == 0 or len(array) != batch for array in arrays.values()):
        return None
    return [{name: array[k] for name, array in arrays.items() if array[k] is not None} for k in range(batch)]
