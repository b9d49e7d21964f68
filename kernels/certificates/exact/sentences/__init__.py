"""The sentence `proved` of a certificate, worked out again from the word, the numbers and the arrays of an answer.

Each solver's file lists every sentence that its certificates may say of such an answer, on either device. One that
stands for more than the word earns is not among them. `COUNT` stands where a whole number is told of a batch as a
whole; such counts are not worked out here.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from kernels.certificates.exact.sentences import others, pairs, transport
from kernels.certificates.exact.sentences.asked import COUNT, Asked
from kernels.certificates.exact.statement import Claim, Inputs, Statement

NONE = "nothing: no certificate was asked for, and the objective is the solver's own"
SAYS: dict[str, Callable[[Asked], list[str]]] = {
    "lap": pairs.of_lap,
    "auction": pairs.of_auction,
    "uot": transport.of_uot,
    "qap": others.of_qap,
    "lawler": others.of_lawler,
    "gromov": others.of_gromov,
    "lowrank": others.of_lowrank,
    "barycenter": others.of_barycenter,
    "multimarginal": others.of_multimarginal,
}
LONGEST = 90
"""Characters of a sentence that are shown."""


def check(solver: str, inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Whether the certificate's sentence is one of those that follow; nothing where it has none."""
    if not claim.proved:
        return []
    asked = Asked(inputs, options, claim)
    known = [NONE] if options.get("certificate") == "none" else SAYS[solver](asked)
    if any(re.fullmatch(re.escape(one).replace(re.escape(COUNT), r"\d+"), claim.proved) for one in known):
        if solver == "uot" and not transport.listed_fit(asked):
            return [Statement("proved", False, "a sentence that is listed of one of the problems does not follow")]
        return [Statement("proved", True, "the sentence is one that follows from this answer")]
    may = _short(known[0]) if known else "nothing"
    return [Statement("proved", False, f"says {_short(claim.proved)}; it may say {may}")]


def _short(words: str) -> str:
    words = words.replace(COUNT, "N")
    return repr(words if len(words) <= LONGEST else words[:LONGEST] + "...")
