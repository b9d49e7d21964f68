"""Auctions: dense and CSR benefits, points, reject prices, garbage prices and seats, every epsilon and finish."""

from typing import Any

import numpy as np

from kernels import FORBIDDEN, Array, Csr
from tests.fuzz.case import Case
from tests.fuzz.draw import (
    Draw,
    barred,
    chance,
    floats,
    garbage,
    integers,
    may_be_masked,
    narrowed,
    one_of,
    polls,
    scale_of,
    time_limit,
)
from tests.fuzz.families.points import draw_points

MOST = 2**61
"""Integers times the number of columns stay below."""


def draw(draw: Draw, device: str) -> Case:
    """One case."""
    n_rows, n_cols = _shape(draw)
    options = _options(draw)
    if device == "gpu" and chance(draw, 30):
        options["launch"] = "graph"
    if chance(draw, 12):
        family, inputs = _points(draw, n_rows, n_cols, options)
        scale = 1.0
    else:
        family, benefit = _benefit(draw, n_rows, n_cols)
        inputs = {"benefit": benefit}
        values = benefit.values if isinstance(benefit, Csr) else benefit
        scale = scale_of(values)
    if n_rows > n_cols or chance(draw, 30):
        family += ", reject"
        _reject(draw, n_rows, n_cols, scale, inputs, options)
    if chance(draw, 25):
        prices = np.abs(garbage(draw, (n_cols,), scale))
        inputs["prices0"] = np.minimum(prices, _largest(prices, n_cols))
        family += ", priced"
    if chance(draw, 15):
        inputs["assignment0"] = _seats(draw, n_rows, n_cols)
    _epsilon(draw, scale, options)
    return Case("auction", family, inputs, options, time_limit(draw), polls=polls(draw))


def _shape(draw: Draw) -> tuple[int, int]:
    if chance(draw, 2):
        n = draw.whole(17, 60)
        return n, n + draw.whole(-5, 20)
    kind = one_of(draw, ("square", "wide", "tall", "square", "line", "larger"))
    n = draw.whole(1, 6)
    if kind == "square":
        return n, n
    if kind == "line":
        return 1, n
    if kind == "larger":
        n = draw.whole(7, 16)
        return n, n + draw.whole(0, 4)
    more = n + draw.whole(1, 4)
    return (n, more) if kind == "wide" else (more, n)


def _benefit(draw: Draw, n_rows: int, n_cols: int) -> tuple[str, Array | Csr]:
    shape = (n_rows, n_cols)
    whole = chance(draw, 50)
    if whole:
        kind, values = integers(draw, shape, MOST // (n_cols + 2))
    else:
        kind, values = floats(draw, shape)
    family = f"{'integers' if whole else 'floats'}, {kind}"
    forbidden = barred(draw, shape)
    if chance(draw, 40):
        return f"{family}, sparse", _csr(~forbidden, narrowed(draw, values))
    if chance(draw, 30) and not whole:
        return f"{family}, forbidden", narrowed(draw, np.where(forbidden, -np.inf, values))
    if whole and chance(draw, 30) and may_be_masked("auction", "benefit"):
        return f"{family}, forbidden", np.where(forbidden, FORBIDDEN, values)
    return family, narrowed(draw, values)


def _csr(allowed: Array, values: Array) -> Csr:
    """Some rows have no entry at all where the holes fall so."""
    indptr = np.concatenate([[0], np.cumsum(allowed.sum(1))])
    return Csr(indptr, np.nonzero(allowed)[1].astype(np.int32), values[allowed], (allowed.shape[0], allowed.shape[1]))


def _points(draw: Draw, n_rows: int, n_cols: int, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if chance(draw, 50):
        return draw_points(draw, n_rows, n_cols, options)
    d = draw.whole(4, 24) if chance(draw, 10) else draw.whole(1, 3)
    clouds = [narrowed(draw, floats(draw, (n, d), 300, -500)[1]) for n in (n_rows, n_cols)]
    options["metric"] = one_of(draw, ("sqeuclidean", "euclidean", "cityblock"))
    if chance(draw, 30):
        options["neighbours"] = draw.whole(1, min(48, n_cols))
    return f"points, {options['metric']}", {"x": clouds[0], "y": clouds[1]}


def _reject(
    draw: Draw, n_rows: int, n_cols: int, scale: float, inputs: dict[str, Any], options: dict[str, Any]
) -> None:
    if chance(draw, 40):
        options["allow_unassigned"] = True
    elif chance(draw, 50):
        inputs["reject"] = integers(draw, (1, n_rows), min(MOST // (n_cols + n_rows + 2), int(min(scale, 1e15)) + 9))[
            1
        ][0]
    else:
        inputs["reject"] = (draw.wholes(-100, 100, (n_rows,)) / 100) * scale


def _largest(prices: Array, n_cols: int) -> Any:
    return MOST // (n_cols + 2) if prices.dtype.kind == "i" else 1e299 / (n_cols + 2)


def _seats(draw: Draw, n_rows: int, n_cols: int) -> Array:
    seats = np.full(n_rows, -1, np.int64)
    taken: set[int] = set()
    for i, j in enumerate(draw.wholes(-1, n_cols - 1, (n_rows,)).tolist()):
        if j not in taken:
            seats[i] = j
            taken.add(j)
    seats[seats < 0] = -1
    return seats


def _options(draw: Draw) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if chance(draw, 50):
        options["finish"] = one_of(draw, ("auto", "auction", "paths"))
    if chance(draw, 5):
        options["iteration_limit"] = draw.whole(1, 20)
    if chance(draw, 10):
        options["deterministic"] = False
    if chance(draw, 5):
        options["trace"] = True
    return options


def _epsilon(draw: Draw, scale: float, options: dict[str, Any]) -> None:
    if chance(draw, 30):
        relative = max(scale, 5e-324) * 10.0 ** draw.whole(-6, 1)
        options["epsilon"] = max(5e-324, min(1e300, one_of(draw, (relative, 1.0, 0.3, 0.01, 1e-9))))
