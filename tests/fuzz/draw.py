"""How a family chooses: whole numbers from a range, and everything else made of those.

Two things can choose: a seeded generator, for volume, and Hypothesis, which also makes a failing case small
(strategies.py). A family is one function of a `Draw`, so both see the same cases.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from kernels import SOLVERS, Array

T = TypeVar("T")
DENSITIES = (0, 10, 40, 80)


class Draw(Protocol):
    """The two choices that all others are made of."""

    def whole(self, low: int, high: int) -> int:
        """One of low .. high."""

    def wholes(self, low: int, high: int, shape: tuple[int, ...]) -> Array:
        """int64, each of low .. high."""


class Seeded:
    """Chooses by NumPy's generator: the same seed, the same case."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(list(seed))

    def whole(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high, endpoint=True))

    def wholes(self, low: int, high: int, shape: tuple[int, ...]) -> Array:
        return self._rng.integers(low, high, shape, dtype=np.int64, endpoint=True)


def one_of(draw: Draw, choices: Sequence[T]) -> T:
    """One of them; the first is the plainest."""
    return choices[draw.whole(0, len(choices) - 1)]


def chance(draw: Draw, percent: int) -> bool:
    """True in so many of a hundred cases."""
    return draw.whole(0, 99) >= 100 - percent


def holes(draw: Draw, shape: tuple[int, ...], percent: int) -> Array:
    """Boolean: which entries are forbidden."""
    return draw.wholes(0, 99, shape) >= 100 - percent


def barred(draw: Draw, shape: tuple[int, ...]) -> Array:
    """Boolean: which entries are forbidden; mostly here and there, sometimes lines, problems of a batch, or all."""
    scattered = holes(draw, shape, one_of(draw, DENSITIES))
    if not chance(draw, 15):
        return scattered
    kind = one_of(draw, ("rows", "columns", "problems", "all"))
    if kind == "all":
        return np.ones(shape, bool)
    lines = {"rows": (*shape[:-1], 1), "columns": (*shape[:-2], 1, shape[-1]), "problems": (*shape[:-2], 1, 1)}
    return scattered | holes(draw, lines[kind], 40)


