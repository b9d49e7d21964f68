"""`ot.dist`: costs between points."""

from __future__ import annotations

from typing import Any

from allot_client.arrays import given
from allot_client.points import METRICS, cost_matrix
from allot_client.pot.taken import host, in_type

MINKOWSKI = {1: "cityblock", 2: "euclidean"}


def dist(
    x1: Any, x2: Any = None, metric: Any = "sqeuclidean", p: Any = 2, w: Any = None, backend: str = "auto",
    nx: Any = None, use_tensor: bool = False,
) -> Any:  # fmt: skip
    """Costs (m, n) between points x1 (m, d) and x2 (n, d), x1 itself where it is left out; see POT's documentation.

    They are worked out here, and added up coordinate after coordinate.

    Raises:
        ValueError: a metric that the client does not know, weights, or a `p` of minkowski other than 1 and 2.
    """
    name = MINKOWSKI.get(p) if metric == "minkowski" else metric
    if name not in METRICS or w is not None:
        raise ValueError(
            f"metric is {metric!r}{', p ' + str(p) if metric == 'minkowski' else ''}{'' if w is None else ', with w'}; "
            f"expected one of {', '.join(METRICS)}, without weights"
        )
    costs = cost_matrix(host(x1), host(x1 if x2 is None else x2), name)
    return in_type(given(x1).bring(costs), x1)
