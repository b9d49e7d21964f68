"""Thirty families on the CPU beside lapx and SciPy: python -m benchmarks.lap_cpu [--sizes 16,64] [--families plane].

Ours is building the problem, solving it and certifying the answer. Each contestant's time is the least processor time
of its thread over several runs, all in turn, so that other work on the machine counts for nobody. Ratios are what to
read: the fastest peer's time over ours. `--warm` times solves from old duals instead, with 1% of the rows changed. A
warm answer uses threads, so it is timed by the clock and by the processor time of the whole process, cold and warm in
turn. Those of `benchmarks/instances.py` are families there too: u, r1, r10, sqeuclid, clustered and so on.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import instances, lap_families
from benchmarks.lap import peers
from benchmarks.rows import Rows
from kernels import SOLVERS, Deadline
from kernels.lap import LapOptions

LAP = SOLVERS["lap"]
SIZES = "16,32,64,128,256,512,1024,2048"
BUDGET_S = 0.2
"""Of one family and size, and at least two runs of each contestant."""
WARM_BUDGET_S = 1.5
"""The same of a warm start."""


def least(contestants: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Milliseconds of processor time of each, the least of runs in turn; those that raise have none."""
    times: dict[str, float] = {}
    for name, run in list(contestants.items()):
        try:
            run()
        except ValueError:
            contestants.pop(name)
    begun, runs = time.perf_counter(), 0
    while runs < 2 or (runs < 200 and time.perf_counter() - begun < BUDGET_S):
        for name, run in contestants.items():
            start = time.thread_time_ns()
            run()
            times[name] = min(times.get(name, np.inf), (time.thread_time_ns() - start) / 1e6)
        runs += 1
    return times


def answer(cost: lap_families.Array, **duals: Any) -> Any:
    """Build, solve, certify."""
    options = LapOptions()
    problem = LAP.build({"cost": cost, **duals}, options)
    solution = LAP.solve(problem, options, Deadline())
    return solution, LAP.certify(problem, solution)


def one(rows: Rows, family: str, n: int) -> float:
    """A family of one size; returns the ratio."""
    cost, options = lap_families.costs(family, n), LapOptions()
    problem = LAP.build({"cost": cost}, options)
    contestants: dict[str, Callable[[], Any]] = {
        "allot": lambda: answer(cost),
        "allot, solve alone": lambda: LAP.solve(problem, options, Deadline()),
    }
    square, finite = cost.shape[0] == cost.shape[1], bool(np.isfinite(cost).all())
    found = peers(cost)
    contestants |= {name: run for name, run in found.items() if name == "scipy" or (finite and square)}
    ms = least(contestants)
    ours, alone = ms.pop("allot"), ms.pop("allot, solve alone")
    best = min(ms.values())
    solution, certificate = answer(cost)
    expected = cost[np.arange(len(cost)), found["scipy"]()].astype(float).sum()
    assert np.isclose(float(certificate.objective), expected, rtol=1e-9), (family, n)
    rows.add(family=family, n=n, holds=certificate.holds, ms=ours, solve_ms=alone, peers_ms=ms,
             ratio=best / ours, ratio_solve=best / alone, **solution.facts)  # fmt: skip
    return best / ours


def in_parts(cost: lap_families.Array, **duals: Any) -> dict[str, float]:
    """Milliseconds of building, solving and certifying by the clock, and of processor time of all three."""
    options, began, clock = LapOptions(), time.process_time_ns(), [time.perf_counter_ns()]
    problem = LAP.build({"cost": cost, **duals}, options)
    clock.append(time.perf_counter_ns())
    solution = LAP.solve(problem, options, Deadline())
    clock.append(time.perf_counter_ns())
    LAP.certify(problem, solution)
    clock.append(time.perf_counter_ns())
    parts = {name: (clock[k + 1] - clock[k]) / 1e6 for k, name in enumerate(("build", "solve", "certify"))}
    return parts | {"wall": (clock[3] - clock[0]) / 1e6, "processor": (time.process_time_ns() - began) / 1e6}


def least_parts(contestants: dict[str, dict[str, Any]], cost: lap_families.Array) -> dict[str, dict[str, float]]:
    """`in_parts` of cold and warm answers in turn, each number the least of several."""
    best: dict[str, dict[str, float]] = {}
    begun, runs = time.perf_counter(), 0
    while runs < 3 or (runs < 60 and time.perf_counter() - begun < WARM_BUDGET_S):
        for name, duals in contestants.items():
            parts = in_parts(cost, **duals)
            best[name] = {key: min(value, best.get(name, parts)[key]) for key, value in parts.items()}
        runs += 1
    return best


def warm_costs(family: str, n: int) -> lap_families.Array:
    """The costs of one of the thirty families, or of one that all benchmarks share."""
    return lap_families.costs(family, n) if family in lap_families.FAMILIES else instances.lap(family, n)


def warm(rows: Rows, family: str, n: int) -> float:
    """One percent of the rows drawn anew; returns the share of a cold answer's time."""
    old = warm_costs(family, n)
    duals = answer(old)[0].arrays
    rng = np.random.default_rng(n)
    cost, changed = old.copy(), rng.permutation(len(old))[: max(1, len(old) // 100)]
    cost[changed] = old[rng.permutation(len(old))[: len(changed)]][:, rng.permutation(old.shape[1])]
    given = {"u0": duals["u"], "v0": duals["v"]}
    (_, cold), (solution, certificate) = answer(cost), answer(cost, **given)
    assert np.isclose(float(cold.objective), float(certificate.objective), rtol=1e-9)
    best = least_parts({"cold": {}, "warm": given}, cost)
    shares = {key: best["warm"][key] / best["cold"][key] for key in ("wall", "processor")}
    least_share = (best["warm"]["build"] + best["warm"]["certify"]) / best["cold"]["wall"]
    found = {"warm_ms": best["warm"], "cold_ms": best["cold"], "share": shares["wall"], "least": least_share}
    rows.add(part="warm", family=family, n=n, holds=certificate.holds, share_of_processor=shares["processor"],
             **found, **solution.facts)  # fmt: skip
    return shares["processor"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=",".join(lap_families.FAMILIES).replace(", ", "; "))
    parser.add_argument("--sizes", default="")
    parser.add_argument("--warm", action="store_true")
    arguments = parser.parse_args()
    rows = Rows("lap_cpu")
    LAP.warm_up("cpu")
    for n in map(int, (arguments.sizes or ("1024,2048" if arguments.warm else SIZES)).split(",")):
        families = [name.replace("; ", ", ") for name in arguments.families.split(",")]
        found = {family: (warm if arguments.warm else one)(rows, family, n) for family in families}
        worst = sorted(found.items(), key=lambda item: item[1], reverse=arguments.warm)
        print(f"n = {n}, worst first: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in worst), flush=True)


if __name__ == "__main__":
    main()
