"""Error of the plan against reg, ours and POT's, on the CPU: python -m benchmarks.uot_error [--n 256].

Every method gets the same squared distances, masses and reference measure (the product), reg_m = 1 and at most 20000
iterations; the error is the L1 distance to a float64 plan with a certified relative gap of 1e-12, over its mass. A
method that overflows has no error.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import ot

from benchmarks import instances
from benchmarks.instances import Array
from benchmarks.rows import Rows
from kernels import SOLVERS, Deadline
from kernels.uot import TransportOptions

UOT = SOLVERS["uot"]
REGS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
LIMIT = 20_000


def ours(cost: Array, a: Array, b: Array, reg: float, storage: str, tolerance: float) -> Array:
    chosen = TransportOptions.model_validate({"reg": reg, "storage": storage, "tolerance": tolerance, "method": "log"})
    problem = UOT.build({"cost": cost, "a": a, "b": b}, chosen)
    return np.asarray(UOT.solve(problem, chosen, Deadline(30)).arrays["plan"])


def pot(cost: Array, a: Array, b: Array, reg: float, method: str, kind: Any) -> Array:
    given = (np.asarray(x, kind) for x in (a, b, cost))
    return np.asarray(ot.sinkhorn_unbalanced(*given, reg, 1.0, method=method, numItermax=LIMIT, stopThr=1e-12))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=256)
    n = parser.parse_args().n
    rows, (cost, a, b) = Rows("uot_error"), instances.uot(n)
    contestants: dict[str, Callable[[float], Array]] = {
        "allot log float32": lambda reg: ours(cost, a, b, reg, "float32", 1e-6),
        "allot log float32, tolerance 1e-9": lambda reg: ours(cost, a, b, reg, "float32", 1e-9),
        "POT sinkhorn float32": lambda reg: pot(cost, a, b, reg, "sinkhorn", np.float32),
        "POT sinkhorn float64": lambda reg: pot(cost, a, b, reg, "sinkhorn", np.float64),
        "POT sinkhorn_stabilized float64": lambda reg: pot(cost, a, b, reg, "sinkhorn_stabilized", np.float64),
    }
    warnings.simplefilter("ignore")
    for reg in REGS:
        wanted = ours(cost, a, b, reg, "float64", 1e-12)
        for method, solve in contestants.items():
            plan = solve(reg)
            apart = float(np.abs(np.subtract(plan, wanted)).sum() / wanted.sum())
            rows.add(bench="error", n=n, reg=reg, method=method, plan_error=apart if np.isfinite(apart) else None)


if __name__ == "__main__":
    main()
