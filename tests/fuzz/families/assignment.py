"""Dense linear assignment: shapes, weights, forbidden entries, batches, starts and options of every kind."""

from typing import Any

import numpy as np

from kernels import FORBIDDEN, Array
from tests.fuzz.case import Case
from tests.fuzz.draw import (
    Draw,
    barred,
    chance,
    floats,
    garbage,
    integers,
    narrowed,
    one_of,
    polls,
    scale_of,
    time_limit,
)
from tests.fuzz.families.points import draw_points

HEADROOM = 32
"""Weights may have this much less than int64 holds, over the number of lines."""


def draw(draw: Draw, device: str) -> Case:
    """One case."""
    shape = _shape(draw)
    maximize = chance(draw, 30)
    if len(shape) == 2 and chance(draw, 15):
        return _points(draw, shape, maximize, device)
    family, cost = _cost(draw, shape, maximize)
    inputs: dict[str, Any] = {"cost": cost}
    if len(shape) == 3 and chance(draw, 50):
        inputs["sizes"] = np.stack([draw.wholes(1, n, shape[:1]) for n in shape[1:]], axis=1)
        family += ", ragged"
    if chance(draw, 35):
        family += ", started"
        inputs |= _start(draw, cost)
    options = _options(draw, maximize, device)
    if inputs["cost"].ndim == 3 and options.get("method") in ("hungarian", "tree"):
        del options["method"]  # these solve one problem
    return Case("lap", family, inputs, options, time_limit(draw), polls=polls(draw))


def _points(draw: Draw, shape: tuple[int, ...], maximize: bool, device: str) -> Case:
    options = _options(draw, maximize, "cpu")
    if device == "gpu":
        options.pop("method", None)  # `sap` is the CPU's, and the others take no points
    family, inputs = draw_points(draw, shape[0], shape[1], options)
    if chance(draw, 20):
        family += ", started"
        inputs |= _start(draw, np.full(shape, scale_of(inputs["x"].astype(float))))
    return Case("lap", family, inputs, options, time_limit(draw), polls=polls(draw))


def _shape(draw: Draw) -> tuple[int, ...]:
    if chance(draw, 2):
        return draw.whole(15, 70), draw.whole(15, 70)
    kind = one_of(draw, ("square", "wide", "tall", "square", "line", "batch", "larger"))
    n = draw.whole(1, 6)
    if kind == "square":
        return n, n
    if kind == "line":
        return one_of(draw, ((1, n), (n, 1)))
    if kind == "batch" and chance(draw, 3):
        return draw.whole(60, 130), draw.whole(1, 3), draw.whole(1, 3)
    if kind == "batch":
        return draw.whole(1, 4), draw.whole(1, 5), draw.whole(1, 5)
    if kind == "larger":
        return draw.whole(7, 14), draw.whole(7, 14)
    more = n + draw.whole(1, 4)
    return (n, more) if kind == "wide" else (more, n)


def _cost(draw: Draw, shape: tuple[int, ...], maximize: bool) -> tuple[str, Array]:
    if chance(draw, 45):
        most = (2**63 - 1) // (HEADROOM * (shape[-2] + shape[-1]))
        kind, cost = integers(draw, shape, most)
        if chance(draw, 25):
            return f"integers, {kind}, forbidden", np.where(barred(draw, shape), FORBIDDEN, cost)
        return f"integers, {kind}", narrowed(draw, cost)
    kind, cost = floats(draw, shape)
    if chance(draw, 25):
        cost, kind = np.where(barred(draw, shape), -np.inf if maximize else np.inf, cost), f"{kind}, forbidden"
    return f"floats, {kind}", narrowed(draw, cost)


def _start(draw: Draw, cost: Array) -> dict[str, Array]:
    weights = cost.astype(float)
    scale = scale_of(np.where(weights < -9e18, 0, weights)) if cost.dtype.kind == "i" else scale_of(cost)
    v0 = garbage(draw, (*cost.shape[:-2], cost.shape[-1]), scale)
    u0 = garbage(draw, cost.shape[:-1], scale)
    if chance(draw, 50) and np.isfinite(weights).all() and weights.min() > -9e18:
        v0, u0 = _tight(weights, draw.whole(0, 1) == 1)
    return one_of(draw, ({"v0": v0}, {"u0": u0, "v0": v0}, {"u0": u0}))


def _tight(weights: Array, of_half: bool) -> tuple[Array, Array]:
    """Duals (v0, u0) of least entries, as of an earlier answer; `of_half`: of half of the rows, the others changed."""
    known = weights[..., : max(1, weights.shape[-2] // 2), :] if of_half else weights
    v0 = known.min(axis=-2)
    return v0, (weights - v0[..., None, :]).min(axis=-1)


def _options(draw: Draw, maximize: bool, device: str) -> dict[str, Any]:
    options: dict[str, Any] = {"maximize": True} if maximize else {}
    if chance(draw, 30):
        options["method"] = one_of(draw, ("auto", "sap") if device == "cpu" else ("auto", "hungarian", "tree"))
    if chance(draw, 8):
        options["iteration_limit"] = draw.whole(0, 5)
    if chance(draw, 15):
        options["deterministic"] = True
    return options
