"""Quadratic assignment with general costs beside its peers: python -m benchmarks.lawler [--sizes 12 20] [--seconds 2].

Products of flow and distance in Lawler's form, beside scipy.optimize.quadratic_assignment (faq and 2opt, the best of as
many starts as fit the same time) and beside `qap`, which see flow and distance. All take turns on the same instance.
Two clouds, one of them moved a little and put in another order, are matched by how alike their distances are: to be
maximised, beside `rrwm`, `sm` and `ipfp` of pygmtools where that is installed (version 0.6, NumPy). So are general
costs, drawn one by one. A wrong answer has no row.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import quadratic_assignment

from benchmarks.rows import Rows
from kernels import SOLVERS, Array, Deadline, solve_and_prove

Pair = tuple[Array, Array]


def products(n: int) -> Pair:
    """Flows and distances in [0, 9], symmetric, without a diagonal."""
    rng = np.random.default_rng(n)
    flow, distance = (np.triu(rng.integers(0, 10, (n, n)), 1) for _ in range(2))
    return flow + flow.T, distance + distance.T


def grid(n: int) -> Pair:
    """The same flows on a grid: distances of many ties."""
    x, y = np.divmod(np.arange(n), 5)
    return products(n)[0], np.abs(x[:, None] - x) + np.abs(y[:, None] - y)


def ours(solver: str, inputs: dict[str, Array], seconds: float, **given: Any) -> dict[str, Any]:
    """What a solver of the house comes to in so many seconds, its certificate included."""
    card = SOLVERS[solver]
    options = card.options(**given)
    begun = time.perf_counter()
    problem = card.build(inputs, options)
    solution, certificate = solve_and_prove(card, problem, options, Deadline(seconds), "cpu")
    assert certificate.holds
    spent = 1e3 * (time.perf_counter() - begun)
    word = certificate.termination or solution.termination
    found = {"objective": certificate.objective, "bound": certificate.bound, "ms": spent, "termination": str(word)}
    return found | {"certify_ms": solution.timings_ms["certify"]}


def scipys(flow: Array, distance: Array, method: str, seconds: float) -> tuple[float, int]:
    """(the best objective, starts) of SciPy in that time; faq begins at the barycenter, and then at random."""
    best, starts, end = np.inf, 0, time.perf_counter() + seconds
    while starts == 0 or time.perf_counter() < end:
        options: dict[str, Any] = {"rng": np.random.default_rng(starts)}
        if method == "faq" and starts:
            options["P0"] = "randomized"
        best = min(best, float(quadratic_assignment(flow, distance, method=method, options=options).fun))
        starts += 1
    return best, starts


def beside(family: str, pair: Pair, seconds: float) -> dict[str, Any]:
    """A row of products."""
    flow, distance = pair
    cost = np.einsum("ik,pq->ipkq", flow, distance)
    row: dict[str, Any] = {"family": family, "n": len(flow), "seconds": seconds}
    row |= ours("lawler", {"cost": cost}, seconds)
    theirs = ours("qap", {"flow": flow, "distance": distance}, seconds)
    row |= {f"qap_{name}": theirs[name] for name in ("objective", "bound", "ms")}
    for method in ("faq", "2opt"):
        row[f"scipy_{method}_objective"], row[f"scipy_{method}_starts"] = scipys(flow, distance, method, seconds)
    return row


def general(n: int) -> Array:
    """Affinities that are drawn one by one."""
    return np.random.default_rng(n).integers(0, 100, (n, n, n, n))


def matching(n: int) -> Array:
    """How alike two points' distance in a cloud is to that of two others in the same cloud, moved and shuffled."""
    rng = np.random.default_rng(n)
    x = rng.random((n, 2))
    y = (x + rng.normal(0, 0.05, (n, 2)))[rng.permutation(n)]
    within, beyond = (np.linalg.norm(side[:, None] - side, axis=2) for side in (x, y))
    return np.asarray(np.exp(-((within[:, None, :, None] - beyond[None, :, None, :]) ** 2) / 0.02))


def matchers(affinity: Array) -> dict[str, Any]:
    """Objectives and milliseconds of pygmtools; nothing where it is not installed."""
    if importlib.util.find_spec("pygmtools") is None:
        return {}
    pygmtools: Any = importlib.import_module("pygmtools")
    pygmtools.set_backend("numpy")
    n = len(affinity)
    i = np.arange(n)
    free = affinity.astype(float)
    free[i, :, i, :] = free[:, i, :, i] = 0
    matrix = free.transpose(1, 0, 3, 2).reshape(n * n, n * n)  # it counts rows by place first
    row: dict[str, Any] = {}
    ways: dict[str, Callable[..., Array]] = {name: getattr(pygmtools, name) for name in ("rrwm", "sm", "ipfp")}
    for name, way in ways.items():
        begun = time.perf_counter()
        p = np.asarray(pygmtools.hungarian(way(matrix, n, n))).argmax(axis=1)
        row[f"{name}_ms"] = 1e3 * (time.perf_counter() - begun)
        row[f"{name}_objective"] = float(free[i[:, None], p[:, None], i, p].sum())
    return row


def affine(family: str, affinity: Array, seconds: float) -> dict[str, Any]:
    """A row of a maximum. What a placement is worth alone is left out: the peers would count it otherwise."""
    n = len(affinity)
    i = np.arange(n)
    pairs = affinity.copy()
    pairs[i, :, i, :] = 0
    row = {"family": family, "n": n, "seconds": seconds}
    return row | ours("lawler", {"cost": pairs}, seconds, maximize=True) | matchers(pairs)


def main() -> None:
    """Four rows for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", type=int, default=[12, 20, 30, 40])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rows", default="lawler")
    args = parser.parse_args()
    for solver in ("lawler", "qap"):
        SOLVERS[solver].warm_up("cpu")
    rows = Rows(args.rows)
    for n in args.sizes:
        rows.add(**beside("products", products(n), args.seconds))
        rows.add(**beside("grid", grid(n), args.seconds))
        rows.add(**affine("matching", matching(n), args.seconds))
        rows.add(**affine("general", general(n), args.seconds))


if __name__ == "__main__":
    main()
