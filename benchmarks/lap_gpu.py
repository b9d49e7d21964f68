"""Dense linear assignment on one GPU, beside CPU peers on the same machine: python -m benchmarks.lap_gpu.

Times of ours are of the device, data already there, certificate apart. Meanwhile 576 entries go to the host, which
looks at them for an order that sorting solves. `parts_ms` says what a time is made of, `rounds` how many exchanges
between the blocks, `sweeps` how often the matrix was read, `floor_ms` what reading it so often must cost.
Peers run on the CPU cores meanwhile, each in a process of its own. A wrong answer has no time.
"""

import argparse
import functools
import statistics
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import cupy
import cupyx
import numpy as np

from benchmarks import instances
from benchmarks.bandwidth import read_bytes_per_s
from benchmarks.report.lap import PARTS
from benchmarks.rows import Rows, on_gpu
from kernels.lap import gpu_monge, monge
from kernels.lap.auto.gpu_forest import Forest
from kernels.lap.proof.gpu_proof import prove

SLOW = {("product", "scipy"), ("product", "lapx"), ("lowrank8", "scipy"), ("lowrank8", "lapx")}
"""Peers that take more than ten seconds at n = 4096."""
Rivals = dict[tuple[str, str, int], Future[tuple[float, float]]]
"""Peers under way, by name, family and n."""


def peer(name: str, family: str, n: int) -> tuple[float, float]:
    """Milliseconds and objective of a CPU peer."""
    cost = instances.lap(family, n)
    if name == "allot cpu":
        from kernels import SOLVERS, Deadline

        card = SOLVERS["lap"]
        options = card.options()
        card.warm_up("cpu")
        problem = card.build({"cost": cost}, options)
        card.solve(problem, options, Deadline())
        start = time.perf_counter()
        columns = card.solve(problem, options, Deadline()).arrays["assignment"]
    elif name == "scipy":
        from scipy.optimize import linear_sum_assignment

        start = time.perf_counter()
        columns = linear_sum_assignment(cost)[1]
    else:
        import lap

        start = time.perf_counter()
        columns = lap.lapjvc(cost)[2]
    taken = (time.perf_counter() - start) * 1e3
    return taken, float(cost[np.arange(n), columns].astype(float).sum())


@functools.cache
def _aside(device: int) -> Any:
    with cupy.cuda.Device(device):
        return cupy.cuda.Stream(non_blocking=True)


class Look:
    """`monge.corner` of a matrix on the device, which a stream of its own fetches while the search is under way.

    Made before the search is launched, since the sample must wait for what fills the matrix and for nothing else.
    """

    def __init__(self, cost: Any) -> None:
        self._n, self._view = len(cost), monge.sample(cost)
        self._sample: Any = None
        self._filled = cupy.cuda.Event(disable_timing=True)
        self._filled.record()

    def fetch(self) -> None:
        """Enqueue the copy; nothing waits."""
        if self._view is None:
            return
        self._sample = cupyx.empty_pinned(self._view.shape, self._view.dtype)
        self._arrived = cupy.cuda.Event(disable_timing=True)
        with _aside(cupy.cuda.Device().id) as stream:
            stream.wait_event(self._filled)
            cupy.ascontiguousarray(self._view).get(out=self._sample, blocking=False)
            self._arrived.record()

    def corner(self, negate: bool) -> tuple[int, int] | None:
        """Waits for the sample, not for what was enqueued after it."""
        if self._sample is None:
            return None
        self._arrived.synchronize()
        return monge.corner_of(self._sample, self._n, -1 if negate else 1)


def solve(cost: Any, forest: Forest) -> tuple[list[float], float, list[float]]:
    """Times of PARTS, the time of the proof (0 where it is part of the method), and the proof."""
    marks = [cupy.cuda.Event() for _ in range(len(PARTS) + 1)]
    pending = iter(marks)
    forest.mailbox[:] = 0
    cupy.cuda.get_current_stream().synchronize()
    begun = time.perf_counter()
    next(pending).record()
    look = Look(cost)
    forest.launch(cost, False, mark=lambda: next(pending).record())
    look.fetch()
    if at := look.corner(False):
        forest.mailbox[0] = 1
        found = gpu_monge.solve_on_device(cost, False, at)
        assert found, "the sample has a Monge order, the matrix has none: `solve` would search again"
        return [(time.perf_counter() - begun) * 1e3, *[0.0] * (len(PARTS) - 1)], 0.0, list(found[1].values())
    proof = prove(cost, False, forest.u, forest.v, forest.row_col)
    marks[-1].record()
    marks[-1].synchronize()
    lap = [cupy.cuda.get_elapsed_time(a, b) for a, b in pairwise(marks)]
    return [0.0, *lap[:-1]], lap[-1], proof.get().tolist()


