"""Assignment by auction beside its peers: python -m benchmarks.auction [--device gpu] [--parts targets,paper,...].

    targets   uniform weights 1..10000, dense and 10% sparse: the optimum, and epsilon 1 by each `finish`
    paper     rounds and times of the paper's tables 2 and 3: every variant, epsilon 1 and 1 / (n + 1)
    peers     the optimum by SciPy, lapx and OR-Tools on the same graphs, on the CPU alone
    bidders   the paper's figure 1: bidders in every round, n = 1108
    epsilon   rounds, time and true gap against epsilon
    warm      solving again from the answer to an instance that differs a little
    families  ties, alike rows, structured costs, rectangles, points without a matrix, a graph without an assignment
    large     a million rows with 32 random edges each
    edges     a million rows with a thousand edges each

Every row of ours carries its certificate; a peer's objective is held against ours, or, in `peers`, against the other
peers'. On a GPU `ms` is the solve with the graph on the device, `h2d_ms` the transfer.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.auction_graphs import KEPT, few_edges, many_edges, uniform
from benchmarks.rows import Rows, alternate, on_gpu
from kernels import SOLVERS, Array, Certificate, Csr, Deadline, Inputs, Solution
from kernels.auction import AuctionOptions

AUCTION = SOLVERS["auction"]
PARTS = ("targets", "paper", "peers", "bidders", "epsilon", "warm", "families", "large", "edges")


def solve(graph: Any, device: Any, repeats: int, start: Inputs | None = None, **given: Any) -> dict[str, Any]:
    """Median times, the counters, and what the certificate says of the last answer."""
    inputs = dict(graph) if isinstance(graph, dict) else {"benefit": graph}
    if "neighbours" in inputs:
        given["neighbours"] = inputs.pop("neighbours")
    options = AuctionOptions.model_validate(given)
    inputs |= dict(start or {})
    problem = AUCTION.build(inputs, options)
    times: list[dict[str, float]] = []
    for _ in range(repeats):
        began = time.perf_counter()
        solution: Solution = AUCTION.solve(problem, options, Deadline(120), device)
        total = (time.perf_counter() - began) * 1e3
        times.append({"solve": total} | solution.timings_ms)
    certificate: Certificate = AUCTION.certify(problem, solution)
    found: dict[str, Any] = {"ms": statistics.median(t["solve"] for t in times)}
    found |= {f"{name}_ms": statistics.median(t[name] for t in times) for name in ("h2d", "d2h") if name in times[0]}
    found |= {
        "termination": str(solution.termination),
        "holds": certificate.holds,
        "objective": certificate.objective,
        "gap_abs": certificate.gap_abs,
        "method": solution.method,
    } | solution.facts
    solve.last = solution  # type: ignore[attr-defined]
    return found


def peers(graph: Array | Csr) -> dict[str, Callable[[], float]]:
    """Exact objectives by what is installed."""
    if isinstance(graph, Csr):
        return dict(_sparse_peers(graph))
    return dict(_dense_peers(graph))


def _sparse_peers(graph: Csr) -> Iterator[tuple[str, Callable[[], float]]]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    matrix = csr_array((graph.values, graph.indices, graph.indptr), graph.shape)

    def scipy_csgraph() -> float:
        rows, columns = min_weight_full_bipartite_matching(matrix, maximize=True)
        return float(matrix[rows, columns].sum())

    yield "scipy csgraph", scipy_csgraph
    yield from _lapmod(graph)
    try:
        from ortools.graph.python import linear_sum_assignment as ortools
    except ImportError:
        return
    rows_of = np.repeat(np.arange(graph.shape[0], dtype=np.int32), np.diff(graph.indptr))

    def ortools_cost_scaling() -> float:
        solver = ortools.SimpleLinearSumAssignment()
        solver.add_arcs_with_cost(rows_of, graph.indices, -graph.values.astype(np.int64))
        solver.solve()
        return -float(solver.optimal_cost())

    yield "or-tools", ortools_cost_scaling


def _lapmod(graph: Csr) -> Iterator[tuple[str, Callable[[], float]]]:
    try:
        import lap
    except ImportError:
        return
    n, most = graph.shape[0], int(graph.values.max())
    cost = (most - graph.values).astype(np.float64)  # it wants costs of at least 0
    starts, columns = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
    yield "lapx lapmod", lambda: n * most - float(lap.lapmod(n, cost, starts, columns)[0])


def _dense_peers(benefit: Array) -> Iterator[tuple[str, Callable[[], float]]]:
    from scipy.optimize import linear_sum_assignment

    rows = np.arange(benefit.shape[0])
    if benefit.shape[0] <= 6000:
        yield "scipy", lambda: float(benefit[rows, linear_sum_assignment(benefit, maximize=True)[1]].sum())
    try:
        import lap
    except ImportError:
        return
    cost = -benefit.astype(np.float64)
    yield "lapx lapjv", lambda: -float(lap.lapjv(cost)[0])
    if benefit.shape[0] <= 2500:
        yield "lapx lapjvc", lambda: -float(lap.lapjvc(cost)[0])


def targets(rows: Rows, device: str, n: int, density: float, repeats: int, with_peers: bool) -> None:
    """The paper's weights: the optimum, and epsilon 1 by rounds to the end, as it comes, and on to the optimum."""
    graph = uniform(n, density)
    shared = {"part": "targets", "device": device, "n": n, "density": density}
    for finish in ("auction", "auto", "paths"):
        found = solve(graph, device, repeats, epsilon=1.0, finish=finish)
        rows.add(**shared, asked=f"epsilon 1, {finish}", **found)
    row = solve(graph, device, repeats)
    if with_peers:
        contestants = peers(graph)
        ms = alternate(contestants, 1 if n > 4000 else repeats)
        wrong = [name for name, run in contestants.items() if n <= 2500 and run() != row["objective"]]
        row |= {"peers_ms": ms, "peers_wrong": wrong, "ratio_to_best": row["ms"] / min(ms.values())}
    rows.add(**shared, asked="exact", **row)


