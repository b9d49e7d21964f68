"""The same problem in other units: times 2^k, where every datum, sum and product stays normal, nothing may change."""

from dataclasses import replace
from typing import Any

import numpy as np

from kernels import Array, Csr, Device
from tests.fuzz.case import Case
from tests.fuzz.draw import Seeded
from tests.fuzz.outcome import Outcome, run

SCALED = {
    "lap": (("cost", "u0", "v0", "reject_rows", "reject_cols"), ("cost_limit",)),
    "auction": (("benefit", "reject", "prices0"), ("epsilon",)),
    "uot": (("cost", "f0", "g0"), ("reg", "reg_m")),
    "qap": (("flow", "linear"), ("target", "best_known")),
    "barycenter": (("cost",), ("reg",)),
    "lowrank": (("cost",), ()),
    "multimarginal": (("cost",), ("reg",)),
    "gromov": ((), ()),  # objectives go with the square of one input and with another: scaled in tests/kernels
}
"""By solver: the inputs and the options that have the unit of the objective."""
NORMAL = {np.dtype(np.float64): 400, np.dtype(np.float32): 60, np.dtype(np.float16): 5}
"""Sizes stay between 2 to plus and minus this, so that products of two of them stay normal."""
LIMIT_S = 5.0
WIDEST = 2.0**900
"""Objectives beyond this, or below its inverse, have products that cannot be split into halves in range."""
REPEATS = 6
"""Runs on a GPU, where the same problem twice may end in another of several assignments that rounding cannot part."""


def scaled_case(case: Case, seed: int) -> tuple[Case, int] | None:
    """The case in units of 2^-k, and k; None where there is nothing to scale, or no room."""
    inputs, options = SCALED[case.solver]
    if (
        "x" in case.inputs
        or case.time_limit_s is not None
        or case.polls is not None
        or "iteration_limit" in case.options
    ):
        return None
    if case.solver == "uot" and not {"reg", "reg_m"} <= case.options.keys():
        return None  # the defaults have a unit, too
    if case.solver in ("barycenter", "multimarginal") and not case.inputs["cost"].any():
        return None  # the default of reg is then 1
    if case.solver == "qap" and case.inputs["distance"].dtype.kind != "f":
        return None
    there = {name: case.inputs[name] for name in inputs if name in case.inputs}
    arrays = [value.values if isinstance(value, Csr) else value for value in there.values()]
    if any(array.dtype.kind != "f" for array in arrays) or not arrays:
        return None
    narrow = case.options.get("storage", "auto") not in ("auto", "float64")
    low, high = _room([*arrays, np.array(_numbers(case, options))], NORMAL[np.dtype(np.float32)] if narrow else 400)
    if not low <= 0 <= high:
        return None  # as it is given it is not normal
    k = Seeded(seed, 1).whole(low, high)
    moved = {name: _times(value, k) for name, value in there.items()}
    changed = {name: _option(case.options[name], k) for name in options if name in case.options}
    return replace(case, inputs={**case.inputs, **moved}, options={**case.options, **changed}), k


def _numbers(case: Case, options: tuple[str, ...]) -> list[float]:
    found: list[float] = []
    for name in options:
        value = case.options.get(name)
        pair = value if isinstance(value, tuple | list) else (value,)
        found += [float(one) for one in pair if _is_number(one)]
    return found


def _room(arrays: list[Array], widest: int) -> tuple[int, int]:
    """The least and the greatest k that leave every array normal, and within 2^widest."""
    low, high = -1000, 1000
    for array in arrays:
        finite = np.abs(array[np.isfinite(array) & (array != 0)].astype(float))
        if finite.size:
            most = min(widest, NORMAL[array.dtype])
            low = max(low, -most - int(np.floor(np.log2(finite.min()))))
            high = min(high, most - int(np.ceil(np.log2(finite.max()))))
    return low, high


def _times(value: Any, k: int) -> Any:
    if isinstance(value, Csr):
        return Csr(value.indptr, value.indices, np.ldexp(value.values, k), value.shape)
    return np.ldexp(value, k)


def _option(value: Any, k: int) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_option(one, k) for one in value)
    return float(np.ldexp(float(value), k)) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    """Whether an option is one that has a unit; words such as "inf" have none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def differs(case: Case, device: Device, seed: int) -> str | None:
    """What the scaled problem answers otherwise; "" where it answers the same, None where it cannot be said."""
    other = scaled_case(case, seed)
    if other is None or (device == "gpu" and case.options.get("method") == "map-uot"):
        return None  # there the sums of map-uot meet in any order: the same problem twice differs as well
    scaled, k = other
    here: list[tuple[str, Any]] = []
    there: list[tuple[str, Any]] = []
    for _ in range(1 if device == "cpu" else REPEATS):
        first, second = (_ended(run(one, device, LIMIT_S)) for one in (case, scaled))
        if first is None or second is None:
            return None
        here.append((first[0], None if first[1] is None else float(np.ldexp(first[1], k))))
        there.append(second)
        if set(here) & set(there):
            return ""
    return f"times 2^{k}: {there[0][0]} with {there[0][1]}, expected {here[0][0]} with {here[0][1]}"


def _ended(outcome: Outcome) -> tuple[str, Any] | None:
    if outcome.solution is None or outcome.certificate is None:
        return None
    word, objective = outcome.solution.termination.value, outcome.certificate.objective
    normal = not objective or 1 / WIDEST < abs(objective) < WIDEST
    return (word, objective) if normal and word != "time_limit" else None
