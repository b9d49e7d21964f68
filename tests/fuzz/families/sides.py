"""Transport of a part of the mass, and with marginals that total variation or squares price."""

from typing import Any

import numpy as np

from kernels import Array
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, chance, holes, one_of, polls, time_limit


def draw(draw: Draw) -> Case:
    """One case."""
    m, n = draw.whole(1, 6), draw.whole(1, 6)
    exact = chance(draw, 50)
    kind = one_of(draw, ("mass", "share", "tv") if exact else ("mass", "share", "tv", "l2"))
    whole = exact and chance(draw, 50)
    cost = draw.wholes(-3 if kind != "tv" else 0, 40, (m, n))
    a, b = (draw.wholes(0, 9, (k,)) for k in (m, n))
    a[0], b[0] = max(a[0], 1), max(b[0], 1)
    inputs: dict[str, Any] = {"cost": cost.astype(np.int64), "a": a.astype(np.int64), "b": b.astype(np.int64)}
    if not whole:
        inputs = _floats(draw, inputs)
    options: dict[str, Any] = {"method": "exact"} if exact else {"tolerance": one_of(draw, (1e-6, 1e-9))}
    unit = float(np.max(np.abs(inputs["cost"][np.isfinite(inputs["cost"])]), initial=0.0)) or 1.0
    if not exact:
        options["reg"] = unit * one_of(draw, (1.0, 0.1, 0.01))
        options["reference"] = one_of(draw, ("product", "uniform"))
    options |= _held(draw, kind, inputs, unit, whole)
    family = f"{'exact' if exact else 'entropic'}, {kind}, {'whole' if whole else 'floats'}"
    return Case("uot", family, inputs, options, time_limit(draw), polls=polls(draw))


def _floats(draw: Draw, inputs: dict[str, Array]) -> dict[str, Array]:
    """Of few bits times a power of two, with forbidden entries now and then."""
    cost = np.ldexp(inputs["cost"] / 8, one_of(draw, (0, -20, 30)))
    if chance(draw, 30):
        cost = np.where(holes(draw, cost.shape, one_of(draw, (10, 50))), np.inf, cost)
    power = one_of(draw, (0, -4, 3))
    return {"cost": cost, "a": np.ldexp(inputs["a"], power), "b": np.ldexp(inputs["b"] / 3, power)}


def _held(draw: Draw, kind: str, inputs: dict[str, Array], unit: float, whole: bool) -> dict[str, Any]:
    """The options of what holds the marginals."""
    most = min(inputs["a"].sum(), inputs["b"].sum())
    if kind == "mass":
        share = draw.whole(1, 8)
        return {"mass": float(max(1, most * share // 8) if whole else most * share / 8)}
    if kind == "share":
        return {"mass_share": one_of(draw, (1.0, 0.5, 0.37))}
    if kind == "tv":
        factors = [draw.whole(1, 60), draw.whole(1, 60)]
        return {"marginals": "tv", "reg_m": [float(k) if whole else k * unit / 32 for k in factors]}
    mass = float(inputs["a"].sum() + inputs["b"].sum())
    return {"marginals": "l2", "reg_m": [draw.whole(1, 60) * unit / mass / 4 for _ in range(2)]}
