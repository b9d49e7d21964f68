"""Proof for unbalanced optimal transport: primal value of the plan minus dual value of the potentials.

Weak duality makes the dual value a lower bound on the optimum for any potentials f, g:

    D(f, g) = r1 <a, 1 - exp(-f / r1)> + r2 <b, 1 - exp(-g / r2)> - reg (sum P(f, g) - sum a sum b),

with <a, f> in place of the first term when r1 is inf, and without sum a sum b for the uniform reference. The primal
value is that of the plan that was returned, or of P(f, g) where only potentials were, after its balanced marginals
were made exact. Everything is float64, one block of rows at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels.certificates.transport_answer import Answer
from kernels.problems.arrays import Array
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, Solution, Termination, unheard

ROUNDING = 1e-9  # the primal may lie below the dual by this, relative
UNREPAIRED = 1e-5  # L1 distance over mass at which balanced marginals pass where they cannot be repaired


def certify(
    problem: UnbalancedTransport, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    """Recompute primal, dual and marginals of one problem, or of each problem of a batch."""
    if solution.termination is Termination.INFEASIBLE:
        return _infeasible(problem, solution)
    if problem.batch is None:
        return _one(problem, solution, solution.termination, solution.arrays)
    each = solution.facts.get("terminations", [solution.termination] * problem.batch)
    parts = [
        _one(problem.one(k), solution, Termination(each[k]), {name: v[k] for name, v in solution.arrays.items()})
        for k in range(problem.batch)
    ]
    triples = zip(*((p.objective, p.bound, p.gap_abs) for p in parts), strict=True)
    objective, bound, gap = (None if None in values else float(sum(values)) for values in triples)
    return Certificate(
        objective=objective,
        bound=bound,
        gap_abs=gap,
        gap_rel=None if gap is None else _relative(gap, objective, bound),
        max_violation=max(p.max_violation for p in parts),
        holds=all(p.holds for p in parts),
        proved=f"for each of {len(parts)} problems: {parts[0].proved}; objective and bound are their sums",
        facts={"largest_gap_rel": max((p.gap_rel for p in parts if p.gap_rel is not None), default=None)},
    )


def _one(
    problem: UnbalancedTransport, solution: Solution, termination: Termination, arrays: dict[str, Array]
) -> Certificate:
    answer = Answer(problem, arrays["f"], arrays["g"], arrays.get("plan"))
    sums = _sums(answer)
    objective, residual = _primal(answer, sums), _residual(problem, sums)
    dual = _dual(problem, answer.f, answer.g, sums.mass)
    bound = dual if np.isfinite(dual) else None  # -inf bounds nothing: potentials that diverge
    gap = None if objective is None or bound is None else max(0.0, objective - bound)
    relative = None if gap is None else _relative(gap, objective, bound)
    tolerance = float(solution.facts.get("tolerance", 0.0))
    sound = sums.valid and not np.isnan(dual)
    if objective is not None:
        slack = ROUNDING * max(abs(objective), abs(dual)) + _noise(problem)
        sound = sound and np.isfinite(objective) and objective - dual >= -slack
    if termination in (Termination.GAP_REACHED, Termination.OPTIMAL):
        met = objective is None and residual <= UNREPAIRED * float(problem.a.sum())
        sound = sound and bound is not None and (met if relative is None else relative <= tolerance)
    return Certificate(
        objective,
        bound,
        gap,
        relative,
        residual,
        bool(sound),
        _words(problem, objective is not None),
        {"mass": float(sums.rows.sum())},
    )


def _noise(problem: UnbalancedTransport) -> float:
    """Rounding of the two divergences: each sums terms as large as the masses, times its strength."""
    strengths = sum(strength for strength in problem.reg_m if np.isfinite(strength))
    return float(32 * np.finfo(np.float64).eps * strengths * max(problem.a.sum(), problem.b.sum()))


def _words(problem: UnbalancedTransport, repaired: bool) -> str:
    dual = "bound = dual value of the returned potentials"
    sides = " and ".join(
        name for name, strength in zip(("rows", "columns"), problem.reg_m, strict=True) if np.isinf(strength)
    )
    if not sides:
        return f"objective = primal value of the plan, {dual}, both recomputed in float64; no constraint to violate"
    if repaired:
        return (
            f"objective = primal value of the plan after its balanced {sides} were made exact, {dual}, both in float64;"
            " violation = L1 distance of the plan's balanced marginals before that"
        )
    return (
        f"{dual}, in float64; violation = L1 distance of the plan's balanced {sides}, which forbidden entries keep from"
        " being made exact, so that there is no primal value"
    )


@dataclass(frozen=True, eq=False)
class _Repair:
    """The feasible plan diag(rows) P diag(columns) + spare_a spare_b' / sum(spare_a)."""

    rows: Array
    columns: Array
    spare_a: Array
    spare_b: Array

    def apply(self, part: slice, plan: Array) -> Array:
        fixed = plan * self.rows[part][:, None] * self.columns
        if self.spare_a.any() and self.spare_b.any():
            fixed += np.outer(self.spare_a[part], self.spare_b / self.spare_b.sum())
        return np.asarray(fixed)


