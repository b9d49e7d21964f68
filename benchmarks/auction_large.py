"""Auctions of more than 2^32 edges: python -m benchmarks.auction_large [--cases ...] [--edges N].

    sparse int32     --rows rows, edges at random, one in every step of the columns; weights 1..10000
    sparse float32   the same, in floats
    planted int32    the same edges, and weights whose optimum and duals are known
    dense int32      a square matrix of as many entries, of the same weights
    dense float32    the same, in floats

Weights are drawn by the host: a problem is of arrays of the host. `draw_ms` is not the solver's, nor is `build_ms`,
which checks what was given. `ms` is the solve with the data on the device, and `h2d_ms` their way there. `sweep_bytes`
are those of all edges; `floor_ms` is what one reading of them must take, at an H200's 4.8 TB/s. `read_ms` is what it
takes a bare read on this GPU. The certificate is the service's, on the device where it has one for the problem.
`host_bytes` is the most that the process had so far. A wrong answer, and one that is not proved, has no time.
"""

import argparse
import math
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.auction_graphs import many_planted, many_uniform, planted_columns, planted_duals
from benchmarks.rows import Rows, on_gpu
from kernels import SOLVERS, Csr, Deadline, Device, Solution, Termination
from kernels.auction import AuctionOptions
from kernels.on_device import Certifier
from kernels.solution import Certificate, unheard

AUCTION = SOLVERS["auction"]
CASES = ("sparse int32", "dense int32", "dense float32")
OTHERS = ("planted int32", "sparse float32")
EDGES, ROWS = 4_296_000_000, 2_000_000
"""As many as do not fit 32 bits, with a sign or without; 34.4 GB of columns and weights."""
LIMIT_S = 60.0
BYTES_PER_S = 4.8e12
"""Of an H200's memory, by its data sheet."""
PROVED = (Termination.OPTIMAL, Termination.GAP_REACHED)


class Parts:
    """Milliseconds of each part, told as they end: a run that is cut off has said how far it came."""

    def __init__(self, case: str) -> None:
        self.case, self.ms = case, dict[str, float]()

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """What `work` returns."""
        since = time.perf_counter()
        found = work()
        self.ms[name] = 1e3 * (time.perf_counter() - since)
        print(f"{self.case}: {name} {self.ms[name]:.1f} ms", flush=True)
        return found


def drawn(case: str, edges: int, rows: int) -> Any:
    """The benefits of a case: a graph (rows, rows) or a matrix of about as many entries as `edges`."""
    family, dtype = case.split()
    make = many_planted if family == "planted" else many_uniform
    if family == "dense":
        side = math.isqrt(edges)
        return make(side, side, np.dtype(dtype))
    return make(rows, min(rows - 1, edges // rows), np.dtype(dtype))


def one(case: str, edges: int, rows: int, device: Device, limit_s: float = LIMIT_S) -> dict[str, Any]:
    """One solve and its certificate."""
    options, parts = AuctionOptions.model_validate({}), Parts(case)
    benefit = parts.timed("draw", lambda: drawn(case, edges, rows))
    problem = parts.timed("build", lambda: AUCTION.build({"benefit": benefit}, options))
    certifier = Certifier(AUCTION, problem, device)
    solution = parts.timed("call", lambda: AUCTION.solve(problem, options, Deadline(limit_s), device))
    certificate = parts.timed("certify", lambda: certifier.certify(solution, unheard))
    ended = certificate.termination or solution.termination
    right = bool(certificate.holds) and ended in PROVED and is_planted(case, solution, certificate)
    times = {"solve": parts.ms["call"]} | solution.timings_ms
    values = benefit.values if isinstance(benefit, Csr) else benefit
    return {
        "case": case,
        "n": problem.shape[0],
        "edges": int(values.size),
        "device": device,
        "ms": times["solve"] if right else float("nan"),
        **{f"{name}_ms": ms for name, ms in (parts.ms | times).items() if name != "solve"},
        "sweep_bytes": int(benefit.nbytes),
        **held(int(benefit.nbytes), device),
        "host_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "limit_s": limit_s,
        "termination": str(ended),
        "holds": certificate.holds,
        "objective": certificate.objective,
        "bound": certificate.bound,
        "gap_abs": certificate.gap_abs,
        "max_violation": certificate.max_violation,
        "certified_on": certificate.facts.get("certified_on", "cpu"),
        "proved": certificate.proved,
        "method": solution.method,
        **solution.facts,
    }


def is_planted(case: str, solution: Solution, certificate: Certificate) -> bool:
    """Whether a planted assignment was found, with what it is worth; True of what has none."""
    if not case.startswith("planted"):
        return True
    columns = solution.arrays["assignment"]
    worth = sum(int(duals.sum()) for duals in planted_duals(columns.size))
    return bool((columns == planted_columns(columns.size)).all()) and certificate.objective == worth


def held(sweep_bytes: int, device: Device) -> dict[str, Any]:
    """What the GPU held at most, and what one reading of the edges takes it; nothing of a CPU."""
    if device == "cpu":
        return {}
    import cupy

    from benchmarks.bandwidth import read_bytes_per_s

    device_bytes = int(cupy.get_default_memory_pool().total_bytes())  # it only grows while nothing is given back
    return {
        "device_bytes": device_bytes,
        "floor_ms": 1e3 * sweep_bytes / BYTES_PER_S,
        "read_ms": 1e3 * sweep_bytes / read_bytes_per_s(),
    }


def free(device: Device) -> None:
    """Give back what the GPU's pool keeps, so that the next case's is its own."""
    if device == "gpu":
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="gpu", choices=("cpu", "gpu"))
    parser.add_argument("--cases", default=",".join(CASES), help=f"of {', '.join((*CASES, *OTHERS))}")
    parser.add_argument("--edges", type=int, default=EDGES)
    parser.add_argument("--rows", type=int, default=ROWS, help="of a sparse graph")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of one solve")
    parser.add_argument("--name", help="of benchmarks/results/<name>.jsonl; default: auction_large_cpu, or the GPU's")
    given = parser.parse_args()
    cases, device = given.cases.split(","), given.device
    if unknown := set(cases) - {*CASES, *OTHERS}:
        parser.error(f"no such cases: {', '.join(sorted(unknown))}")
    rows = Rows(given.name or (on_gpu("auction_large") if device == "gpu" else "auction_large_cpu"))
    AUCTION.warm_up(device)
    for case in cases:
        one(case, 1 << 22, 1 << 14, device)  # loads what is compiled
    for case in cases:
        free(device)
        rows.add(**one(case, given.edges, given.rows, device, given.limit))


if __name__ == "__main__":
    main()