def beside(rows: Rows, n: int, density: float) -> None:
    """The peers alone, once each, and whether they agree; the report holds them against our objective."""
    found: dict[str, Any] = {}
    ms = {}
    for name, run in peers(uniform(n, density)).items():
        start = time.perf_counter()
        found[name] = run()
        ms[name] = (time.perf_counter() - start) * 1e3
    agree = len(set(found.values())) == 1
    rows.add(part="peers", n=n, density=density, peers_ms=ms, objective=next(iter(found.values())), holds=agree)


def paper(rows: Rows, device: str, n: int, density: float, repeats: int) -> None:
    """Tables 2 and 3: the paper's variants by rounds alone, no scaling and no paths; a size that it ran is run."""
    alone: dict[str, Any] = {"finish": "auction"}
    variants: dict[str, dict[str, Any]] = {"deterministic": alone}
    if device == "gpu":
        variants |= {"any order": alone | {"deterministic": False}, "graph": alone | {"launch": "graph"}}
    graph = uniform(n, density)
    shared = {"part": "paper", "device": device, "n": n, "density": density}
    for name, given in variants.items():
        rows.add(**shared, variant=name, asked="epsilon 1", **solve(graph, device, repeats, epsilon=1.0, **given))
    if n <= (3660 if density == 1 else 5451):
        rows.add(
            **shared, variant="deterministic", asked="1/(n+1)", **solve(graph, device, 1, epsilon=1 / (n + 1), **alone)
        )


def bidders(rows: Rows, device: str) -> None:
    """Figure 1: bidders in each of the first 100 rounds, and how many rounds had at most 32."""
    for seed in range(3):
        row = solve(uniform(1108, 1.0, seed), device, 1, epsilon=1.0, finish="auction", trace=True)
        trace = solve.last.arrays["bidders"]  # type: ignore[attr-defined]
        thin = float((trace <= 32).mean())
        rows.add(part="bidders", device=device, n=1108, seed=seed, first_100=trace[:100].tolist(), thin=thin, **row)


def epsilon(rows: Rows, device: str, repeats: int) -> None:
    """Rounds and true gap against epsilon, n = 2458 dense, beside the exact answer."""
    graph = uniform(2458, 1.0)
    for value in (1000.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1 / 2459):
        found = solve(graph, device, repeats, epsilon=value, finish="auction")
        rows.add(part="epsilon", device=device, n=2458, asked_epsilon=value, **found)
    rows.add(part="epsilon", device=device, n=2458, asked_epsilon=None, **solve(graph, device, repeats))


def warm(rows: Rows, device: str, n: int, repeats: int) -> None:
    """Change a share of the weights of a 10% sparse graph; start from nothing, the old prices, the old answer."""
    graph = uniform(n, 0.1)
    assert isinstance(graph, Csr)
    solve(graph, device, 1)
    old = solve.last.arrays  # type: ignore[attr-defined]
    starts = {"nothing": {}, "prices": {"prices0": old["prices"]}}
    starts["answer"] = starts["prices"] | {"assignment0": old["assignment"]}
    rng = np.random.default_rng(7)
    for share in (0.0, 0.0001, 0.001, 0.01, 0.1):
        values = graph.values.copy()
        chosen = rng.random(values.size) < share
        values[chosen] = rng.integers(1, 10001, int(chosen.sum()))
        changed = Csr(graph.indptr, graph.indices, values, graph.shape)
        found = {name: solve(changed, device, repeats, start) for name, start in starts.items()}
        assert len({row["objective"] for row in found.values()}) == 1
        for name, row in found.items():
            rows.add(part="warm", device=device, n=n, density=0.1, changed=share, start=name, **row)


