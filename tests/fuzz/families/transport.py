"""Entropic transport: costs, masses, strengths, references, points, batches, starts, tolerances, every output."""

from typing import Any

import numpy as np

from kernels import Array
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, chance, floats, garbage, holes, narrowed, one_of, polls, scale_of, time_limit
from tests.fuzz.families import flow, sides


def draw(draw: Draw, device: str) -> Case:
    """One case."""
    if device == "cpu" and chance(draw, 12):
        return flow.draw(draw)
    if device == "cpu" and chance(draw, 10):
        return sides.draw(draw)
    most = 24 if chance(draw, 3) else 5
    m, n = draw.whole(1, most), draw.whole(1, most)
    batch = draw.whole(1, 3) if chance(draw, 12) else None
    lead = () if batch is None else (batch,)
    options: dict[str, Any] = {}
    if batch is None and chance(draw, 20):
        family, inputs, scale = _points(draw, m, n, options)
    else:
        family, cost = _cost(draw, (*lead, m, n))
        inputs, scale = {"cost": cost}, scale_of(cost)
    scale = min(max(scale, 1e-280), 1e250)
    family += _strengths(draw, scale, options)
    _masses(draw, (*lead, m), (*lead, n), inputs, options["reg_m"])
    if chance(draw, 15):
        inputs["f0"], inputs["g0"] = (garbage(draw, (*lead, k), scale).astype(float) for k in (m, n))
        family += ", started"
    _more(draw, device, "x" in inputs, batch is not None, options)
    return Case("uot", family, inputs, options, time_limit(draw), polls=polls(draw))


def _cost(draw: Draw, shape: tuple[int, ...]) -> tuple[str, Array]:
    kind, cost = floats(draw, shape, 60, -200)
    if chance(draw, 50):
        cost = np.abs(cost)
    if chance(draw, 20):
        cost = cost + one_of(draw, (1.0, 100.0, -1.0)) * scale_of(cost)
        kind += ", shifted"
    if chance(draw, 15):
        cost, kind = np.where(holes(draw, shape, one_of(draw, (10, 40, 80))), np.inf, cost), f"{kind}, forbidden"
    return f"costs, {kind}", narrowed(draw, cost)


def _points(draw: Draw, m: int, n: int, options: dict[str, Any]) -> tuple[str, dict[str, Any], float]:
    d = draw.whole(5, 30) if chance(draw, 10) else draw.whole(1, 4)
    power = draw.whole(-20, 20)
    x, y = ((draw.wholes(-1000, 1000, (k, d)) / 1000) * 2.0**power for k in (m, n))
    dtype = one_of(draw, (np.float64, np.float32))
    metric = options["metric"] = one_of(draw, ("sqeuclidean", "euclidean", "inner"))
    return (
        f"points, {metric}",
        {"x": x.astype(dtype), "y": y.astype(dtype)},
        2.0 ** (power * (1 + (metric != "euclidean"))),
    )


def _strengths(draw: Draw, scale: float, options: dict[str, Any]) -> str:
    """reg and reg_m in the units of the cost, from weak to hard; a side or both may be exact."""
    options["reg"] = float(scale * one_of(draw, (0.1, 1.0, 0.02, 0.003, 10.0, 1e-4, 1000.0, 1e6)))
    weak = float(scale * one_of(draw, (1.0, 0.1, 10.0, 0.01, 100.0, 1e4)))
    other = float(scale * one_of(draw, (1.0, 0.3, 3.0, 0.003)))
    kind = one_of(draw, ("both", "two", "rows exact", "columns exact", "exact"))
    options["reg_m"] = {
        "both": weak, "two": (weak, other), "rows exact": ("inf", weak), "columns exact": (weak, "inf"), "exact": "inf",
    }[kind]  # fmt: skip
    return f", {kind}"


def _masses(draw: Draw, a: tuple[int, ...], b: tuple[int, ...], inputs: dict[str, Any], reg_m: Any) -> None:
    kind = one_of(draw, ("given", "left out", "zeros", "scaled", "uneven"))
    if kind == "left out":
        return
    bare = one_of(draw, ("a", "b", "both")) if chance(draw, 4) else ""
    if len(a) == 2 and chance(draw, 20):
        a, b = a[1:], b[1:]  # one mass for the whole batch
    masses = [draw.wholes(1, 1000, shape) / 1000 for shape in (a, b)]
    if kind == "zeros":
        masses = [np.where(holes(draw, mass.shape, 30), 0.0, mass) for mass in masses]
    if kind == "uneven":
        masses = [mass * 10.0 ** -draw.wholes(0, 12, mass.shape) for mass in masses]
    for side, mass in zip("ab", masses, strict=True):
        if bare in (side, "both"):  # no mass at all, or none in one problem of a batch
            mass[draw.whole(0, len(mass) - 1) if mass.ndim == 2 else ...] = 0.0
            continue
        mass[..., 0] = np.where(mass.sum(-1) > 0, mass[..., 0], 1.0)
    if kind == "scaled":
        masses = [mass * 10.0 ** draw.whole(-12, 12) for mass in masses]
    if reg_m == "inf":
        totals = [mass.sum(-1, keepdims=True) for mass in masses]
        some = (totals[0] > 0) & (totals[1] > 0)
        masses[1] = masses[1] * np.where(some, totals[0] / np.where(some, totals[1], 1.0), 1.0)
    inputs["a"], inputs["b"] = (narrowed(draw, mass) if reg_m != "inf" else mass for mass in masses)


def _more(draw: Draw, device: str, points: bool, batch: bool, options: dict[str, Any]) -> None:
    if chance(draw, 30):
        options["reference"] = "uniform"
    if chance(draw, 40):
        options["tolerance"] = one_of(draw, (1e-3, 1e-1, 1e-9, 1e-12, 1e-14, 0.0))
    if chance(draw, 8):
        options["iterations"] = draw.whole(1, 30)
    if chance(draw, 15):
        options["acceleration"] = False
    if chance(draw, 20) and not batch:
        options["method"] = one_of(draw, ("points", "auto") if points else ("fused", "log", "map-uot"))
        if options["method"] == "map-uot" and chance(draw, 30):
            options["rule"] = "published"
    if chance(draw, 20):
        storage = ("float64", "float32", "float16", "bfloat16") if device == "gpu" else ("float64", "float32")
        options["storage"] = one_of(draw, storage)
    if chance(draw, 20):
        options["output"] = "potentials"
        options["top_k"] = draw.whole(0, 2)
