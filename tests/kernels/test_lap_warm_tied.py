"""Warm starts of integers that tie: which pairs are tight, how many are found, and what is left to the paths."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from kernels import FORBIDDEN, SOLVERS, Array, Certificate, Deadline, Solution, Termination
from kernels.lap.cpu import by_rows, near_early, tight, whole
from kernels.lap.masks import BEYOND, MASKED_INF
from kernels.problems import ranges
from kernels.problems.arrays import Words, untouched
from tests.oracles.assignment import scipy_optimum

LAP = SOLVERS["lap"]


def answer(cost: Array, maximize: bool = False, **duals: Any) -> tuple[Solution, Certificate]:
    options = LAP.options(maximize=maximize)
    problem = LAP.build({"cost": cost, **duals}, options)
    solution = LAP.solve(problem, options, Deadline(), "cpu")
    return solution, LAP.certify(problem, solution)


@contextlib.contextmanager
def checks_that_list(threads: int = 1) -> Iterator[None]:
    """Whether the checks make lists is a question of how many threads there are."""
    with patch.object(ranges, "beside", near_early.early), patch.object(near_early, "MOST_THREADS", threads << 10):
        yield


def searched(cost: Array, v: Array, masked: bool = False) -> whole.Whole:
    limits, bits = by_rows.CONSTANTS["narrow" if cost.dtype == np.int32 else "i"]
    limits = np.array([MASKED_INF, -MASKED_INF]) if masked else limits
    bits = np.array([MASKED_INF, 0]) if masked else bits
    return whole.new_whole(untouched(cost), limits, bits, v.astype(cost.dtype), np.empty(len(cost), np.int64))


def as_matrix(bits: Words, n: int) -> Array:
    """What the words say of each column."""
    matrix = np.zeros((len(bits), n), bool)
    for w in range(bits.shape[1]):
        first = min(w * 64, n - 64)
        matrix[:, first : first + 64] |= (bits[:, w, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) == 1
    return matrix


@pytest.mark.parametrize("high", [3, 30, 99])
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("maximize", [False, True])
def test_old_duals_leave_nothing_to_the_paths(high: int, early: bool, dtype: Any, maximize: bool) -> None:
    """One percent of the rows changed: a full assignment of tight pairs is there, and needs no row a second time."""
    rng, n = np.random.default_rng([1, high]), 600
    cost = rng.integers(0, high + 1, (n, n)).astype(dtype)
    old = answer(cost, maximize)[0].arrays
    cost[rng.permutation(n)[:6]] = rng.integers(0, high + 1, (6, n))
    with checks_that_list(1 if early else 0):
        solution, certificate = answer(cost, maximize, u0=old["u"], v0=old["v"])
    assert certificate.objective == scipy_optimum(cost, maximize)
    assert certificate.gap_abs == 0
    assert certificate.termination is None
    assert solution.facts["paths"] == solution.facts["rows_read_whole"] == 0


@pytest.mark.parametrize("n", [64, 65, 127, 130, 257])
@pytest.mark.parametrize("known", ["right", "some", "nothing"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_bit_stands_for_each_tight_pair(n: int, known: str, dtype: Any) -> None:
    rng = np.random.default_rng([2, n])
    cost, v = rng.integers(-4, 5, (n, n)).astype(dtype), rng.integers(-3, 4, n)
    masked = dtype == np.int64
    if masked:
        cost[rng.random((n, n)) < 0.3] = BEYOND
        cost[3] = BEYOND
    s, bits, u = searched(cost, v, masked), tight.new_tight(n, n), np.empty(n, dtype)
    net = cost - s.v
    least = net.min(axis=1)
    old = least.copy()
    if known == "some":
        old[rng.random(n) < 0.3] += rng.integers(-2, 3)
    for first, last in ((0, n // 3), (n // 3, n)):
        sizes = tight.new_sizes(s.v)
        tight.mark_tight(s, bits, old[:0] if known == "nothing" else old, u, sizes, first, last)
        assert sizes.max() == np.abs(cost[first:last]).max()
    expected = net == least[:, None]
    expected[least >= s.inf] = False
    assert (as_matrix(bits, n) == expected).all()
    assert (u == least).all()


@pytest.mark.parametrize("n", [64, 100, 200])
@pytest.mark.parametrize("density", [0.5, 2.0, 4.0, 20.0])
def test_as_many_rows_as_can_be_are_paired(n: int, density: float) -> None:
    rng = np.random.default_rng([3, n])
    for _ in range(10):
        allowed = rng.random((n, n)) < density / n
        allowed[:, rng.permutation(n)[:3]] = False
        cost = np.where(allowed, 0, 1).astype(np.int32)
        s, bits, u = searched(cost, np.zeros(n)), tight.new_tight(n, n), np.empty(n, np.int32)
        tight.mark_tight(s, bits, u[:0], u, tight.new_sizes(s.v), 0, n)
        bits[~allowed.any(axis=1)] = 0  # rows of ones are tight everywhere
        n_free = tight.match_tight(s, bits)
        most = int((maximum_bipartite_matching(csr_matrix(allowed), perm_type="column") >= 0).sum())
        rows = np.flatnonzero(s.col_of >= 0)
        assert n - n_free == len(rows) == most
        assert allowed[rows, s.col_of[rows]].all()
        assert (s.row_of[s.col_of[rows]] == rows).all()
        assert (s.row_of >= 0).sum() == most


def test_the_checks_mark_what_a_search_marks() -> None:
    rng, n = np.random.default_rng(4), 300
    cost, v = rng.integers(-3, 4, (n, n), dtype=np.int32), rng.integers(-1, 2, n)
    cost[7, 9] = -5
    with checks_that_list():
        early = near_early.early(cost, False, v, (cost - v).min(axis=1))
    assert early is not None
    assert early() == 5
    assert early.suits(v)
    assert not early.suits(v.copy())
    made = early.take(cost, v.astype(np.int32))
    assert made is not None
    assert made.tight is not None
    assert (made.tight[1] == (cost - v).min(axis=1)).all()
    assert (as_matrix(made.tight[0], n) == (cost - v == made.tight[1][:, None])).all()
    assert early.take(cost, v.astype(np.int32)) is None


def test_marks_at_other_prices_are_not_taken() -> None:
    rng, n = np.random.default_rng(5), 300
    cost, v = rng.integers(0, 4, (n, n), dtype=np.int32), rng.integers(-1, 2, n)
    options = LAP.options()
    with checks_that_list():
        problem = LAP.build({"cost": cost, "v0": v}, options)
    problem = dataclasses.replace(problem, v0=v + rng.integers(0, 2, n))
    solution = LAP.solve(problem, options, Deadline(), "cpu")
    assert LAP.certify(problem, solution).objective == scipy_optimum(cost, False)


@pytest.mark.parametrize("odd", [whole.NARROW, -whole.NARROW, whole.NARROW + 1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("place", [(0, 0), (299, 299), (130, 7)])
@pytest.mark.parametrize("apart", [1, 50])
def test_costs_beyond_int32_are_seen_by_the_checks(odd: int, place: tuple[int, int], apart: int) -> None:
    """Whether they tie or are listed: `apart` tells their values apart."""
    rng, n = np.random.default_rng(6), 300
    cost, v = rng.integers(0, 4 * apart, (n, n), dtype=np.int32), rng.integers(-1, 2, n)
    cost[place] = odd
    with checks_that_list():
        early = near_early.early(cost, False, v)
        assert early is not None
        assert early() == (abs(odd) if abs(odd) <= whole.NARROW else None)
        problem = LAP.build({"cost": cost, "v0": v}, LAP.options())
    assert problem.looked.largest == abs(odd)
    _, certificate = answer(cost, v0=v)
    assert certificate.objective == scipy_optimum(cost, False)


@pytest.mark.parametrize("size", [1, 4 * whole.NARROW, 4 * whole.NARROW + 1, 2**63 - 1])
def test_prices_of_any_size_change_no_answer(size: int) -> None:
    rng, n = np.random.default_rng(7), 300
    cost = rng.integers(0, 4, (n, n), dtype=np.int32)
    for sign in (1, -1):
        v, u = np.zeros(n, np.int64), rng.integers(-(2**63), 2**63 - 1, n)
        v[::7] = sign * size
        with checks_that_list():
            problem = LAP.build({"cost": cost, "v0": v}, LAP.options())
            assert problem.looked.beside.suits(problem.v0) is (size == 1)
            _, certificate = answer(cost, v0=v, u0=u)
        assert certificate.objective == scipy_optimum(cost, False)


def test_a_problem_that_is_stopped_has_a_bound() -> None:
    rng, n = np.random.default_rng(8), 400
    cost = rng.integers(0, 20, (n, n), dtype=np.int64)
    cost[rng.random((n, n)) < 0.5] = FORBIDDEN
    cost[np.arange(n), rng.permutation(n)] = 19
    options = LAP.options()
    problem = LAP.build({"cost": cost, "v0": np.zeros(n, np.int64)}, options)
    with patch.object(tight, "PIECE", 1 << 13):
        solution = LAP.solve(problem, options, Deadline(0.0), "cpu")
    assert solution.termination is Termination.TIME_LIMIT
    certificate = LAP.certify(problem, solution)
    optimum = answer(cost)[1].objective
    assert certificate.holds
    assert optimum is not None
    assert certificate.bound is not None
    assert certificate.bound <= optimum
