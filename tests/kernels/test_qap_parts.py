"""A quadratic assignment among more facilities than it has: the same prices, and any move of the others costs."""

from typing import Any

import numpy as np
import pytest

from kernels.problems import QuadraticAssignment
from kernels.qap.parts import FAR, Matrices, padded, split
from tests.instances import quadratic as instances

PROBLEMS = {
    "float": (instances.symmetric(11, 40, 1), instances.symmetric(11, 40, 2)),
    "int": (instances.symmetric(11, 2**11, 1), instances.symmetric(11, 2**11, 2)),
    "long long": (instances.symmetric(11, 2**26, 1), instances.symmetric(11, 2**26, 2)),
    "double": (1e3 * instances.symmetric(11, 40, 1) + 0.5, instances.symmetric(11, 40, 2) + 0.25),
    "skew": (instances.asymmetric(11, -9, 40, 1), instances.asymmetric(11, -9, 40, 2)),
}
LIMITS = {"float": 3e38, "double": 1.7e308, "int": 2**31 - 1, "long long": 2**63 - 1}


def price(matrices: Matrices, permutation: Any) -> Any:
    """C(p) of member.cuh, in Python's numbers, which do not overflow."""
    total: Any = 0
    rows = np.ix_(permutation, permutation)
    for one, other in ((matrices.a, matrices.b), (matrices.a_skew, matrices.b_skew)):
        if one is not None and other is not None:
            products = one.astype(object) * other[rows].astype(object)
            total += sum(products[np.triu_indices(len(products), 1)].tolist())
    if matrices.linear is not None:
        total += sum(matrices.linear.astype(object)[np.arange(len(rows[0])), permutation].tolist())
    return total


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("label", PROBLEMS)
def test_facilities_beside_a_problem_change_no_price_and_cost_more_wherever_they_go(label: str, linear: bool) -> None:
    flow, distance = PROBLEMS[label]
    own = split(QuadraticAssignment(flow, distance, instances.asymmetric(11, -50, 50, 4) if linear else None))
    delta = own.delta if label != "skew" else "int"
    assert label in (own.delta, "skew")
    n, size = 11, 14
    wide = padded(own, size, delta)
    assert (wide.delta, wide.linear is not None) == (delta, True)
    rng = np.random.default_rng(5)
    for _ in range(5):
        order = np.arange(size)
        order[:n] = rng.permutation(n)
        before = price(wide, order)
        assert before == pytest.approx(price(own, order[:n]), rel=1e-12)
        for u in range(size):
            for v in range(u + 1, size):
                order[[u, v]] = order[[v, u]]
                change = price(wide, order) - before
                if v < n:
                    other = price(own, order[:n]) - price(own, np.where(np.arange(n) == u, order[v], np.where(
                        np.arange(n) == v, order[u], order[:n])))  # fmt: skip
                    assert change == pytest.approx(other, rel=1e-9, abs=1e-6)
                else:
                    assert 0 < change <= LIMITS[delta]
                order[[u, v]] = order[[v, u]]
        assert FAR[delta] > 0
