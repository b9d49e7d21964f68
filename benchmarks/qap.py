"""Quadratic assignment against time: python -m benchmarks.qap [--device gpu] [--parts curves,speed,...] [--data DIR].

Parts: curves (gap to best known against time), speed (exchanges per second), twoopt (6144 starts), bounds (time and
value), proofs (branch and bound), peers (SciPy faq and 2opt, same run, CPU), cores (2-opt over CPU threads), threads /
shared / neighbourhoods / starts / seeds (figures 5 to 9 of Novoa and Qasem 2019, GPU). Instances are read from --data,
$ALLOT_QAPLIB_DIR or ../shared/qaplib; rows say so when there are none. Every objective is recomputed in int64.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import Rows
from kernels import SOLVERS, Deadline, Progress
from kernels.problems import QuadraticAssignment
from kernels.qap import QapOptions, qaplib
from kernels.qap.bounds import lower as bounds
from kernels.qap.cpu import tabu
from kernels.qap.form import search_form

CARD = SOLVERS["qap"]
FIRST_S = 8.0
"""Of a solve that compiles: the search, the root and a first level of the tree."""
PAPER = [f"tai{n}{kind}" for n in (30, 35, 40, 50, 60, 80, 100) for kind in "ab"] + ["lipa70a", "lipa90a"]
PROVED = [f"nug{n}" for n in ("12", "15", "16a", "16b", "18", "20")] + [f"had{n}" for n in (12, 16, 20)]
PROVED += ["rou12", "rou15", "rou20", "scr12", "scr20", "chr12a", "chr12c", "chr15a", "chr15b", "chr18a", "chr20a"]
PROVED += ["chr20c", "chr22a", "chr25a", "tai12a", "tai15a", "tai15b", "tai17a", "tai20a", "els19", "esc16a"]


def folder(asked: str | None) -> Path:
    """Where the instances are."""
    return Path(asked or os.environ.get("ALLOT_QAPLIB_DIR") or Path(__file__).parents[2] / "shared" / "qaplib")


def load(where: Path, name: str) -> tuple[QuadraticAssignment, int] | None:
    """The instance and the best-known value of its own .sln; None when there is no such file."""
    try:
        flow, distance = qaplib.parse_dat((where / f"{name}.dat").read_text())
        _, best = qaplib.parse_sln((where / f"{name}.sln").read_text(), flow, distance)
    except OSError:
        return None
    return QuadraticAssignment(flow, distance), int(best)


def gap(value: float, best: int) -> float:
    """Percent above the best known."""
    return 100.0 * (value - best) / best if best else float(value)


def curves(rows: Rows, instances: dict[str, Any], device: Any, seconds: float, seeds: range) -> None:
    """Gap against time, every incumbent, until the best known or the limit; kernels of this n are compiled before."""
    for name, (problem, best) in instances.items():
        if device == "gpu":
            CARD.solve(problem, QapOptions(method="memetic", rounds=1, bounds=()), Deadline(), device)
        for seed in seeds:
            options = QapOptions(seed=seed, target=best, best_known=best, method="memetic", bounds=("gilmore-lawler",))
            curve: list[tuple[float, float]] = []

            def watch(progress: Progress, curve: list[tuple[float, float]] = curve, best: int = best) -> None:
                if progress.objective is not None:
                    curve.append((round(progress.elapsed_s, 4), round(gap(progress.objective, best), 4)))

            solution = CARD.solve(problem, options, Deadline(seconds, on_progress=watch), device)
            certificate = CARD.certify(problem, solution)
            final = gap(float(certificate.objective or 0), best)
            reached = curve[-1][0] if final <= 0 else None
            rows.add(
                part="curves", instance=name, n=problem.n, device=device, seed=seed, limit_s=seconds, gap_pct=final,
                reached_s=reached, holds=certificate.holds, bound=certificate.bound, curve=curve,
            )  # fmt: skip


def speed(rows: Rows, instances: dict[str, Any], device: Any) -> None:
    """Tabu exchanges evaluated per second: one core on the CPU, the whole device on the GPU."""
    for name, (problem, best) in instances.items():
        if device == "gpu":
            options = QapOptions(method="tabu", starts=792, iterations=20 * problem.n, bounds=())
            CARD.solve(problem, options, Deadline(), device)
            options = QapOptions(method="tabu", starts=792, iterations=400 * problem.n, bounds=(), seed=1)
            solution = CARD.solve(problem, options, Deadline(), device)
            holds, moves = CARD.certify(problem, solution).holds, solution.facts["moves"]
            rows.add(part="speed", instance=name, n=problem.n, device=device, system="tabu", holds=holds,
                     moves_per_s=moves / solution.timings_ms["solve"] * 1e3)  # fmt: skip
            options = QapOptions(method="memetic", rounds=60, bounds=())
            CARD.solve(problem, options, Deadline(), device)
            solution = CARD.solve(problem, options, Deadline(), device)
        else:
            solution = _one_core(problem)
        certificate = CARD.certify(problem, solution)
        rate = solution.facts["moves"] / solution.timings_ms["solve"] * 1e3
        rows.add(part="speed", instance=name, n=problem.n, device=device, system=solution.method, moves_per_s=rate,
                 holds=certificate.holds, gap_pct=gap(float(certificate.objective or 0), best))  # fmt: skip


def _one_core(problem: QuadraticAssignment) -> Any:
    from kernels.solution import Solution, Termination

    form, n = search_form(problem), problem.n
    p = np.random.default_rng(0).permutation(n)
    best, slot, frequency = p.copy(), np.zeros(1, np.int64), np.zeros((n, n), np.int32)
    taken = 0.0
    for iterations in (10, 2_000_000 // n):
        cost = np.int64(tabu.cost_of(form.flow, form.distance, form.linear, form.symmetric, p, np.int64(0)))
        start = time.thread_time()  # CPU seconds: what else runs here must not count
        tabu.search(
            form.flow, form.distance, form.linear, form.symmetric, p, best, cost,
            form.dtype.type(np.iinfo(form.dtype).max), np.array([1], np.uint64), iterations, (n // 10, n // 3), 0,
            np.int64(-(2**62)), slot, np.zeros(1, np.uint8), frequency,
        )  # fmt: skip
        taken = time.thread_time() - start
    facts = {"moves": 2_000_000 // n * n * (n - 1) // 2, "bounds": {}}
    return Solution(Termination.ITERATION_LIMIT, "tabu", {"permutation": best}, 0, 0, {"solve": taken * 1e3}, facts)


def twoopt(rows: Rows, instances: dict[str, Any], device: Any) -> None:
    """2-opt from 6144 random starts to local optima, the experiment of Novoa and Qasem (2019)."""
    for name, (problem, best) in instances.items():
        for repeat in range(2):  # the first compiles and tunes
            options = QapOptions(method="2opt", starts=6144, seed=repeat, bounds=(), rounds=1)
            start = time.perf_counter()
            solution = CARD.solve(problem, options, Deadline(), device)
            seconds = time.perf_counter() - start
        certificate = CARD.certify(problem, solution)
        rows.add(part="twoopt", instance=name, n=problem.n, device=device, starts=6144, seconds=seconds,
                 gap_pct=gap(float(certificate.objective or 0), best), holds=certificate.holds)  # fmt: skip


def cores(rows: Rows, instances: dict[str, Any]) -> None:
    """The comparison of Novoa and Qasem (2019): 2-opt from as many starts on the CPU, over 1, 2, 4, ... threads."""
    import numba

    most = len(os.sched_getaffinity(0))
    for name, (problem, best) in instances.items():
        for threads in [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= most]:
            numba.set_num_threads(threads)
            options = QapOptions(method="2opt", starts=6144, bounds=(), rounds=1)
            start = time.perf_counter()
            solution = CARD.solve(problem, options, Deadline(), "cpu")
            seconds = time.perf_counter() - start
            certificate = CARD.certify(problem, solution)
            rows.add(part="cores", instance=name, n=problem.n, device="cpu", threads=threads, starts=6144,
                     seconds=seconds, gap_pct=gap(float(certificate.objective or 0), best),
                     holds=certificate.holds)  # fmt: skip
        numba.set_num_threads(most)


def lower_bounds(rows: Rows, instances: dict[str, Any], device: Any) -> None:
    """Value and milliseconds of each cheap bound, transfers included; on a GPU Gilmore-Lawler is the device's."""
    computes = [bounds.gilmore_lawler, bounds.projection]
    if device == "gpu":
        from kernels.qap.bounds import gpu_bounds

        computes[0] = gpu_bounds.gilmore_lawler
    for name, (problem, best) in instances.items():
        for compute in computes:
            taken = []
            for _ in range(6):  # the first compiles
                start = time.perf_counter()
                found = compute(problem)
                taken.append(time.perf_counter() - start)
            if found is not None:
                rows.add(part="bounds", instance=name, n=problem.n, device=device, bound=found.name, value=found.value,
                         ms=sorted(taken[1:])[2] * 1e3, below_pct=-gap(found.value, best))  # fmt: skip


