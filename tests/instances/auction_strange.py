"""Small auctions of strange kinds, drawn from a seed: scales, ties, forbidden entries, garbage to start from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels import FORBIDDEN, Array, Csr

Shape = tuple[int, int]
Draw = Callable[[np.random.Generator, Shape], Array]


def _whole(rng: np.random.Generator, shape: Shape) -> Array:
    most = 10 ** int(rng.integers(9, 17))
    return rng.integers(-most, most, shape)


def _edge(rng: np.random.Generator, shape: Shape) -> Array:
    most = 2**61 // (shape[1] + 2)
    near = rng.integers(0, 3, shape)
    return np.where(rng.random(shape) < 0.5, most - near, near - most)


def _big_m(rng: np.random.Generator, shape: Shape) -> Array:
    benefit = rng.random(shape)
    benefit[rng.random(shape) < 0.4] = -(10.0 ** rng.integers(6, 17))
    return benefit if rng.random() < 0.7 else -benefit


def _wide(rng: np.random.Generator, shape: Shape) -> Array:
    return np.asarray(10.0 ** rng.uniform(-15, 15, shape) * rng.choice([-1, 1], shape))


KINDS: dict[str, Draw] = {
    "small": lambda rng, shape: rng.integers(-9, 10, shape),
    "ties": lambda rng, shape: rng.integers(0, 3, shape).astype(rng.choice(["i8", "i4", "f8"])),
    "uniform": lambda rng, shape: rng.random(shape),
    "float32": lambda rng, shape: rng.random(shape, dtype=np.float32),
    "whole": _whole,
    "edge": _edge,
    "huge": lambda rng, shape: rng.standard_normal(shape) * 10.0 ** rng.integers(100, 290),
    "tiny": lambda rng, shape: rng.standard_normal(shape) * 10.0 ** -float(rng.integers(10, 280)),
    "big-m": _big_m,
    "wide": _wide,
    "equal": lambda rng, shape: np.full(shape, rng.choice([7.0, 1e-14, 0.3, 1e15])),
    "zero": lambda rng, shape: np.zeros(shape, rng.choice(["i8", "f8"])),
    "rows": lambda rng, shape: rng.random(shape) * 2.0 ** rng.integers(-40, 40, (shape[0], 1)),
}

PRICES: dict[str, Callable[[np.random.Generator, int, float], Array]] = {
    "in scale": lambda rng, n, scale: np.abs(rng.standard_normal(n)) * scale,
    "huge": lambda rng, n, scale: np.abs(rng.standard_normal(n)) * 1e18,
    "any": lambda rng, n, scale: np.asarray(10.0 ** rng.uniform(-300, 300, n)),
    "largest": lambda rng, n, scale: np.where(rng.random(n) < 0.5, 1.7e308, 0.0),
    "integers": lambda rng, n, scale: rng.integers(0, 2**62, n),
    "one": lambda rng, n, scale: np.where(np.arange(n) == rng.integers(n), 10.0 ** rng.integers(0, 30), 0.0),
}


@dataclass
class Strange:
    """A problem in the plainest form beside the inputs and options that state it."""

    kind: str
    benefit: Array
    permitted: Array
    reject: Array | None
    inputs: dict[str, Any]
    options: dict[str, Any]

    @property
    def integral(self) -> bool:
        return self.benefit.dtype.kind == "i" and (self.reject is None or self.reject.dtype.kind == "i")


def strange(seed: int, kind: str | None = None) -> Strange:
    """The problem of this seed: up to 6 rows and 7 columns."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 7)), int(rng.integers(1, 8))
    may_stay_out = bool(rng.random() < 0.35)
    if m > n and not may_stay_out:
        m, n = n, m
    kind = kind or str(rng.choice(list(KINDS)))
    benefit = KINDS[kind](rng, (m, n))
    permitted = rng.random((m, n)) < rng.uniform(0.2, 0.95) if rng.random() < 0.35 else np.ones((m, n), bool)
    permitted[0, 0] = True
    options: dict[str, Any] = {"finish": str(rng.choice(["auto", "auction", "paths"]))}
    inputs: dict[str, Any] = {"benefit": _form(rng, benefit, permitted)}
    reject = None
    if may_stay_out:
        reject = _reject(rng, benefit)
        if reject is None:
            options["allow_unassigned"], reject = True, np.zeros(m, np.int64)
        else:
            inputs["reject"] = reject
    scale = float(np.abs(benefit[permitted]).max()) or 1.0
    if rng.random() < 0.5:
        inputs["prices0"] = PRICES[str(rng.choice(list(PRICES)))](rng, n, scale)
    if rng.random() < 0.25:
        seats = np.concatenate([rng.permutation(n), np.full(max(0, m - n), -1)])[:m]
        inputs["assignment0"] = np.where(rng.random(m) < 0.3, -1, seats)
    if rng.random() < 0.35:
        options["epsilon"] = float(rng.choice([0.01, 1.0, 0.3, 1e-6, 1e-20, 1e9, scale / 10]))
    return Strange(kind, benefit, permitted, reject, inputs, options)


def _form(rng: np.random.Generator, benefit: Array, permitted: Array) -> Array | Csr:
    if benefit.dtype == np.int64 and not permitted.all() and rng.random() < 0.5:
        return np.where(permitted, benefit, FORBIDDEN)
    if rng.random() < 0.4 or (benefit.dtype.kind == "i" and not permitted.all()):
        indptr = np.concatenate([[0], np.cumsum(permitted.sum(1))])
        return Csr(indptr, np.nonzero(permitted)[1], benefit[permitted], benefit.shape)
    return benefit if permitted.all() else np.where(permitted, benefit, -np.inf).astype(benefit.dtype)


def _reject(rng: np.random.Generator, benefit: Array) -> Array | None:
    m, n = benefit.shape
    if rng.random() < 0.4:
        return None
    if benefit.dtype.kind == "f":
        return np.asarray(rng.choice(benefit.ravel(), m) * rng.choice([1.0, 0.5, -1.0, 0.0]))
    most = min(int(np.abs(benefit).max()) + 1, 2**61 // (n + m + 2))
    whole = rng.integers(-most, most + 1, m)
    return np.asarray(whole if rng.random() < 0.7 else whole * 0.7)
