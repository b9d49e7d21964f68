"""The primal value of a returned plan without potentials, by a logarithm an entry: slower, and true whatever f, g are.

    <C, P> + reg sum_ij P_ij (log(P_ij / R_ij) - 1) + reg sum R,    the last for the product reference alone.

Each logarithm is widened by twice its bound (transport_elementary.py); three of them, the sums and the products after
them are off by less than 16 u of the sizes of their terms, u = 2^-53 (N. J. Higham, "Accuracy and Stability of
Numerical Algorithms", 2002, section 3.1). Sums are exact, rounded once.
"""

import numpy as np

from kernels.certificates.rounded import mul_up, sum_up
from kernels.certificates.transport_answer import Answer
from kernels.certificates.transport_elementary import TINIEST, UNIT, log_up
from kernels.problems.arrays import Array

LARGEST = 1 << 22  # entries up to which it is worth its time


def entries_value(answer: Answer) -> float:
    """At least the entrywise part of the primal value of the array `plan`; inf where that is not known."""
    problem = answer.problem
    total = []
    if problem.reference == "product":
        total.append(float(mul_up(problem.reg, mul_up(sum_up(problem.a), sum_up(problem.b)))))
    for part in answer.blocks():
        total.append(_rows_value(answer, part))
    return sum_up(total) if np.isfinite(total).all() else float("inf")


def _rows_value(answer: Answer, part: slice) -> float:
    assert answer.plan is not None
    plan, reg = answer.plan[part].astype(np.float64, copy=False), answer.problem.reg
    i, j = np.nonzero(plan)
    p = plan[i, j]
    cost = answer.costs.block(part)
    c, off = cost.values[i, j], cost.absolute[i]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        log_w, log_v = answer.logs
        logs = log_up(p), -log_w[part][i], -log_v[j]
        sizes = reg * (sum(map(abs, logs)) + 1)
        each = c + reg * (sum(logs) - 1) + (abs(c) * (cost.relative + 16 * UNIT) + off + 16 * UNIT * sizes)
        value: Array = p * each
        value += 4 * UNIT * abs(value) + TINIEST
    return sum_up(value) if np.isfinite(value).all() else float("inf")
