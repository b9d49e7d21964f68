"""The compiled sweep says of every answer what `certify_dense` says, to the last bit."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, Array, Deadline, Solution, Termination
from kernels.certificates import brief, swept
from kernels.certificates.assignment import certify_dense
from kernels.certificates.swept import loops
from kernels.certificates.swept.vectors import ROWS
from kernels.problems import Assignment
from kernels.problems.arrays import untouched
from tests.kernels.lap_cases import FAMILIES, draw

LAP = SOLVERS["lap"]


def answered(cost: Array, maximize: bool = False, **start: Any) -> tuple[Assignment, Solution]:
    options = LAP.options(maximize=maximize)
    problem = LAP.build({"cost": cost, **start}, options)
    return problem, LAP.solve(problem, options, Deadline())


def agree(problem: Assignment, solution: Solution) -> None:
    assert swept.certify(problem, solution) == certify_dense(problem, solution)


def changed(solution: Solution, name: str, array: Any) -> Solution:
    return replace(solution, arrays=solution.arrays | {name: array})


@pytest.mark.parametrize("family", FAMILIES)
def test_it_says_what_the_plain_certificate_says(family: str) -> None:
    rng = np.random.default_rng(len(family))
    for _ in range(100):
        cost, maximize, start = draw(family, rng)
        agree(*answered(cost, maximize, **start))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (64, 64), (65, 65), (130, 130), (60, 200), (200, 60)])
def test_of_rows_longer_than_a_stride(shape: tuple[int, int], dtype: Any) -> None:
    rng = np.random.default_rng(shape)
    for maximize in (False, True):
        problem, solution = answered((rng.normal(size=shape) * 1e3).astype(dtype), maximize)
        agree(problem, solution)
        if shape[0] <= shape[1]:
            assert swept._proof(problem, solution) is not None, "the sweep was not used"


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_it_refuses_what_the_plain_certificate_refuses(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    cost = (rng.random((70, 70)) * 100).astype(dtype)
    problem, solution = answered(cost)
    twice, beyond, missing = (solution.arrays["assignment"].copy() for _ in range(3))
    twice[0], beyond[3], missing[5] = twice[1], 70, -1
    swapped = solution.arrays["assignment"].copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    wrong: list[tuple[str, Any]] = [("assignment", a) for a in (twice, beyond, missing, swapped)]
    for name in ("u", "v"):
        duals = solution.arrays[name]
        for bad in (duals + 1, duals * 3, np.zeros_like(duals), duals[:-1], np.full_like(duals, 2**62)):
            wrong.append((name, bad))
        if dtype is np.float64:
            wrong += [(name, np.where(np.arange(70) == 7, odd, duals)) for odd in (np.nan, np.inf, 1e-3, 1e300)]
            wrong.append((name, np.nextafter(duals, np.inf)))
    for name, array in wrong:
        agree(problem, changed(solution, name, array))


def test_a_bound_one_unit_too_high_would_show() -> None:
    """Lines whose least is attained by several entries with different rounding errors."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        cost = 0.1 + rng.integers(0, 3, (90, 90)) * 2.0**-55 + rng.integers(0, 2, (90, 90)) * 2.0**40
        problem, solution = answered(cost)
        for _ in range(5):
            agree(problem, changed(solution, "v", solution.arrays["v"] + rng.normal(size=90)))


def test_forbidden_entries_and_free_columns() -> None:
    rng = np.random.default_rng(3)
    cost = rng.random((80, 120))
    cost[rng.random(cost.shape) < 0.5] = np.inf
    problem, solution = answered(cost)
    agree(problem, solution)
    agree(problem, changed(solution, "v", np.abs(solution.arrays["v"]) + 0.5))
    problem, solution = answered(-cost, True)
    agree(problem, solution)
    nothing = np.full((3, 3), np.inf)
    nothing[:, 0] = 1.0
    agree(*answered(nothing))


def test_it_is_asked_for_what_is_not_brief() -> None:
    problem, solution = answered(np.random.default_rng(4).random((30, 30)))
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swept, "_proof", lambda *_: calls.append("asked"))
        LAP.certify(problem, changed(solution, "u", solution.arrays["u"] * np.nan))
    assert calls == ["asked"]


SHAPES = ((1, 1), (3, 7), (9, 8), (8, 9), (17, 16), (5, 63), (7, 64), (9, 65), (3, 127), (2, 130), (1, 200))


