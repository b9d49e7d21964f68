"""Proofs of many problems beside fractions: objective and bound are the exact ones, rounded once, whatever is given.

Costs, prices and duals are drawn to be hard: ties and near ties, sizes hundreds of powers of two apart, zeros of both
signs, forbidden entries, problems that end at, before and past the edges of the loops' tiles; duals that are no number,
and pairings that are none.
"""

import math
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest

from kernels import Array
from kernels.certificates import threads
from kernels.certificates.rejecting import many, sums
from kernels.certificates.rejecting.many import MANY, judged_together
from kernels.certificates.rejecting.proof import Answer, Proof, judged
from kernels.problems import FORBIDDEN, UNASSIGNED, Rejecting
from kernels.solution import Number, Termination, unheard

TOO_LARGE = {"i": Fraction(2**61), "f": Fraction(np.finfo(np.float64).max) / 64}
WORDS = (Termination.OPTIMAL, *[Termination.TIME_LIMIT] * 6, Termination.CONVERGED)


def exactly(value: float) -> Fraction | None:
    """A number; None for what is none, and for what is forbidden."""
    if isinstance(value, int):
        return None if value == FORBIDDEN else Fraction(value)
    return Fraction(value) if math.isfinite(value) else None


def rounded(exact: Fraction, side: int, whole: bool) -> Number:
    """To the neighbour on `side`."""
    if whole:
        return int(exact)
    nearest = float(exact)
    over = Fraction(nearest) - exact
    return math.nextafter(nearest, side * math.inf) if over * side < 0 else nearest


def proved(problem: Rejecting, answer: Answer, k: int) -> tuple[Number | None, Number | None] | None:
    """(objective, bound) of one problem in its own sense, None where one has none; None where its pairs are none."""
    sign, whole = -1 if problem.maximize else 1, problem.row_prices.dtype.kind == "i"
    (entry, row, col), (_, row_end, col_end) = problem.starts[k].tolist(), problem.starts[k + 1].tolist()
    lines = [
        [None if (exact := exactly(price)) is None else sign * exact for price in side.tolist()]
        for side in (problem.row_prices[row:row_end], problem.col_prices[col:col_end])
    ]
    n, m = len(lines[0]), len(lines[1])
    costs = [
        [None if (exact := exactly(c)) is None else sign * exact for c in line]
        for line in problem.costs[entry : entry + n * m].reshape(n, m).tolist()
    ]
    chosen = answer.assignment[row:row_end].tolist()
    seats = [j for j in chosen if j != UNASSIGNED]
    if any(j < 0 or j >= m for j in seats) or len(set(seats)) < len(seats):
        return None
    pairs = [costs[i][j] for i, j in enumerate(chosen) if j != UNASSIGNED]
    if None in pairs:
        return None
    idle = [lines[0][i] for i in range(n) if chosen[i] == UNASSIGNED] + [lines[1][j] for j in set(range(m)) - {*seats}]
    terms = [*pairs, *idle]
    objective = None if None in terms else sum((t for t in terms if t is not None), Fraction(0))

    given, by_rows = (answer.v if n <= m else answer.u), n <= m
    prices = []
    for value, cap in zip(given[col:col_end] if by_rows else given[row:row_end], lines[by_rows], strict=True):
        dual = exactly(value.item())
        price = Fraction(0) if dual is None or abs(dual) > TOO_LARGE["i" if whole else "f"] else sign * dual
        prices.append(price if cap is None else min(price, cap))
    bound: Fraction | None = sum(prices, Fraction(0))
    for line, top in zip(costs if by_rows else zip(*costs, strict=True), lines[not by_rows], strict=False):
        choices = [c - price for c, price in zip(line, prices, strict=True) if c is not None]
        choices += [] if top is None else [top]
        bound = None if bound is None or not choices else bound + min(choices)
    if not n or not m:  # no entry: each line of the other side is at its price or 0, each of this is not there
        bound = sum(prices, Fraction(0))
    told = [None if value is None else rounded(value, side, whole) for value, side in ((objective, 1), (bound, -1))]
    return told[0] if told[0] is None else sign * told[0], told[1] if told[1] is None else sign * told[1]


def drawn(rng: np.random.Generator, dtype: type, shape: int, kind: str) -> Array:
    """Numbers of a kind."""
    if dtype is np.int64:
        most = {"ties": 2, "wide": 2**40, "edge": 2**30}.get(kind, 400)
        return rng.integers(-most, most + 1, shape)
    if kind == "ties":
        found = rng.choice([0.1, 0.3, 1 / 3, 0.0, -0.0], shape)
    elif kind in ("near", "coarse"):
        found = 1.0 + rng.integers(-3, 4, shape) * 2.0**-52
    elif kind == "wide":
        found = np.ldexp(rng.random(shape) - 0.5, rng.integers(-100, 100, shape))
    elif kind == "tiny":
        found = rng.integers(-9, 10, shape) * 5e-324
    elif kind == "edge":
        found = rng.normal(size=shape) * 10.0 ** rng.integers(-37, 36)
    else:
        found = rng.random(shape)
    return found.astype(dtype)


