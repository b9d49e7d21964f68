"""Transport on the entries of a sparse cost, beside three others: python -m benchmarks.uot_sparse [1000 20000].

All take turns on the same graph. `dense` is our own solver of the same problem with the other pairs forbidden. `pot` is
POT's scaling on the same matrix, whose kernel has zeros there. `scipy` is that scaling on SciPy's sparse kernel, as one
would write it. Both stop where a scaling changes by less than 1e-8, or after 10,000 steps; `above` is how far the value
of their plan then lies above our proved bound, relative. Between exact sides a plan of theirs does not meet its
marginals: `off` is by how much of the mass. A row has a time only where our certificate holds.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import ot
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from benchmarks.rows import Rows
from kernels import SOLVERS, Array, Csr, Deadline, solve_and_prove
from kernels.problems.sparse_transport import SparseTransport
from kernels.uot.sparse.value import marginals_of, value_of

CARD = SOLVERS["uot"]
TOLERANCE, STEPS, CHANGE = 1e-6, 10_000, 1e-8
LARGEST_DENSE = 2000
"""Rows up to which all pairs are written down."""
NEIGHBOURS = 20
CASES: dict[str, dict[str, Any]] = {
    "relaxed": {"reg_scale": "mean", "reg": 0.05, "reg_m": 1.0},
    "held tightly": {"reg_scale": "mean", "reg": 0.02, "reg_m": 50.0},
    "exact": {"reg_scale": "mean", "reg": 0.05, "reg_m": "inf"},
}


def graph(n: int, exact: bool) -> dict[str, Any]:
    """Points in the square, each with its nearest among n others and the one of its number; squared distances."""
    rng = np.random.default_rng(n)
    x, y = rng.random((n, 2)), rng.random((n, 2))
    near = cKDTree(y).query(x, NEIGHBOURS)[1]
    pairs = np.unique(np.concatenate([(np.arange(n)[:, None] * n + near).ravel(), np.arange(n) * n + np.arange(n)]))
    rows, columns = pairs // n, pairs % n
    cost = np.minimum(((x[rows] - y[columns]) ** 2).sum(axis=1), 20 * NEIGHBOURS / n)
    indptr = np.searchsorted(rows, np.arange(n + 1))
    found: dict[str, Any] = {"cost": Csr(indptr, columns.astype(np.int32), cost, (n, n))}
    if exact:  # the sides of some plan on these entries
        plan = rng.random(pairs.size) + 0.1
        plan /= plan.sum()
        return found | {"a": np.bincount(rows, plan, n), "b": np.bincount(columns, plan, n)}
    a, b = rng.random(n) + 0.2, rng.random(n) + 0.2
    return found | {"a": a / a.sum(), "b": 1.1 * b / b.sum()}


def forbidding(problem: SparseTransport) -> Array:
    """All costs, infinite where none is stored."""
    whole = np.full(problem.shape, np.inf)
    whole[problem.entry_rows, problem.entry_columns] = problem.values
    return whole


def by_scipy(problem: SparseTransport) -> Array:
    """The entries of a plan, by scaling a sparse kernel of exponentials."""
    reg, a, b = problem.reg, problem.a, problem.b
    weights = a[problem.entry_rows] * b[problem.entry_columns]
    data = weights * np.exp(-problem.values / reg)
    kernel = csr_array((data, problem.entry_columns, problem.cost.indptr), shape=problem.shape)
    turned = kernel.T.tocsr()
    powers = [1.0 if np.isinf(one) else one / (one + reg) for one in problem.reg_m]
    u, v = np.ones(a.size), np.ones(b.size)
    for _ in range(STEPS):
        before = u
        u = (a / (kernel @ v)) ** powers[0]
        v = (b / (turned @ u)) ** powers[1]
        if abs(u / before - 1).max() <= CHANGE:
            break
    return np.asarray(u[problem.entry_rows] * data * v[problem.entry_columns])


def by_pot(problem: SparseTransport, whole: Array) -> Array:
    """The same by POT, from all pairs."""
    limits = {"numItermax": STEPS, "stopThr": CHANGE}
    if np.isinf(problem.reg_m).all():
        plan = ot.bregman.sinkhorn(problem.a, problem.b, whole, problem.reg, **limits)
    else:
        strength = problem.reg_m[0]
        plan = ot.unbalanced.sinkhorn_unbalanced(
            problem.a, problem.b, whole, problem.reg, strength, reg_type="kl", **limits
        )
    return np.asarray(plan[problem.entry_rows, problem.entry_columns])


def measured(n: int, name: str, repeats: int) -> dict[str, Any]:
    """Median milliseconds of each, and how good the plans are."""
    asked = CARD.options(**CASES[name], tolerance=TOLERANCE)
    inputs = graph(n, name == "exact")
    problem = CARD.build(inputs, asked)
    others: dict[str, Callable[[], Array]] = {"scipy": lambda: by_scipy(problem)}
    spent: dict[str, list[float]] = {"solve": [], "certify": []}
    if n <= LARGEST_DENSE:
        whole = forbidding(problem)
        strengths = "inf" if name == "exact" else problem.reg_m[0]
        wide = CARD.options(reg=problem.reg, reg_m=strengths, tolerance=TOLERANCE)
        dense = CARD.build(inputs | {"cost": whole}, wide)
        others["pot"] = lambda: by_pot(problem, whole)
    plans: dict[str, Array] = {}
    for _ in range(repeats + 1):
        solution, certificate = solve_and_prove(CARD, problem, asked, Deadline(), "cpu")
        assert certificate.holds
        assert (certificate.termination or solution.termination) == "gap_reached"
        for part in ("solve", "certify"):
            spent[part].append(solution.timings_ms[part])
        if n <= LARGEST_DENSE:
            filled, _ = solve_and_prove(CARD, dense, wide, Deadline(60), "cpu")
            for part in ("solve", "certify"):
                spent.setdefault(f"dense_{part}", []).append(filled.timings_ms[part])
        for who, run in others.items():
            begun = time.perf_counter()
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                plans[who] = run()
            spent.setdefault(who, []).append(1e3 * (time.perf_counter() - begun))
    found: dict[str, Any] = {f"{part}_ms": statistics.median(each[1:]) for part, each in spent.items()}
    bound = float(certificate.bound or 0.0)
    for who, plan in plans.items():
        found[f"{who}_above"] = (value_of(problem, plan) - bound) / abs(bound)
        if name == "exact":
            rows, columns = marginals_of(problem, plan)
            found[f"{who}_off"] = float(abs(rows - problem.a).sum() + abs(columns - problem.b).sum())
    sizes = {"entries": problem.nnz, "reg": problem.reg, "gap_rel": certificate.gap_rel, "sweeps": solution.iterations}
    return {**sizes, **found}


def main() -> None:
    """A row for each size and case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[1000, 20_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=CASES)
    args = parser.parse_args()
    rows = Rows("uot_sparse")
    for n in args.sizes:
        for name in [args.only] if args.only else CASES:
            found = measured(n, name, args.repeats)
            rows.add(problem=name, n=n, device="cpu", family="neighbours in the plane", **found)


if __name__ == "__main__":
    main()
