"""Transport without an entropic term: whole masses and masses of few bits, whose sums are the same without rounding."""

from typing import Any

import numpy as np

from kernels import Array
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, chance, floats, holes, one_of, polls, time_limit


def draw(draw: Draw) -> Case:
    """One case."""
    m, n = draw.whole(1, 6), draw.whole(1, 6)
    cost, family = _cost(draw, m, n)
    a, b = _masses(draw, m, n)
    if chance(draw, 50):
        power = one_of(draw, (0, -10, -300, 300))
        a, b = np.ldexp(a.astype(float), power), np.ldexp(b.astype(float), power)
    options: dict[str, Any] = {"method": "exact"}
    if chance(draw, 30):
        options["output"] = "potentials"
    inputs = {"cost": cost, "a": a, "b": b}
    return Case("uot", f"exact, {family}", inputs, options, time_limit(draw), polls=polls(draw))


def _cost(draw: Draw, m: int, n: int) -> tuple[Array, str]:
    if chance(draw, 50):
        top = one_of(draw, (3, 100, 2**31, 2**59))
        cost = draw.wholes(-top, top, (m, n)).astype(np.int64)
        return cost, "whole costs"
    kind, cost = floats(draw, (m, n), 60, -200)
    if chance(draw, 30):
        cost = np.where(holes(draw, (m, n), one_of(draw, (10, 40))), np.inf, cost)
    return cost.astype(np.float64), kind


def _masses(draw: Draw, m: int, n: int) -> tuple[Array, Array]:
    """Whole masses of one sum; some lines have none."""
    top = one_of(draw, (1, 9, 10**6))
    a, b = draw.wholes(0, top, (m,)), draw.wholes(0, top, (n,))
    apart = int(a.sum()) - int(b.sum())
    if apart > 0:
        b[draw.whole(0, n - 1)] += apart
    else:
        a[draw.whole(0, m - 1)] -= apart
    if not a.sum():
        a[0], b[0] = 1, 1
    return a.astype(np.int64), b.astype(np.int64)