@dataclass(frozen=True, eq=False)
class _Sums:
    """What one pass tells: marginals and entrywise value of the plan, the mass of P(f, g), and "it is a plan"."""

    rows: Array
    columns: Array
    value: float
    mass: float
    valid: bool


def _sums(answer: Answer) -> _Sums:
    problem = answer.problem
    rows, columns, value, mass, valid = np.empty_like(problem.a), np.zeros_like(problem.b), 0.0, 0.0, True
    for part in answer.blocks():
        cost = answer.cost(part)
        dual_plan = answer.dual_plan(part, cost)
        mass += float(dual_plan.sum())
        plan = dual_plan if answer.plan is None else answer.returned(part, cost)
        valid = valid and bool(plan.min() >= 0) and not plan[answer.outside(part, cost)].any()
        value += _entries(answer, part, plan, cost)
        rows[part] = plan.sum(axis=1)
        columns += plan.sum(axis=0)
    return _Sums(rows, columns, value, mass, valid and bool(np.isfinite(value)))


def _entries(answer: Answer, part: slice, plan: Array, cost: Array) -> float:
    """Sum over some rows of P (C + reg (log P - log R - 1)), without the constant of the product reference."""
    used = plan > 0
    log = np.log(plan, out=np.zeros_like(plan), where=used)
    log -= answer.log_a[part][:, None] + 1
    log -= answer.log_b
    log *= answer.problem.reg
    log += cost
    return float((plan[used] * log[used]).sum())


def _residual(problem: UnbalancedTransport, sums: _Sums) -> float:
    """L1 distance of the balanced marginals."""
    exact_a, exact_b = np.isinf(problem.reg_m)
    return float(exact_a and abs(sums.rows - problem.a).sum()) + float(exact_b and abs(sums.columns - problem.b).sum())


def _repair(answer: Answer, sums: _Sums) -> _Repair | None:
    """What makes balanced marginals exact; None where that is not possible.

    One balanced side is scaled. For two this is the rounding of Altschuler, Weed and Rigollet (2017, algorithm 2); its
    rank-one term would fall on forbidden entries too, so None where there are such.
    """
    problem = answer.problem
    a, b = problem.a, problem.b
    exact_a, exact_b = np.isinf(problem.reg_m)
    scale_a = _ratio(a, sums.rows) if exact_a else np.ones_like(a)
    scale_b = _ratio(b, sums.columns) if exact_b else np.ones_like(b)
    if exact_a and exact_b:
        if problem.cost is not None and np.isposinf(problem.cost.max()):
            return None
        scale_b = np.minimum(scale_b, 1)
        scale_a, spare_a, spare_b = _round(answer, scale_b)
        return _Repair(scale_a, scale_b, spare_a, spare_b)
    if (exact_a and (a[sums.rows == 0] > 0).any()) or (exact_b and (b[sums.columns == 0] > 0).any()):
        return None
    return _Repair(scale_a, scale_b, np.zeros_like(a), np.zeros_like(b))


def _ratio(wanted: Array, found: Array) -> Array:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)


def _round(answer: Answer, scale_b: Array) -> tuple[Array, Array, Array]:
    """Row factors after the columns were scaled down by `scale_b`, and the masses still missing on both sides."""
    a, b = answer.problem.a, answer.problem.b
    scale_a, spare_a, spare_b = np.empty_like(a), np.empty_like(a), b.copy()
    for part in answer.blocks():
        plan = answer.returned(part, answer.cost(part)) * scale_b
        rows = plan.sum(axis=1)
        scale_a[part] = np.minimum(_ratio(a[part], rows), 1)
        spare_a[part] = np.maximum(a[part] - scale_a[part] * rows, 0)
        spare_b -= scale_a[part] @ plan
    return scale_a, spare_a, np.maximum(spare_b, 0)


