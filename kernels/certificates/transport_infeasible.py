"""Proof that no transport plan exists, in one of four ways."""

import numpy as np

from kernels.certificates.rounded import add_down, mul_up, sub_down, sum_down, sum_up
from kernels.certificates.transport_answer import Answer
from kernels.certificates.transport_bound import dual_value
from kernels.certificates.transport_elementary import log_down, log_up
from kernels.certificates.transport_shown import Shown
from kernels.certificates.transport_sums import measure
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, unheard


def certify_infeasible(problem: UnbalancedTransport, arrays: dict[str, Array]) -> Certificate:
    """Show that the problem (no batch axis) has no plan; `holds` is False where that cannot be shown."""
    bound, proved = None, "no plan exists"
    shown = _nothing_to_meet(problem)
    if shown:
        proved += ": a balanced side has mass, and the other side has none"
    elif shown := problem.cost is not None and _blocked_line(problem):
        proved += ": a balanced row or column has mass and only forbidden entries"
    elif problem.cost is not None and np.isinf(problem.reg_m).all():
        if "hall_rows" in arrays:
            shown = _crowded(problem, arrays["hall_rows"])
            proved += ": the rows in hall_rows have more mass than all columns that they may use"
        if not shown and "f" in arrays:
            bound = _above_every_plan(problem, arrays)
            shown = bound is not None
            proved += ": the dual value of f, g is above what any plan could cost"
    return Certificate(None, bound, None, None, 0.0, bool(shown), proved)


def _nothing_to_meet(problem: UnbalancedTransport) -> bool:
    """True where a balanced side has mass, and every entry of the plan must be 0 since the other side has none."""
    mass_a, mass_b = bool((problem.a > 0).any()), bool((problem.b > 0).any())
    exact_a, exact_b = np.isinf(problem.reg_m)
    return bool((exact_a and mass_a and not mass_b) or (exact_b and mass_b and not mass_a))


def _blocked_line(problem: UnbalancedTransport) -> bool:
    """True where a balanced line with mass has no permitted entry that meets mass."""
    assert problem.cost is not None
    allowed = problem.cost < np.inf
    exact_a, exact_b = np.isinf(problem.reg_m)
    rows = exact_a and (problem.a[~allowed[:, problem.b > 0].any(axis=1)] > 0).any()
    columns = exact_b and (problem.b[~allowed[problem.a > 0].any(axis=0)] > 0).any()
    return bool(rows or columns)


def _crowded(problem: UnbalancedTransport, rows: Array) -> bool:
    """True where the given rows have more mass than the columns that they may use: Hall's condition broken."""
    assert problem.cost is not None
    rows = np.flatnonzero(rows) if rows.dtype == bool else np.unique(rows)
    if rows.size and not (rows[0] >= 0 and rows[-1] < problem.a.size):
        return False
    reached = (problem.cost[rows] < np.inf).any(axis=0)
    return sum_down(problem.a[rows]) > sum_up(problem.b[reached])


def _above_every_plan(problem: UnbalancedTransport, arrays: dict[str, Array]) -> float | None:
    """The dual value of the potentials, where it is above what any balanced plan could cost.

    P_ij <= min(a_i, b_j) bounds the entropic term: with the product reference each log(P_ij / (a_i b_j)) is at most
    -log max(a_i, b_j), with the uniform one log P_ij at most log min(a_i, b_j).
    """
    answer = Answer(problem, {"f": arrays["f"], "g": arrays["g"]})
    if not answer.usable or answer.massless:  # without mass the plan of zeros is one
        return None
    bound = dual_value(answer, measure(answer, Shown({}), unheard))
    assert problem.cost is not None
    a, b = problem.a[problem.a > 0], problem.b[problem.b > 0]
    mass_low, mass_high = sum_down(a), sum_up(a)
    if problem.reference == "product":
        least = np.maximum(a.min(), b.min())
        entropy = sum_up([float(-log_down(least)), -1.0])
        worst = float(mul_up(mass_high if entropy > 0 else mass_low, entropy))
        worst = sum_up([worst, float(mul_up(mass_high, sum_up(b)))])
    else:
        entropy = sum_up([float(log_up(np.minimum(a.max(), b.max()))), -1.0])
        worst = float(mul_up(mass_high if entropy > 0 else mass_low, entropy))
    dearest = float(problem.cost[problem.cost < np.inf].max())
    cost = float(mul_up(mass_high if dearest > 0 else mass_low, dearest))
    ceiling = sum_up([cost, float(mul_up(problem.reg, worst))])
    return bound if bound is not None and float(sub_down(add_down(bound, 0.0), ceiling)) > 0 else None
