"""Couplings of two small spaces, in fractions: none may be below a bound, or better than a gap or an optimum allows."""

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from kernels.certificates.exact import gromov
from kernels.certificates.exact.statement import Claim, plain, rational
from tests.fuzz.case import Case

Plan = list[list[Fraction]]
MOST = 24
"""Couplings that are tried."""


def against(case: Case, claim: Claim) -> Iterator[tuple[str, str]]:
    """(verdict, why) for each claim that one of these couplings refutes."""
    problem = gromov.Problem(case.inputs, case.options)
    tried = [problem.value(plan) for plan in couplings(problem)]
    best, size = min(tried)
    if claim.bound is not None and rational(claim.bound) > best:
        yield "misleading", f"bound {claim.bound} is above a coupling of {plain(best)}"
    if claim.objective is None:
        return
    worse = rational(claim.objective) - best
    if claim.gap_abs is not None and worse > rational(claim.gap_abs) * (1 + Fraction(1, 2**50)):
        yield "misleading", f"gap {claim.gap_abs}, and a coupling is {plain(worse)} better"
    if claim.optimal and worse > gromov.OPTIMAL * size + Fraction(1, 10**250):
        yield "wrong", f"{claim.objective} is optimal, it says; a coupling has {plain(best)}"


def couplings(problem: gromov.Problem) -> Iterator[Plan]:
    """The product, and plans without cycles: rows and columns in some orders, each filled from the first corner."""
    yield [[a * b for b in problem.b] for a in problem.a]
    orders = list(itertools.islice(itertools.permutations(range(problem.m)), 2 * MOST))
    rng = np.random.default_rng(problem.n * 10 + problem.m)
    rng.shuffle(orders)
    for columns in orders[:MOST]:
        rows = rng.permutation(problem.n).tolist()
        yield _filled(problem, rows, list(columns))


def _filled(problem: gromov.Problem, rows: list[int], columns: list[int]) -> Plan:
    plan = [[Fraction(0)] * problem.m for _ in range(problem.n)]
    left_a, left_b = list(problem.a), list(problem.b)
    i = j = 0
    while i < problem.n and j < problem.m:
        row, column = rows[i], columns[j]
        moved = min(left_a[row], left_b[column])
        plan[row][column] += moved
        left_a[row] -= moved
        left_b[column] -= moved
        i, j = (i + 1, j) if not left_a[row] else (i, j + 1)
    return plan