def on_device(family: str, n: int, host: Any, repeats: int) -> dict[str, Any]:
    """Median of `repeats` solves, its parts, its counts and its proof."""
    cost = cupy.asarray(host)
    forest = Forest(n, n, cost.dtype)
    solve(cost, forest)  # compiles
    times, proofs, answers = zip(*(solve(cost, forest) for _ in range(repeats)), strict=True)
    median, proof = sorted(times, key=sum)[repeats // 2], answers[-1]
    found = median[PARTS.index("sort")] > 0
    primal, dual, violation, slack, unassigned = proof
    facts = forest.facts()
    sweeps = 2.0 if found else (facts["scans"] + facts["bid_scans"]) / n + 1
    tolerance = 0.0 if host.dtype.kind == "i" else 4 * 2.0**-52 * 2 * n * max(float(cost.max()), -float(cost.min()))
    holds = unassigned == 0 and max(violation, slack) <= tolerance and abs(primal - dual) <= n * tolerance
    return {
        "family": family,
        "n": n,
        "dtype": host.dtype.name,
        "device": "gpu",
        "method": "monge" if found else "auto",
        "holds": bool(holds),
        "ms": sum(median) if holds else float("nan"),
        "parts_ms": dict(zip(PARTS, median, strict=True)),
        "certify_ms": statistics.median(proofs),
        "objective": primal,
        "gap_abs": abs(primal - dual),
        "max_violation": violation,
        "sweeps": sweeps,
        "floor_ms": sweeps * host.nbytes / read_bytes_per_s() * 1e3,
        **facts,
    }


def times_of(rivals: Rivals, answer: dict[str, Any]) -> dict[str, float]:
    """Milliseconds of the peers of one of our answers, once they have ended; NaN for a wrong answer."""
    times = {}
    for (name, family, n), rival in rivals.items():
        if (family, n) == (answer["family"], answer["n"]):
            taken, objective = rival.result()
            times[name] = taken if np.isclose(objective, answer["objective"], rtol=1e-9) else float("nan")
    return times


def large(rows: Rows) -> None:
    """The largest sizes, drawn on the device: the host would take minutes to draw and send them."""
    for n, dtype in ((16384, np.float64), (32768, np.float64), (65536, np.float32)):
        cost = cupy.random.default_rng(n).random((n, n), dtype=dtype)
        cost *= 1000 * n
        rows.add(**on_device("u drawn on the device", n, cost, 1))
        del cost
        cupy.get_default_memory_pool().free_all_blocks()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default=",".join(instances.LAP_FAMILIES))
    parser.add_argument("--sizes", default="256,512,1024,2048,4096,8192")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers-to", type=int, default=4096, help="largest n of the CPU peers; 0 for none")
    parser.add_argument(
        "--peers", default="scipy,lapx", help='also "allot cpu", which compiles for half a minute first'
    )
    parser.add_argument("--peer-processes", type=int, default=6)
    parser.add_argument("--large", action="store_true", help="n = 16384, 32768 and, in float32, 65536")
    arguments = parser.parse_args()
    rows = Rows(on_gpu("lap"))
    sizes = [int(n) for n in arguments.sizes.split(",")]
    cases = [(family, n) for family in arguments.families.split(",") for n in sizes]
    with ProcessPoolExecutor(arguments.peer_processes, get_context("spawn")) as pool, ThreadPoolExecutor(4) as makers:
        rivals: Rivals = {}
        for family, n in sorted(cases, key=lambda case: -case[1]):
            if n <= arguments.peers_to:
                for name in arguments.peers.split(","):
                    if not (n > 2048 and (family, name) in SLOW):
                        rivals[name, family, n] = pool.submit(peer, name, family, n)
        made = [(family, n, makers.submit(instances.lap, family, n)) for family, n in cases[:2]]
        answers = []
        for k in range(len(cases)):
            if k + 2 < len(cases):  # two ahead, so that the host holds three matrices at most
                made.append((*cases[k + 2], makers.submit(instances.lap, *cases[k + 2])))
            family, n, host = made[k]
            answer = on_device(family, n, host.result(), arguments.repeats)
            made[k] = (family, n, Future())
            if rivals:  # still under way
                answers.append(answer)
            else:
                rows.add(**answer, peers_ms={})
        for answer in answers:
            rows.add(**answer, peers_ms=times_of(rivals, answer))
    if arguments.large:
        large(rows)


if __name__ == "__main__":
    main()
