"""`ot.bregman`: plans and barycenters with an entropic term."""

from __future__ import annotations

from typing import Any

import numpy as np

from allot_client.pot.taken import (
    are_several,
    columns_of,
    each_of,
    host,
    in_type,
    masses,
    moved,
    solved,
    told,
    tolerance,
    weights_of,
)
from allot_client.scipy import default_client


def sinkhorn(
    a: Any, b: Any, M: Any, reg: float, method: str = "sinkhorn", numItermax: int = 1000, stopThr: float = 1e-9,
    verbose: bool = False, log: bool = False, warn: bool = True, warmstart: Any = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """The plan between a and b of least <M, P> + reg sum P log P; see POT's documentation.

    Raises:
        ValueError: `b` holds several histograms, for which POT gives values and no plan.
    """
    cost = host(M)
    rows, columns = masses(a, cost.shape[0]), masses(b, cost.shape[1])
    if columns.ndim > 1:
        raise ValueError(f"b has shape {columns.shape}; expected one histogram")
    options: dict[str, Any] = {"tolerance": tolerance(stopThr), "iterations": max(1, int(numItermax))}
    if warmstart is not None:  # logarithms of the factors of rows and columns
        scaled = [float(reg) * host(one) for one in warmstart]
        options |= {"f0": scaled[0], "g0": scaled[1]}
    answer = solved(
        default_client().uot(M, a=rows, b=columns, reg=float(reg), reg_m="inf", reference="uniform", **options)
    )
    plan = in_type(answer.arrays["plan"], M)
    if not log:
        return plan
    logs = [host(answer.arrays[name]) / float(reg) for name in ("f", "g")]
    u, v = (in_type(answer.home.bring(np.exp(one)), M) for one in logs)
    return plan, told(answer, u=u, v=v, warmstart=tuple(logs), niter=answer.iterations)


def sinkhorn2(
    a: Any, b: Any, M: Any, reg: float, method: str = "sinkhorn", numItermax: int = 1000, stopThr: float = 1e-9,
    verbose: bool = False, log: bool = False, warn: bool = False, warmstart: Any = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """What that plan costs, <M, P>, without the entropic term; of several histograms in the columns of b, a vector."""

    def one(side: Any) -> tuple[float, dict[str, Any]]:
        plan, facts = sinkhorn(a, side, M, reg, method, numItermax, stopThr, log=True, warmstart=warmstart)
        return moved(plan, M), facts

    if are_several(b):
        return each_of(b, one, M, log)
    value, facts = one(b)
    return (value, facts) if log else value


def barycenter(
    A: Any, M: Any, reg: float, weights: Any = None, method: str = "sinkhorn", numItermax: int = 10000,
    stopThr: float = 1e-4, verbose: bool = False, log: bool = False, warn: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """The histogram between those in the columns of A (n, k), at costs M (n, n); see POT's documentation."""
    return _between(A, M, reg, weights, numItermax, stopThr, log, {})


def barycenter_debiased(
    A: Any, M: Any, reg: float, weights: Any = None, method: str = "sinkhorn", numItermax: int = 10000,
    stopThr: float = 1e-4, verbose: bool = False, log: bool = False, warn: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """The same without the smear of the entropic term. Of an M that is not symmetric, the symmetric part."""
    both = M if hasattr(M, "T") else host(M)
    return _between(A, (both + both.T) / 2, reg, weights, numItermax, stopThr, log, {"debiased": True})


def _between(
    A: Any, M: Any, reg: float, weights: Any, most: int, stop: float, log: bool, options: dict[str, Any]
) -> Any:
    own = {"reg": float(reg), "tolerance": tolerance(stop), "iterations": max(1, int(most))}
    answer = solved(
        default_client().barycenter(columns_of(A), cost=M, measure_weights=weights_of(weights), **own, **options)
    )
    found = in_type(answer.arrays["barycenter"], A)
    return (found, told(answer, niter=answer.iterations)) if log else found