def proofs(rows: Rows, instances: dict[str, Any], device: Any, seconds: float) -> None:
    """Time until optimality is proved; on a GPU after a solve of each size, whose kernels a worker has on file."""
    known: set[int] = set()
    for name, (problem, best) in instances.items():
        if device == "gpu" and problem.n not in known:
            CARD.solve(problem, QapOptions(), Deadline(FIRST_S), device)
            known.add(problem.n)
        start = time.perf_counter()
        solution = CARD.solve(problem, QapOptions(), Deadline(seconds), device)
        certificate = CARD.certify(problem, solution)
        rows.add(part="proofs", instance=name, n=problem.n, device=device, seconds=time.perf_counter() - start,
                 termination=solution.termination, objective=certificate.objective, best_known=best,
                 bound=certificate.bound, nodes=solution.facts.get("nodes"), holds=certificate.holds)  # fmt: skip


def peers(rows: Rows, instances: dict[str, Any]) -> None:
    """SciPy's faq and 2opt, and ours on the CPU for as long as the slower of them took."""
    from scipy.optimize import quadratic_assignment

    for name, (problem, best) in instances.items():
        found: dict[str, Any] = {}
        slowest = 0.0
        for method in ("faq", "2opt"):
            start = time.perf_counter()
            answer = quadratic_assignment(problem.flow, problem.distance, method=method, options={"rng": 0})
            seconds = time.perf_counter() - start
            slowest = max(slowest, seconds)
            found |= {f"{method}_gap_pct": gap(problem.objective(answer.col_ind), best), f"{method}_s": seconds}
        options = QapOptions(method="memetic", target=best)
        start = time.perf_counter()
        solution = CARD.solve(problem, options, Deadline(max(slowest, 0.1)), "cpu")
        certificate = CARD.certify(problem, solution)
        rows.add(part="peers", instance=name, n=problem.n, device="cpu", seconds=time.perf_counter() - start,
                 gap_pct=gap(float(certificate.objective or 0), best), holds=certificate.holds, **found)  # fmt: skip


