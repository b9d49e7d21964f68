"""Costs of points by the compiled loops: the bits of `words.py`, and within the stated error of fractions."""

from fractions import Fraction

import numpy as np
import pytest

from kernels import Array
from kernels.certificates.metrics import exactly
from kernels.certificates.metrics.exactly import Exactly, _directed
from tests.kernels.point_words import by_words, directed
from tests.kernels.test_metrics import points

SUMS = ("sqeuclidean", "euclidean", "cityblock", "inner")
METRICS = (*SUMS, "cosine", "correlation")


def cloud(rng: np.random.Generator, count: int, d: int) -> Array:
    """Points whose sums are hard: wide ranges, what underflows, zeros of both signs, hardly any difference."""
    kind = rng.integers(7)
    found: Array = rng.normal(size=(count, d))
    if kind == 1:
        found = np.ldexp(found, rng.integers(-300, 300, (count, d)))
    elif kind == 2:
        found = np.ldexp(found, rng.integers(-560, -400, (count, d)))
    elif kind == 3:
        found = 1.0 + rng.integers(-3, 4, (count, d)) * 2.0**-52
    elif kind == 4:
        found = rng.integers(-9, 10, (count, d)) * rng.choice([1.0, 5e-324, 1e99])
    elif kind == 5:
        found = rng.choice([0.0, -0.0, 1.0, 1e-160, 2.0**-450], (count, d))
    elif kind == 6:
        found = found * 10.0 ** rng.integers(-99, 99)
    found[:, 0] += (found == found[:, :1]).all(axis=1) * 3.0  # a direction there must be
    return found


def true_cost(metric: str, x: list[Fraction], y: list[Fraction]) -> Fraction:
    """Of `euclidean` the square."""
    if metric == "inner":
        return -sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))
    away = [a - b for a, b in zip(x, y, strict=True)]
    return sum((abs(c) if metric == "cityblock" else c * c for c in away), Fraction(0))


@pytest.mark.parametrize("metric", METRICS)
def test_the_loops_come_to_the_bits_of_the_words(metric: str) -> None:
    done = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 70)) if metric == "correlation" else int(rng.integers(1, 70))
        x, y = cloud(rng, 12, d), cloud(rng, 15, d)
        y[:3] = x[:3]
        costs = Exactly(x, y, metric)
        i, j = (index.ravel() for index in np.indices((12, 15)))
        here, there = costs.of(i, j), by_words(costs, i, j)
        assert (here.high == there.high).all()
        assert (here.low == there.low).all()
        assert np.allclose(here.error, there.error, rtol=1e-13, atol=0)  # sizes are added up in another order
        done += len(i)
    assert done > 10_000


@pytest.mark.parametrize("is_moved", [False, True])
def test_directions_are_those_of_the_words(is_moved: bool) -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        given = cloud(rng, 20, int(rng.integers(2, 70)))
        given = np.ldexp(given, -np.frexp(np.abs(given).max(axis=1, keepdims=True))[1])
        (here, length, sizes), (there, far, all_sizes) = (way(given, is_moved) for way in (_directed, directed))
        assert (here.high == there.high).all()
        assert (here.low == there.low).all()
        assert (length == far).all()
        assert np.allclose(sizes, all_sizes, rtol=1e-13, atol=0)


@pytest.mark.parametrize("metric", SUMS)
def test_fractions_lie_within_the_error(metric: str) -> None:
    for seed in range(150):
        rng = np.random.default_rng([7, seed])
        d = int(rng.integers(1, 12))
        x, y = cloud(rng, 4, d), cloud(rng, 4, d)
        y[:1] = x[:1]
        i, j = (index.ravel() for index in np.indices((4, 4)))
        known = Exactly(x, y, metric).of(i, j)
        rows, columns = ([[Fraction(c) for c in point] for point in side.tolist()] for side in (x, y))
        for k, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
            cost, error = (
                Fraction(float(known.high[k])) + Fraction(float(known.low[k])),
                Fraction(float(known.error[k])),
            )
            true = true_cost(metric, rows[a], columns[b])
            if metric == "euclidean":
                assert max(cost - error, Fraction(0)) ** 2 <= true <= (cost + error) ** 2
            else:
                assert abs(cost - true) <= error


def test_threads_come_to_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.certificates import threads

    x, y = points("cosine", 60, 70, 9).values()
    i, j = (index.ravel() for index in np.indices((60, 70)))
    alone = [Exactly(x, y, metric).of(i, j) for metric in METRICS]
    monkeypatch.setattr(exactly, "A_THREAD", 50)
    monkeypatch.setattr(threads, "THREADS", 3)
    threads._threads.cache_clear()
    for metric, one in zip(METRICS, alone, strict=True):
        assert all((a == b).all() for a, b in zip(Exactly(x, y, metric).of(i, j), one, strict=True))
    threads._threads.cache_clear()
