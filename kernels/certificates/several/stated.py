"""Whether an answer says of the strengths of its problem what they are."""

import math
from collections.abc import Mapping
from typing import Any

from kernels.problems.several import SeveralTransports
from kernels.problems.transport import UnbalancedTransport

SAID = ("cost_scale", "reg_scale", "costs")
"""What a problem may be told of beside reg and reg_m."""


def misstated(problem: UnbalancedTransport | SeveralTransports, facts: Mapping[str, Any]) -> str:
    """What of `facts` is said of other strengths than the problem has; "" where nothing is. Facts may be missing."""
    true = _strengths(problem)
    for name in ("reg", "reg_m", *SAID):
        if name in facts and not _same(facts[name], true.get(name)):
            return f"{name} is stated as {facts[name]!r:.60}, and the problem has {true.get(name)!r:.60}"
    return ""


def _same(said: Any, true: Any) -> bool:
    return type(said) is type(true) and bool(said == true)


def _strengths(problem: UnbalancedTransport | SeveralTransports) -> dict[str, Any]:
    if isinstance(problem, SeveralTransports):
        each = [_strengths(part) for part in problem.parts]
        names = dict.fromkeys(name for one in each for name in one)
        return {name: [one.get(name) for one in each] for name in names}
    spelled = ["inf" if math.isinf(one) else one for one in problem.reg_m]
    return {"reg": problem.reg, "reg_m": spelled, **problem.told}
