"""Checks a quadratic assignment: objective recomputed in int64, each bound from its own evidence."""

from collections.abc import Callable
from math import ceil, fsum, gcd

import numpy as np
from scipy.optimize import linear_sum_assignment

from kernels.problems import Array, QuadraticAssignment
from kernels.solution import Certificate, Number, Solution, Termination, unheard

EPS = float(np.finfo(np.float64).eps)


def certify(
    problem: QuadraticAssignment, solution: Solution, progress: Callable[[float], None] = unheard
) -> Certificate:
    """Recompute objective and bounds; hold the termination to what they prove.

    A bound from Gilmore-Lawler is u and v with u_i + v_j <= l_ij for all allowed pairs, l recomputed here by sorting.
    The projection bound is recomputed with its own projection and rounded down. RLT1 comes with its transfers between
    complementary pairs and all duals. A proof by exhausted search is the branch and bound's word: `proved` says so.
    """
    if solution.termination is Termination.INFEASIBLE:
        return _infeasible(problem)
    permutation = solution.arrays["permutation"]
    n = problem.flow.shape[0]
    valid = permutation.shape == (n,) and sorted(permutation.tolist()) == list(range(n))
    if not valid:
        return Certificate(None, None, None, None, n, False, "not a permutation")
    objective = _objective(problem, permutation)
    unmet = 0 if problem.forbidden is None else int(problem.forbidden[np.arange(n), permutation].sum())
    checked = {name: _check(problem, name, solution.evidence) for name in solution.facts.get("bounds", {})}
    claims = solution.facts.get("bounds", {})
    sound = all(value is not None and value >= claims[name] - _slack(problem) for name, value in checked.items())
    bound = max((claims[name] for name in checked), default=None) if sound else None
    proved = "no bound" if bound is None else f"lower bound: {max(claims, key=lambda name: claims[name])}"
    exhausted = solution.termination is Termination.OPTIMAL and bool(solution.facts.get("proved"))
    if exhausted:
        bound, proved = objective, "optimal: branch and bound exhausted (its tree is not recomputed here); " + proved
    holds = sound and (unmet == 0 or solution.termination is not Termination.OPTIMAL)
    holds &= bound is None or unmet > 0 or bound <= objective + _slack(problem)
    if solution.termination is Termination.OPTIMAL and not exhausted and n > 1:
        holds &= bound is not None and bound >= objective
        proved = f"optimal: equals the {proved}"
    gap = None if bound is None else abs(objective - bound)
    scale = max(abs(objective), abs(bound or 0))
    facts: dict[str, object] = {"bounds_checked": checked, "forbidden_used": unmet}
    if problem.best_known is not None:
        facts |= {"best_known": problem.best_known, "above_best_known": objective - problem.best_known}
    relative = None if gap is None else (float(gap / scale) if scale else 0.0)
    return Certificate(objective, bound, gap, relative, unmet, bool(holds), proved, facts)


def _objective(problem: QuadraticAssignment, permutation: Array) -> Number:
    n = permutation.size
    products = [problem.flow[i] * problem.distance[permutation[i], permutation] for i in range(n)]
    linear = [] if problem.linear is None else [problem.linear[np.arange(n), permutation]]
    entries = np.concatenate(products + linear)
    if entries.dtype.kind == "i":
        return int(entries.sum())
    return fsum(entries.tolist())


def _infeasible(problem: QuadraticAssignment) -> Certificate:
    assert problem.forbidden is not None
    rows, columns = linear_sum_assignment(problem.forbidden.astype(float))
    unmet = int(problem.forbidden[rows, columns].sum())
    return Certificate(None, None, None, None, unmet, unmet > 0, "every permutation uses a forbidden pair")


def _check(problem: QuadraticAssignment, name: str, evidence: dict[str, Array]) -> Number | None:
    """The bound's value as proved here, None when the evidence does not prove one."""
    if name.startswith("gilmore-lawler"):
        return _gilmore_lawler(problem, name.endswith("columns"), evidence[f"{name}:u"], evidence[f"{name}:v"])
    if name == "projection":
        return _projection(problem)
    if name == "rlt1":
        return _rlt1(problem, {key.removeprefix("rlt1:"): array for key, array in evidence.items()})
    return None


