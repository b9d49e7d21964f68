"""Directed arithmetic against fractions: always on the weak side, and never further than promised."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from kernels.certificates import rounded
from kernels.problems import Array

LARGEST = float(np.finfo(np.float64).max)
Step = Callable[[float, float], float]


def numbers(seed: int, count: int) -> Array:
    """All exponents, subnormals, zeros, neighbours and the ends of the range."""
    random = np.random.default_rng(seed)
    wild = np.ldexp(random.uniform(-1, 1, count), random.integers(-1074, 1024, count))
    close = np.ldexp(random.uniform(-1, 1, count), random.integers(-30, 30, count))
    whole = random.integers(-9, 10, count).astype(float)
    ends = random.choice([0.0, -0.0, 5e-324, -5e-324, LARGEST, -LARGEST, 2.0**-1022, 1.0, math.nextafter(1, 2)], count)
    return np.choose(random.integers(0, 4, count), [wild, close, whole, ends])


def check(low: float, high: float, exact: Fraction, steps: int) -> None:
    assert not math.isnan(low)
    assert not math.isnan(high)
    assert low == -math.inf or (math.isfinite(low) and Fraction(low) <= exact)
    assert high == math.inf or (math.isfinite(high) and Fraction(high) >= exact)
    best_low, best_high = rounded.down(exact), rounded.up(exact)
    for _ in range(steps):
        best_low, best_high = math.nextafter(best_low, -math.inf), math.nextafter(best_high, math.inf)
    assert low >= best_low
    assert high <= best_high


@pytest.mark.parametrize(
    ("name", "exact", "steps"),
    [
        ("add", lambda x, y: x + y, 0),
        ("sub", lambda x, y: x - y, 0),
        ("mul", lambda x, y: x * y, 1),
        ("div", lambda x, y: x / y if y else None, 2),
    ],
)
def test_both_sides_enclose_the_exact_result(name: str, exact: Callable[..., Fraction | None], steps: int) -> None:
    x, y = numbers(1, 20_000), numbers(2, 20_000)
    y = np.where(np.arange(len(y)) % 5 == 0, -x, y)
    with np.errstate(all="ignore"):
        low, high = getattr(rounded, f"{name}_down")(x, y), getattr(rounded, f"{name}_up")(x, y)
    for k in range(len(x)):
        value = exact(Fraction(x[k]), Fraction(y[k]))
        if value is not None:
            check(low[k], high[k], value, steps)


def test_exact_results_do_not_move() -> None:
    x = np.array([1.0, 3.0, 0.0, -2.5])
    for operation in (rounded.add_down, rounded.add_up, rounded.sub_down, rounded.mul_up, rounded.mul_down):
        assert (operation(x, 2.0) == operation(x, 2.0).round(4)).all()
    assert (rounded.add_down(x, 2.0) == x + 2).all()
    assert (rounded.mul_up(x, 2.0) == x * 2).all()


@pytest.mark.parametrize("seed", range(300))
def test_sums_are_the_directed_roundings(seed: int) -> None:
    values = numbers(seed, 1 + seed % 40)
    exact = sum(map(Fraction, values.tolist()))
    assert rounded.sum_down(values) == rounded.down(exact)
    assert rounded.sum_up(values) == rounded.up(exact)


def test_infinities() -> None:
    assert rounded.add_down(math.inf, 1.0) == math.inf
    assert rounded.sub_up(1.0, math.inf) == -math.inf
    assert rounded.add_down(LARGEST, LARGEST) == LARGEST
    assert rounded.add_up(LARGEST, LARGEST) == math.inf
    assert rounded.down(10**400) == LARGEST
    assert rounded.up(-(10**400)) == -LARGEST
    assert rounded.sum_down([LARGEST, LARGEST, -LARGEST]) == LARGEST


def test_a_share_is_rounded_up_once() -> None:
    """Of any gap and sizes, integers or floats, subnormal ones too: the least float64 that is not below the share."""
    gaps = [*np.abs(numbers(3, 3000)).tolist(), *np.ldexp(numbers(4, 3000) % 1, -1060).tolist(), 7, 10**400]
    sizes = [*numbers(5, 3000).tolist(), *np.ldexp(numbers(6, 3000) % 1, -1050).tolist(), 9, 3]
    for gap, size in zip(gaps, sizes, strict=True):
        if size:
            assert rounded.share_up(gap, size / 2, size) == rounded.up(Fraction(gap) / abs(Fraction(size)))
    assert rounded.share_up(0, 0.0, None) == 0
    assert rounded.share_up(5e-324, 0.0) == math.inf
    assert rounded.share_up(np.int64(2**62), np.float64(-(2.0**62)), np.int64(3)) == 1
