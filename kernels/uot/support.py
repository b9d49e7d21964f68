"""Rows and columns that carry no plan, taken out before a solve and put back after it.

A row without mass (a_i = 0) or without a permitted entry has a zero row in the plan whatever the rest does, but its
potential is infinite or lies outside of what scalings can hold. Solvers see the rest alone, where a, b > 0.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels.problems.arrays import AnyIndices, Floats, Indices, Mask
from kernels.problems.transport import UnbalancedTransport


@dataclass(frozen=True, eq=False)
class Support:
    """The rows and columns that stay (boolean (m,), (n,)), and those of them that no permitted entry reaches."""

    problem: UnbalancedTransport
    rows: Mask
    columns: Mask
    unreachable_rows: Mask
    unreachable_columns: Mask

    @property
    def infeasible(self) -> bool:
        """True when mass must leave or enter where every entry is forbidden, or nothing can carry any mass."""
        r1, r2 = self.problem.reg_m
        blocked = (np.isinf(r1) and self.unreachable_rows.any()) or (np.isinf(r2) and self.unreachable_columns.any())
        return bool(blocked)

    @property
    def empty(self) -> bool:
        """True when no entry can carry mass: the plan is zero."""
        return not (self.rows.any() and self.columns.any())

    @property
    def reduced(self) -> UnbalancedTransport:
        """The problem on what stays; the problem itself when everything does."""
        problem, rows, columns = self.problem, self.rows, self.columns
        if rows.all() and columns.all():
            return problem
        take: dict[str, Any] = {
            "a": problem.a[rows],
            "b": problem.b[columns],
            "cost": None if problem.cost is None else np.ascontiguousarray(problem.cost[np.ix_(rows, columns)]),
            "x": None if problem.x is None else problem.x[rows],
            "y": None if problem.y is None else problem.y[columns],
            "f0": None if problem.f0 is None else problem.f0[rows],
            "g0": None if problem.g0 is None else problem.g0[columns],
        }
        return replace(problem, **take)

    def spread_out(self, f: Floats, g: Floats) -> tuple[Floats, Floats]:
        """Potentials of the whole problem from those of the reduced one.

        Where there is no mass: with the product reference the soft minimum, which extends the potential (and with it
        the gradient of the optimum in a_i); -inf with the uniform one. Where every entry is forbidden: +inf.
        """
        full_f, full_g = np.empty(self.rows.size), np.empty(self.columns.size)
        full_f[self.rows], full_g[self.columns] = f, g
        full_f[~self.rows] = _extended(self.problem, 0, ~self.rows, self.columns, g)
        full_g[~self.columns] = _extended(self.problem, 1, ~self.columns, self.rows, f)
        full_f[self.unreachable_rows], full_g[self.unreachable_columns] = np.inf, np.inf
        return full_f, full_g


def support(problem: UnbalancedTransport) -> Support:
    """Find the rows and columns of one problem (no batch axis) that carry a plan."""
    rows, columns = problem.a > 0, problem.b > 0
    none_a, none_b = np.zeros_like(rows), np.zeros_like(columns)
    if not (rows.any() and columns.any()):  # one side has nothing to give, and the other's mass stays where it is
        return Support(problem, none_a, none_b, rows, columns)
    if problem.cost is None or problem.cost.max() < np.inf:
        return Support(problem, rows, columns, none_a, none_b)
    permitted = np.isfinite(problem.cost)
    reach_rows, reach_columns = permitted[:, columns].any(axis=1), permitted[rows].any(axis=0)
    return Support(problem, rows & reach_rows, columns & reach_columns, rows & ~reach_rows, columns & ~reach_columns)


def costs(problem: UnbalancedTransport, rows: Mask | AnyIndices | slice) -> Floats:
    """Costs of the given rows (an index, mask or slice) in float64, (k, n), whatever form the problem has."""
    if problem.cost is not None:
        return np.asarray(problem.cost[rows], np.float64)
    assert problem.x is not None
    assert problem.y is not None
    x, y = problem.x[rows].astype(np.float64), problem.y.astype(np.float64)
    products = x @ y.T
    if problem.metric == "inner":
        return np.asarray(-products)
    squares = np.maximum((x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * products, 0)
    return squares if problem.metric == "sqeuclidean" else np.sqrt(squares)


def flipped(problem: UnbalancedTransport, columns: Mask | Indices) -> UnbalancedTransport:
    """Some columns (an index or mask) as the rows of a problem, and the rows as its columns."""
    turned = replace(problem, a=problem.b[columns], b=problem.a, reg_m=problem.reg_m[::-1], f0=None, g0=None)
    if problem.cost is not None:
        return replace(turned, cost=problem.cost[:, columns].T)
    assert problem.y is not None
    return replace(turned, x=problem.y[columns], y=problem.x)


def _extended(problem: UnbalancedTransport, side: int, off: Mask, on: Mask, other: Floats) -> Floats:
    if not off.any():
        return np.empty(0)
    if problem.reference == "uniform":
        return np.full(int(off.sum()), -np.inf)
    if not on.any():
        return np.full(int(off.sum()), np.inf)
    masses = problem.b[on] if side == 0 else problem.a[on]
    strength = problem.reg_m[side]
    damping = 1.0 if np.isinf(strength) else strength / (strength + problem.reg)
    if side == 0:
        cost = costs(problem, off)[:, on]
    else:
        cost = costs(flipped(problem, off), slice(None))[:, on]
    exponent = (other - cost) / problem.reg + np.log(masses)
    top = exponent.max(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.log(np.exp(exponent - np.where(np.isfinite(top), top, 0)[:, None]).sum(axis=1)) + top
    return np.asarray(-damping * problem.reg * total)
