"""`ot.unbalanced`: masses that need not be met."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from allot_client.arrays import given
from allot_client.pot.taken import are_several, each_of, in_type, moved
from allot_client.scipy import default_client

COSTS = {"linear": "cost", "total": "total_cost"}
"""What `returnCost` may be, and where it stands in the log."""


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
    total = moved(answer.plan, M)
    facts = {"logu": answer.f, "logv": answer.g, "total_cost": answer.objective, "cost": total, "gap": answer.gap}
    return found, facts


def sinkhorn_unbalanced2(
    a: Any, b: Any, M: Any, reg: float, reg_m: Any, method: str = "sinkhorn", reg_type: str = "kl",
    c: Any = None, warmstart: Any = None, returnCost: str = "linear", numItermax: int = 1000, stopThr: float = 1e-6,
    verbose: bool = False, log: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """What that plan costs, <M, P>; with `returnCost` "total" the value with all its terms.

    In that value POT 0.9.7 leaves masses out of each divergence, which gives 0 at every best plan; here it is whole. Of
    several histograms in the columns of b a vector of what their plans cost; POT's term is then that of "entropy".
    """
    if returnCost not in COSTS:
        raise ValueError(f"returnCost is {returnCost!r}; expected one of {', '.join(COSTS)}")

    def one(side: Any, kind: str = "entropy", name: str = "cost") -> tuple[float, dict[str, Any]]:
        _, facts = sinkhorn_unbalanced(
            a, side, M, reg, reg_m, method, kind, c, warmstart, numItermax, stopThr, log=True
        )
        return facts[name], facts

    if are_several(b):
        return each_of(b, one, M, log)
    value, facts = one(b, reg_type, COSTS[returnCost])
    return (value, facts) if log else value


def _spelled(strength: float) -> float | str:
    return "inf" if math.isinf(strength) else strength
