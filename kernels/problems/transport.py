"""Entropic unbalanced optimal transport."""

from dataclasses import dataclass

from kernels.problems.arrays import Array


@dataclass(frozen=True, eq=False)
class UnbalancedTransport:
    """min over P >= 0 of <C, P> + reg KL(P | R) + reg_m[0] KL(P 1 | a) + reg_m[1] KL(P' 1 | b).

    R is a x b for `reference` "product" and the all-ones matrix for "uniform"; KL(p | q) is
    sum p log(p / q) - p + q. `reg_m` = inf makes that marginal exact. Either `cost` (m, n) or the point
    clouds `x` (m, d), `y` (n, d) with `metric` are given. Masses `a` (m,), `b` (n,) need not sum to one.
    A `cost` of +inf forbids an entry.
    """

    a: Array
    b: Array
    reg: float
    reg_m: tuple[float, float]
    cost: Array | None = None
    x: Array | None = None
    y: Array | None = None
    metric: str = "sqeuclidean"
    reference: str = "product"
