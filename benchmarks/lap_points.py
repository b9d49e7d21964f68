"""Assignments of points on one CPU, by generated columns and by the matrix: python -m benchmarks.lap_points.

    columns    a checked problem of two clouds to pairs and duals, no matrix written down (kernels/lap/spatial)
    matrix     the same through the matrix of costs, as smaller problems go (not above --dense-to rows)

Both solve in this process, in turn; a figure is the least of `--repeats`. `cpu_ms` is processor time of all threads,
which other load on the machine moves less, `ms` is what the clock showed. A row carries the certificate of the answer
and what that took, and both objectives where there are two. `peak_bytes` is the most that the process held so far.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.rows import Rows
from kernels import SOLVERS, Deadline, Solution
from kernels.lap.cpu.solver import solve_one
from kernels.lap.spatial import solver as spatial
from kernels.lap.spatial.which import suits
from kernels.problems.arrays import Floats
from kernels.problems.points import PointAssignment

LAP = SOLVERS["lap"]
CLUSTERS, SPREAD = 20, 0.03


def cloud(family: str, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Uniform in a cube, or normal around centres of its own."""
    if family == "uniform":
        return rng.random((n, d))
    return rng.random((CLUSTERS, d))[rng.integers(0, CLUSTERS, n)] + rng.normal(0, SPREAD, (n, d))


def timed(solve: Callable[[], Any]) -> tuple[Any, float, float]:
    """What came back, milliseconds of processor time, milliseconds of the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    found = solve()
    return found, 1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - clock)


def one(n: int, d: int, family: str, metric: str, options: argparse.Namespace) -> dict[str, Any]:
    """A row."""
    rng = np.random.default_rng([n, d])
    given = LAP.options(metric=metric)
    problem = LAP.build({"x": cloud(family, n, d, rng), "y": cloud(family, n, d, rng)}, given)
    assert isinstance(problem, PointAssignment)

    def by_matrix() -> Solution:
        matrix = problem.written_out().weights
        assert isinstance(matrix, np.ndarray)
        return solve_one(matrix, False, None, None, matrix.size, Deadline())

    ways: dict[str, Callable[[], Solution]] = {"columns": lambda: spatial.solve(problem, Deadline(), solve_one)}
    if n <= options.dense_to:
        ways["matrix"] = by_matrix
    answers: dict[str, Solution] = {}
    cpu_ms, ms = (dict.fromkeys(ways, float("inf")) for _ in range(2))
    for _ in range(options.repeats):
        for name, solve in ways.items():
            answers[name], cpu, clock = timed(solve)
            cpu_ms[name], ms[name] = min(cpu_ms[name], cpu), min(ms[name], clock)
    row = {"family": family, "metric": metric, "n": n, "d": d, "taken": suits(problem, given)}
    row |= {"cpu_ms": cpu_ms, "ms": ms} | answers["columns"].facts
    if n <= options.certified_to:
        proofs = {name: LAP.certify(problem, answer) for name, answer in list(answers.items())[1:]}
        proof, row["certify_cpu_ms"], row["certify_ms"] = timed(lambda: LAP.certify(problem, answers["columns"]))
        row |= {"holds": proof.holds, "gap_abs": proof.gap_abs, "objective": proof.objective}
        row |= {f"{name}_objective": other.objective for name, other in proofs.items()}
    return row | {"peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def main() -> None:
    """Print and keep a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2048,4096,8192,16384")
    parser.add_argument("--dimensions", default="2,3,8")
    parser.add_argument("--metrics", default="sqeuclidean")
    parser.add_argument("--dense-to", type=int, default=4096)
    parser.add_argument("--certified-to", type=int, default=16384)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    spatial.warm_up(solve_one)
    LAP.warm_up("cpu")
    rows = Rows("lap_points")
    for n in map(int, options.sizes.split(",")):
        for d in map(int, options.dimensions.split(",")):
            for metric in options.metrics.split(","):
                for family in ("uniform", "clustered"):
                    rows.add(**one(n, d, family, metric, options))


if __name__ == "__main__":
    main()
