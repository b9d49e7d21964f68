"""Costs of few points are the real numbers, rounded once: against rational arithmetic and 60 digits."""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from kernels.lap.cpu import finely
from kernels.problems import metrics
from kernels.problems.arrays import Floats

DIGITS = Context(prec=60)


def squares(x: list[Fraction], y: list[Fraction]) -> Fraction:
    return sum(((one - other) ** 2 for one, other in zip(x, y, strict=True)), Fraction(0))


def sizes(x: list[Fraction], y: list[Fraction]) -> Fraction:
    return sum((abs(one - other) for one, other in zip(x, y, strict=True)), Fraction(0))


def root(x: list[Fraction], y: list[Fraction]) -> float:
    found = squares(x, y)
    return float(DIGITS.sqrt(DIGITS.divide(Decimal(found.numerator), Decimal(found.denominator))))


EXACT: dict[str, Callable[[list[Fraction], list[Fraction]], Fraction | float]] = {
    "sqeuclidean": squares,
    "euclidean": root,
    "cityblock": sizes,
}


def clouds(kind: str, d: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(13, d)), rng.normal(size=(17, d))
    if kind == "near":
        y[:13] = x * (1 + 2.0**-40)
    elif kind == "far apart":
        y *= 1e9
    elif kind == "large":
        x, y = 1e99 * x, 1e99 * y
    elif kind == "small":
        x, y = 1e-99 * x, 1e-99 * y
    elif kind == "mixed":
        x *= 10.0 ** rng.integers(-12, 12, x.shape)
    elif kind == "whole":
        x, y = np.round(1e4 * x), np.round(1e4 * y)
        y[0] = x[0]
    return x, y


@pytest.mark.parametrize("metric", EXACT)
@pytest.mark.parametrize("kind", ["random", "near", "far apart", "large", "small", "mixed", "whole"])
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_they_are_rounded_once(metric: str, kind: str, d: int) -> None:
    x, y = clouds(kind, d)
    found = finely.costs(x, y, metric)
    rows, columns = ([[Fraction(one) for one in point] for point in cloud.tolist()] for cloud in (x, y))
    right = np.array([[float(EXACT[metric](row, column)) for column in columns] for row in rows])
    np.testing.assert_array_less(np.abs(found - right), np.spacing(right) * 1.01 + (right == 0))
    ties = metric == "euclidean" and d == 1  # differences often lie in the middle of two floats
    assert (found != right).sum() <= (right.size // 8 if ties else 2)
    if metric == "sqeuclidean" and kind == "random" and d > 1:  # a plain loop is not
        assert (((x[:, None] - y) ** 2).sum(axis=2) != right).sum() > 2


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_directions_are_those_of_wide_floats(metric: str) -> None:
    x, y = clouds("random", 7)
    y[:5] = 3.0 * x[:5]
    found, wide = finely.costs(x, y, metric), metrics.costs(x, y, metric)
    np.testing.assert_allclose(found, wide, rtol=1e-15, atol=1e-18)
    assert (found >= 0).all()
    assert (np.diagonal(found)[:5] <= np.diagonal(wide)[:5].max()).all()


@pytest.mark.parametrize(
    ("metric", "scale", "count"),
    [("iou", 1.0, 5), ("inner", 1.0, 5), ("euclidean", 1e-150, 5), ("euclidean", 1.0, 600)],
)
def test_others_are_left_to_numpy(metric: str, scale: float, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(metrics, "costs", lambda x, y, metric: asked.append(metric))
    points = scale * np.sort(np.random.default_rng(0).random((count, 4)), axis=1)
    finely.costs(points, points, metric)
    assert asked == [metric]


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_threads_do_not_change_them(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clouds("random", 5)
    expected = finely.costs(x, y, "euclidean")
    monkeypatch.setattr(finely, "threads_for", lambda pairs, a_wake: threads)
    np.testing.assert_array_equal(finely.costs(x, y, "euclidean"), expected)
    np.testing.assert_array_equal(finely.costs(x[:1], y, "euclidean"), expected[:1])
