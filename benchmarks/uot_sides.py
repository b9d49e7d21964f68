"""A part of the mass, total variation and squares beside POT: python -m benchmarks.uot_sides [128] [--only part].

Ours and the peer take turns on the same costs. A row has a time only where the certificate holds. `peer_above` is how
far the value of the peer's plan lies above our proved bound, relative: what its time bought. A peer's plan of a part of
the mass may miss its limits, so that its value may be lower; `peer_off` is the mass by which it does.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import ot

from benchmarks.rows import Rows
from kernels import SOLVERS, Array, Deadline, solve_and_prove

CARD = SOLVERS["uot"]
REG, TOLERANCE = 0.02, 1e-6
Peer = Callable[[Array, Array, Array], Array]


def cases(a: Array, b: Array) -> dict[str, tuple[dict[str, Any], Peer]]:
    """Options, and what the peer calls; strengths and reg in the units of costs of order 1."""
    mass = 0.6 * float(min(a.sum(), b.sum()))
    entropic: dict[str, Any] = {"reg": REG, "tolerance": TOLERANCE}
    squares = np.array([2.0, 2.0]) * a.size
    return {
        "part, exact": (
            {"method": "exact", "mass": mass},
            lambda a, b, cost: ot.partial.partial_wasserstein(a, b, cost, m=mass),
        ),
        "part, entropic": (
            {**entropic, "mass": mass, "reference": "uniform"},
            lambda a, b, cost: ot.partial.entropic_partial_wasserstein(a, b, cost, REG, m=mass, stopThr=1e-8),
        ),
        "tv, entropic": (
            {**entropic, "marginals": "tv", "reg_m": 0.3},
            lambda a, b, cost: ot.unbalanced.lbfgsb_unbalanced(a, b, cost, REG, 0.3, regm_div="tv", numItermax=100),
        ),
        "l2, entropic": (
            {**entropic, "marginals": "l2", "reg_m": squares.tolist()},
            lambda a, b, cost: ot.unbalanced.lbfgsb_unbalanced(a, b, cost, REG, squares, regm_div="l2", numItermax=100),
        ),
    }


def value(problem: Any, plan: Array) -> float:
    """Of any plan, from the statement of the problem."""
    apart = [plan.sum(axis=1) - problem.a, plan.sum(axis=0) - problem.b]
    paid = 0.0
    for away, r in zip(apart, problem.strengths, strict=True):
        paid += float({"partial": 0.0, "tv": r * abs(away).sum(), "l2": r / 2 * (away**2).sum()}[problem.kind])
    total = float((plan * problem.cost).sum() + paid)
    if not problem.reg:
        return total
    product = problem.reference == "product"
    reference = np.outer(problem.a, problem.b) if product else np.ones_like(plan)
    entries = plan * (np.log(np.where(plan > 0, plan, 1.0) / reference) - 1)
    return total + float(problem.reg) * float(entries.sum() + (reference.sum() if product else 0.0))


def measured(n: int, name: str, device: Any, repeats: int) -> dict[str, Any]:
    """Median milliseconds of solve, certificate and peer, and how good the plans are."""
    rng = np.random.default_rng(n)
    x, y = rng.random((n, 2)), rng.random((n, 2)) + 0.2
    cost, a, b = ((x[:, None] - y) ** 2).sum(axis=2), rng.random(n), rng.random(n)
    a, b = a / a.sum(), 1.1 * b / b.sum()
    asked, peer = cases(a, b)[name]
    options = CARD.options.model_validate(asked)
    problem = CARD.build({"cost": cost, "a": a, "b": b}, options)
    spent: dict[str, list[float]] = {"solve": [], "certify": [], "peer": []}
    for _ in range(repeats + 1):
        solution, certificate = solve_and_prove(CARD, problem, options, Deadline(), device)
        assert certificate.holds
        assert solution.termination in ("optimal", "gap_reached")
        assert certificate.termination is None
        for part in ("solve", "certify"):
            spent[part].append(solution.timings_ms[part])
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = peer(a, b, cost)
        spent["peer"].append(1e3 * (time.perf_counter() - begun))
    bound = float(certificate.bound or 0.0)
    above = (value(problem, plan) - bound) / abs(bound)
    off = np.maximum(plan.sum(axis=1) - a, 0).sum() + np.maximum(plan.sum(axis=0) - b, 0).sum()
    times = {f"{part}_ms": statistics.median(each[1:]) for part, each in spent.items()}
    more = {"peer_off": float(off)} if problem.kind == "partial" else {}
    return {**times, "gap_rel": certificate.gap_rel, "sweeps": solution.iterations, "peer_above": above, **more}


def main() -> None:
    """A row for each size and problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[128])
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="problems whose name begins like this")
    args = parser.parse_args()
    rows = Rows("uot_sides")
    for n in args.sizes:
        for name in (one for one in cases(np.ones(1), np.ones(1)) if one.startswith(args.only)):
            device = "cpu" if "exact" in name else args.device
            found = measured(n, name, device, args.repeats)
            rows.add(
                problem=name, n=n, device=device, reg=REG, family="points in the plane, squared distances", **found
            )


if __name__ == "__main__":
    main()