def _rlt1(problem: QuadraticAssignment, evidence: dict[str, Array]) -> Number | None:
    """The dual of the level-1 reformulation: complementary prices must not exceed what the two places really pay.

    With scale s, prices slack >= 0, given-away rows and columns: for all i != k, j != l
        slack_ijkl + rows_ijk + columns_ijl + slack_klij + rows_kli + columns_klj <= s (F_ik D_jl + F_ki D_lj),
    and u_i + v_j <= s (L_ij + F_ii D_jj) + sum_k rows_ijk + sum_l columns_ijl for allowed pairs prove sum(u, v) / s.
    """
    n, scale = problem.n, int(evidence["scale"])
    slack, rows, columns = (evidence[key].astype(np.int64) for key in ("slack", "rows", "columns"))
    apart = ~np.eye(n, dtype=bool)
    real = np.multiply.outer(problem.flow, problem.distance).transpose(0, 2, 1, 3) * scale
    claimed = slack + rows[:, :, :, None] + columns[:, :, None, :]
    both = claimed + claimed.transpose(2, 3, 0, 1) <= real + real.transpose(2, 3, 0, 1)
    places = apart[:, None, :, None] & apart[None, :, None, :]
    own = np.where(apart[:, None, :], rows, 0).sum(axis=2) + np.where(apart[None, :, :], columns, 0).sum(axis=2)
    leaders = np.outer(problem.flow.diagonal(), problem.distance.diagonal())
    leaders = (leaders if problem.linear is None else leaders + problem.linear) * scale + own
    fits = evidence["u"][:, None] + evidence["v"] <= leaders
    if problem.forbidden is not None:
        fits |= problem.forbidden
    if slack.min() < 0 or not both[places].all() or not fits.all():
        return None
    total = sum(int(x) for x in evidence["u"]) + sum(int(x) for x in evidence["v"])
    return _up(problem, -(-total // scale))


def _gilmore_lawler(problem: QuadraticAssignment, by_columns: bool, u: Array, v: Array) -> Number | None:
    flow = problem.flow.T if by_columns else problem.flow
    distance = problem.distance.T if by_columns else problem.distance
    n = flow.shape[0]
    others = [np.r_[0:i, i + 1 : n] for i in range(n)]
    near = [np.sort(distance[j, others[j]]) for j in range(n)]
    for i in range(n):
        busy = np.sort(flow[i, others[i]])[::-1]
        for j in range(n):
            if problem.forbidden is not None and problem.forbidden[i, j]:
                continue
            least = busy @ near[j] + flow[i, i] * distance[j, j]
            if problem.linear is not None:
                least = least + problem.linear[i, j]
            if u[i] + v[j] > least + _slack(problem) / n:
                return None
    if problem.integer:
        return _up(problem, sum(int(x) for x in u) + sum(int(x) for x in v))
    return fsum([*u.tolist(), *v.tolist()])


def _projection(problem: QuadraticAssignment) -> Number | None:
    flow, distance = problem.flow.astype(float), problem.distance.astype(float)
    single = np.outer(flow.diagonal(), distance.diagonal())
    single = single if problem.linear is None else single + problem.linear
    flow, distance = flow - np.diag(flow.diagonal()), distance - np.diag(distance.diagonal())
    if not (np.array_equal(flow, flow.T) or np.array_equal(distance, distance.T)):
        return None
    flow, distance = (flow + flow.T) / 2, (distance + distance.T) / 2
    n = flow.shape[0]
    centre = np.eye(n) - np.ones((n, n)) / n
    # P M P has the projected spectrum and one more 0, of eigenvector 1: shift that one out of the way and drop it
    spectra = []
    for matrix in (flow, distance):
        shift = 2 * float(np.abs(matrix).sum()) + 1
        spectra.append(np.linalg.eigvalsh(centre @ matrix @ centre + shift * np.ones((n, n)) / n)[:-1])
    cost = single + 2 / n * np.outer(flow.sum(1), distance.sum(1))
    if problem.forbidden is not None:
        cost = np.where(problem.forbidden, 2 * n * (np.abs(cost).max() + 1), cost)
    rows, columns = linear_sum_assignment(cost)
    value = float(np.sort(spectra[0]) @ np.sort(spectra[1])[::-1] + cost[rows, columns].sum())
    value -= float(flow.sum() * distance.sum()) / n**2
    size = float(np.abs(flow).sum() * np.abs(distance).max() + np.abs(single).max(axis=1).sum()) * n
    lowered = value + 64 * n * EPS * size  # the claim must not lie above what rounding could hide
    return _up(problem, ceil(lowered)) if problem.integer else lowered


def _up(problem: QuadraticAssignment, value: int) -> int:
    """Round up to the next multiple of what divides every objective."""
    flow, distance = problem.flow.copy(), problem.distance.copy()
    single = np.outer(flow.diagonal(), distance.diagonal())
    single = single if problem.linear is None else single + problem.linear
    np.fill_diagonal(flow, 0)
    np.fill_diagonal(distance, 0)
    both = 2 if np.array_equal(flow, flow.T) and np.array_equal(distance, distance.T) else 1
    of_pairs = both * gcd(*flow.ravel().tolist()) * gcd(*distance.ravel().tolist())
    step = gcd(of_pairs, *single.ravel().tolist())
    return value if step < 2 else -(-value // step) * step


def _slack(problem: QuadraticAssignment) -> float:
    """0 for integers; what float64 may lose otherwise."""
    if problem.integer:
        return 0
    size = float(np.abs(problem.flow).sum() * np.abs(problem.distance).max())
    size += 0.0 if problem.linear is None else float(np.abs(problem.linear).max(axis=1).sum())
    return float(32 * problem.n**2 * EPS * size)
