"""Quadratic assignment: integers and floats of every size, symmetric or not, forbidden or fixed pairs, all options."""

from typing import Any

import numpy as np

from kernels import FORBIDDEN, Array
from kernels.certificates.quadratic_exact import ENUMERATED
from tests.fuzz.case import Case
from tests.fuzz.draw import (
    Draw,
    barred,
    chance,
    floats,
    holes,
    integers,
    may_be_masked,
    one_of,
    polls,
    scale_of,
    time_limit,
)

MOST = 2**61


def draw(draw: Draw, device: str) -> Case:
    """One case."""
    n = draw.whole(7, 13) if chance(draw, 4) else one_of(draw, (4, 3, 5, 2, 1, 4, 5, 6, 3))
    family, inputs = _whole(draw, n) if chance(draw, 55) else _real(draw, n)
    options: dict[str, Any] = {"seed": draw.whole(0, 9)}
    if chance(draw, 30):
        _linear(draw, n, inputs)
        family += ", linear"
    if chance(draw, 12):
        options["fixed"] = {draw.whole(0, n - 1): draw.whole(0, n - 1)}
        family += ", fixed"
    if chance(draw, 15):
        inputs["permutation0"] = np.argsort(draw.wholes(0, 10**6, (n,)), kind="stable")
    _options(draw, options)
    limit = time_limit(draw)
    if n > ENUMERATED and chance(draw, 40):  # a bound that no search may be expected to meet
        options["bounds"], limit = ("sdp",), 0.4
    return Case("qap", family, inputs, options, limit, polls=polls(draw))


def _whole(draw: Draw, n: int) -> tuple[str, dict[str, Any]]:
    kinds, matrices = [], []
    most = max(1, int((MOST / 4 / n**2) ** 0.5))
    for _ in range(2):
        kind, matrix = integers(draw, (n, n), most)
        if kind == "wide":
            matrix = np.clip(matrix, -most, most)
        kinds.append(kind)
        matrices.append(_shaped(draw, matrix))
    return f"integers, {kinds[0]} x {kinds[1]}", {"flow": matrices[0], "distance": matrices[1]}


def _real(draw: Draw, n: int) -> tuple[str, dict[str, Any]]:
    kinds, matrices = [], []
    for _ in range(2):
        kind, matrix = floats(draw, (n, n), 400, -500)
        if scale_of(matrix) > 1e120:
            matrix = matrix / scale_of(matrix) * 1e120
        kinds.append(kind)
        matrices.append(_shaped(draw, matrix))
    return f"floats, {kinds[0]} x {kinds[1]}", {"flow": matrices[0], "distance": matrices[1]}


def _shaped(draw: Draw, matrix: Array) -> Array:
    kind = one_of(draw, ("symmetric", "hollow", "any"))
    if kind != "any":
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
    if kind == "hollow":
        matrix = matrix * (1 - np.eye(len(matrix), dtype=matrix.dtype))
    return matrix


def _linear(draw: Draw, n: int, inputs: dict[str, Any]) -> None:
    whole = inputs["flow"].dtype.kind == "i"
    size = scale_of(inputs["flow"]) * scale_of(inputs["distance"])
    most = min(MOST // (4 * n), max(1, int(min(size, 2.0**60))))
    linear: Array
    if whole:
        linear = draw.wholes(-most, most, (n, n))
    else:
        linear = draw.wholes(-1000, 1000, (n, n)) / 1000 * min(max(size, 1e-300), 1e280)
    if chance(draw, 50):
        forbidden = holes(draw, (n, n), one_of(draw, (10, 30, 60))) if chance(draw, 90) else barred(draw, (n, n))
        if whole and chance(draw, 50) and may_be_masked("qap", "linear"):
            inputs["linear"] = np.where(forbidden, FORBIDDEN, linear)
            return
        linear = np.where(forbidden, np.inf, linear.astype(float))
    inputs["linear"] = linear


def _options(draw: Draw, options: dict[str, Any]) -> None:
    if chance(draw, 30):
        options["method"] = one_of(draw, ("auto", "tabu", "2opt", "memetic"))
    if chance(draw, 20):
        options["starts"] = one_of(draw, (1, 2, 8))
    if chance(draw, 20):
        options["rounds"] = draw.whole(1, 3)
    if chance(draw, 10):
        options["iterations"] = draw.whole(1, 50)
    if chance(draw, 15):
        every = ("gilmore-lawler", "projection", "rlt1", "sdp")
        options["bounds"] = tuple(name for name in every if chance(draw, 50))
    if chance(draw, 5):
        options["population"] = True
    if chance(draw, 5):
        options["target"] = float(draw.whole(-100, 100))
    if chance(draw, 5):
        options["best_known"] = draw.whole(-100, 100)
    if chance(draw, 5):
        options["deterministic"] = True
    if chance(draw, 5):
        options["tenure"] = (1, draw.whole(1, 5))
