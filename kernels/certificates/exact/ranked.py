"""A list of the best assignments, checked in fractions; of small problems every assignment is priced."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise, permutations
from math import perm
from typing import Any

from kernels.certificates.exact import assignment
from kernels.certificates.exact.statement import Claim, Inputs, Statement, gap_statements, permitted, plain, rational
from kernels.problems.arrays import Array, Csr

MOST = 10_000
"""Assignments that are priced one by one."""


def check(inputs: Inputs, options: Mapping[str, Any], claim: Claim) -> list[Statement]:
    """Every statement of the answer."""
    cost, asked, maximize = inputs["cost"], int(options["k_best"]), bool(options.get("maximize"))
    assert not isinstance(cost, Csr)
    if claim.termination == "infeasible":
        return assignment.check({"cost": cost}, maximize, claim)
    listed = [assignment.pairing(cost, one) for one in claim.arrays["assignments"].tolist()]
    wrong = next((f"assignment {q}: {why}" for q, (_, why) in enumerate(listed) if why), "")
    pairs = [tuple(found) for found, _ in listed]
    if not wrong and (len(set(pairs)) < len(pairs) or len(pairs) > asked):
        wrong = f"{len(pairs)} assignments, {len(set(pairs))} different ones; {asked} were asked for"
    if not wrong and any(len(one) < min(cost.shape) for one in pairs):
        wrong = "pairs are missing"
    if wrong:
        return [Statement("answer", False, wrong)]
    sign, sums = -1 if maximize else 1, [assignment.total(cost, one) for one in pairs]
    first = claim.arrays.get("assignment")
    if first is None or first.tolist() != claim.arrays["assignments"].tolist()[0]:
        return [Statement("answer", False, "`assignment` is not the first of the list")]
    said = [Statement("answer", True, f"{len(pairs)} different assignments, no line twice, none forbidden")]
    said.append(Statement("order", all(sign * a <= sign * b for a, b in pairwise(sums)), "from the best on"))
    stated = claim.facts.get("objectives", [])
    said.append(assignment.stated_objective(claim, sums[0], assignment.size(cost, pairs[0]), len(pairs[0])))
    near = len(stated) == len(sums) and all(
        abs(rational(told) - true) <= assignment.size(cost, one) * (len(one) + 1) / 2**53 + Fraction(1, 2**1074)
        for told, true, one in zip(stated, sums, pairs, strict=True)
    )
    said.append(
        Statement(
            "objective",
            near,
            f"the objectives of {len(sums)} assignments are stated as they are" if near else "some are not",
        )
    )
    said += gap_statements(claim, sums[0], maximize)
    return said + _others(cost, sign, asked, sums, claim)


def _others(cost: Array, sign: int, asked: int, sums: list[Fraction], claim: Claim) -> list[Statement]:
    """Whether nothing outside the list is better."""
    lines = cost.T if cost.shape[0] > cost.shape[1] else cost
    n, m = lines.shape
    if perm(m, n) > MOST:
        return [Statement("others", None, "too many assignments to price; their proof is not in the answer")]
    every = []
    for columns in permutations(range(m), n):
        taken = [lines[i, j] for i, j in enumerate(columns)]
        if all(permitted(c) for c in taken):
            every.append(sign * sum((rational(c) for c in taken), Fraction(0)))
    best, own = sorted(every)[: len(sums)], [sign * value for value in sums]
    gap = rational(claim.facts["list_gap"])
    said = [Statement("bound", claim.bound is None or sign * rational(claim.bound) <= best[0], "that of the best")]
    behind = max((a - b for a, b in zip(own, best, strict=True)), default=Fraction(0))
    said.append(
        Statement("list gap", behind <= gap, f"the list is {float(behind)} behind, {claim.facts['list_gap']} is stated")
    )
    rest, bound = sorted(every)[len(sums) :], claim.facts.get("others_bound")
    if bound is not None and rest:
        words = f"{bound} is stated of those that are not listed, {plain(sign * rest[0])} is the best of them"
        said.append(Statement("others", sign * rational(bound) <= rest[0], words))
    if claim.optimal:
        complete = len(sums) == min(asked, len(every))
        said.append(Statement("optimal", complete, f"{len(sums)} of {len(every)} are listed, {asked} were asked for"))
        largest = max((abs(rational(c)) for c in cost.reshape(-1) if permitted(c)), default=Fraction(0))
        most = Fraction(0) if cost.dtype.kind in "iu" else n * largest / 2**48  # rounding of duals, no more
        said.append(Statement("best", behind <= most, f"the list is {float(behind)} behind, and may be {float(most)}"))
    return said
