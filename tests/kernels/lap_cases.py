"""Assignments to be solved and certified: families of costs, and how a job makes an answer of them."""

from fractions import Fraction
from typing import Any

import numpy as np

from kernels import (
    FORBIDDEN,
    SOLVERS,
    Array,
    Certificate,
    Deadline,
    Device,
    Solution,
    solve_and_prove,
)
from kernels.lap import LapOptions
from tests.oracles.assignment import exact_optimum

LAP = SOLVERS["lap"]


def prove(
    cost: Array, maximize: bool = False, limit_s: float | None = None, device: Device = "cpu", **inputs: Any
) -> Any:
    """(problem, solution, certificate), as a job makes them."""
    options = LapOptions(maximize=maximize)
    problem = LAP.build({"cost": cost, **inputs}, options)
    return problem, *solve_and_prove(LAP, problem, options, Deadline(limit_s), device)


def taken(cost: Array, solution: Solution) -> Fraction:
    """The exact objective of an assignment."""
    rows = np.flatnonzero(solution.arrays["assignment"] >= 0)
    return sum(map(Fraction, cost[rows, solution.arrays["assignment"][rows]].tolist()), Fraction(0))


def is_true(certificate: Certificate, cost: Array, maximize: bool, solution: Solution) -> None:
    """Bound, objective and gap are on their weak sides of the exact ones."""
    sign = -1 if maximize else 1
    best = exact_optimum(cost, maximize)
    if best is None:
        assert certificate.bound is None or certificate.objective is None
        return
    if certificate.bound is not None:
        assert sign * Fraction(certificate.bound) <= sign * best
    if certificate.objective is not None:
        assert sign * Fraction(certificate.objective) >= sign * taken(cost, solution)
    if certificate.gap_abs is not None:
        assert Fraction(certificate.gap_abs) >= abs(taken(cost, solution) - best)


def by_scale(rng: np.random.Generator, shape: tuple[int, int], decades: int) -> Any:
    return rng.normal(size=shape) * 10.0 ** rng.integers(-decades, decades + 1, shape)


def tiny(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Below the smallest normal float64."""
    return rng.integers(-4000, 4000, shape) * 5e-324


def big_m(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.where(rng.random(shape) < 0.3, 10.0 ** rng.choice([9, 12, 15]), rng.random(shape))


def cancelling(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Entries of 1e300 that cancel, beside others that then decide."""
    large = np.where(rng.random(shape) < 0.5, 1e300, -1e300) * rng.choice([1, 1e-7, 1e-300], shape)
    return np.asarray(large + rng.random(shape))


def near_ties(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """One value, up to a few units in the last place."""
    return 0.1 + rng.integers(0, 4, shape) * 2.0**-56


FAMILIES: dict[str, Any] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "ties": lambda rng, shape: rng.integers(-2, 3, shape).astype(float),
    "near-ties": near_ties,
    "constant": lambda rng, shape: np.full(shape, rng.normal()),
    "zero-lines": lambda rng, shape: rng.normal(size=shape) * (rng.random((shape[0], 1)) < 0.5),
    "scales": lambda rng, shape: by_scale(rng, shape, 9),
    "all-scales": lambda rng, shape: by_scale(rng, shape, 290),
    "tiny": tiny,
    "huge": lambda rng, shape: rng.normal(size=shape) * 1e302,
    "big-m": big_m,
    "cancelling": cancelling,
    "distances": lambda rng, shape: ((rng.random((shape[0], 1, 2)) - rng.random((1, shape[1], 2))) ** 2).sum(-1),
    "float32": lambda rng, shape: by_scale(rng, shape, 6).astype(np.float32),
    "int": lambda rng, shape: rng.integers(-9, 10, shape),
    "int-large": lambda rng, shape: rng.integers(-(2**51), 2**51, shape),
    "int32": lambda rng, shape: rng.integers(-(2**31), 2**31, shape).astype(np.int32),
}


def draw(family: str, rng: np.random.Generator) -> tuple[Array, bool, dict[str, Any]]:
    """Costs, the sense, and at times forbidden entries and garbage to start from."""
    n_rows, n_cols = rng.integers(1, 7, 2).tolist()
    shape = (n_rows, n_rows if rng.random() < 0.4 else n_cols)
    maximize = bool(rng.integers(2))
    cost = FAMILIES[family](rng, shape)
    barred = rng.random(shape) < 0.3
    if rng.random() < 0.3 and not barred.all() and cost.dtype != np.int32:
        cost[barred] = FORBIDDEN if cost.dtype.kind == "i" else (-np.inf if maximize else np.inf)
    start: dict[str, Any] = {}
    if rng.random() < 0.4:
        start["v0"] = rng.normal(size=shape[1]) * 10.0 ** rng.integers(-20, 30)
    if rng.random() < 0.2:
        start["u0"] = rng.normal(size=shape[0]) * 10.0 ** rng.integers(-20, 300)
    return cost, maximize, start
