"""`allot verify`: which third, slow implementation checks an answer again. That of its solver.

They are imported when asked for: together they and what they need take as long as all cards.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernels.problems.arrays import Csr

if TYPE_CHECKING:
    from kernels.certificates.exact.statement import Claim, Inputs, Statement

OWN = {
    "lawler": "kernels.certificates.lawler.slow",
    "lowrank": "kernels.certificates.lowrank.slow",
    "multimarginal": "kernels.certificates.multimarginal.slow",
}
OF_SPARSE = {"uot": "kernels.certificates.sparse.slow"}
"""Where the costs are a sparse matrix."""


def recheck(solver: str, inputs: "Inputs", options: Mapping[str, Any], claim: "Claim") -> "list[Statement]":
    """Say of each statement of an answer whether it holds, from the problem as it was given.

    Args:
        inputs: arrays by name; +inf in a cost and -inf in a benefit or in a cost to maximise forbid the entry.
        options: the job's options by name; those left out have their defaults.
    """
    said: list[Statement]
    if own := (OF_SPARSE if isinstance(inputs.get("cost"), Csr) else OWN).get(solver):
        said = import_module(own).check(inputs, options, claim)
    else:
        said = import_module("kernels.certificates.tree.statements").recheck(solver, inputs, options, claim)
    sentences: list[Statement] = import_module("kernels.certificates.exact.sentences").check(
        solver, inputs, options, claim
    )
    return said + _word(claim) + sentences


def _word(claim: "Claim") -> "list[Statement]":
    """That the word is one, and what is said of the proof beside it; nothing where both are so."""
    from kernels.certificates.exact.stated import WORST
    from kernels.certificates.exact.statement import Statement

    said = []
    if claim.termination not in WORST:
        said.append(Statement("termination", False, f"{claim.termination!r:.40} is no word of an answer"))
    if claim.facts.get("verified") is True and claim.termination not in ("optimal", "infeasible", "stopped"):
        said.append(Statement("verified", False, f"its facts say so of an answer that is {claim.termination}"))
    if claim.max_violation is not None and claim.max_violation < 0:
        said.append(Statement("violation", False, f"{claim.max_violation} is stated, and none is below 0"))
    return said
