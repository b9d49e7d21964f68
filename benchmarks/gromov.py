"""Gromov-Wasserstein beside POT: python -m benchmarks.gromov [--device gpu] [--sizes 100 300].

Entropic answers are compared at one reg and one tolerance, best answers by their objectives. On a GPU, POT works on
CuPy's arrays as well. Solve and peer take turns on the same matrices; ours has a lower bound in it, and its certificate
is timed apart. A wrong answer has no time.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ot

from benchmarks.rows import Rows, on_gpu
from kernels import SOLVERS, Array, Deadline, Device, solve_and_prove

CARD = SOLVERS["gromov"]
REG, LOOSE, MOST = 0.01, 1e-7, 200
"""Of entropic answers: reg over the largest derivative's scale (all distances are below 1), tolerance, and steps."""
LARGEST_POT = 1000
"""Points a side up to which POT works on a CPU as well."""


def spaces(n: int, kind: str) -> dict[str, Array]:
    """Two clouds in the unit cube of the plane and of space, as points or as distances."""
    rng = np.random.default_rng(n)
    x, y = rng.random((n, 2)) / 2**0.5, rng.random((n, 3)) / 3**0.5
    if kind == "points":
        return {"x": x, "y": y}
    given = {f"{name}_distance": np.linalg.norm(p[:, None] - p, axis=2) for name, p in (("x", x), ("y", y))}
    return given | {"cost": rng.random((n, n))} if kind == "fused" else given


def worth(problem: Any, plan: Array) -> float:
    """The objective of a plan, by matrix products."""
    p, q = plan.sum(axis=1), plan.sum(axis=0)
    value = p @ problem.x_distance**2 @ p + q @ problem.y_distance**2 @ q
    value -= 2 * ((problem.x_distance @ plan @ problem.y_distance.T) * plan).sum()
    linear = 0.0 if problem.cost is None else float((problem.cost * plan).sum())
    return float(problem.alpha * value + (1 - problem.alpha) * linear)


def peers(problem: Any, device: Device) -> dict[str, Callable[[str], Array]]:
    """POT on NumPy's arrays, and on CuPy's; each takes a method and returns a plan."""

    def on(xp: Any) -> Callable[[str], Array]:
        x, y, a, b = (xp.asarray(one) for one in (problem.x_distance, problem.y_distance, problem.a, problem.b))
        cost = None if problem.cost is None else xp.asarray(problem.cost)

        def solve(method: str) -> Array:
            entropic = {"epsilon": REG, "max_iter": MOST, "tol": LOOSE}
            if method == "entropic" and cost is None:
                plan = ot.gromov.entropic_gromov_wasserstein(x, y, a, b, "square_loss", **entropic)
            elif method == "entropic":
                alpha = problem.alpha
                plan = ot.gromov.entropic_fused_gromov_wasserstein(cost, x, y, a, b, alpha=alpha, **entropic)
            elif cost is None:
                plan = ot.gromov.gromov_wasserstein(x, y, a, b, "square_loss")
            else:
                plan = ot.gromov.fused_gromov_wasserstein(cost, x, y, a, b, alpha=problem.alpha)
            return np.asarray(plan if xp is np else xp.asnumpy(plan))

        return solve

    found = {"pot": on(np)}
    if device == "gpu":
        import cupy

        found["pot_cupy"] = on(cupy)
    return found


def measured(n: int, kind: str, method: str, device: Device, repeats: int) -> dict[str, Any]:
    """Median milliseconds, objectives and the gap of one case."""
    asked: dict[str, Any] = {"starts": 1}
    if method == "entropic":
        asked |= {"method": "entropic", "reg": REG, "tolerance": LOOSE, "max_iterations": MOST}
    elif method == "exact":
        asked["method"] = method
    options = CARD.options.model_validate(asked)
    problem = CARD.build(spaces(n, kind), options)
    spent: dict[str, list[float]] = {"solve": [], "certify": []}
    row: dict[str, Any] = {}
    for turn in range(repeats + 1):
        solution, certificate = solve_and_prove(CARD, problem, options, Deadline(120), device)
        assert certificate.holds
        row |= {"objective": certificate.objective, "bound": certificate.bound, "gap_rel": certificate.gap_rel}
        row |= {"iterations": solution.iterations, "termination": solution.termination.value}
        for name in ("solve", "certify"):
            spent[name].append(solution.timings_ms[name])
        for name, solve in peers(problem, device).items():
            if name == "pot" and (n > LARGEST_POT or (turn > 1 and spent["pot"][-1] > 5e3)):
                continue  # minutes on a CPU
            begun = time.perf_counter()
            plan = solve(method)
            spent.setdefault(name, []).append(1e3 * (time.perf_counter() - begun))
            row[f"{name}_objective"] = worth(problem, plan)
    return row | {f"{name}_ms": statistics.median(times[1:]) for name, times in spent.items()}


def main() -> None:
    """A row for each size, kind of problem and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--sizes", nargs="*", type=int, default=[100, 300])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", default="gromov")
    args = parser.parse_args()
    CARD.warm_up(args.device)
    rows = Rows(on_gpu(args.rows) if args.device == "gpu" else args.rows)
    methods = ("entropic", "exact", "auto") if args.device == "cpu" else ("entropic", "auto")
    for n in args.sizes:
        for kind in ("points", "matrices", "fused"):
            for method in methods:
                rows.add(
                    family=kind,
                    n=n,
                    method=method,
                    device=args.device,
                    **measured(n, kind, method, args.device, args.repeats),
                )


if __name__ == "__main__":
    main()
