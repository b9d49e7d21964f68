"""Low-rank transport beside POT: python -m benchmarks.lowrank [--device gpu] [--sizes 500 2000].

Both take turns on the same clouds, and both are compared by what their factors cost. POT begins with random factors and
has its own limits (`pot`); on a GPU it works on CuPy's arrays as well (`pot_cupy`). Ours has a lower
bound in it, and its certificate is timed apart. A wrong answer has no time. Up to LARGEST_EXACT points the cost of
optimal transport stands beside them: what the rank costs.
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np
import ot

from benchmarks.rows import Rows, on_gpu
from kernels import SOLVERS, Array, Deadline, Device, solve_and_prove

CARD = SOLVERS["lowrank"]
LARGEST_EXACT, LARGEST_POT = 3000, 20_000
"""Points a side up to which optimal transport, and POT's low-rank Sinkhorn on a CPU, are worked out."""


def clouds(n: int, d: int) -> dict[str, Array]:
    """n points in a cube, evenly, and n in the same cube, near one of its corners."""
    rng = np.random.default_rng(n)
    return {"x": rng.random((n, d)), "y": rng.random((n, d)) ** 2}


def worth(x: Array, y: Array, q: Array, r: Array, g: Array) -> float:
    """What factors cost, about the clouds' common mean."""
    x, y = (points - (x.mean(axis=0) + y.mean(axis=0)) / 2 for points in (x, y))
    p, h = q.sum(axis=0), r.sum(axis=0)
    squares = h * ((x * x).sum(axis=1) @ q) + p * ((y * y).sum(axis=1) @ r)
    return float(((squares - 2 * ((x.T @ q) * (y.T @ r)).sum(axis=0)) / g).sum())


def peer(inputs: dict[str, Array], rank: int, xp: Any) -> tuple[float, float]:
    """(milliseconds, what its factors cost) of POT."""
    x, y = (xp.asarray(inputs[name]) for name in "xy")
    begun = time.perf_counter()
    q, r, g = ot.lowrank_sinkhorn(x, y, rank=rank, init="random", seed_init=0, warn=False)
    q, r, g = (one if xp is np else xp.asnumpy(one) for one in (q, r, g))
    spent = 1e3 * (time.perf_counter() - begun)
    return spent, worth(inputs["x"], inputs["y"], q, r, g)


def measured(n: int, d: int, rank: int, device: Device, repeats: int) -> dict[str, Any]:
    """Median milliseconds, objectives and the bound of one case."""
    inputs = clouds(n, d)
    options = CARD.options(rank=rank, starts=1)
    problem = CARD.build(inputs, options)
    spent: dict[str, list[float]] = {"solve": [], "certify": []}
    row: dict[str, Any] = {}
    modules: dict[str, Any] = {"pot": np} if n <= LARGEST_POT else {}
    if device == "gpu":
        import cupy

        modules["pot_cupy"] = cupy
    for _ in range(repeats + 1):
        solution, certificate = solve_and_prove(CARD, problem, options, Deadline(300), device)
        assert certificate.holds
        row |= {"objective": certificate.objective, "bound": certificate.bound, "iterations": solution.iterations}
        for name in ("solve", "certify"):
            spent[name].append(solution.timings_ms[name])
        for name, xp in modules.items():
            took, row[f"{name}_objective"] = peer(inputs, rank, xp)
            spent.setdefault(name, []).append(took)
    if n <= LARGEST_EXACT:
        row["transport"] = float(ot.emd2([], [], ot.dist(inputs["x"], inputs["y"])))
    return row | {f"{name}_ms": statistics.median(times[1:]) for name, times in spent.items()}


def main() -> None:
    """A row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--sizes", nargs="*", type=int, default=[500, 2000])
    parser.add_argument("--ranks", nargs="*", type=int, default=[10, 50])
    parser.add_argument("--dimension", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", default="lowrank")
    args = parser.parse_args()
    CARD.warm_up(args.device)
    rows = Rows(on_gpu(args.rows) if args.device == "gpu" else args.rows)
    for n in args.sizes:
        for rank in args.ranks:
            found = measured(n, args.dimension, rank, args.device, args.repeats)
            rows.add(family="cube", n=n, d=args.dimension, rank=rank, device=args.device, **found)


if __name__ == "__main__":
    main()
