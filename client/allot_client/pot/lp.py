"""`ot.lp`: plans and barycenters without an entropic term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from allot_client.arrays import given
from allot_client.pot.taken import columns_of, host, in_type, masses, solved, told, weights_of
from allot_client.scipy import default_client

SUMS_APART = 1.5e-6
"""How far the sums of two sides may differ, as in POT."""


def emd(
    a: Any, b: Any, M: Any, numItermax: int = 100000, log: bool = False, center_dual: bool = True, numThreads: int = 1,
    check_marginals: bool = True, potentials_init: Any = None,
) -> Any:  # fmt: skip
    """The cheapest plan between a and b; see POT's documentation. Proved to be that."""
    cost = host(M)
    rows, columns = masses(a, cost.shape[0]), masses(b, cost.shape[1])
    if check_marginals and abs(rows.sum() - columns.sum()) > SUMS_APART:
        raise AssertionError(f"a and b vector must have the same sum; they have {rows.sum()} and {columns.sum()}")
    answer = solved(default_client().uot(M, a=rows, b=columns * (rows.sum() / columns.sum()), method="exact"))
    plan = in_type(answer.arrays["plan"], M)
    if not log:
        return plan
    f, g = host(answer.arrays["f"]), host(answer.arrays["g"])
    shift = (g.mean() - f.mean()) / 2 if center_dual else 0.0
    bring = answer.home.bring
    duals = {"u": in_type(bring(f + shift), M), "v": in_type(bring(g - shift), M)}
    return plan, told(answer, cost=float(np.float64(answer.objective)), warning=None, result_code=1, **duals)


def emd2(
    a: Any, b: Any, M: Any, processes: int = 1, numItermax: int = 100000, log: bool = False,
    return_matrix: bool = False, center_dual: bool = True, numThreads: int = 1, check_marginals: bool = True,
    potentials_init: Any = None,
) -> Any:  # fmt: skip
    """What that plan costs; of several columns of b, a list."""
    if b is not None and np.ndim(host(b)) == 2:
        sides = host(b).T
        return [emd2(a, one, M, 1, numItermax, log, return_matrix, center_dual, 1, check_marginals) for one in sides]
    plan, facts = emd(a, b, M, numItermax, True, center_dual, numThreads, check_marginals)
    if not (log or return_matrix):
        return facts["cost"]
    return [facts["cost"], {**facts, "G": plan} if return_matrix else facts]


def barycenter(
    A: Any, M: Any, weights: Any = None, verbose: bool = False, log: bool = False, solver: str = "highs-ipm"
) -> Any:
    """The histogram between those in the columns of A (n, k), at costs M (n, n); see POT's documentation."""
    answer = solved(default_client().barycenter(columns_of(A), cost=M, reg=0, measure_weights=weights_of(weights)))
    found = in_type(answer.arrays["barycenter"], A)
    return (found, told(answer, fun=answer.objective)) if log else found


def free_support_barycenter(
    measures_locations: Sequence[Any], measures_weights: Sequence[Any], X_init: Any, b: Any = None,
    weights: Any = None, numItermax: int = 100, stopThr: float = 1e-7, verbose: bool = False, log: Any = None,
    numThreads: int = 1,
) -> Any:  # fmt: skip
    """The points between several clouds, from those of X_init on; see POT's documentation.

    `b` must be left out or even: every point of the answer has the same mass.
    """
    support = host(X_init)
    if b is not None and not np.allclose(host(b), 1 / len(support)):
        raise ValueError("b has masses of its own; expected equal ones, or None")
    clouds = [host(one) for one in measures_locations]
    most = max(len(one) for one in clouds)
    places = np.stack([np.concatenate([one, np.repeat(one[:1], most - len(one), axis=0)]) for one in clouds])
    filled = [masses(one, len(cloud)) for one, cloud in zip(measures_weights, clouds, strict=True)]
    sizes = np.stack([np.pad(one, (0, most - len(one))) for one in filled])
    answer = solved(
        default_client().barycenter(
            sizes, x=places, support=X_init, measure_weights=weights_of(weights), method="free",
            iterations=max(1, int(numItermax)),
        )
    )  # fmt: skip
    found = in_type(given(X_init).bring(host(answer.arrays["points"])), X_init)
    return (found, told(answer, displacement_square_norms=[])) if log else found
