"""The certificate of small problems says of every answer what `certify_dense` says, to the last bit."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import Array, Solution
from kernels.certificates import brief
from kernels.certificates.assignment import certify_dense
from kernels.certificates.brief import loops
from kernels.certificates.rounded import down, up
from kernels.problems import Assignment
from tests.kernels.lap_cases import FAMILIES, LAP, draw
from tests.kernels.test_swept_certificate import answered, changed


def agree(problem: Assignment, solution: Solution) -> None:
    assert brief.certify(problem, solution) == certify_dense(problem, solution)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_says_what_the_plain_certificate_says(family: str) -> None:
    rng = np.random.default_rng(len(family) + 100)
    for _ in range(100):
        cost, maximize, start = draw(family, rng)
        agree(*answered(cost, maximize, **start))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (64, 64), (65, 130)])
def test_it_is_used_for_optima_and_agrees(shape: tuple[int, int], dtype: Any) -> None:
    rng = np.random.default_rng(shape)
    for maximize in (False, True):
        problem, solution = answered((rng.normal(size=shape) * 1e3).astype(dtype), maximize)
        agree(problem, solution)
        assert brief._told(problem, solution) is not None


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_what_is_no_optimum_is_told_by_the_others(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    problem, solution = answered((rng.random((20, 20)) * 100).astype(dtype))
    seats = solution.arrays["assignment"]
    wrong: list[tuple[str, Array]] = [("assignment", seats[::-1].copy())]
    for at, column in ((0, seats[1]), (3, 20), (5, -1), (7, 1 << 40)):
        wrong.append(("assignment", np.where(np.arange(20) == at, column, seats)))
    for name in ("u", "v"):
        duals = solution.arrays[name]
        wrong += [(name, bad) for bad in (duals + 1, duals * 3, duals[:-1], np.full_like(duals, 2**62))]
        if dtype is np.float64:
            wrong += [(name, np.where(np.arange(20) == 7, odd, duals)) for odd in (np.nan, np.inf, 1e-3, 1e300)]
    for name, array in wrong:
        agree(problem, changed(solution, name, array))
    free = replace(problem, weights=np.tile(np.asarray(problem.weights), (1, 2)))
    agree(free, changed(solution, "v", np.abs(np.tile(solution.arrays["v"], 2)) + 1))


def test_a_violated_dual_is_reported() -> None:
    problem, solution = answered(np.random.default_rng(2).random((12, 12)))
    above = changed(solution, "u", solution.arrays["u"] + 0.25)
    assert brief._told(problem, above) is not None
    assert brief.certify(problem, above).max_violation == pytest.approx(0.25)
    agree(problem, above)


def test_sums_are_those_of_rational_numbers() -> None:
    """Terms of all sizes that cancel; where three words do not hold them, the sum says so."""
    rng, sure = np.random.default_rng(3), 0
    for trial in range(400):
        decades = int(rng.integers(0, 60))
        terms = rng.normal(size=rng.integers(1, 40)) * 2.0 ** rng.integers(-decades, decades + 1, 1)[0]
        terms = np.concatenate([terms, -terms[:: 1 + trial % 3] * (1 + 2.0**-50), rng.normal(size=3) * 2.0**-decades])
        words = (0.0, 0.0, 0.0, 0.0)
        for term in rng.permutation(terms).tolist():
            words = loops.added(words, term)
        exact = sum(map(Fraction, terms.tolist()), Fraction(0))
        above, known = loops.rounded(words, 1.0)
        below, _ = loops.rounded(words, -1.0)
        sure += known
        if known:
            assert (above, below) == (up(exact), down(exact))
    assert sure > 300
    words = (0.0, 0.0, 0.0, 0.0)
    for term in (2.0**200, 2.0**100, 1.0, 2.0**-100):
        words = loops.added(words, term)
    assert not loops.rounded(words, 1.0)[1]


def test_the_cards_certificate_is_this_one() -> None:
    problem, solution = answered(np.random.default_rng(4).random((30, 30)))
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brief, "_told", lambda *_: calls.append("asked"))
        LAP.certify(problem, solution)
    assert calls == ["asked"]
