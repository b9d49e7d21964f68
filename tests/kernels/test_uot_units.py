"""The units in which a solve works: a power of two of the given ones, whatever those are."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import Deadline, Termination
from kernels.deadline import Progress
from kernels.problems import UnbalancedTransport
from kernels.problems.transport import transport
from kernels.uot.units import NOTICED, Translated, fits_float32, near_one, unflushed


def problem_of(dtype: Any, power: int, given: str = "cost") -> UnbalancedTransport:
    """reg .024 and costs around 1, or points, times 2^power."""
    rng = np.random.default_rng(3)
    strengths = math.ldexp(0.024, power), (math.ldexp(0.7, power), math.inf)
    if given == "cost":
        cost = np.ldexp(rng.random((4, 5)).astype(dtype), power)
        return transport({"cost": cost, "g0": np.ldexp(rng.random(5), power)}, reg=strengths[0], reg_m=strengths[1])
    root = power if given == "euclidean" else power // 2
    points = {name: np.ldexp(rng.random((size, 2)).astype(dtype), root) for name, size in (("x", 4), ("y", 5))}
    return transport(points, reg=strengths[0], reg_m=strengths[1], metric=given)


@pytest.mark.parametrize("given", ["cost", "sqeuclidean", "euclidean", "inner"])
@pytest.mark.parametrize("power", [-400, -270, -96, 96, 270, 400])
def test_the_same_problem_is_solved_whatever_its_units(power: int, given: str) -> None:
    """Even powers of two of one problem are one problem, bit by bit; a solve's steps follow from it alone."""
    seen, unit = near_one(problem_of(np.float64, power, given))
    once, other = near_one(problem_of(np.float64, 500, given))
    assert math.ldexp(unit, 500 - power) == other
    assert fits_float32(seen)
    for name in ("reg", "reg_m"):
        assert getattr(seen, name) == getattr(once, name)
    for name in ("cost", "x", "y", "g0"):
        if getattr(seen, name) is not None:
            np.testing.assert_array_equal(getattr(seen, name), getattr(once, name))


def test_a_batch_has_one_unit() -> None:
    one = problem_of(np.float64, -270)
    assert one.cost is not None
    batch = replace(
        one, cost=np.stack([one.cost, 2 * one.cost]), a=np.stack([one.a] * 2), b=np.stack([one.b] * 2), g0=None
    )
    seen, unit = near_one(batch)
    assert fits_float32(seen)
    assert seen.cost is not None
    np.testing.assert_array_equal(seen.cost * unit, batch.cost)
    assert seen.reg * unit == batch.reg


def test_subnormal_costs_are_normal_beside_a_small_reg() -> None:
    cost = np.array([[2e-41, 0.0], [1e-42, 3e-40]], np.float32)
    problem = transport({"cost": cost}, reg=2.8e-29, reg_m=(math.inf, math.inf))
    seen, unit = near_one(problem)
    assert seen.cost is not None
    assert seen.cost.dtype == np.float32
    assert seen.cost[cost > 0].min() > np.finfo(np.float32).tiny
    np.testing.assert_array_equal(seen.cost.astype(float) * unit, cost.astype(float))


def test_float32_costs_go_to_a_device_as_numbers_that_it_does_not_flush() -> None:
    cost = np.array([[2e-41, 1.0]], np.float32)
    sent = unflushed(cost, NOTICED / 2)
    assert sent.dtype == np.float64
    np.testing.assert_array_equal(sent, cost.astype(np.float64))
    assert unflushed(cost, NOTICED) is cost
    # What is flushed where reg is not small moves no exponent: it is less than half an ulp of 1, cubed.
    assert np.finfo(np.float32).tiny / NOTICED < 2.0**-65


def test_progress_is_told_in_the_units_of_the_job() -> None:
    heard: list[Progress] = []
    deadline = Deadline(5.0, on_progress=heard.append)
    translated = Translated(deadline, 0.25)
    translated.report(3, 8.0, None)
    assert (heard[-1].objective, heard[-1].bound, heard[-1].iteration) == (2.0, None, 3)
    assert translated.expired() is None
    assert Translated(Deadline(cancelled=lambda: True), 2.0).expired() is Termination.STOPPED
