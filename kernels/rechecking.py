"""`allot verify`: which third, slow implementation checks an answer again. That of its solver."""

from collections.abc import Mapping
from typing import Any

from kernels.certificates.exact.statement import Claim, Inputs, Statement
from kernels.certificates.lowrank import slow as lowrank
from kernels.certificates.multimarginal import slow as multimarginal
from kernels.certificates.tree import statements

OWN = {"lowrank": lowrank.check, "multimarginal": multimarginal.check}


def recheck(solver: str, inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Say of each statement of an answer whether it holds, from the problem as it was given.

    Args:
        inputs: arrays by name; +inf in a cost and -inf in a benefit or in a cost to maximise forbid the entry.
        options: the job's options by name; those left out have their defaults.
    """
    own = OWN.get(solver)
    return own(inputs, options, claim) if own else statements.recheck(solver, inputs, options, claim)
