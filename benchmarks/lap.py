"""Dense linear assignment beside its peers: python -m benchmarks.lap [--families u,r1] [--sizes 1024].

On the CPU the peers are SciPy and every variant of lapx; ratios are what to read. Every row of ours carries its
certificate, every row of a peer its objective, checked against ours.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import instances
from benchmarks.rows import Rows, alternate
from kernels import SOLVERS, Deadline
from kernels.lap import LapOptions

LAP = SOLVERS["lap"]


def peers(cost: instances.Array) -> dict[str, Callable[[], Any]]:
    """Column of each row by SciPy and by the variants of lapx that are installed."""
    from scipy.optimize import linear_sum_assignment

    found: dict[str, Callable[[], Any]] = {"scipy": lambda: linear_sum_assignment(cost)[1]}
    try:
        import lap
    except ImportError:
        return found
    found["lapx lapjv"] = lambda: lap.lapjv(cost)[1]
    found["lapx lapjvc"] = lambda: lap.lapjvc(cost)[2]
    found["lapx lapjvs"] = lambda: lap.lapjvs(cost)[2]
    return found


def one(rows: Rows, family: str, n: int, repeats: int, with_peers: bool) -> None:
    """CPU: our time, the peers' and the ratio to the best of them."""
    cost = instances.lap(family, n)
    options = LapOptions()
    problem = LAP.build({"cost": cost}, options)
    start = time.perf_counter()
    solution = LAP.solve(problem, options, Deadline())
    first_ms = (time.perf_counter() - start) * 1e3
    start = time.perf_counter()
    certificate = LAP.certify(problem, solution)
    certify_ms = (time.perf_counter() - start) * 1e3
    contestants: dict[str, Callable[[], Any]] = {"allot": lambda: LAP.solve(problem, options, Deadline())}
    contestants |= peers(cost) if with_peers else {}
    ms = alternate(contestants, repeats)
    others = {name: taken for name, taken in ms.items() if name != "allot"}
    for name in others:
        answer = contestants[name]()
        objective = cost[np.arange(n), answer].astype(float).sum()
        if not np.isclose(objective, float(certificate.objective or 0), rtol=1e-9):
            others[name] = float("nan")
    rows.add(
        family=family,
        n=n,
        device="cpu",
        method=solution.method,
        holds=certificate.holds,
        gap_rel=certificate.gap_rel,
        max_violation=certificate.max_violation,
        first_ms=first_ms,
        certify_ms=certify_ms,
        ms=ms["allot"],
        peers_ms=others,
        ratio_to_best=ms["allot"] / min(others.values()) if others else None,
        **solution.facts,
    )


def batch(rows: Rows, count: int, n: int, repeats: int) -> None:
    """CPU: a batch of small problems; peers solve them one after another."""
    cost = instances.lap_batch(count, n)
    options = LapOptions()
    problem = LAP.build({"cost": cost}, options)
    certificate = LAP.certify(problem, LAP.solve(problem, options, Deadline()))
    each = [peers(part) for part in cost]
    contestants: dict[str, Callable[[], Any]] = {"allot": lambda: LAP.solve(problem, options, Deadline())}
    for name in each[0]:
        contestants[name] = partial(_each, each, name)
    ms = alternate(contestants, repeats)
    rows.add(family=f"batch {count}", n=n, device="cpu", holds=certificate.holds, ms=ms.pop("allot"), peers_ms=ms)


def _each(contestants: list[dict[str, Callable[[], Any]]], name: str) -> None:
    for part in contestants:
        part[name]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=",".join(instances.LAP_FAMILIES))
    parser.add_argument("--sizes", default="1024,2048,4096")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-batch", action="store_true")
    arguments = parser.parse_args()
    rows = Rows("lap")
    LAP.warm_up("cpu")
    for family in arguments.families.split(","):
        for n in map(int, arguments.sizes.split(",")):
            one(rows, family, n, arguments.repeats, not arguments.no_peers)
    if not arguments.no_batch:
        for count, n in ((1000, 64), (1000, 128), (100, 512)):
            batch(rows, count, n, arguments.repeats)


if __name__ == "__main__":
    main()
