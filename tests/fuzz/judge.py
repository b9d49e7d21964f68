"""Is an answer right, and does its certificate mislead? Every statement is re-checked, and the optimum worked out.

Verdicts: wrong (no answer, or not the optimum though it says so), misleading (a bound beyond the optimum, a gap
understated, a word not earned), refused (no answer to a valid problem), unshown (true, but the returned duals do not
prove it), slow.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernels import Certificate, Solution, rechecking
from kernels.certificates.exact.every import recheck
from kernels.certificates.exact.statement import Claim, Statement
from tests.fuzz import truth
from tests.fuzz.case import Case
from tests.fuzz.outcome import Outcome

SEVERE = ("wrong", "misleading", "refused")
ALLOWED_S = 0.5
"""Beyond the time limit before an answer counts as slow, first answer and certificate of a small problem included."""
OF_WRONG = ("answer", "objective", "infeasible", "permitted")
CLAIMS = ("optimal", "gap_reached", "infeasible")


@dataclass(frozen=True)
class Verdict:
    """One thing that is not as it should be."""

    kind: str
    why: str


def judge(case: Case, outcome: Outcome) -> list[Verdict]:
    """Everything that is wrong with what a case came to."""
    if outcome.error:
        return [Verdict("refused", outcome.error)]
    if outcome.certificate is None or outcome.solution is None:
        return []
    found = list(judge_answer(case, outcome.solution, outcome.certificate))
    if not found and outcome.seconds > outcome.limit_s + ALLOWED_S:
        found.append(Verdict("slow", f"{outcome.seconds:.2f} s under a limit of {outcome.limit_s} s"))
    ended = outcome.solution.termination.value
    if not found and ended == "time_limit" and case.time_limit_s is None and late(case, outcome.certificate):
        found.append(Verdict("slow", f"not done in {outcome.limit_s} s: gap {outcome.certificate.gap_abs}"))
    return found


def late(case: Case, certificate: Certificate) -> bool:
    """Whether an answer without the asked gap is late: plain iterations are there for comparison, and take what they
    take; but none may go on where it has the gap."""
    plain = case.options.get("acceleration") is False or case.options.get("method") == "map-uot"
    if not plain or certificate.gap_rel is None:
        return not plain
    return bool(certificate.gap_rel <= case.options.get("tolerance", 1e-6))


def claim_of(solution: Solution, certificate: Certificate) -> Claim:
    """The answer as its document would give it."""
    c = certificate
    word = solution.termination if c.termination is None else c.termination
    return Claim(
        word.value,
        _known(c.objective),
        _known(c.bound),
        _known(c.gap_abs),
        _known(c.gap_rel),
        _known(c.max_violation),
        solution.arrays,
        {**solution.facts, **c.facts},
    )


def _known(number: Any) -> Any:
    """What is not finite is null in JSON."""
    return number if number is None or math.isfinite(number) else None


def judge_answer(case: Case, solution: Solution, certificate: Certificate) -> Iterator[Verdict]:
    """Verdicts on an answer with its certificate."""
    if not certificate.holds:
        yield Verdict("refused", f"{solution.termination.value}: {certificate.proved}")
        return
    yield from judge_claim(case, claim_of(solution, certificate))


def judge_claim(case: Case, claim: Claim) -> Iterator[Verdict]:
    """Verdicts on what a certificate that holds claims."""
    try:
        check = rechecking.recheck if case.solver in rechecking.OWN else recheck
        statements = check(case.solver, case.inputs, case.options, claim)
    except (KeyError, AssertionError, ArithmeticError, TypeError, ValueError, IndexError) as error:
        yield Verdict("wrong", f"the answer cannot be read: {type(error).__name__}: {error}")
        return
    refuted = [s for s in statements if s.holds is False]
    beyond = list(truth.against_optimum(case, claim))
    yield from (Verdict(kind, why) for kind, why in beyond)
    for statement in refuted:
        kind = _kind(case, claim, statement, beyond)
        if kind:
            yield Verdict(kind, f"{statement.name}: {statement.words}")
    if claim.objective is None and truth.must_answer(case, claim):
        yield Verdict("refused", f"{claim.termination}, and no objective for a problem that has answers")


def _kind(case: Case, claim: Claim, statement: Statement, beyond: list[Any]) -> str:
    name = statement.name.split(": ")[-1]
    if name in OF_WRONG:
        return "wrong"
    if name == "neighbours" and claim.termination not in CLAIMS:
        return ""  # the words say so, and claim nothing
    if name == "objective close":  # what is still far from the optimum may be priced generously
        return "unshown" if claim.termination in CLAIMS else ""
    if name == "bound":
        return "" if beyond else "unshown"
    return "misleading"
