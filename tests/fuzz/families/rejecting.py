"""Assignments whose lines may be left at a price, or whose matrices come one after the other."""

from typing import Any

import numpy as np

from kernels import FORBIDDEN, Array
from kernels.problems.clouds import ROUNDED
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, barred, chance, floats, integers, one_of, polls, time_limit
from tests.fuzz.families.points import clouds

BETWEEN = 25
"""Of a hundred so many are between points."""
HEADROOM = 32 * 4
"""Beside forbidden integers numbers may have this much less than int64 holds, over the number of lines."""


def draw(draw: Draw, device: str) -> Case:
    """One case: one matrix, a batch or a ragged batch; a limit, prices of lines, or neither."""
    if chance(draw, BETWEEN):
        return _between(draw)
    form = one_of(draw, ("one", "one", "batch", "ragged", "ragged"))
    count = 1 if form == "one" else draw.whole(1, 5)
    low = 0 if form == "ragged" else 1
    sizes = np.stack([draw.wholes(low, draw.whole(1, 7), (count,)) for _ in range(2)], axis=1)
    whole, maximize = chance(draw, 45), chance(draw, 25)
    extents = sizes.max(axis=0).tolist()
    shape = {"one": tuple(sizes[0].tolist()), "batch": (count, *extents), "ragged": (int(sizes.prod(axis=1).sum()),)}
    if form == "ragged" and not shape["ragged"][0]:
        form, shape = "one", shape | {"one": (1, 1)}
        sizes = np.ones((1, 2), np.int64)
    most = (2**63 - 1) // (HEADROOM * (int(sizes.sum(axis=1).max()) + 1))
    family, cost = _numbers(draw, shape[form], most, whole)
    if chance(draw, 25):
        never = FORBIDDEN if whole else (-np.inf if maximize else np.inf)
        cost, family = np.where(barred(draw, shape[form]), never, cost), f"{family}, forbidden"
    inputs: dict[str, Any] = {"cost": cost}
    if form == "ragged" or (form == "batch" and chance(draw, 50)):
        inputs["sizes"] = sizes
    elif form == "batch":
        sizes = np.broadcast_to(np.array(extents), sizes.shape)
    options: dict[str, Any] = {"maximize": True} if maximize else {}
    if form != "ragged" or chance(draw, 70):
        family += ", " + _prices(draw, inputs, options, form, sizes, most, whole)
    return Case("lap", f"rejecting: {form}, {family}", inputs, options, time_limit(draw), polls=polls(draw))


def _between(draw: Draw) -> Case:
    """One pair of clouds with a limit or prices, or several with or without."""
    one, metric = chance(draw, 40), one_of(draw, ROUNDED)
    count = 1 if one else draw.whole(1, 5)
    sizes = np.stack([draw.wholes(0, draw.whole(1, 7), (count,)) for _ in range(2)], axis=1)
    rows, columns = sizes.sum(axis=0).tolist()
    x, y = clouds(draw, max(1, rows), max(1, columns), metric)
    inputs: dict[str, Any] = {"x": x[:rows], "y": y[:columns], **({} if one else {"sizes": sizes})}
    options: dict[str, Any] = {"metric": metric, **({"maximize": True} if chance(draw, 25) else {})}
    priced = "neither"
    if one or chance(draw, 70):
        priced = _prices(draw, inputs, options, "points", sizes, 2**53, chance(draw, 30))
    family = f"rejecting: points, {metric}, {'one' if one else 'ragged'}, {priced}"
    return Case("lap", family, inputs, options, time_limit(draw), polls=polls(draw))


def _numbers(draw: Draw, shape: tuple[int, ...], most: int, whole: bool) -> tuple[str, Array]:
    drawn = shape if len(shape) > 1 else (1, *shape)
    if 0 in shape:
        return "none", np.zeros(shape, np.int64 if whole else np.float64)
    kind, values = integers(draw, drawn, most) if whole else floats(draw, drawn)
    return f"{'integers' if whole else 'floats'}, {kind}", values.reshape(shape)


def _prices(
    draw: Draw, inputs: dict[str, Any], options: dict[str, Any], form: str, sizes: Array, most: int, whole: bool
) -> str:
    """A limit, or prices of one side or both, in place."""
    if "maximize" not in options and chance(draw, 40):
        values = _numbers(draw, (1,), min(most, 2**53), whole)[1]
        options["cost_limit"] = float(values[0])
        return "limited"
    sides = one_of(draw, (("reject_rows",), ("reject_cols",), ("reject_rows", "reject_cols")))
    for name in sides:
        side = int(name == "reject_cols")
        lines = int(sizes[:, side].sum())
        extent = inputs["cost"].shape[side + 1] if form == "batch" else lines
        shape = (len(sizes), extent) if form == "batch" else (lines,)
        inputs[name] = _numbers(draw, shape, most, whole)[1]
    return "priced"