def families(rows: Rows, device: str, n: int, repeats: int) -> None:
    """What is hard for an auction: ties, few dimensions, products, spare columns, no assignment at all."""
    rng = np.random.default_rng(8)
    x, y = rng.random((n, 2)), rng.random((n, 2))
    crowd, small = few_edges(n, 8), min(n, 512)
    kinds = rng.integers(1, 10001, (20, n), dtype=np.int32)
    crowd.indices[: int(crowd.indptr[n // 4])] %= n // 4 - 1
    hall = [np.unique(crowd.indices[a:b]) for a, b in zip(crowd.indptr[:-1], crowd.indptr[1:], strict=True)]
    sizes = np.array([part.size for part in hall])
    columns = np.concatenate(hall)
    graphs: dict[str, Any] = {
        "ties 0..0.1 n": rng.integers(0, n // 10, (n, n), dtype=np.int32),
        "constant": np.full((n, n), 7, np.int32),
        "20 kinds of rows": kinds[rng.integers(0, 20, n)],
        "20 kinds of columns": kinds[rng.integers(0, 20, n)].T.copy(),
        "20 kinds of both": kinds[rng.integers(0, 20, n)][:, rng.integers(0, 20, n)],
        "product, n <= 512": np.outer(np.arange(1, small + 1), np.arange(1, small + 1)),
        "uniform float64": rng.random((n, n)) * 1000.0 * n,
        "rectangular n x 1.1 n": rng.integers(1, 10001, (n, n + n // 10), dtype=np.int32),
        "sqeuclidean matrix": -((x[:, None] - y[None]) ** 2).sum(-1),
        "points sqeuclidean": {"x": x, "y": y},
        "points, 48 neighbours": {"x": x, "y": y, "neighbours": 48},
        "infeasible": Csr(np.concatenate([[0], np.cumsum(sizes)]), columns, np.ones(columns.size, np.int32), (n, n)),
    }
    for family, graph in graphs.items():
        rows.add(part="families", device=device, family=family, n=n, **solve(graph, device, repeats))


def large(rows: Rows, device: str, n: int) -> None:
    """A million rows, 32 edges each."""
    rows.add(part="large", device=device, n=n, degree=32, **solve(few_edges(n, 32), device, 1))


def edges(rows: Rows, device: str, count: int) -> None:
    """`count` edges in rows of a thousand."""
    n = count // 1000
    rows.add(part="edges", device=device, n=n, degree=1000, **solve(many_edges(n, 1000), device, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--parts", default="targets,paper,bidders,epsilon,warm,families")
    parser.add_argument("--sizes", default="500,1108,2458")
    parser.add_argument("--densities", default="1,0.1")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=1_000_000_000)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for generated graphs, read there the next time")
    parser.add_argument("--name", help="of benchmarks/results/<name>.jsonl; default: auction_cpu, or the GPU's")
    given = parser.parse_args()
    name = given.name or (on_gpu("auction") if given.device == "gpu" else "auction_cpu")
    rows, device, repeats = Rows(name), given.device, given.repeats
    sizes, densities = [int(n) for n in given.sizes.split(",")], [float(d) for d in given.densities.split(",")]
    KEPT.extend([given.keep] if given.keep else [])
    parts = given.parts.split(",")
    if parts != ["peers"]:
        AUCTION.warm_up(device)
    on_uniform: dict[str, Callable[[int, float], None]] = {
        "targets": lambda n, d: targets(rows, device, n, d, repeats, not given.no_peers),
        "paper": lambda n, d: paper(rows, device, n, d, repeats),
        "peers": lambda n, d: beside(rows, n, d),
    }
    for density in densities:
        for n in sizes:
            for part in parts:
                if part in on_uniform:
                    on_uniform[part](n, density)
    other: dict[str, Callable[[], None]] = {
        "bidders": lambda: bidders(rows, device),
        "epsilon": lambda: epsilon(rows, device, repeats),
        "warm": lambda: warm(rows, device, 5451 if device == "gpu" else sizes[-1], repeats),
        "families": lambda: families(rows, device, min(4096, sizes[-1]), 1),
        "large": lambda: large(rows, device, given.large),
        "edges": lambda: edges(rows, device, given.edges),
    }
    for part in parts:
        other.get(part, lambda: None)()


if __name__ == "__main__":
    main()
