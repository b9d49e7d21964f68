"""The proof that runs beside the search: dual ascent at the root, then the tree, on threads or on a device."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Integers
from kernels.qap.bounds import rlt1
from kernels.qap.bounds.lower import Bound
from kernels.qap.exact import branch, symmetry
from kernels.qap.exact.log import Log
from kernels.qap.exact.planting import Ground, GrownTree, Planter
from kernels.qap.form import penalised

SMALLEST_N = 4
LARGEST_N = 36
"""Beyond this no tree ends in minutes, and a sweep takes a tenth of a second."""
ROOT_SWEEPS = 400
TASKS = 64
"""Nodes from which each is a thread's own."""
OPEN_BYTES = 1 << 29
"""Of the nodes that lie open then: beyond n = 24 one level is all that fits."""


class Proof:
    """Branch and bound in the background; `finished` once the incumbent is proved optimal (or has been replaced).

    Attributes:
        incumbent: (1,) int64, the best objective known to anyone; lower it when the search improves.
        best: a better permutation that the tree met, with its objective; None while there is none.
        bound: the root's bound so far.
        step: by so much a permutation has to be better than the incumbent for the tree to look for it: what objectives
            are multiples of. Where the problem is rounded by up to `slack`, a tree looks at all that may be as good as
            the incumbent before rounding: the step is below 0.
        log_bytes: of a log at most; subtrees that do not fit are logged as open.
        resumed: a log to go on with, closed against an incumbent that is no better than `objective`.
    """

    def __init__(
        self, problem: QuadraticAssignment, objective: int, threads: int, plant: Planter | None = None,
        slack: int = 0, log_bytes: int = 0, resumed: Log | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.threads, self._plant = problem, threads, plant
        self.step = max(1, problem.granularity) if slack == 0 else -2 * slack
        self._log_bytes, self._logged, self._resumed = log_bytes, 0, resumed
        self._root: branch.Node | None = None
        self._planted: GrownTree | None = None
        self.incumbent = np.array([objective], np.int64)
        self.bound: Bound | None = None
        self.best: tuple[int, Integers] | None = None
        self.finished = False
        self._counts: list[Integers] = []
        self._stop = np.zeros(1, np.uint8)
        self._linear = np.zeros_like(problem.flow)
        priced = penalised(problem).linear
        if priced is not None:
            self._linear = priced
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def nodes(self) -> int:
        """Nodes of the tree so far."""
        return sum(int(count[0]) for count in self._counts) + (self._planted.nodes if self._planted else 0)

    @property
    def log(self) -> Log | None:
        """The tree so far; read it once the proof has ended. None where no tree was grown here, or none is kept."""
        if self._root is None and self._planted is not None and self._planted.log is not None:
            return self._planted.log
        if self._root is None or not self._log_bytes:
            return self._resumed
        return Log(self._root.record, int(self.incumbent[0]), self._resumed.table if self._resumed else [])

    @property
    def resumed(self) -> bool:
        """Whether it went on with an earlier tree."""
        return self._resumed is not None

    def wait(self, seconds: float) -> None:
        """Until the tree has ended, but no longer than `seconds`."""
        self._thread.join(seconds)

    def stop(self) -> None:
        """End the tree early and wait for its threads (one sweep each)."""
        self._stop[0] = 1
        self._thread.join()

    def _run(self) -> None:
        step = self.step
        if self._resumed is not None and not self._resumed.root.open:
            self.finished = True  # what is left is to check it
            return
        ascent = rlt1.DualAscent(self.problem)
        while not self._stop[0]:
            ascent.step(lambda: self._stop[0])
            done = ascent.stalled() or ascent.sweeps >= ROOT_SWEEPS or ascent.value > int(self.incumbent[0]) - step
            if done or ascent.sweeps % 20 == 0 or self._stop[0]:
                self.bound = ascent.bound()
            if done:
                break
        if self._stop[0]:
            return
        try:
            self.finished = self._tree(ascent, step) if self._plant is None else self._elsewhere(ascent, step)
        except MemoryError:  # of the device: its share went to somebody else
            self.finished = self._tree(ascent, step)

    def _elsewhere(self, ascent: rlt1.DualAscent, step: int) -> bool:
        assert self._plant is not None
        kept = self._log_bytes, self._resumed
        ground = Ground(self.problem, self._linear, ascent, self.incumbent, step, *kept)
        self._planted = self._plant(ground, self._stop)
        done = self._planted.run(self._stop)
        self.best = self._planted.best
        return done

    def _tree(self, ascent: rlt1.DualAscent, step: int) -> bool:
        scale = ascent.scale
        if self._resumed is None:
            self._root = branch.root(ascent)
            nodes = self._widen(self._root, step, scale)
        else:
            self._root = replace(branch.root(ascent), record=self._resumed.root)
            nodes = self._reopened(self._root, step, scale)
        nodes.sort(key=lambda node: node.bound)
        with ThreadPoolExecutor(self.threads) as pool:
            outcomes = list(pool.map(lambda node: self._subtree(node, step, scale), nodes))
        return all(outcomes)

    def _limit(self, step: int, scale: int) -> int:
        return (int(self.incumbent[0]) - step) * scale

    def _widen(self, root: branch.Node, step: int, scale: int) -> list[branch.Node]:
        alike = symmetry.automorphisms(self.problem, self._stop)
        nodes = [root]
        while 0 < len(nodes) < TASKS and len(nodes[0].facilities) > 4 and not self._stop[0]:
            if len(nodes) > 1 and _bytes_below(nodes) > OPEN_BYTES:
                break
            limit = self._limit(step, scale)
            self._counts.append(np.array([len(nodes)]))
            nodes = [child for node in nodes for child in branch.split(node, limit, alike, self._stop)]
        return nodes

    def _reopened(self, root: branch.Node, step: int, scale: int) -> list[branch.Node]:
        """Nodes of a log that are open, or have something open below them: enough of them for all threads."""
        nodes = [root] if root.record.open else []
        while 0 < len(nodes) < TASKS and any(node.record.children for node in nodes) and not self._stop[0]:
            if len(nodes) > 1 and _bytes_below(nodes) > OPEN_BYTES:
                break
            limit, before, nodes = self._limit(step, scale), nodes, []
            for node in before:
                nodes += branch.reopen(node, limit, self._stop) if node.record.children else [node]
        return nodes

    def _subtree(self, node: branch.Node, step: int, scale: int) -> bool:
        if node.record.children:  # of a log that goes deeper
            if self._stop[0]:
                return False
            below = branch.reopen(node, self._limit(step, scale), self._stop)
            return sum(not self._subtree(child, step, scale) for child in below) == 0  # each is to be begun
        best = np.full(self.problem.n + 1, -1, np.int64)
        best[0] = self.incumbent[0]
        self._counts.append(np.zeros(1, np.int64))
        log, at = np.empty(max(0, self._log_bytes - self._logged), np.uint8), np.zeros(1, np.int64)
        done = branch.explore(
            node.leaders, node.prices, node.bound, node.facilities, node.locations, node.fixed,
            self.problem.flow, self.problem.distance, self._linear, self.incumbent, best, step, scale,
            self._counts[-1], self._stop, log, at,
        )  # fmt: skip
        if int(at[0]) <= log.size:
            self._logged += int(at[0])
            node.record.raw = log[: int(at[0])].tobytes()
        if best[1] >= 0 and (self.best is None or best[0] < self.best[0]):
            self.best = int(best[0]), best[1:].copy()
        return bool(done)


def _bytes_below(nodes: list[branch.Node]) -> int:
    """Of the children of these nodes, if none is cut off."""
    size = len(nodes[0].facilities)
    return len(nodes) * size * 4 * (size - 1) ** 4


def provable(problem: QuadraticAssignment) -> bool:
    """True when a tree is worth growing: integer data and small n."""
    return SMALLEST_N <= problem.n <= LARGEST_N and rlt1.fits(problem)
