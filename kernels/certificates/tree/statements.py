"""`allot verify` of an answer with the log of a branch and bound: what exact says, and what the whole tree proves."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.certificates.exact import every
from kernels.certificates.exact.quadratic import ENUMERATED, Problem
from kernels.certificates.exact.statement import Claim, Inputs, Statement, plain, rational
from kernels.certificates.tree.slow import NotProved, Unfinished, prove


def recheck(solver: str, inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """As `every.recheck`; where a quadratic assignment comes with a log and claims an optimum, every leaf is proved."""
    if solver == "qap":
        inputs = _square(inputs)
    said = every.recheck(solver, inputs, options, claim)
    if solver != "qap" or "tree" not in claim.arrays or not claim.optimal:
        return said
    problem = Problem(inputs, {int(i): int(k) for i, k in (options.get("fixed") or {}).items()})
    answered = all(one.holds for one in said if one.name in ("answer", "permitted", "objective"))
    if problem.n <= ENUMERATED or not answered:
        return said
    p, log = claim.arrays["permutation"].tolist(), bytes(claim.arrays["tree"].tolist())
    try:
        words = prove(inputs, problem, p, log)
    except (NotProved, Unfinished) as why:
        return [*said, Statement("tree", None if isinstance(why, Unfinished) else False, str(why))]
    value = problem.value(p)
    found = {
        "bound": Statement(
            "bound",
            claim.bound is None or rational(claim.bound) <= value,
            f"{claim.bound} is stated, the tree proves {plain(value)}",
        ),
        "optimal": Statement("optimal", True, "no permutation costs less"),
    }
    return [*(found.get(one.name, one) for one in said), Statement("tree", True, words)]


def _square(inputs: Inputs) -> Inputs:
    """Facilities without flow or cost are added where there are fewer than locations."""
    flow, distance, linear = (inputs.get(name) for name in ("flow", "distance", "linear"))
    if not isinstance(flow, np.ndarray) or not isinstance(distance, np.ndarray) or len(flow) >= len(distance):
        return inputs
    more = len(distance) - len(flow)
    found = {**inputs, "flow": np.pad(flow, ((0, more), (0, more)))}
    if isinstance(linear, np.ndarray) and len(linear) == len(flow):
        found["linear"] = np.pad(linear, ((0, more), (0, 0)))
    return found