def asked(rng: np.random.Generator, dtype: type, count: int, most: int) -> tuple[Rejecting, Answer]:
    """Problems with answers of any worth."""
    wide = np.int64 if dtype is np.int64 else np.float64
    kind = str(rng.choice(["unit", "ties", "near", "wide", "tiny", "edge", "coarse"]))
    sizes = rng.integers(0, most + 1, (count, 2))
    if most > 60:
        sizes[:6] = [[64, 64], [63, 65], [65, 63], [128, 129], [8, 7], [most, 1]]
    maximize, strict = bool(rng.integers(2)), bool(rng.random() < 0.2)
    cost = drawn(rng, dtype, int(sizes.prod(axis=1).sum()), kind)
    barred = -np.inf if maximize else np.inf
    if rng.random() < 0.4:
        cost = np.where(rng.random(cost.size) < 0.3, FORBIDDEN if dtype is np.int64 else barred, cost).astype(dtype)
    prices = [drawn(rng, wide, int(sizes[:, side].sum()), kind) for side in (0, 1)]
    if strict:
        shorter = [sizes[:, 0] <= sizes[:, 1], sizes[:, 1] <= sizes[:, 0]]
        must = FORBIDDEN if wide is np.int64 else barred
        prices = [np.repeat(np.where(one, must, 0), sizes[:, side]).astype(wide) for side, one in enumerate(shorter)]
    problem = Rejecting(cost, sizes, prices[0], prices[1], maximize, "ragged", strict=strict)
    seats = [rng.permutation(np.append(np.arange(m), np.full(n, UNASSIGNED)))[:n] for n, m in sizes]
    assignment = np.concatenate(seats) if seats else np.zeros(0, np.int64)
    u, v = (drawn(rng, wide, int(sizes[:, side].sum()), kind) for side in (0, 1))
    if kind == "coarse" and wide is np.float64:  # differences that round to the same, each with an error of its own
        u, v = (np.ldexp(rng.integers(-3, 4, array.size) + array, 20) for array in (u, v))
        for array in prices:
            array += 2.0**22
    for array in (assignment, u, v):
        wrong = np.flatnonzero(rng.random(array.size) < rng.choice([0, 0.01, 0.1]) / 8)
        hostile: list[float] = [-2, 10**6, -(2**62), 2**62, FORBIDDEN, 0, 3]
        if array.dtype == np.float64:
            hostile = [np.nan, np.inf, -np.inf, 1e307, -1e307, -0.0, 5e-324]
        array[wrong] = rng.choice(np.array(hostile, array.dtype), wrong.size)
    return problem, Answer(assignment, u, v, None, None)


def compared(seed: int, dtype: type, count: int, most: int) -> int:
    """How many problems were compared; each with its proof alone, and with fractions."""
    rng = np.random.default_rng([seed, count, most])
    problem, answer = asked(rng, dtype, count, most)
    ended = [WORDS[k] for k in rng.integers(0, len(WORDS), count)]
    together = judged_together(problem, answer, ended, unheard)
    assert [asdict(one) for one in together] == [asdict(one) for one in judged(problem, answer, ended, unheard)]
    for k, proof in enumerate(together):
        against_fractions(problem, answer, k, proof)
    return len(together)


def against_fractions(problem: Rejecting, answer: Answer, k: int, proof: Proof) -> None:
    exact = proved(problem, answer, k)
    if exact is None:
        assert proof.why
        return
    if proof.why:
        assert "pairs missing" in proof.why
        return
    objective, bound = exact
    assert proof.objective == objective
    assert proof.bound == bound
    if objective is not None and bound is not None:
        gap = abs(Fraction(objective) - Fraction(bound))
        assert proof.gap is not None
        assert abs(Fraction(proof.gap)) >= gap if objective != bound else proof.gap == 0
        if proof.ended is Termination.OPTIMAL:
            assert gap == 0 or problem.row_prices.dtype.kind == "f"


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_many_proofs_are_those_of_fractions(dtype: type) -> None:
    done = 0
    for seed in range(60):
        done += compared(seed, dtype, MANY + seed % 40, 7)
    for seed in range(3):
        done += compared(seed, dtype, MANY, 130)
    assert done > 1900


def test_threads_prove_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "A_WAKE", 1 << 8)
    monkeypatch.setattr(many, "PIECE", 1 << 8)
    monkeypatch.setattr(sums, "most_threads", lambda: 3)
    monkeypatch.setattr(threads, "CORES", 3)
    threads._threads.cache_clear()
    for seed in range(12):
        compared(seed, np.float64, 60, 12)
        compared(seed, np.int64, MANY, 40)
    threads._threads.cache_clear()


def test_whole_numbers_that_leave_int64_are_added_one_by_one() -> None:
    sizes = np.array([[3, 3]] * MANY)
    cost = np.full(9 * MANY, 2**57)
    prices = np.full(3 * MANY, 2**60)
    problem = Rejecting(cost, sizes, prices, prices, form="ragged")
    answer = Answer(np.full(3 * MANY, UNASSIGNED), prices * 0, prices * 0 - 2**60, None, None)
    together = judged_together(problem, answer, [Termination.TIME_LIMIT] * MANY, unheard)
    assert {proof.objective for proof in together} == {6 * 2**60}
    for k, proof in enumerate(together):
        against_fractions(problem, answer, k, proof)
