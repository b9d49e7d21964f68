"""The compiled first look at costs that sorting may solve never turns such costs away."""

from typing import Any

import numpy as np
import pytest

from kernels import Array
from kernels.lap import monge
from kernels.lap.cpu import monge as cpu_monge
from kernels.lap.cpu.monge import corner_of


def ordered(rng: np.random.Generator, n: int, kind: int) -> Array:
    """Monge costs, their lines in any order."""
    x, y = np.sort(rng.integers(0, 1000, n)), np.sort(rng.integers(0, 1000, n))
    made: list[Array] = [np.outer(x, y), np.abs(x[:, None] - y), (x[:, None] - y) ** 2, np.minimum(x[:, None], y)]
    return np.asarray(made[kind][rng.permutation(n)][:, rng.permutation(n)])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_it_lets_through_what_is_monge(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for trial in range(80):
        cost = np.ascontiguousarray(ordered(rng, 64 + trial, trial % 4).astype(dtype))
        assert corner_of(cost) == monge.corner(cost, 1)


def test_whole_numbers_beyond_floats_are_let_through() -> None:
    rng = np.random.default_rng(2)
    for trial in range(40):
        cost = ordered(rng, 70, trial % 4) + (np.int64(1) << 57)
        assert corner_of(cost) == monge.corner(cost, 1)


def test_it_turns_away_what_is_not() -> None:
    rng = np.random.default_rng(3)
    assert not corner_of(rng.random((80, 80)))
    assert not corner_of(rng.integers(0, 100, (80, 80)))
    assert not corner_of(np.outer(np.arange(63), np.arange(63)))
    assert not corner_of(np.full((80, 80), 7))


def test_it_sees_through_what_only_begins_as_monge() -> None:
    rng = np.random.default_rng(5)
    steep = np.exp(rng.normal(size=(64, 64)) * 6)  # one entry outweighs all others: most turns are rounding
    nearly = np.outer(np.arange(64.0), np.arange(64.0))
    nearly[20, 40] += 30
    for cost in (steep, nearly, nearly.T, -nearly):
        assert corner_of(cost) is None
        assert monge.corner(cost, 1) is None
    seen = 0
    for _ in range(200):
        low = rng.integers(0, 3, (70, 70)) * np.outer(np.arange(70), np.arange(70)) ** rng.integers(0, 2)
        cost = np.outer(np.arange(70), np.arange(70)) + low * rng.integers(0, 2)
        assert corner_of(cost) == monge.corner(cost, 1)
        seen += corner_of(cost) is not None
    assert 0 < seen < 200


def test_costs_of_every_layout_take_one_compiled_form() -> None:
    rng = np.random.default_rng(4)
    for cost in (rng.random((90, 90)), rng.random((90, 90)).T, rng.random((99, 99))[:90, 5:95]):
        dtype: Any
        for dtype in (np.int32, np.int64, np.float32, np.float64):
            corner_of((cost * 100).astype(dtype, copy=False))
            corner_of((cost * 100).astype(dtype)[::1, ::-1])
    compiled: Any = cpu_monge._look
    assert len(compiled.signatures) == 1
