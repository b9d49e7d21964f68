"""`ot.partial`: only a part of the mass is moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from allot_client.arrays import given
from allot_client.pot.taken import host, in_type, masses, moved, solved, told, tolerance
from allot_client.scipy import default_client


def partial_wasserstein(
    a: Any, b: Any, M: Any, m: float | None = None, nb_dummies: int = 1, log: bool = False, **kwargs: Any
) -> Any:
    """The cheapest plan that moves the mass m; see POT's documentation. Proved to be that."""
    return _moved(a, b, M, m, log, {"method": "exact"})


def partial_wasserstein2(
    a: Any, b: Any, M: Any, m: float | None = None, nb_dummies: int = 1, log: bool = False, **kwargs: Any
) -> Any:
    """What that plan costs."""
    plan, facts = _moved(a, b, M, m, True, {"method": "exact"})
    value = facts["partial_w_dist"]
    return (value, {**facts, "T": plan}) if log else value


def entropic_partial_wasserstein(
    a: Any, b: Any, M: Any, reg: float, m: float | None = None, method: str = "sinkhorn", numItermax: int = 1000,
    stopThr: float = 1e-100, verbose: bool = False, log: bool = False,
) -> Any:  # fmt: skip
    """The same with an entropic term reg sum P log P; see POT's documentation."""
    strength = {"reg": float(reg), "reference": "uniform", "tolerance": tolerance(stopThr)}
    return _moved(a, b, M, m, log, {**strength, "iterations": max(1, int(numItermax))})


def _moved(a: Any, b: Any, M: Any, m: float | None, log: bool, options: dict[str, Any]) -> Any:
    cost = host(M)
    rows, columns = masses(a, cost.shape[0]), masses(b, cost.shape[1])
    most = float(min(rows.sum(), columns.sum()))
    mass = most if m is None else float(m)
    if not 0 <= mass <= most:
        raise ValueError(f"the mass m is {mass}; expected 0 to {most}, the smaller sum of a and b")
    if mass == 0:
        plan = in_type(given(M).bring(np.zeros_like(cost)), M)
        return (plan, {"partial_w_dist": 0.0, "objective": 0.0, "bound": 0.0, "gap": 0.0}) if log else plan
    answer = solved(default_client().uot(M, a=rows, b=columns, mass=mass, **options))
    plan = in_type(answer.arrays["plan"], M)
    if not log:
        return plan
    cost_of_it = moved(answer.arrays["plan"], M)
    duals = {"u": in_type(answer.arrays["f"], M), "v": in_type(answer.arrays["g"], M)}
    return plan, told(answer, partial_w_dist=cost_of_it, cost=cost_of_it, **duals)