def near_ties(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Floats whose differences are rounded to the same number or to one beside it, denormals, zeros of either sign."""
    kind, n = rng.integers(0, 5), shape[1]
    if kind == 0:
        cost, price = np.full(shape, 0.1), np.full(n, rng.random() * 3)
    elif kind == 1:
        cost, price = rng.random(shape), np.full(n, 2.0 ** rng.integers(40, 56)) * rng.choice([1.0, 1 + 2.0**-52], n)
    elif kind == 2:
        price = rng.normal(size=n)
        cost = rng.normal(size=shape[0])[:, None] + price
    elif kind == 3:
        return rng.choice([5e-324, 0.0, -0.0, 1e-310, -(2.0**-1022)], shape), rng.choice([5e-324, 0.0, -0.0], n)
    else:
        cost, price = rng.choice([1e300, -1e300, 1.0, 0.0], shape), rng.choice([1e300, -1e300, 3.0], n)
    cost = cost + rng.integers(-3, 4, shape) * np.spacing(np.abs(cost))
    return cost, price + rng.integers(-3, 4, n) * np.spacing(np.abs(price))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_least_of_a_row_is_that_of_rational_numbers(shape: tuple[int, int], dtype: Any) -> None:
    rng = np.random.default_rng(shape)
    for trial in range(40):
        cost, price = near_ties(rng, shape)
        most = float(np.finfo(dtype).max)
        cost = np.clip(cost, -most, most).astype(dtype)
        cost[rng.random(shape) < rng.choice([0.0, 0.3, 0.9])] = np.inf
        maximize, high, low = bool(trial % 2), np.empty(len(cost)), np.empty(len(cost))
        cost = -cost if maximize else cost
        for first, last in ((0, trial % len(cost)), (trial % len(cost), len(cost))):
            loops.sweep_floats(first, last, untouched(cost), maximize, price, high, low)
        exactly = list(map(Fraction, price.tolist()))
        for row, found in zip((-cost if maximize else cost).tolist(), zip(high, low, strict=True), strict=True):
            known = [Fraction(c) - v for c, v in zip(row, exactly, strict=True) if np.isfinite(c)]
            assert sum(map(Fraction, found)) == min(known) if known else found[0] == np.inf


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_least_of_a_row_of_integers(shape: tuple[int, int], dtype: Any) -> None:
    rng = np.random.default_rng(shape)
    for trial in range(40):
        most = 2**58 if dtype is np.int64 and trial % 3 else 2**31 - 1
        cost = rng.integers(-most, most, shape, endpoint=True).astype(dtype)
        price = rng.choice([2**61, -(2**61), 2**61 - 1, 0, 5], shape[1])
        maximize, high, at = bool(trial % 2), np.empty(len(cost), np.int64), tuple(rng.integers(0, shape))
        barred = dtype is np.int64 and trial % 4 == 0
        cost[at] = FORBIDDEN if barred else cost[at]
        loops.sweep_integers(0, len(cost), untouched(cost), maximize, price, high)
        least = ((-1 if maximize else 1) * cost.astype(np.int64) - price).min(axis=1)
        assert high[at[0]] == FORBIDDEN if barred else (high == least).all()
        around = np.flatnonzero(np.arange(len(cost)) // ROWS != at[0] // ROWS)
        assert (high[around] == least[around]).all()


@pytest.mark.parametrize("n", [5, 12, 64, 131])
@pytest.mark.parametrize("odd", [np.nan, -np.nan, -np.inf])
def test_what_is_no_number_is_not_passed_over(n: int, odd: float) -> None:
    """A NaN is less than nothing, so a minimum may drop it: then what is claimed would leave an entry out."""
    problem, solution = answered(np.random.default_rng(n).random((n, n)))
    for at in (0, n - 1, n * n // 2, n * n - 2):
        spoilt = np.array(problem.weights)
        spoilt.flat[at] = odd
        hurt = replace(problem, weights=spoilt)
        assert swept._proof(hurt, solution) is None
        assert brief._told(hurt, solution) is None
        assert brief.certify(hurt, solution).bound is None


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_threads_share_the_rows(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In many pieces the certificate is the same, and tells how far it is."""
    monkeypatch.setattr(brief, "MANY", 1)
    monkeypatch.setattr(swept, "A_THREAD", 64)
    monkeypatch.setattr(swept, "A_REPORT", 1000)
    rng = np.random.default_rng(7)
    for shape in ((1, 1), (30, 30), (70, 90)):
        problem, solution = answered((rng.normal(size=shape) * 1e3).astype(dtype))
        heard: list[float] = []
        assert brief._told(problem, solution, heard.append) is not None
        assert heard == sorted(heard)
        assert len(heard) == -(-shape[0] // max(1, 1000 // shape[1]))
        assert heard[-1] == 1
        assert brief.certify(problem, solution) == certify_dense(problem, solution)
        agree(problem, solution)


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_a_matrix_of_any_size_is_swept(dtype: Any) -> None:
    n = 2100
    cost = np.ones((n, n), dtype)
    np.fill_diagonal(cost, 0)
    wide = np.int64 if dtype is np.int32 else np.float64
    arrays = {"assignment": np.arange(n), "u": np.zeros(n, wide), "v": np.zeros(n, wide)}
    problem, solution = Assignment(cost), Solution(Termination.OPTIMAL, "none", arrays)
    assert brief._told(problem, solution) is not None
    assert swept._proof(problem, solution) is not None
    assert brief.certify(problem, solution) == certify_dense(problem, solution)
    agree(problem, solution)
