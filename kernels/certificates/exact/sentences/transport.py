"""Sentences of transports: entropic, sparse, exact, of a part of the mass, several ones and divergences."""

from typing import Any

from kernels.certificates.exact.marginals import has_other_marginals
from kernels.certificates.exact.sentences.asked import Asked
from kernels.problems.arrays import Csr

FRACTIONS = "exactly, in fractions, and rounded once to the weak side"
FLOATS = "in float64 with every rounding bounded"
DEVICE = "on the device in float64, every operation rounded outward"
NO_PLAN = "no plan exists"
WHY = (
    ": a balanced side has mass, and the other side has none",
    ": a balanced row or column has mass and only forbidden entries",
    ": the rows in hall_rows have more mass than all columns that they may use",
    ": the dual value of f, g is above what any plan could cost",
)
PLANS = ("plan", "plan_xx", "plan_yy")


def of_uot(asked: Asked) -> list[str]:
    """Those of transports of every kind."""
    if isinstance(asked.inputs.get("cost"), Csr):
        return _sparse(asked)
    if has_other_marginals(asked.options):
        return _other_marginals(asked)
    if asked.options.get("method") == "exact":
        return _exact(asked)
    if asked.listed is None:
        return _one(asked, asked.claim.termination, asked.claim.objective, asked.claim.facts)
    return _several(asked)


def _several(asked: Asked) -> list[str]:
    """That of the first problem, of all."""
    listed = asked.listed
    assert listed is not None
    count, facts = len(listed["terminations"]), asked.claim.facts
    own: dict[str, Any] = {"reg_m": facts["reg_m"][0] if isinstance(facts.get("reg"), list) else facts.get("reg_m")}
    ends = ("; objective, bound: sums over those with one", "; objective, bound: sums")
    first = _one(asked, listed["terminations"][0], listed["objectives"][0], own)
    found = [f"for each of {count} problems: {one}{end}" for one in first for end in ends]
    if not asked.options.get("divergence"):
        return found
    start = f"each of {count // 3} divergences lies between bound and objective, by the intervals of its three values,"
    return [f"{start} rounded outward; {one}" for one in found]


def listed_fit(asked: Asked) -> bool:
    """Whether the sentences that the facts list of several problems are such; one stands for all where they agree."""
    listed = asked.listed
    told = None if listed is None else listed.get("proved")
    if listed is None or told is None:
        return True
    words, objectives, facts = listed["terminations"], listed["objectives"], asked.claim.facts
    each = [told] * len(words) if isinstance(told, str) else told
    if len(each) != len(words):
        return False
    strengths = facts.get("reg_m")
    for k, (one, word, objective) in enumerate(zip(each, words, objectives, strict=True)):
        of = strengths[k % len(strengths)] if isinstance(facts.get("reg"), list) and strengths else strengths
        if one not in _one(asked, word, objective, {"reg_m": of}):
            return False
    return True


def _sides(asked: Asked, facts: Any) -> str:
    """The sides that have to be exact."""
    given = facts.get("reg_m") or asked.options.get("reg_m", 1.0)
    pair = given if isinstance(given, list | tuple) else (given, given)
    exact = [one in (None, "inf", float("inf")) for one in pair]
    return " and ".join(name for name, one in zip(("rows", "columns"), exact, strict=True) if one)


def _one(asked: Asked, word: str, objective: Any, facts: Any) -> list[str]:
    if word == "infeasible":
        return [NO_PLAN + why for why in WHY]
    there = any(name in asked.claim.arrays for name in PLANS)
    plan = "the returned plan" if there else "the plan that the potentials stand for"
    bound, sides = "bound = dual value of f, g rounded down", _sides(asked, facts)
    found = []
    for arithmetic in (FLOATS, DEVICE):
        value = f"objective = primal value of {plan} rounded up, {bound}, {arithmetic}"
        violation = f"violation = L1 distance of its balanced {sides} from the given masses"
        if not sides:
            found.append(f"{value}; no constraint to violate")
        elif objective is not None:
            found.append(f"{value}; {violation}, and the gap holds what that may cost at f, g")
        else:
            none = f"{plan} does not meet its balanced {sides}, so that it has no objective"
            found.append(f"{bound}, {arithmetic}; {none}; {violation}")
    return found


def _sparse(asked: Asked) -> list[str]:
    if asked.claim.termination == "infeasible":
        return [f"{NO_PLAN}: the lines in hall_rows or hall_columns have more mass than all that they may use"]
    bound = f"bound = dual value of f, g on the stored entries rounded down, {FLOATS}"
    value = f"objective = primal value of the returned plan rounded up, {bound}"
    sides = _sides(asked, asked.claim.facts)
    if not sides:
        return [f"{value}; no constraint to violate"]
    violation = f"violation = L1 distance of its balanced {sides} from the given masses"
    if asked.claim.objective is not None:
        return [f"{value}; {violation}, and the gap holds what that may cost at f, g"]
    return [f"{bound}; the returned plan does not meet its balanced side, so it has no objective; {violation}"]


def _columns(asked: Asked) -> tuple[int, int]:
    """How many rows are named, and how many columns they may use."""
    from kernels.certificates.exact.marginals import Held

    rows = sorted(set(asked.claim.arrays["hall_rows"].tolist()))
    cost = Held(asked.inputs, {**asked.options, "marginals": "tv", "reg_m": 1}).cost
    return len(rows), sum(any(cost[i][j] is not None for i in rows) for j in range(len(cost[0])))


def _exact(asked: Asked) -> list[str]:
    if asked.claim.termination == "infeasible":
        rows, columns = _columns(asked)
        return [f"the {rows} rows hall_rows have more mass than the {columns} columns that they may use, exactly"]
    names = [name for name in ("cost", "a", "b") if name in asked.inputs]
    whole = len(names) == 3 and asked.whole(*names)
    found = []
    for how in ("exactly, in integers", FRACTIONS) if whole else (FRACTIONS,):
        bound = "bound = sum a_i min_j (c_ij - g_j) + sum b_j g_j"
        violation = "violation = L1 distance of its sides from the given masses"
        if asked.claim.objective is not None:
            found.append(f"objective = cost of the returned plan, {bound}, both {how}; {violation}")
        else:
            found.append(f"{bound}, {how}; the returned plan has other sides and so no objective; {violation}")
    return found


def _other_marginals(asked: Asked) -> list[str]:
    partial = asked.options.get("marginals", "kl") == "kl"
    if asked.claim.termination == "infeasible":
        rows, columns = _columns(asked)
        start = f"the {rows} rows hall_rows may use {columns} columns; these and the other rows have less"
        return [f"{start} mass together than is to be moved, exactly"]
    how = FRACTIONS if asked.options.get("method") == "exact" else FLOATS
    value, bound = "objective = primal value of the returned plan", f"bound = dual value of f, g, {how}"
    if not partial:
        return [f"{value}, {bound}; no constraint to violate"]
    violation = "violation = mass that a line gives or takes beyond its own, and by which the sum is off"
    if asked.claim.objective is not None:
        return [f"{value}, {bound}; {violation}, and the gap holds its worth"]
    return [f"{bound}; the returned plan breaks its constraints and has no objective; {violation}"]
