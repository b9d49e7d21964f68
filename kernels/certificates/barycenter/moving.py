"""Proof for barycenters whose points move: their plans' cost, and a bound from transports between the measures.

The problem is not convex, so no potentials of it prove an answer. A bound follows from the measures alone. Let nu be
any measure, and let Y have the law nu and X_k the law a_k, all coupled so that (Y, X_k) is optimal for each k. The
gluing lemma says that there is such a coupling (Villani, "Topics in Optimal Transportation", 2003, lemma 7.6). With W
the sum of the weights and X = sum_k w_k X_k / W the mean of the X_k, in every outcome
    sum_k w_k |Y - X_k|^2 = W |Y - X|^2 + sum_k w_k |X - X_k|^2 >= sum_k w_k |X - X_k|^2
                          = sum over pairs k < l of w_k w_l |X_k - X_l|^2 / W.
The expectation of |X_k - X_l|^2 is at least T(a_k, a_l), the least mean squared distance between both measures. So
    sum over pairs k < l of w_k w_l T(a_k, a_l) / W
is below the value of every barycenter, on however many points. For two measures and enough points it is attained.
T(a_k, a_l) is in turn at least sum_i a_ki min_j (|x_i - y_j|^2 - g_j) + sum_j a_lj g_j for any g; the answer brings g.

The objective is the cost of the returned plans between the returned points, each of mass 1 / m, and the measures.

Errors, with u = 2^-53. A squared distance in d coordinates is a sum of d terms of one sign, each off by 3 u: it is off
by (d + 3) u of itself at most, and so are sums of products with masses by (N + d + 5) u. Masses are quotients within
3 u. What plans miss of their sides by rounding is stated, and priced at the largest squared distance.
"""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np

from kernels.certificates.barycenter.stated import TINIEST, UNIT, concluded, misses, numbers, refused, smallest
from kernels.certificates.rounded import div_down, mul_down, mul_up, sub_down, sum_down, sum_up
from kernels.problems.arrays import Array
from kernels.problems.barycenter import LARGEST, FreeBarycenter
from kernels.solution import Certificate, Solution, unheard

WORDS = (
    "objective = cost of the returned plans to the returned points; bound = sum over pairs of w_k w_l times a lower"
    " bound on the transport between two measures, below every barycenter's cost; both rounded to the weak side; the"
    " problem is not convex, so the gap need not close; violation = largest L1 distance of a plan's sides"
)


def certify(problem: FreeBarycenter, solution: Solution, progress: Callable[[float], None] = unheard) -> Certificate:
    """Evaluate points and plans, and the bound of the pairs."""
    k, m, n = problem.sizes
    d = problem.clouds.shape[2]
    points = numbers(solution.arrays, "points", (m, d))
    plan = numbers(solution.arrays, "plan", (k, m, n))
    pairs = numbers(solution.arrays, "pair_potentials", (k * (k - 1) // 2, n))
    for found in (points, plan, pairs):
        if isinstance(found, str):
            return refused(found)
    assert isinstance(points, np.ndarray) and isinstance(plan, np.ndarray) and isinstance(pairs, np.ndarray)  # noqa: PT018
    if not np.isfinite(points).all() or np.abs(points).max() > 2 * LARGEST:
        return refused("points are infinite, or far outside of all clouds")
    if not np.isfinite(plan).all() or (plan < 0).any() or (plan > 2).any():
        return refused("a plan holds negative mass, or more than there is")
    if not np.isfinite(pairs).all() or np.abs(pairs).max() > 1e250:
        return refused("pair_potentials holds an infinity")
    values, missed, dearest, least = [], [], 0.0, math.inf
    for one in range(k):
        cost = _squares(points, problem.clouds[one])
        values.append(_cost(plan[one], cost, d))
        missed.append(_missed(problem, plan[one], one))
        dearest = max(dearest, float(cost.max()))
        least = min(least, smallest(_squares(problem.clouds[0], problem.clouds[one])))
        progress((one + 1) / (2 * k))
    if misses(max(missed), m, n):
        return refused("its plans have other sides than the points and the measures")
    w = problem.weights
    objective = sum_up(np.append(mul_up(w, np.array(values)), TINIEST))
    price = float(mul_up(sum_up(mul_up(w, np.array(missed))), dearest * (1 + 1e-9)))
    bound = _bound(problem, pairs, lambda share: progress((1 + share) / 2))
    return concluded(solution, objective, bound, price, max(missed), (dearest, least), WORDS)


def _squares(x: Array, y: Array) -> Array:
    """Squared distances, one coordinate after the other."""
    total = np.zeros((len(x), len(y)))
    for left, right in zip(x.T, y.T, strict=True):
        total += (left[:, None] - right) ** 2
    return total


def _cost(plan: Array, cost: Array, d: int) -> float:
    rows = (plan * cost).sum(axis=1)
    return float(math.fsum(rows) * (1 + 2 * (plan.shape[1] + d + 9) * UNIT))


def _missed(problem: FreeBarycenter, plan: Array, k: int) -> float:
    m, n = plan.shape
    rows, columns = plan.sum(axis=1), plan.sum(axis=0)
    off = np.abs(rows - 1 / m).sum() + np.abs(columns - problem.masses[k]).sum()
    return float((off + 4 * (m + n) * UNIT) * (1 + 1e-12))


def _bound(problem: FreeBarycenter, pairs: Array, progress: Callable[[float], None]) -> float:
    w, terms = problem.weights, []
    for at, (k, other) in enumerate(combinations(range(len(w)), 2)):
        held = problem.masses[other] > 0
        cost = _squares(problem.clouds[k], problem.clouds[other][held])
        d = problem.clouds.shape[2]
        g = pairs[at][held]
        below = np.nextafter(cost * (1 - 2 * (d + 4) * UNIT) - g, -np.inf)
        pulled = np.concatenate(
            [mul_down(problem.masses[k], below.min(axis=1)), mul_down(problem.masses[other][held], g)]
        )
        least = sum_down(np.append(pulled, -4 * UNIT * float(np.abs(pulled).sum()) - TINIEST))
        if least > 0:
            terms.append(float(mul_down(mul_down(w[k], w[other]), least)))
        progress((at + 1) / len(pairs))
    total = float(div_down(sum_down(np.array(terms)), sum_up(w))) if terms else 0.0
    return max(0.0, float(sub_down(total, TINIEST)))
