"""Points at the ends of float64's range: what a certificate says of them is compared with fractions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Claim, Solution, Termination, recheck
from kernels.certificates.metrics.exactly import Exactly

TINY = 5e-324
WIDE, HIGH = [-3.0, -3.0, 3.0, 2.0], [-1e100, -1e100, 1e-155, 1e100]
BOXES = {
    "a width below the smallest of its unit": (WIDE, [2 * TINY, 3 * TINY, 3 * TINY, 4 * TINY]),
    "one that is lost in a unit of 1e100": (HIGH, [6.6e-269, 9.1e-271, 9.4e-269, 3.6e-269]),
    "a side that is longer by less than that": ([0.0, 0.0, 4.0, 4.0], [TINY, 0.0, 4.0, 4.0]),
    "and on both sides": ([-1e100, 0.0, TINY, 1.0], [-1e100, 0.0, 0.0, 1.0]),
    "the same box": (WIDE, WIDE),
    "boxes that touch": ([0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 2.0, 1.0]),
    "a box without width": (WIDE, [0.0, 0.0, 0.0, 1.0]),
}


def overlap(p: Array, q: Array) -> Fraction:
    """1 - intersection / union."""
    a, b = ([Fraction(one) for one in box.tolist()] for box in (p, q))
    width, height = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    if min(width, height) <= 0:
        return Fraction(1)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return 1 - width * height / (sum(areas) - width * height)


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("maximize", [False, True])
def test_widths_that_underflow_are_not_nothing(name: str, maximize: bool) -> None:
    """Boxes that share some area were apart, and boxes that differ the same: bounds were false by 1e-324 and less."""
    x, y = (np.array([box]) for box in BOXES[name])
    true = overlap(x[0], y[0])
    known = Exactly(x, y, "iou").of(np.zeros(1, np.int64), np.zeros(1, np.int64))
    high, low, error = (Fraction(part[0].item()) for part in known)
    assert abs(high + low - true) <= error
    assert error < Fraction(1, 2**99)
    assert (error == 0) == (true in (0, 1))
    card = SOLVERS["lap"]
    inputs, asked = {"x": x, "y": y}, {"metric": "iou", "maximize": maximize}
    problem = card.build(inputs, card.options(**asked))
    arrays: dict[str, Array] = {"assignment": np.zeros(1, np.int32), "u": np.zeros(1), "v": np.zeros(1)}
    found = card.certify(problem, Solution(Termination.OPTIMAL, "none", arrays))
    assert found.bound is not None
    assert found.objective is not None
    sign = -1 if maximize else 1
    assert sign * Fraction(found.bound) <= sign * true <= sign * Fraction(found.objective)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_distances_that_underflow_are_sizes_too(metric: str) -> None:
    """They came out as 0 and were left out of S, so that a price as large as what is not paid loosened the word."""
    step = TINY if metric == "cityblock" else 1e-163
    inputs: dict[str, Any] = {"x": np.array([[0.0], [2 * step]]), "y": np.array([[step]])}
    inputs["reject"] = np.array([TINY, -0.1])
    card = SOLVERS["auction"]
    problem = card.build(inputs, card.options(metric=metric))
    prices = np.array([0.1 + 2.0**-56])
    arrays = {"assignment": np.array([-1, 0]), "prices": prices, "profits": np.array([TINY, -0.1])}
    found = card.certify(problem, Solution(Termination.OPTIMAL, "none", arrays))
    assert found.holds
    assert found.gap_abs is not None
    assert found.gap_abs > 1e-17
    assert found.termination is Termination.CONVERGED
    claim = Claim("converged", found.objective, found.bound, found.gap_abs, None, None, arrays)
    assert all(one.holds is not False for one in recheck("auction", inputs, {"metric": metric}, claim))


def test_points_twice_do_not_cost_an_optimum_its_word() -> None:
    """Their distance is 0, which is no size."""
    x = np.random.default_rng(0).random((6, 2))
    card = SOLVERS["auction"]
    problem = card.build({"x": x, "y": x, "reject": np.full(6, -0.7)}, card.options())
    prices = np.array([0.3, 0.1, 0.2, 0.25, 0.15, 0.05]) / 1000
    arrays = {"assignment": np.arange(6), "prices": prices, "profits": -prices * (1 + 2.0**-52)}
    found = card.certify(problem, Solution(Termination.OPTIMAL, "none", arrays))
    assert found.termination is None
