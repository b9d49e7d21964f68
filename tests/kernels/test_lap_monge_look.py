"""The compiled first look at costs that sorting may solve never turns such costs away."""

from typing import Any

import numpy as np
import pytest

from kernels import Array
from kernels.lap import monge
from kernels.lap.cpu import monge as cpu_monge
from kernels.lap.cpu.monge import may_be_monge


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
        if monge.corner(cost, 1) is not None:
            assert may_be_monge(cost)


def test_whole_numbers_beyond_floats_are_let_through() -> None:
    rng = np.random.default_rng(2)
    for trial in range(40):
        cost = ordered(rng, 70, trial % 4) + (np.int64(1) << 57)
        assert monge.corner(cost, 1) is None or may_be_monge(cost)


def test_it_turns_away_what_is_not() -> None:
    rng = np.random.default_rng(3)
    assert not may_be_monge(rng.random((80, 80)))
    assert not may_be_monge(rng.integers(0, 100, (80, 80)))
    assert not may_be_monge(np.outer(np.arange(63), np.arange(63)))
    assert not may_be_monge(np.full((80, 80), 7))


def test_costs_of_every_layout_take_one_compiled_form() -> None:
    rng = np.random.default_rng(4)
    for cost in (rng.random((90, 90)), rng.random((90, 90)).T, rng.random((99, 99))[:90, 5:95]):
        for dtype in (np.int32, np.int64, np.float32, np.float64):
            may_be_monge((cost * 100).astype(dtype, copy=False))
            may_be_monge((cost * 100).astype(dtype)[::1, ::-1])
    compiled: Any = cpu_monge._has_signs
    assert len(compiled.signatures) == 1