class Sensitivity:
    """Figures 5 to 9 of Novoa and Qasem (2019) for one instance, from the same 6144 starts."""

    def __init__(self, rows: Rows, name: str, problem: QuadraticAssignment, best: int) -> None:
        from kernels.qap.multistart import gpu_multistart

        self.rows, self.name, self.problem, self.best = rows, name, problem, best
        self.multistart, self.form, n = gpu_multistart, search_form(problem), problem.n
        rng = np.random.default_rng(0)
        self.starts = np.array([rng.permutation(n) for _ in range(6144)])
        self.tenure, self.usual = (max(1, n // 10), max(2, n // 3)), gpu_multistart.tuned(self.form)

    def timed(self, layout: Any, members: int, iterations: int, tenure: Any, seed: int = 0) -> dict[str, float]:
        """Seconds and gap of one launch, compiled before; 2-opt where `tenure` is None."""
        for steps in (1, iterations):
            searches = self.multistart.Searches(self.form, layout, self.starts[:members], seed)
            begin = time.perf_counter()
            searches.launch(steps, tenure)
            cost, permutation = searches.best()
            seconds = time.perf_counter() - begin
        assert self.problem.objective(permutation) == cost
        return {"seconds": seconds, "gap_pct": gap(float(cost), self.best)}

    def add(self, part: str, figure: int, **row: Any) -> None:
        """A row of a figure."""
        self.rows.add(part=part, figure=figure, instance=self.name, n=self.problem.n, **row)

    def two_opt(self, parts: set[str]) -> None:
        """Figures 5 and 6: threads per block, matrices in shared memory."""
        from kernels.qap.multistart.gpu_geometry import TILES

        steps = 1000 * self.problem.n
        for tile in TILES if "threads" in parts else ():
            layout = self.multistart.layout(self.form, tile)
            if layout is not None:
                found = self.timed(layout, 6144, steps, None)
                self.add("threads", 5, threads=layout.threads, tile=list(tile), **found)
        for shared in (False, True) if "shared" in parts else ():
            layout = self.multistart.layout(self.form, self.usual.tile, shared)
            if layout is not None:
                found = self.timed(layout, 6144, steps, None)
                self.add("shared", 6, matrices_shared=shared, blocks_per_sm=layout.blocks, **found)

    def tabu(self, parts: set[str]) -> None:
        """Figures 7 to 9: neighbourhoods, search instances, random seeds."""
        for iterations in (50, 100, 200, 400, 800, 1600, 3200) if "neighbourhoods" in parts else ():
            found = self.timed(self.usual, 256, iterations, self.tenure)
            self.add("neighbourhoods", 7, iterations=iterations, **found)
        for members in (1, 4, 16, 64, 256, 1024, 4096) if "starts" in parts else ():
            self.add("starts", 8, starts=members, **self.timed(self.usual, members, 400, self.tenure))
        best_of = {"seconds": 0.0, "gap_pct": np.inf}
        for seed in range(8) if "seeds" in parts else ():
            found = self.timed(self.usual, 256, 400, self.tenure, seed)
            best_of = {
                "seconds": best_of["seconds"] + found["seconds"], "gap_pct": min(best_of["gap_pct"], found["gap_pct"])
            }  # fmt: skip
            self.add("seeds", 9, seeds=seed + 1, **best_of)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--data")
    parser.add_argument("--instances", default="")
    parser.add_argument("--parts", default="speed,bounds,peers,curves")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rows", default="qap")
    arguments = parser.parse_args()
    rows, where, parts = Rows(arguments.rows), folder(arguments.data), set(arguments.parts.split(","))
    names = arguments.instances.split(",") if arguments.instances else PROVED if parts == {"proofs"} else PAPER
    instances = {name: found for name in names if (found := load(where, name)) is not None}
    if not instances:
        rows.add(part="none", note=f"no QAPLIB instances in {where}: name a directory with --data")
        return
    device = arguments.device
    if device == "cpu":
        CARD.warm_up("cpu")
    if "speed" in parts:
        speed(rows, instances, device)
    if "bounds" in parts:
        lower_bounds(rows, instances, device)
    if "cores" in parts:
        cores(rows, instances)
    if "twoopt" in parts:
        twoopt(rows, instances, device)
    if "peers" in parts:
        peers(rows, instances)
    if "proofs" in parts:
        proofs(rows, instances, device, arguments.seconds)
    if parts & {"threads", "shared", "neighbourhoods", "starts", "seeds"}:
        for name, (problem, best) in instances.items():
            figures = Sensitivity(rows, name, problem, best)
            figures.two_opt(parts)
            figures.tabu(parts)
    if "curves" in parts:
        seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
        curves(rows, instances, device, arguments.seconds, seeds)


if __name__ == "__main__":
    main()