def _primal(answer: Answer, sums: _Sums) -> float | None:
    """<C, P> + reg Omega(P) + both marginal penalties for the plan, its balanced marginals made exact first."""
    problem = answer.problem
    rows, columns, value = sums.rows, sums.columns, sums.value
    if np.isinf(problem.reg_m).any():
        repair = _repair(answer, sums)
        if repair is None:
            return None
        rows, columns, value = np.empty_like(rows), np.zeros_like(columns), 0.0
        for part in answer.blocks():
            cost = answer.cost(part)
            plan = repair.apply(part, answer.returned(part, cost))
            value += _entries(answer, part, plan, cost)
            rows[part] = plan.sum(axis=1)
            columns += plan.sum(axis=0)
    if problem.reference == "product":
        value += problem.reg * float(problem.a.sum() * problem.b.sum())
    for found, wanted, strength in zip((rows, columns), (problem.a, problem.b), problem.reg_m, strict=True):
        if np.isfinite(strength):
            value += strength * _kl(found, wanted)
    return value


def _kl(p: Array, q: Array) -> float:
    """sum p log(p / q) - p + q; inf where p > 0 = q."""
    both = (p > 0) & (q > 0)
    if (p[q == 0] > 0).any():
        return float("inf")
    return float((p[both] * np.log(p[both] / q[both])).sum() - p.sum() + q.sum())


def _dual(problem: UnbalancedTransport, f: Array, g: Array, mass: float) -> float:
    value = -problem.reg * mass
    if problem.reference == "product":
        value += problem.reg * float(problem.a.sum() * problem.b.sum())
    for masses, potential, strength in zip((problem.a, problem.b), (f, g), problem.reg_m, strict=True):
        p, q = potential[masses > 0], masses[masses > 0]
        with np.errstate(over="ignore"):
            value += float((q * p).sum() if np.isinf(strength) else -strength * (q * np.expm1(-p / strength)).sum())
    return value


def _relative(gap: float, objective: float | int | None, bound: float | int | None) -> float:
    scale = max(abs(objective or 0), abs(bound or 0))
    return gap / scale if scale else 0.0


def _infeasible(problem: UnbalancedTransport, solution: Solution) -> Certificate:
    """No plan exists: a dual value above what any plan could cost, or balanced mass with forbidden entries alone."""
    shown, bound = False, None
    for k in range(problem.batch or 1):
        part = problem if problem.batch is None else problem.one(k)
        if part.cost is None:
            continue
        allowed = np.isfinite(part.cost)
        exact_a, exact_b = np.isinf(part.reg_m)
        shown |= bool(exact_a and (part.a[~allowed[:, part.b > 0].any(axis=1)] > 0).any())
        shown |= bool(exact_b and (part.b[~allowed[part.a > 0].any(axis=0)] > 0).any())
        if not shown and "f" in solution.arrays and exact_a and exact_b and problem.batch is None:
            answer = Answer(part, solution.arrays["f"], solution.arrays["g"], None)
            bound = _dual(part, answer.f, answer.g, _sums(answer).mass)
            shown = bound > _ceiling(part, allowed)
    proved = "no plan exists: a balanced row or column has mass and only forbidden entries"
    if bound is not None:
        proved = "no plan exists: the dual value of f, g is above what any plan could cost"
    return Certificate(None, bound, None, None, 0.0, shown, proved)


def _ceiling(problem: UnbalancedTransport, allowed: Array) -> float:
    """An upper bound on the objective of any balanced plan, from P_ij <= min(a_i, b_j)."""
    assert problem.cost is not None
    a, b, mass = problem.a[problem.a > 0], problem.b[problem.b > 0], float(problem.a.sum())
    if problem.reference == "product":
        entropy = mass * (mass - 1 - np.log(max(a.min(), b.min())))
    else:
        entropy = mass * (np.log(min(a.max(), b.max())) - 1)
    return mass * float(problem.cost[allowed].max()) + problem.reg * float(entropy)
