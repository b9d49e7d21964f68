"""The compiled tabu search against one that prices every exchange anew, with the same draws."""

from typing import Any

import numpy as np
import pytest

from kernels import Array
from kernels.problems import QuadraticAssignment
from kernels.qap.cpu import tabu
from kernels.qap.form import search_form
from tests.oracles import quadratic as oracle

SEED, ITERATIONS = 11, 150


class Draws:
    """xorshift64*, 31 bits."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, n: int) -> int:
        x = self.state
        x ^= x >> 12
        x = (x ^ x << 25) & (2**64 - 1)
        self.state = x ^ x >> 27
        return (self.state * 2685821657736338717 & (2**64 - 1)) // 2**33 % n


def plain(problem: QuadraticAssignment, p: Array, tenure: tuple[int, int], forced_after: int) -> Any:
    """The best cost, the last and the best permutation."""
    n, draws = problem.n, Draws(SEED)

    def cost_of(permutation: Array) -> int:
        return int(oracle.objective(problem.flow, problem.distance, permutation, problem.linear))

    def costs_of(permutations: Array) -> list[int]:
        """Of many at once, by the definition; below 2^63 for costs of 2^24."""
        costs = (problem.flow * problem.distance[permutations[:, :, None], permutations[:, None, :]]).sum((1, 2))
        if problem.linear is not None:
            costs += problem.linear[np.arange(n), permutations].sum(1)
        return [int(cost) for cost in costs]

    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    dates = {(u, place): -place - 1 for u in range(n) for place in range(n)}
    best_cost, best = cost_of(p), p.copy()
    for it in range(1, ITERATIONS + 1):
        cost = cost_of(p)
        exchanged = np.repeat(p[None], len(pairs), 0)
        for one, (u, v) in zip(exchanged, pairs, strict=True):
            one[[u, v]] = p[[v, u]]
        deltas = {pair: found - cost for pair, found in zip(pairs, costs_of(exchanged), strict=True)}
        until = {(u, v): min(dates[u, p[v]], dates[v, p[u]]) for u, v in pairs}
        free = [delta for pair, delta in deltas.items() if until[pair] < it]
        least = min(deltas.values())
        use_all = cost + least < best_cost or not free
        wanted = least if use_all else min(free)
        first = draws.below(n)
        rows = [(first + step) % n for step in range(n)]
        r, s = next(
            (u, v) for u in rows for v in range(u + 1, n) if deltas[u, v] == wanted and (use_all or until[u, v] < it)
        )
        if forced_after > 0 and not use_all and it % 16 == 0:
            u, before = draws.below(n), it - forced_after
            old = [v for v in range(n) if v != u and max(dates[u, p[v]], dates[v, p[u]]) < before]
            r, s = (min(u, old[0]), max(u, old[0])) if old else (r, s)
        for one in (r, s):
            dates[one, p[one]] = it + tenure[0] + draws.below(tenure[1] - tenure[0] + 1)
        p[[r, s]] = p[[s, r]]
        if cost_of(p) < best_cost:
            best_cost, best = cost_of(p), p.copy()
    return best_cost, p.tolist(), best.tolist()


def problem_of(kind: str, n: int) -> QuadraticAssignment:
    rng = np.random.default_rng(n)
    high = 2**24 if kind == "wide" else 9
    flow, distance = rng.integers(0, high, (2, n, n))
    if kind in ("symmetric", "wide"):
        distance = distance + distance.T
    linear = rng.integers(-50, 50, (n, n)) if kind == "linear" else None
    return QuadraticAssignment(flow, distance, linear)


@pytest.mark.parametrize("n", [2, 5, 16, 17, 20])
@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "linear", "wide"])
def test_a_search_makes_the_moves_of_one_that_prices_every_exchange(kind: str, n: int) -> None:
    problem = problem_of(kind, n)
    form = search_form(problem)
    assert form.dtype == (np.int64 if kind == "wide" else np.int32)
    tenure, forced_after = (1, max(2, n // 3)), (n if n % 2 else 0)
    p = np.random.default_rng(1).permutation(n)
    expected = plain(problem, p.copy(), tenure, forced_after)
    cost = np.int64(tabu.cost_of(form.flow, form.distance, form.linear, form.symmetric, p, np.int64(0)))
    best, slot, frequency = p.copy(), np.zeros(1, np.int64), np.zeros((n, n), np.int32)
    done = tabu.search(
        form.flow, form.distance, form.linear, form.symmetric, p, best, cost,
        form.dtype.type(np.iinfo(form.dtype).max), np.array([SEED], np.uint64), ITERATIONS, tenure, forced_after,
        np.int64(-(2**62)), slot, np.zeros(1, np.uint8), frequency,
    )  # fmt: skip
    assert done == ITERATIONS
    assert (slot[0], p.tolist(), best.tolist()) == expected
