"""Transport without an entropic term beside POT's `ot.emd`: python -m benchmarks.uot_exact [256 512 1000].

Solve, certificate and peer take turns on the same costs, so that a noisy moment hits all of them.
"""

import argparse
import statistics
import time

import numpy as np
import ot

from benchmarks.rows import Rows
from kernels import SOLVERS, Deadline, solve_and_prove

CARD = SOLVERS["uot"]


def measured(n: int, repeats: int) -> dict[str, float]:
    """Median milliseconds of the solve, of its certificate and of POT; a wrong answer has no time."""
    rng = np.random.default_rng(n)
    x, y = rng.random((n, 2)), rng.random((n, 2))
    cost, mass = ((x[:, None] - y) ** 2).sum(axis=2), np.full(n, 1 / n)
    options = CARD.options.model_validate({"method": "exact"})
    problem = CARD.build({"cost": cost}, options)
    spent: dict[str, list[float]] = {"solve": [], "certify": [], "emd": []}
    for _ in range(repeats + 1):
        solution, certificate = solve_and_prove(CARD, problem, options, Deadline(), "cpu")
        assert certificate.holds
        assert solution.termination == "optimal"
        assert certificate.objective is not None
        for name in ("solve", "certify"):
            spent[name].append(solution.timings_ms[name])
        begun = time.perf_counter()
        plan = ot.emd(mass, mass, cost, numItermax=10**7)
        spent["emd"].append(1e3 * (time.perf_counter() - begun))
        assert np.isclose(float((plan * cost).sum()), float(certificate.objective), rtol=1e-9)
    return {f"{name}_ms": statistics.median(times[1:]) for name, times in spent.items()}


def main() -> None:
    """A row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[256, 512, 1000])
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    rows = Rows("uot_exact")
    for n in args.sizes:
        rows.add(method="exact", n=n, family="points in the plane, squared distances", **measured(n, args.repeats))


if __name__ == "__main__":
    main()
