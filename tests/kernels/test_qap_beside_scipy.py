"""What SciPy's quadratic assignment takes as options, asked of qap: seeds, guesses, maximising, unequal sizes."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import quadratic_assignment

from kernels import SOLVERS, Array, Certificate, Deadline, Solution
from tests.instances.quadratic import symmetric

CARD = SOLVERS["qap"]


def solved(limit: float | None = None, start: Any = None, **given: Any) -> tuple[Solution, Certificate]:
    inputs: dict[str, Any] = {name: given.pop(name) for name in ("flow", "distance")}
    if start is not None:
        inputs["permutation0"] = np.array(start)
    options = CARD.options(**given)
    problem = CARD.build(inputs, options)
    solution = CARD.solve(problem, options, Deadline(limit))
    certificate = CARD.certify(problem, solution)
    assert certificate.holds
    return solution, certificate


@pytest.mark.parametrize("method", ["faq", "2opt"])
@pytest.mark.parametrize("seeds", [0, 1, 3, 8])
def test_a_partial_match_is_fixed(method: str, seeds: int) -> None:
    rng = np.random.default_rng(seeds)
    flow, distance = symmetric(8, 20, 1), symmetric(8, 20, 2)
    # in order of the facilities: SciPy 1.17 mixes other orders up
    match = np.stack((np.sort(rng.permutation(8)[:seeds]), rng.permutation(8)[:seeds]), axis=1)
    theirs = quadratic_assignment(flow, distance, method=method, options={"partial_match": match, "rng": rng})
    fixed = dict(match.tolist())
    solution, certificate = solved(flow=flow, distance=distance, fixed=fixed)
    p = solution.arrays["permutation"]
    assert [p[i] for i in fixed] == list(fixed.values()) == [theirs.col_ind[i] for i in fixed]
    assert certificate.objective is not None
    assert certificate.objective <= theirs.fun
    assert certificate.objective == (flow * distance[np.ix_(p, p)]).sum()
    if seeds == 8:
        assert certificate.objective == theirs.fun


def test_a_partial_guess_is_where_it_begins() -> None:
    flow, distance = symmetric(12, 20, 1), symmetric(12, 20, 2)
    start = np.random.default_rng(0).permutation(12)
    guess = np.stack((np.arange(12), start), axis=1)
    theirs = quadratic_assignment(flow, distance, method="2opt", options={"partial_guess": guess})
    solution, _ = solved(0.0, start, flow=flow, distance=distance)
    np.testing.assert_array_equal(solution.arrays["permutation"], start)
    found = solved(None, start, flow=flow, distance=distance, method="2opt", rounds=2)[1].objective
    assert found is not None
    assert found <= theirs.fun


def test_a_maximum_is_the_minimum_of_negated_flows() -> None:
    flow, distance = symmetric(7, 20, 1), symmetric(7, 20, 2)
    theirs = quadratic_assignment(flow, distance, options={"maximize": True})
    certificate = solved(flow=-flow, distance=distance)[1]
    assert certificate.objective is not None
    assert -certificate.objective >= theirs.fun
    assert certificate.facts["verified"]


def padded(matrix: Array, n: int) -> Array:
    found = np.zeros((n, n), matrix.dtype)
    found[: len(matrix), : len(matrix)] = matrix
    return found


@pytest.mark.parametrize("seeds", [0, 2])
def test_fewer_facilities_are_a_graph_padded_with_zeros(seeds: int) -> None:
    """SciPy refuses unequal sizes; its users pad, as for seeded graph matching (Fishkind et al. 2019)."""
    flow, distance = symmetric(5, 20, 3), symmetric(8, 20, 4)
    fixed = {i: 7 - i for i in range(seeds)}
    match = np.array(list(fixed.items()), int).reshape(seeds, 2)
    with pytest.raises(ValueError, match="equal size"):
        quadratic_assignment(flow, distance)
    theirs = quadratic_assignment(padded(flow, 8), distance, options={"partial_match": match})
    solution, certificate = solved(flow=flow, distance=distance, fixed=fixed)
    whole = solved(flow=padded(flow, 8), distance=distance, fixed=fixed)[1]
    assert certificate.objective == whole.objective
    assert certificate.objective is not None
    assert certificate.objective <= theirs.fun
    p = solution.arrays["permutation"]
    assert sorted(p) == list(range(8))
    assert certificate.objective == (flow * distance[np.ix_(p[:5], p[:5])]).sum()


def test_centred_padding_is_a_change_of_flows() -> None:
    """0 and 1 become -1 and 1 before zeros are added: what is matched with nobody then neither wins nor loses."""
    rng = np.random.default_rng(5)
    large = np.triu(rng.integers(0, 2, (8, 8)), 1)
    large = large + large.T
    chosen = rng.permutation(8)[:6]
    small = large[np.ix_(chosen, chosen)]
    centred = [(2 * graph - 1) * (1 - np.eye(len(graph), dtype=int)) for graph in (small, large)]
    solution, certificate = solved(flow=-centred[0], distance=centred[1])
    p = solution.arrays["permutation"][:6]
    assert certificate.objective == -30  # every pair of the six agrees
    np.testing.assert_array_equal(large[np.ix_(p, p)], small)
