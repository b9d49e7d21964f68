"""Which third, slow implementation checks an answer again: that of its solver."""

from collections.abc import Mapping
from typing import Any

from kernels.certificates.exact.statement import Claim, Inputs, Statement
from kernels.certificates.multimarginal import slow
from kernels.certificates.tree.statements import recheck as of_the_others


def recheck(solver: str, inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Say of each statement of an answer whether it holds; see `kernels.certificates.exact.recheck`."""
    if solver == "multimarginal":
        return slow.check(inputs, options, claim)
    return of_the_others(solver, inputs, options, claim)