def integers(draw: Draw, shape: tuple[int, ...], most: int) -> tuple[str, Array]:
    """A matrix of int64 of size up to `most`, and what kind it is."""
    kind = one_of(
        draw, ("small", "ties", "signed", "constant", "zero", "wide", "limit", "one size", "product", "lines")
    )
    if kind == "ties":
        return kind, draw.wholes(0, 2, shape)
    if kind == "signed":
        return kind, draw.wholes(-min(50, most), min(50, most), shape)
    if kind == "constant":
        return kind, np.full(shape, draw.whole(-min(9, most), min(9, most)))
    if kind == "zero":
        return kind, np.zeros(shape, np.int64)
    if kind == "wide":
        top = min(most, 1 << draw.whole(20, 60))
        return kind, draw.wholes(-top, top, shape)
    if kind == "limit":
        return kind, one_of(draw, (1, -1)) * (most - draw.wholes(0, min(most, 3), shape))
    if kind == "one size":
        return kind, one_of(draw, (1, -1)) * draw.wholes(most // 2, most, shape)
    if kind == "product":
        return kind, np.multiply.outer(np.arange(1, shape[-2] + 1), np.arange(1, shape[-1] + 1)) + np.zeros(shape, int)
    if kind == "lines":  # rows and columns of zeros or of one value
        return kind, draw.wholes(0, 9, shape) * draw.wholes(0, 1, (*shape[:-1], 1)) + draw.wholes(0, 1, (1, shape[-1]))
    return "small", draw.wholes(0, min(20, most), shape)


def floats(draw: Draw, shape: tuple[int, ...], top_power: int = 900, low_power: int = -1060) -> tuple[str, Array]:
    """A matrix of float64 and what kind it is; sizes up to about 2^top_power."""
    kinds = ("unit", "tenths", "ties", "near ties", "zero", "constant", "power", "mixed", "big M", "tiny", "squares",
             "lines", "signed", "whole", "negative")  # fmt: skip
    kind = one_of(draw, kinds)
    unit = draw.wholes(0, 1 << 53, shape) * 2.0**-53
    if kind == "tenths":
        return kind, draw.wholes(-30, 30, shape) * 0.1
    if kind == "ties":
        return kind, np.array([0.1, 0.3, 1 / 3])[draw.wholes(0, 2, shape)]
    if kind == "near ties":
        return kind, (1.0 + draw.wholes(-3, 3, shape) * 2.0**-52) * 2.0 ** draw.whole(-8, 8)
    if kind == "zero":
        return kind, np.zeros(shape)
    if kind == "constant":
        return kind, np.full(shape, 0.1 * draw.whole(-7, 7))
    if kind == "power":
        return kind, np.ldexp(unit, draw.whole(max(low_power, -1020), top_power))
    if kind == "mixed":
        low, high = sorted((draw.whole(low_power, top_power), draw.whole(low_power, top_power)))
        return kind, np.ldexp(unit, draw.wholes(low, high, shape).astype(np.int32))
    if kind == "big M":
        return kind, np.where(holes(draw, shape, 40), min(2.0**top_power, one_of(draw, (1e9, 1e12, 1e15, 1e100))), unit)
    if kind == "tiny":
        return kind, np.ldexp(unit, low_power) if low_power > -1000 else unit * one_of(draw, (5e-324, 1e-310, 1e-300))
    if kind == "squares":
        x, y = draw.wholes(0, 999, (shape[-2], 2)) / 1000, draw.wholes(0, 999, (shape[-1], 2)) / 1000
        return kind, ((x[:, None] - y) ** 2).sum(-1) + np.zeros(shape)
    if kind == "lines":
        return kind, unit * draw.wholes(0, 1, (*shape[:-1], 1)) * draw.wholes(0, 1, (1, shape[-1]))
    if kind == "signed":
        return kind, (unit - 0.5) * 2.0 ** draw.whole(-20, 20)
    if kind == "whole":
        return kind, draw.wholes(-9, 9, shape).astype(float)
    return (kind, -unit) if kind == "negative" else ("unit", unit)


def may_be_masked(solver: str, name: str) -> bool:
    """Whether integers of this input may stand beside forbidden entries."""
    return any(spec.masked for spec in SOLVERS[solver].inputs if spec.name == name)


WHOLE: tuple[Any, ...] = (np.int32, np.int16, np.int8, np.uint8, np.uint16, np.uint32, np.uint64, np.int32)


def narrowed(draw: Draw, array: Array) -> Array:
    """Sometimes of a narrower type where it fits, whose zeros and ties come with it; sometimes laid out otherwise."""
    if array.dtype == np.float64 and chance(draw, 20):
        dtype: Any = one_of(draw, (np.float32, np.float32, np.float16))
        if scale_of(array) < float(np.finfo(dtype).max) / 64:
            array = array.astype(dtype)
    elif array.dtype == np.int64 and array.size and chance(draw, 40):
        room = np.iinfo(one_of(draw, WHOLE))
        if room.min <= array.min() and array.max() <= room.max:
            array = array.astype(room.dtype)
    if array.ndim > 1 and chance(draw, 10):
        array = np.asfortranarray(array) if array.ndim == 2 and chance(draw, 50) else np.repeat(array, 2, -1)[..., ::2]
    if chance(draw, 10):
        array.flags.writeable = False
    return array


def garbage(draw: Draw, size: tuple[int, ...], like: float) -> Array:
    """Duals, prices or potentials to start from that have nothing to do with the problem; `like` is its scale."""
    kind = one_of(draw, ("near", "zero", "far", "one", "whole", "huge", "absurd"))
    unit = draw.wholes(-(1 << 53), 1 << 53, size) * 2.0**-53
    if kind == "zero":
        return np.zeros(size)
    if kind == "far":
        return unit * like * 10.0 ** draw.whole(1, 16)
    if kind == "one":
        return np.where(holes(draw, size, 30), 1.0, 0.0) * like * 10.0 ** draw.whole(-2, 18)
    if kind == "whole":
        return draw.wholes(-20, 20, size)
    if kind == "huge":
        return draw.wholes(-(2**62), 2**62, size)
    if kind == "absurd":
        return unit * 1e300
    return unit * like


def scale_of(array: Array) -> float:
    """The largest finite magnitude."""
    finite = np.abs(array[np.isfinite(array)].astype(float))
    return float(finite.max()) if finite.size else 1.0


def polls(draw: Draw) -> int | None:
    """Mostly none; sometimes the caller stops the job, when it asks for the so manieth time."""
    return draw.whole(0, 6) if chance(draw, 4) else None


def time_limit(draw: Draw) -> float | None:
    """Mostly none (the run sets its own); sometimes far too short."""
    return one_of(draw, (0.0, 1e-6, 1e-4, 1e-3)) if chance(draw, 8) else None
