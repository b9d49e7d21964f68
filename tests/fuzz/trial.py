"""One case from its number to its verdicts, counted."""

from typing import Any

from tests.fuzz.judge import SEVERE, Verdict, judge
from tests.fuzz.mutate import mutants
from tests.fuzz.outcome import run
from tests.fuzz.pool import KEPT, Failure, Plan, Tally, case_of
from tests.fuzz.scaled import differs

MUTATED, SCALED = 4, 4
"""Every so many cases the answer is corrupted as well, or the problem asked again in other units."""


def verdicts(plan: Plan, case: Any, tally: Tally | None = None) -> tuple[str, list[Verdict]]:
    """How a case came out, and what is wrong with it; `tally` counts where it was certified."""
    if plan.url:
        from tests.fuzz.over_http import ask

        return ask(plan.url, case, plan.limit_s)
    outcome = run(case, plan.device, plan.limit_s)  # type: ignore[arg-type]
    if outcome.turned_away:
        return "turned away", []
    if tally is not None and outcome.certificate is not None:
        tally.certified[case.solver, outcome.certificate.facts.get("certified_on", "cpu")] += 1
    found = judge(case, outcome)
    return (found[0].kind if found else "right"), found


def try_case(plan: Plan, k: int, tally: Tally) -> None:
    """Run case k and count it."""
    case = case_of(plan, k)
    try:
        kind, found = verdicts(plan, case, tally)
    except Exception as error:  # an answer that no check foresaw
        kind, found = "refused", [Verdict("refused", f"cannot be judged: {type(error).__name__}: {error}")]
    worst = next((v for severe in SEVERE for v in found if v.kind == severe), found[0] if found else None)
    tally.counts[case.solver, case.family, kind if worst is None else worst.kind] += 1
    if worst is not None and len(tally.failures) < KEPT:
        tally.failures.append(Failure(case.solver, k, case.family, worst.kind, worst.why))
    if not plan.mutate or plan.url or found or kind != "right":
        return
    if k % SCALED == 1:
        told = differs(case, plan.device, k)  # type: ignore[arg-type]
        if told is not None:
            tally.scaled[case.solver, bool(told)] += 1
        if told and len(tally.failures) < KEPT:
            tally.failures.append(Failure(case.solver, k, case.family, "scale", told))
    if k % MUTATED == 0:
        for what, mutant in mutants(case, plan, k):
            tally.mutations[case.solver, mutant.kind if mutant else "covered"] += 1
            if mutant is not None and len(tally.failures) < KEPT:
                why = f"after a corrupted {what}: {mutant.kind}: {mutant.why}"
                tally.failures.append(Failure(case.solver, k, case.family, "mutation", why))
