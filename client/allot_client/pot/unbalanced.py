"""`ot.unbalanced`: masses that need not be met."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allot_client.arrays import given
from allot_client.pot.taken import in_type
from allot_client.scipy import default_client


def sinkhorn_unbalanced(
    a: Any, b: Any, M: Any, reg: float, reg_m: Any, method: str = "sinkhorn", reg_type: str = "kl",
    c: Any = None, warmstart: Any = None, numItermax: int = 1000, stopThr: float = 1e-6, verbose: bool = False,
    log: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Solve entropic unbalanced transport; see POT's documentation.

    `method` is ignored: every method of POT leads to the same plan. `stopThr` is here the relative gap that is proved.

    Raises:
        ValueError: a `reg_type` other than "kl" and "entropy", or a reference measure `c`.
    """
    if c is not None or reg_type.lower() not in ("kl", "entropy"):
        raise ValueError('expected reg_type "kl" or "entropy", and no reference measure c')
    cost = np.asarray(given(M).value)
    inputs = {name: value for name, value in (("a", a), ("b", b)) if value is not None and len(value)}
    if warmstart is not None:
        inputs |= {"f0": warmstart[0], "g0": warmstart[1]}
    strengths = [_spelled(one) for one in np.atleast_1d(np.asarray(given(reg_m).value, dtype=float)).tolist()]
    answer = default_client().uot(
        M,
        **inputs,
        reg=float(reg),
        reg_m=strengths if len(strengths) > 1 else strengths[0],
        reference="product" if reg_type.lower() == "kl" else "uniform",
        tolerance=min(1.0, float(stopThr)),
        iterations=int(numItermax),
    )
    found = in_type(answer.plan, M)
    if not log:
        return found
    total = float((np.asarray(given(answer.plan).value) * cost).sum())
    facts = {"logu": answer.f, "logv": answer.g, "total_cost": answer.objective, "cost": total, "gap": answer.gap}
    return found, facts


def _spelled(strength: float) -> float | str:
    return "inf" if math.isinf(strength) else strength
