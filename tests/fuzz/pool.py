"""Many processes, one share of the cases each; a process that hangs or dies is a finding, and is replaced."""

import importlib
import multiprocessing as mp
import os
import queue
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernels import SOLVERS
from kernels.certificates import boxed
from kernels.certificates.metrics import boxes
from tests.fuzz.draw import Seeded
from tests.fuzz.families import FAMILIES, draw_case

SHARES = {"lap": 5, "auction": 5, "uot": 4, "qap": 1, "gromov": 1, "barycenter": 1, "lowrank": 1, "multimarginal": 1}
"""Cases of each solver in a round; cases of qap and gromov cost the most time."""
HANGS_S = 90.0
BATCH = 50
LOST = 70
"""Exit status of a process whose GPU answers no more."""
ON_THE_DEVICE = (
    "kernels.certificates.gpu.gpu_assignment",
    "kernels.certificates.gpu.gpu_auction",
    "kernels.certificates.gpu.gpu_transport",
    "kernels.certificates.metrics.gpu_points",
)
"""The certificates that leave small problems to the CPU's, unless their FEWEST is 0."""
BOXED = 16
"""Pairs of points from which boxes are to rule some out."""
KEPT = 400
"""Failing cases of which more than a count is sent."""


@dataclass(frozen=True)
class Plan:
    """What is run: how many cases or how long, of which solvers, from which seed."""

    seed: int
    cases: int
    seconds: float
    solvers: tuple[str, ...]
    device: str = "cpu"
    jobs: int = 1
    limit_s: float = 0.5
    mutate: bool = True
    url: str = ""

    def solver(self, k: int) -> str:
        """Whose case number k is."""
        order = [name for name in self.solvers for _ in range(SHARES[name])]
        return order[(k * 7919) % len(order)] if len(order) % 7919 else order[k % len(order)]


@dataclass(frozen=True)
class Failure:
    """A case that failed: enough to draw it again."""

    solver: str
    k: int
    family: str
    kind: str
    why: str


@dataclass
class Tally:
    """Counts by (solver, family, outcome), and the failures."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    mutations: Counter[tuple[str, str]] = field(default_factory=Counter)
    scaled: Counter[tuple[str, bool]] = field(default_factory=Counter)
    certified: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By solver, and by where the certificate was worked out."""
    seconds: float = 0.0

    def add(self, other: "Tally") -> None:
        """Take over another's counts."""
        self.counts.update(other.counts)
        self.mutations.update(other.mutations)
        self.scaled.update(other.scaled)
        self.certified.update(other.certified)
        self.failures += other.failures[: max(0, KEPT * 10 - len(self.failures))]

    @property
    def cases(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def of(self, kind: str) -> int:
        """How many came out so."""
        return sum(count for (_, _, outcome), count in self.counts.items() if outcome == kind)


def numbers(plan: Plan, worker: int, first: int = 0) -> Iterator[int]:
    """A worker's case numbers, from the first one after `first`."""
    k = worker
    while k < plan.cases:
        if k >= first:
            yield k
        k += plan.jobs


def case_of(plan: Plan, k: int) -> Any:
    """Case number k of a plan."""
    solver = plan.solver(k)
    return draw_case(Seeded(plan.seed, list(FAMILIES).index(solver), k), solver, plan.device)


def work(plan: Plan, worker: int, first: int, seconds: float, at: Any, out: Any) -> None:
    """One process: its cases, one after another, for so long once it is warm; `at` says which one it is at."""
    from tests.fuzz.trial import try_case

    warm_up(plan)
    tally, until = Tally(), time.time() + seconds
    for k in numbers(plan, worker, first):
        if time.time() > until:
            break
        at.value = k
        try_case(plan, k, tally)
        if plan.device == "gpu" and device_is_lost():
            out.put((worker, tally))
            out.close()
            out.join_thread()
            os._exit(LOST)  # as a worker's child does: no further call of this process can succeed
        if tally.cases >= BATCH:
            out.put((worker, tally))
            tally = Tally()
    at.value = -1
    out.put((worker, tally))
    out.put((worker, None))


def device_is_lost() -> bool:
    """Whether the last case broke this process's CUDA context."""
    import cupy

    try:
        cupy.cuda.runtime.deviceSynchronize()
    except cupy.cuda.runtime.CUDARuntimeError:
        return True
    return False


def warm_up(plan: Plan) -> None:
    """Compile before anything is timed."""
    for solver in () if plan.url else plan.solvers:
        SOLVERS[solver].warm_up(plan.device)  # type: ignore[arg-type]
    prove_small_ones_by_boxes()
    if plan.device == "gpu" and not plan.url:
        certify_small_ones_on_the_device()


def prove_small_ones_by_boxes() -> None:
    """As larger clouds of points are; those of fewer pairs still go by the sweep over all of them."""
    boxed.FEWEST, boxes.LEAF, boxes.BLOCK = BOXED, 2, 4


def certify_small_ones_on_the_device() -> None:
    """However small a problem is, the device's certificate is asked first."""
    for name in ON_THE_DEVICE:
        importlib.import_module(name).FEWEST = 0  # type: ignore[attr-defined]


class Pool:
    """The processes of one run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._context = mp.get_context("spawn")
        self._out = self._context.Queue()
        self._workers: dict[int, tuple[Any, Any, float, int]] = {}

    def run(self, heard: Any = None) -> Tally:
        """Everything that the plan asks for; `heard(tally)` is called now and then."""
        begun, whole = time.time(), Tally()
        for worker in range(self.plan.jobs):
            self._start(worker, 0, self.plan.seconds)
        while self._workers:
            try:
                worker, tally = self._out.get(timeout=1.0)
                if tally is None:
                    self._workers.pop(worker)[0].join()
                else:
                    whole.add(tally)
            except queue.Empty:
                pass
            whole.seconds = time.time() - begun
            self._look_after(whole)
            if heard is not None:
                heard(whole)
        return whole

    def _start(self, worker: int, first: int, seconds: float) -> None:
        at = self._context.Value("q", -2)
        process = self._context.Process(target=work, args=(self.plan, worker, first, seconds, at, self._out))
        process.start()
        self._workers[worker] = (process, at, time.time(), -2)

    def _look_after(self, whole: Tally) -> None:
        """Replace a process that died, or that has been at one case for too long."""
        for worker, (process, at, since, seen) in list(self._workers.items()):
            if at.value != seen:
                self._workers[worker] = (process, at, time.time(), at.value)
                continue
            died = not process.is_alive() and process.exitcode != 0
            if not died and (time.time() - since < HANGS_S or at.value < 0):
                continue
            k = at.value
            if died and process.exitcode == LOST:  # its case is counted
                self._start(worker, k + 1, max(0.0, self.plan.seconds - whole.seconds))
                continue
            why = f"the process died with {process.exitcode}" if died else f"no answer after {HANGS_S:g} s"
            process.kill()
            process.join()
            kind = "refused" if died else "slow"
            solver = self.plan.solver(max(k, 0))
            whole.counts[solver, "?", kind] += 1
            whole.failures.append(Failure(solver, k, "?", kind, why))
            if k < 0:
                del self._workers[worker]
            else:
                self._start(worker, k + 1, max(0.0, self.plan.seconds - whole.seconds))
