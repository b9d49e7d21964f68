"""Barycenters beside POT in the same run: python -m benchmarks.barycenter [--device gpu] [--repeats 3].

Solver and peer take turns on the same measures. Both go on until the L1 distance of their barycenters from the one of a
long solve is small, or until they stop by themselves; what each is off is a column, and a row whose certificate does
not hold has no time. POT gets NumPy arrays on a CPU and, with --device gpu, CuPy arrays.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import ot

from benchmarks.rows import Rows, alternate, on_gpu
from kernels import SOLVERS, Array, Deadline, Device, solve_and_prove

CARD = SOLVERS["barycenter"]
SIZES = ((5, 500, 0.01), (20, 500, 0.01), (100, 250, 0.01), (5, 200, 0.002))
"""Measures, points, and reg over the largest cost."""
LARGER = ((20, 1000, 0.01), (100, 2000, 0.01), (100, 4096, 0.01), (20, 1000, 0.002))
EXACT = ((3, 20), (5, 25))
FREE = ((5, 100), (10, 200))


def bumps(k: int, n: int) -> tuple[Array, Array]:
    """Measures of two or three bumps each on a line, and squared distances of at most 1."""
    rng = np.random.default_rng([k, n])
    places = np.linspace(0, 1, n)
    centres, widths = rng.random((k, 3, 1)), 0.02 + 0.05 * rng.random((k, 3, 1))
    masses = (np.exp(-(((places - centres) / widths) ** 2)) * rng.random((k, 3, 1))).sum(axis=1) + 1e-9
    return masses / masses.sum(axis=1, keepdims=True), (places[:, None] - places) ** 2


def entropic(k: int, n: int, reg: float, device: Device, repeats: int) -> dict[str, Any]:
    """One row of an entropic problem on given points."""
    masses, cost = bumps(k, n)
    options = CARD.options.model_validate({"reg": reg})
    problem = CARD.build({"histograms": masses, "cost": cost}, options)
    long = CARD.options.model_validate({"reg": reg, "tolerance": 1e-11})
    true = CARD.solve(problem, long, Deadline(20), device).arrays["barycenter"]
    found: dict[str, Any] = {}
    method = "sinkhorn" if reg >= 0.005 else "sinkhorn_log"  # the kernel of a smaller reg is 0 in float64
    peer = _peer(masses, cost, reg, method, device)

    def ours() -> None:
        found["ours"] = solve_and_prove(CARD, problem, options, Deadline(30), device)

    def theirs() -> None:
        found["pot"] = peer()

    ours()
    times = alternate({"ours_ms": ours, "pot_ms": theirs}, repeats)
    solution, certificate = found["ours"]
    assert certificate.holds
    off = np.abs(solution.arrays["barycenter"] - true).sum()
    return {
        "method": solution.method, "k": k, "n": n, "reg": reg, "device": device, **times,
        "solve_ms": solution.timings_ms["solve"], "certify_ms": solution.timings_ms["certify"],
        "iterations": solution.iterations, "gap_rel": certificate.gap_rel, "off": float(off),
        "peer": f"POT {ot.__version__} {method}", "pot_off": float(np.abs(found["pot"] - true).sum()),
    }  # fmt: skip


def _peer(masses: Array, cost: Array, reg: float, method: str, device: Device) -> Callable[[], Array]:
    """POT's barycenter, to its own threshold of 1e-7."""
    if device == "gpu":
        import cupy

        held, costs = cupy.asarray(masses.T), cupy.asarray(cost)
        return lambda: np.asarray(cupy.asnumpy(ot.bregman.barycenter(held, costs, reg, method=method, stopThr=1e-7)))
    return lambda: np.asarray(ot.bregman.barycenter(masses.T, cost, reg, method=method, stopThr=1e-7))


def exact(k: int, n: int, repeats: int) -> dict[str, Any]:
    """One row of a linear programme."""
    masses, cost = bumps(k, n)
    options = CARD.options.model_validate({"reg": 0})
    problem = CARD.build({"histograms": masses, "cost": cost}, options)
    found: dict[str, Any] = {}

    def ours() -> None:
        found["ours"] = solve_and_prove(CARD, problem, options, Deadline(), "cpu")

    def theirs() -> None:
        found["pot"] = ot.lp.barycenter(masses.T, cost, solver="highs")

    times = alternate({"ours_ms": ours, "pot_ms": theirs}, repeats)
    solution, certificate = found["ours"]
    assert certificate.holds
    assert solution.termination == "optimal"
    told = {"gap_rel": certificate.gap_rel, "objective": certificate.objective, "peer": f"POT {ot.__version__} lp"}
    return {"method": solution.method, "k": k, "n": n, "reg": 0, "device": "cpu", **times, **told}


def free(k: int, n: int, repeats: int) -> dict[str, Any]:
    """One row of points that move, from the same start."""
    x = np.random.default_rng([k, n]).random((k, n, 2)) + np.arange(k)[:, None, None] / k
    options = CARD.options.model_validate({"method": "free"})
    problem = CARD.build({"x": x, "support": x[0]}, options)
    even, found = np.full(n, 1 / n), {}

    def ours() -> None:
        found["ours"] = solve_and_prove(CARD, problem, options, Deadline(), "cpu")

    def theirs() -> None:
        found["pot"] = ot.lp.free_support_barycenter(list(x), [even] * k, x[0].copy(), stopThr=1e-9)

    times = alternate({"ours_ms": ours, "pot_ms": theirs}, repeats)
    solution, certificate = found["ours"]
    assert certificate.holds
    cost = float(np.mean([ot.emd2(even, even, ot.dist(found["pot"], one)) for one in x]))
    told = {"gap_rel": certificate.gap_rel, "objective": certificate.objective, "pot_objective": cost}
    spent = {name: solution.timings_ms[name[:-3]] for name in ("solve_ms", "certify_ms")}
    return {"method": solution.method, "k": k, "n": n, "device": "cpu", **times, **spent, **told}


def measured(device: Device, repeats: int) -> Iterator[dict[str, Any]]:
    """All rows of a device."""
    for k, n, reg in SIZES + (LARGER if device == "gpu" else ()):
        yield entropic(k, n, reg, device, repeats)
    if device == "cpu":
        yield from (exact(k, n, repeats) for k, n in EXACT)
        yield from (free(k, n, repeats) for k, n in FREE)


def main() -> None:
    """A row for each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    CARD.warm_up(args.device)
    rows = Rows(on_gpu("barycenter") if args.device == "gpu" else "barycenter")
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in measured(args.device, args.repeats):
            rows.add(**row)
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
