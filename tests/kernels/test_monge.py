from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize

from kernels import SOLVERS, Array, Deadline
from kernels.lap import LapOptions, monge

N = 97
FAMILIES: dict[str, Callable[[np.random.Generator], Array]] = {
    "product": lambda rng: np.outer(np.arange(1.0, N + 1), np.arange(1.0, N + 1)),
    "shuffled product": lambda rng: np.outer(rng.permutation(N), rng.permutation(N) - 40),
    "squares on a line": lambda rng: (rng.random(N)[:, None] - 1.3 * rng.random(N)) ** 2,
    "product and noise in a corner": lambda rng: (
        np.outer(np.arange(N), np.arange(N)) + 50 * (np.arange(N)[:, None] == 5) * (np.arange(N) == 91)
    ),
}


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_sorting_is_as_good_as_searching(family: str, maximize: bool) -> None:
    cost = FAMILIES[family](np.random.default_rng(7))
    card = SOLVERS["lap"]
    options = LapOptions(maximize=maximize)
    problem = card.build({"cost": cost}, options)
    solution = card.solve(problem, options, Deadline(30))
    certificate = card.certify(problem, solution)
    rows, cols = scipy.optimize.linear_sum_assignment(cost, maximize)
    assert certificate.holds
    assert certificate.objective == pytest.approx(cost[rows, cols].sum(), rel=1e-12)


@pytest.mark.parametrize("family", list(FAMILIES)[:3])
def test_sorted_costs_are_recognised(family: str) -> None:
    assert monge.solve(FAMILIES[family](np.random.default_rng(7)), False) is not None


def test_a_wrong_entry_is_found() -> None:
    cost = np.outer(np.arange(N), np.arange(N)).astype(np.float64)
    cost[91, 5] -= 400.0
    assert monge.solve(cost, False) is None


def test_an_extreme_first_entry_is_no_order() -> None:
    cost = np.random.default_rng(0).random((N, N))
    cost[0, 0] = cost[-1, -1] = -9.0
    assert monge.corner(cost, 1) is None


@pytest.mark.parametrize("cost", [np.zeros((N, N)), np.full((N, N), np.inf), np.random.default_rng(0).random((N, N))])
def test_costs_without_an_order_are_left_to_the_search(cost: Array) -> None:
    assert monge.solve(cost, False) is None
