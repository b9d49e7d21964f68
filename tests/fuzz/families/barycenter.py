"""Barycenters: a few measures on a few points, with costs of every size, without entropy, or on points that move."""

from typing import Any

import numpy as np

from kernels import Array
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, chance, floats, integers, narrowed, one_of, polls, scale_of, time_limit


def draw(draw: Draw, device: str) -> Case:
    """One case."""
    k, m, n = draw.whole(2, 4), draw.whole(1, 5), draw.whole(1, 5)
    options: dict[str, Any] = {}
    if chance(draw, 25):
        family, inputs = _clouds(draw, k, n)
        if chance(draw, 40):
            options["support_points"] = draw.whole(1, 6)
    else:
        family, inputs = _costs(draw, k, m, n)
        _strength(draw, options, scale_of(inputs["cost"]))
        if chance(draw, 15) and options.get("reg") != 0:
            cost = draw.wholes(0, 9, (n, n)) / 4
            inputs["cost"] = cost + cost.T
            options |= {"debiased": True, "reg": one_of(draw, (0.5, 3.0))}
            family += ", debiased"
    if chance(draw, 30):
        inputs["measure_weights"] = draw.wholes(0, 5, (k,)) / 4
    if chance(draw, 20):
        options["tolerance"] = one_of(draw, (1e-3, 1e-9, 0.0, 1.0))
    if chance(draw, 10):
        options["iterations"] = draw.whole(1, 40)
    return Case("barycenter", family, inputs, options, time_limit(draw), polls=polls(draw))


def _costs(draw: Draw, k: int, m: int, n: int) -> tuple[str, dict[str, Any]]:
    shape = (k, m, n) if chance(draw, 30) else (m, n)
    kind, cost = integers(draw, shape, 2**61) if chance(draw, 30) else floats(draw, shape, 250, -250)
    return f"{kind}, fixed", {"histograms": _masses(draw, k, n), "cost": narrowed(draw, cost)}


def _clouds(draw: Draw, k: int, n: int) -> tuple[str, dict[str, Any]]:
    d = draw.whole(1, 3)
    x = draw.wholes(-30, 30, (k, n, d)) * one_of(draw, (1.0, 0.1, 2.0**60, 2.0**-60))
    inputs: dict[str, Any] = {"x": x}
    if chance(draw, 50):
        inputs["histograms"] = _masses(draw, k, n)
    return "free", inputs


def _masses(draw: Draw, k: int, n: int) -> Array:
    found = draw.wholes(0, 6, (k, n)).astype(float)
    found[:, 0] += 1
    if chance(draw, 20):
        found *= 2.0 ** -draw.wholes(0, 40, (k, n)).astype(float)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _strength(draw: Draw, options: dict[str, Any], scale: float) -> None:
    kind = one_of(draw, ("soft", "none", "hard", "auto", "very soft"))
    if kind == "none":
        options["reg"] = 0
    elif kind != "auto" and 1e-80 < scale < 1e80:
        options["reg"] = scale * {"soft": 0.1, "hard": 1e-3, "very soft": 10.0}[kind]
