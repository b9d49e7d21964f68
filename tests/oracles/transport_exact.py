"""The two values of a transport certificate with 60 digits, term by term from their definitions; for small problems."""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Any

DIGITS = 60
Number = Decimal


def primal(problem: Any, plan: Any, balanced: bool = False) -> Decimal:
    """<C, P> + reg Omega(P) + penalties of the relaxed sides; `balanced` leaves out what exact sides would say."""
    with localcontext(prec=DIGITS):
        cost, a, b = costs(problem), _exact(problem.a), _exact(problem.b)
        reg, product = Decimal(problem.reg), problem.reference == "product"
        p = [_exact(row) for row in plan]
        value = Decimal(0)
        for i, row in enumerate(p):
            for j, entry in enumerate(row):
                value += reg * _entropy(entry, a[i] * b[j] if product else None)
                if entry:
                    here = cost[i][j]
                    assert here is not None
                    value += entry * here
        sums = [sum(row, Decimal(0)) for row in p], [sum(column, Decimal(0)) for column in zip(*p, strict=True)]
        for found, wanted, strength in zip(sums, (a, b), problem.reg_m, strict=True):
            if strength < float("inf"):
                value += Decimal(strength) * sum(map(_kl, found, wanted), Decimal(0))
        return value


def dual(problem: Any, f: Any, g: Any) -> Decimal:
    """The dual value of finite potentials."""
    with localcontext(prec=DIGITS):
        cost, a, b = costs(problem), _exact(problem.a), _exact(problem.b)
        reg, product = Decimal(problem.reg), problem.reference == "product"
        f, g = _exact(f), _exact(g)
        value = Decimal(0)
        for i, row in enumerate(cost):
            for j, entry in enumerate(row):
                weight = a[i] * b[j] if product else Decimal(bool(a[i] and b[j]))
                if weight:
                    q = Decimal(0) if entry is None else weight * ((f[i] + g[j] - entry) / reg).exp()
                    value -= reg * (q - weight if product else q)
        for masses, potential, strength in ((a, f, problem.reg_m[0]), (b, g, problem.reg_m[1])):
            for mass, at in zip(masses, potential, strict=True):
                if mass and strength == float("inf"):
                    value += mass * at
                elif mass:
                    value += Decimal(strength) * mass * (1 - (-at / Decimal(strength)).exp())
        return value


def potential_plan(problem: Any, f: Any, g: Any) -> list[list[Decimal]]:
    """P(f, g) of finite potentials."""
    with localcontext(prec=DIGITS):
        cost, a, b = costs(problem), _exact(problem.a), _exact(problem.b)
        f, g, reg, product = _exact(f), _exact(g), Decimal(problem.reg), problem.reference == "product"
        plan = []
        for i, row in enumerate(cost):
            line = []
            for j, entry in enumerate(row):
                weight = a[i] * b[j] if product else Decimal(bool(a[i] and b[j]))
                nothing = entry is None or not weight
                line.append(Decimal(0) if nothing else weight * ((f[i] + g[j] - entry) / reg).exp())
            plan.append(line)
        return plan


def costs(problem: Any) -> list[list[Decimal | None]]:
    """The costs as exact numbers (roots with 60 digits), None where forbidden."""
    with localcontext(prec=DIGITS):
        if problem.cost is not None:
            return [[None if c == float("inf") else Decimal(float(c)) for c in row] for row in problem.cost]
        x, y = ([_exact(point) for point in cloud] for cloud in (problem.x, problem.y))
        return [[_distance(problem.metric, p, q) for q in y] for p in x]


def _distance(metric: str, p: Sequence[Decimal], q: Sequence[Decimal]) -> Decimal:
    if metric == "inner":
        return -sum((s * t for s, t in zip(p, q, strict=True)), Decimal(0))
    squares = sum(((s - t) ** 2 for s, t in zip(p, q, strict=True)), Decimal(0))
    return squares if metric == "sqeuclidean" else squares.sqrt()


def _entropy(p: Decimal, weight: Decimal | None) -> Decimal:
    """KL(p | weight), or p (log p - 1) where there is no weight."""
    if weight is None:
        return p * (p.ln() - 1) if p else Decimal(0)
    return _kl(p, weight)


def _kl(p: Decimal, q: Decimal) -> Decimal:
    if not p:
        return q
    return p * (p / q).ln() - p + q if q else Decimal("inf")


def _exact(values: Any) -> list[Decimal]:
    return [value if isinstance(value, Decimal) else Decimal(float(value)) for value in values]
