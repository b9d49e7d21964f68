"""Sparse assignment on one CPU beside OR-Tools and SciPy's csgraph: python -m benchmarks.sparse_cpu [--repeats 5].

Every contestant solves in this process, in turn, so that a noisy moment hits all of them; a figure is the least of
`--repeats`. `cpu_ms` is processor time, which other load on the machine moves less, `ms` is what the clock showed.

    solve      ours: a checked problem to assignment and prices
    proved     ours: the arrays as a caller has them to a certified answer (checks, solve, certificate)
    csgraph    scipy.sparse.csgraph.min_weight_full_bipartite_matching; where rows may stay out, with a column for each
    or-tools   ortools SimpleLinearSumAssignment: arcs added in one call, then solved; square graphs of integers alone

A row of ours carries its certificate, and the peers' objectives are held against ours.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.rows import Rows
from benchmarks.sparse_graphs import CASES, SparseCase
from kernels import SOLVERS, Csr, Deadline
from kernels.auction import AuctionOptions
from kernels.problems.sparse import with_private_columns

AUCTION = SOLVERS["auction"]
LIMIT_S = 2.0
"""A contestant that takes longer is not run again."""
NO_CSGRAPH = {("neighbours in the plane", 50_000), ("power law", 50_000), ("3-regular", 100_000)}
"""Not run: csgraph did not end the first within a minute, and takes long on the smaller ones of the others."""


def ours(graph: Csr, rejecting: bool) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """Our two contestants, and what the certificate says of the answer."""
    options = AuctionOptions.model_validate({"allow_unassigned": rejecting})
    problem = AUCTION.build({"benefit": graph}, options)
    solution = AUCTION.solve(problem, options, Deadline(), "cpu")
    certificate = AUCTION.certify(problem, solution)

    def solve() -> Any:
        return AUCTION.solve(problem, options, Deadline(), "cpu")

    def proved() -> Any:
        checked = AUCTION.build({"benefit": graph}, options)
        return AUCTION.certify(checked, AUCTION.solve(checked, options, Deadline(), "cpu"))

    found = {"objective": certificate.objective, "holds": certificate.holds, "gap_abs": certificate.gap_abs}
    found |= {"termination": str(solution.termination), "method": solution.method} | solution.facts
    return {"solve": solve, "proved": proved}, found


def peers(graph: Csr, rejecting: bool, with_csgraph: bool = True) -> dict[str, Callable[[], float]]:
    """Exact objectives by what is installed."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    shift = 0
    if rejecting:
        problem = AUCTION.build({"benefit": graph}, AuctionOptions.model_validate({"allow_unassigned": True}))
        widened, shift = with_private_columns(problem), 1  # csgraph takes an entry of 0 for none
        assert isinstance(widened, Csr)
        graph = widened
    n_rows, n_cols = graph.shape
    matrix = csr_array((graph.values + shift, graph.indices, graph.indptr), graph.shape)

    def csgraph() -> float:
        rows, columns = min_weight_full_bipartite_matching(matrix, maximize=True)
        return float(matrix[rows, columns].sum()) - shift * n_rows

    found: dict[str, Callable[[], float]] = {"csgraph": csgraph} if with_csgraph else {}
    try:
        from ortools.graph.python import linear_sum_assignment as ortools
    except ImportError:
        return found
    if n_rows != n_cols or graph.values.dtype.kind == "f":
        return found
    rows_of = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(graph.indptr))
    costs = -graph.values.astype(np.int64)

    def cost_scaling() -> float:
        solver = ortools.SimpleLinearSumAssignment()
        solver.add_arcs_with_cost(rows_of, graph.indices, costs)
        solver.solve()
        return -float(solver.optimal_cost())

    return found | {"or-tools": cost_scaling}


def timed(
    contestants: dict[str, Callable[[], Any]], repeats: int, said: dict[str, Any]
) -> tuple[dict[str, float], dict[str, float]]:
    """The least milliseconds of each by the clock and of the processor, run in turn; `said` receives their answers."""
    clock: dict[str, float] = {}
    cpu: dict[str, float] = {}
    for _ in range(repeats):
        for name, run in contestants.items():
            if clock.get(name, 0.0) > LIMIT_S * 1e3:
                continue
            began, used = time.perf_counter(), time.process_time()
            said[name] = run()
            used, took = (time.process_time() - used) * 1e3, (time.perf_counter() - began) * 1e3
            clock[name], cpu[name] = min(took, clock.get(name, np.inf)), min(used, cpu.get(name, np.inf))
    return clock, cpu


def compare(rows: Rows, case: SparseCase, repeats: int, with_peers: bool) -> None:
    """One case: all contestants in turn."""
    graph = case.draw()
    own, found = ours(graph, case.rejecting)
    beside = peers(graph, case.rejecting, (case.family, case.n) not in NO_CSGRAPH) if with_peers else {}
    said: dict[str, Any] = {}
    clock, cpu = timed({**own, **beside}, repeats, said)
    wrong = [name for name in beside if abs(said[name] - found["objective"]) > 1e-9 * abs(found["objective"])]
    ratios = {name: cpu[name] / cpu["solve"] for name in beside}
    rows.add(
        family=case.family,
        n=case.n,
        n_cols=graph.shape[1],
        edges=int(graph.indices.size),
        ms=clock,
        cpu_ms=cpu,
        peers_over_solve=ratios,
        peers_over_proved={name: cpu[name] / cpu["proved"] for name in beside},
        peers_wrong=wrong,
        **found,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose family begins like this")
    parser.add_argument("--most", type=int, default=10**9, help="the largest n")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--name", default="sparse_cpu", help="of benchmarks/results/<name>.jsonl")
    given = parser.parse_args()
    rows = Rows(given.name)
    AUCTION.warm_up("cpu")
    for case in CASES:
        if case.family.startswith(given.only) and case.n <= given.most:
            compare(rows, case, given.repeats, not given.no_peers)


if __name__ == "__main__":
    main()
