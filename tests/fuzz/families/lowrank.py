"""Couplings of low rank: costs, points and factors of costs of every size and sign, weights with zeros, all ranks."""

from typing import Any

from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, chance, floats, integers, narrowed, one_of, polls, time_limit
from tests.fuzz.families.gromov import weights

TOP, TOP_COST = 330, 660
"""Coordinates and entries of factors up to 2^330, which is below 1e100; costs up to their squares."""


def draw(draw: Draw, device: str) -> Case:
    """One case."""
    m, n = (one_of(draw, (3, 2, 1, 4, 5, 6)) for _ in range(2))
    family, inputs, options = one_of(draw, (_costs, _points, _factors))(draw, m, n)
    for name, size in (("a", m), ("b", n)):
        if chance(draw, 50):
            inputs[name] = weights(draw, size)
            family += f", {name}"
    options |= {"rank": draw.whole(1, 4), "seed": draw.whole(0, 9), "starts": draw.whole(1, 2)}
    options["max_iterations"] = one_of(draw, (40, 1, 200))
    if chance(draw, 30):
        options["init"] = "random"
    if chance(draw, 20):
        options["gamma"] = one_of(draw, (1.0, 0.01, 100.0))
    if chance(draw, 20):
        options["tolerance"] = one_of(draw, (1e-3, 1e-9, 0.0, 1.0))
    return Case("lowrank", family, inputs, options, time_limit(draw), polls=polls(draw))


def _costs(draw: Draw, m: int, n: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    whole = chance(draw, 30)
    kind, cost = integers(draw, (m, n), 2**61) if whole else floats(draw, (m, n), TOP_COST, -TOP_COST)
    return f"{kind}, cost", {"cost": narrowed(draw, cost)}, {}


def _points(draw: Draw, m: int, n: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    d, metric = draw.whole(1, 3), one_of(draw, ("sqeuclidean", "inner", "euclidean", "cityblock"))
    unit, away = one_of(draw, (1.0, 0.1, 2.0**300, 2.0**-300)), one_of(draw, (0, 0, 1 << 40))
    clouds = {name: (draw.wholes(-30, 30, (size, d)) + away) * unit for name, size in (("x", m), ("y", n))}
    return f"{metric}, points", {name: narrowed(draw, cloud) for name, cloud in clouds.items()}, {"metric": metric}


def _factors(draw: Draw, m: int, n: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    k = draw.whole(1, 3)
    (kind, left), (other, right) = (floats(draw, (size, k), TOP, -TOP) for size in (m, n))
    return f"{kind} x {other}", {"row_factors": left, "column_factors": right}, {}
