"""What all drop-ins for POT share: masses that are left out, answers as POT gives them, and their log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from allot_client.answers import Result
from allot_client.arrays import Array, given

SMALLEST = 1e-12
"""The least relative gap that is asked for; POT's defaults go below what rounding allows."""


def host(value: Any) -> Array:
    """An array of any library in NumPy's float64."""
    return np.asarray(given(value).value, np.float64)


def masses(value: Any, count: int) -> Array:
    """Masses; equal ones of sum 1 where they are None or empty, as in POT."""
    return np.full(count, 1 / count) if value is None or not len(value) else host(value)


def columns_of(histograms: Any) -> Any:
    """POT's histograms, one a column, as lines, which is how the service takes them; in the caller's library."""
    return histograms.T if hasattr(histograms, "T") else host(histograms).T


def weights_of(weights: Any) -> Any:
    """Weights of measures; None stays None."""
    return None if weights is None else host(weights)


def tolerance(stop: float) -> float:
    """POT's threshold as a relative gap."""
    return float(min(1.0, max(SMALLEST, stop)))


def in_type(array: Any, like: Any) -> Any:
    """An array of the answer in the floating type of an input, as POT gives it."""
    kind = getattr(like, "dtype", None)
    if kind is None or "float" not in str(kind):
        return array
    return array.astype(kind) if hasattr(array, "astype") else array.to(kind)


def moved(plan: Any, costs: Any) -> float:
    """What a plan moves, at these costs; nothing is moved along a forbidden pair."""
    cost = host(costs)
    return float((host(plan) * np.where(np.isfinite(cost), cost, 0.0)).sum())


def each_of(histograms: Any, solve: Callable[[Any], tuple[float, dict[str, Any]]], like: Any, log: bool) -> Any:
    """The values of problems with one column of `histograms` each, and for each entry of their logs a list."""
    found = [solve(one) for one in host(histograms).T]
    values = in_type(given(like).bring(np.array([value for value, _ in found])), like)
    return (values, {name: [facts[name] for _, facts in found] for name in found[0][1]}) if log else values


def are_several(histograms: Any) -> bool:
    """Whether these are histograms, one a column, and not one, or none."""
    return histograms is not None and len(histograms) > 0 and host(histograms).ndim == 2


def solved(answer: Result) -> Result:
    """The same answer. Raises ValueError where there is none."""
    if answer.termination == "infeasible":
        raise ValueError(f"the problem is infeasible: {answer.certificate.proved}")
    return answer


def told(answer: Result, **entries: Any) -> dict[str, Any]:
    """A log: POT's entries, and what is proved."""
    return {**entries, "objective": answer.objective, "bound": answer.certificate.bound, "gap": answer.gap}
