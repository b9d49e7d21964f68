"""What an answer says of the whole: its word, and the sums over the problems of a batch.

Each problem of a batch is checked by itself, from what the facts list of it. Here the numbers and the word of the
answer are held against that list.
"""

from fractions import Fraction
from typing import Any

from kernels.certificates.exact.statement import Claim, Statement, gap_statements, plain, rational

WORST = ("optimal", "gap_reached", "converged", "iteration_limit", "time_limit", "stopped", "infeasible")
"""From the best word to the worst; a batch has its worst problem's."""
OF_ASSIGNMENTS = tuple(word for word in WORST if word != "gap_reached")
"""Nobody asks for a gap there."""
OF_ROWS, OF_COLUMNS = ("assignment", "u", "u_finer", "hall_rows"), ("v", "v_finer", "hall_cols")
"""Arrays of an answer with an entry a row, and a column."""
LARGEST = Fraction(2) ** 1024
LEAST = Fraction(1, 2**1074)


def together(claim: Claim, maximize: bool = False, words: tuple[str, ...] = WORST) -> list[Statement]:
    """Whether word, objective, bound and gap of a batch follow from those of its problems.

    Objective and bound are sums over the problems that have an objective; no bound where one of these has none.
    """
    listed = claim.facts["problems"]
    solved = [k for k, one in enumerate(listed["objectives"]) if one is not None]
    said = [worst(claim, listed["terminations"], words)]
    objectives, bounds = ([listed[name][k] for k in solved] for name in ("objectives", "bounds"))
    some = bool(solved) or not listed["objectives"]
    total = _total(objectives) if some else None
    said.append(_objective(claim, total, objectives))
    said.append(_bound(claim, _total(bounds) if some else None, maximize))
    said += gap_statements(claim, None if claim.objective is None else total, maximize)
    return said


def worst(claim: Claim, words: list[str], known: tuple[str, ...] = WORST) -> Statement:
    """Whether the answer's word is the worst of its problems', and all are known ones."""
    unknown = [word for word in (*words, claim.termination) if word not in known]
    least = "" if unknown else max(words, key=WORST.index, default="optimal")
    found = (
        f"{unknown[0]} is no word of such a problem"
        if unknown
        else f"{claim.termination} is said of all, {least} of the worst"
    )
    return Statement("termination", claim.termination == least, found)


def uneven(claim: Claim) -> list[Statement]:
    """The lists about the problems of a batch that are not as long as that of their words; nothing where all are.

    Each problem is looked at by its place. What stands behind the last one would be nobody's, and be added up.
    """
    listed = claim.facts.get("problems")
    if not isinstance(listed, dict) or not isinstance(words := listed.get("terminations"), list):
        return []
    return [
        Statement("problems", False, f"{len(values)} {name} are listed of {len(words)} problems")
        for name, values in listed.items()
        if isinstance(values, list) and len(values) != len(words)
    ]


def misshapen(claim: Claim, widths: tuple[int, ...], count: int | None = None) -> list[Statement]:
    """The arrays of an assignment's answer that hold more or less than its problems have; nothing where all fit.

    Args:
        widths: how many rows and columns there are, of the largest problem where `count` problems are padded to it.
    """
    found = []
    for name, array in claim.arrays.items():
        side = 1 if name in OF_COLUMNS else 0 if name in OF_ROWS else None
        own = array.shape[int(name.endswith("_finer")) :]
        ahead = () if count is None else (count,)
        if own[: len(ahead)] != ahead or (side is not None and own[len(ahead) :] != (widths[side],)):
            words = f"{name} has the shape {array.shape}, and there are {widths[0]} rows and {widths[1]} columns"
            found.append(Statement("answer", False, words + (f" in {count} problems" if ahead else "")))
    return found


def target(claim: Claim, asked: float | None) -> list[Statement]:
    """Whether an objective that was asked for is reached, where the answer says so."""
    if claim.termination != "gap_reached":
        return []
    reached = asked is not None and claim.objective is not None and rational(claim.objective) <= rational(asked)
    return [Statement("gap reached", reached, f"{claim.objective} is stated, {asked} was asked for")]


def nothing(claim: Claim) -> list[Statement]:
    """What says that there is no answer states no numbers of one."""
    numbers = {"objective": claim.objective, "bound": claim.bound, "gap": claim.gap_abs, "relative gap": claim.gap_rel}
    return [
        Statement(name, False, f"{number} is stated of a problem without answers")
        for name, number in numbers.items()
        if number is not None
    ]


def relative(claim: Claim) -> list[Statement]:
    """The relative gap, where one is stated beside objective, bound and gap."""
    if claim.gap_rel is None:
        return []
    if claim.gap_abs is None or claim.objective is None or claim.bound is None:
        return [Statement("relative gap", False, f"{claim.gap_rel} is stated without an objective, a bound and a gap")]
    scale = max(abs(rational(claim.objective)), abs(rational(claim.bound)))
    share = rational(claim.gap_abs) / scale if scale else Fraction(0)
    holds = rational(claim.gap_rel) >= share * (1 - Fraction(1, 2**50)) - LEAST
    return [Statement("relative gap", holds, f"{claim.gap_rel} is stated, {plain(share)} found")]


def _total(values: list[Any]) -> Fraction | None:
    """The exact sum; None where something is missing."""
    if any(value is None for value in values):
        return None
    return sum(map(rational, values), Fraction(0))


def _objective(claim: Claim, total: Fraction | None, values: list[Any]) -> Statement:
    if claim.objective is None:
        none = total is None or abs(total) * (1 + Fraction(1, 2**50)) >= LARGEST
        return Statement("objective", none, "none is stated" + ("" if none else ", and every problem has one"))
    if total is None:
        return Statement("objective", False, f"{claim.objective} is stated, and no problem has one")
    slack = sum((abs(rational(value)) for value in values), Fraction(0)) * Fraction(len(values) + 1, 2**53) + LEAST
    whole = all(isinstance(value, int) for value in (*values, claim.objective))
    right = abs(rational(claim.objective) - total) <= (0 if whole else slack)
    return Statement("objective", right, f"{claim.objective} is stated, the problems' add up to {plain(total)}")


def _bound(claim: Claim, total: Fraction | None, maximize: bool) -> Statement:
    if claim.bound is None:
        return Statement("bound", True, "none is stated")
    if total is None:
        return Statement("bound", False, f"{claim.bound} is stated, and not every problem has one")
    stated = rational(claim.bound)
    return Statement(
        "bound",
        stated >= total if maximize else stated <= total,
        f"{claim.bound} is stated, the problems' add up to {plain(total)}",
    )
