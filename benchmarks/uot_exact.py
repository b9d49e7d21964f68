"""`python -m benchmarks.uot_exact`: transport without an entropic term beside POT's `ot.emd`, where it is there."""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels import SOLVERS, Deadline, solve_and_prove

CARD = SOLVERS["uot"]


def median_ms(call: Callable[[], Any], repeats: int) -> float:
    """Of some calls."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(times)


def row(n: int, repeats: int) -> dict[str, float]:
    """Milliseconds of the solve, of its certificate and of POT; a wrong answer has no time."""
    rng = np.random.default_rng(n)
    x, y = rng.random((n, 2)), rng.random((n, 2))
    cost = ((x[:, None] - y) ** 2).sum(axis=2)
    options = CARD.options.model_validate({"method": "exact"})
    problem = CARD.build({"cost": cost}, options)
    spent: dict[str, list[float]] = {"solve": [], "certify": []}
    for _ in range(repeats + 1):
        solution, certificate = solve_and_prove(CARD, problem, options, Deadline(), "cpu")
        assert certificate.holds
        assert certificate.objective is not None
        for name, times in spent.items():
            times.append(solution.timings_ms[name])
    found = {name: statistics.median(times[1:]) for name, times in spent.items()}
    try:
        import ot
    except ImportError:
        return found
    mass = np.full(n, 1 / n)
    assert certificate.objective is not None
    assert np.isclose(float(ot.emd2(mass, mass, cost)), float(certificate.objective), rtol=1e-9)
    return found | {"ot.emd": median_ms(lambda: ot.emd(mass, mass, cost, numItermax=10**7), repeats)}


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[256, 512, 1000])
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    for n in args.sizes:
        print(n, "  ".join(f"{name} {ms:.1f} ms" for name, ms in row(n, args.repeats).items()))


if __name__ == "__main__":
    main()
