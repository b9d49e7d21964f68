"""Transport among three measures: tensors and clouds of every size, masses with zeros, with entropy and without."""

from typing import Any

import numpy as np

from kernels import Array
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, chance, floats, integers, narrowed, one_of, polls, scale_of, time_limit

TOP = 330
"""Costs up to 2^330, which is below 1e100."""


def draw(draw: Draw, device: str) -> Case:
    """One case."""
    sizes = tuple(one_of(draw, (3, 2, 1, 4)) for _ in range(3))
    options: dict[str, Any] = {}
    if chance(draw, 40):
        family, inputs, scale = _clouds(draw, sizes, options)
    else:
        whole = chance(draw, 30)
        kind, cost = integers(draw, sizes, 2**61) if whole else floats(draw, sizes, TOP, -TOP)
        family, inputs, scale = f"{kind}, cost", {"cost": narrowed(draw, cost)}, scale_of(cost)
    for name, size in zip("abc", sizes, strict=True):
        if chance(draw, 50):
            inputs[name] = _masses(draw, size)
            family += f", {name}"
    _strength(draw, options, scale)
    if chance(draw, 40):
        options["output"] = one_of(draw, ("marginals", "plan"))
    if chance(draw, 20):
        options["tolerance"] = one_of(draw, (1e-3, 1e-9, 0.0, 1.0))
    if chance(draw, 20):
        options["iterations"] = draw.whole(1, 40)
    elif options.get("reg", 1.0) < 0.05 * scale:
        options["iterations"] = 200  # the plain iteration takes as long as it takes
    return Case("multimarginal", family, inputs, options, time_limit(draw), polls=polls(draw))


def _clouds(draw: Draw, sizes: tuple[int, ...], options: dict[str, Any]) -> tuple[str, dict[str, Any], float]:
    d, metric = draw.whole(1, 3), one_of(draw, ("sqeuclidean", "euclidean", "cityblock"))
    unit = one_of(draw, (1.0, 0.1, 2.0**100, 2.0**-100))
    inputs: dict[str, Any] = {
        name: draw.wholes(-30, 30, (size, d)) * unit for name, size in zip("xyz", sizes, strict=True)
    }
    if chance(draw, 30):
        inputs["pair_weights"] = draw.wholes(0, 4, (3,)) / 4
    options["metric"] = metric
    return f"{metric}, clouds", inputs, 1000.0 * (unit * unit if metric == "sqeuclidean" else unit)


def _masses(draw: Draw, size: int) -> Array:
    found = draw.wholes(0, 6, (size,)).astype(float)
    found[0] += 1
    if chance(draw, 20):
        found *= 2.0 ** -draw.wholes(0, 60, (size,)).astype(float)
    return np.asarray(found * one_of(draw, (1.0, 1 / 7, 2.0**40)))


def _strength(draw: Draw, options: dict[str, Any], scale: float) -> None:
    kind = one_of(draw, ("soft", "none", "exact", "hard", "auto", "very soft", "sharp"))
    if kind == "exact":
        options["method"] = "exact"
    elif kind == "none":
        options["reg"] = 0.0
    elif kind != "auto":
        options["reg"] = (scale or 1.0) * {"soft": 0.1, "hard": 1e-3, "very soft": 10.0, "sharp": 1e-6}[kind]
