"""The branch and bound of branch.cu from the host: levels of nodes on the device, deepest first."""

import functools
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cupy
import cupyx
import numpy as np

from kernels.gpu_room import bytes_free
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Bytes, Indices, Integers, Integers32, Mask, Records
from kernels.qap.bounds.rlt1 import DualAscent
from kernels.qap.exact import branch, gpu_forms, symmetry
from kernels.qap.exact.layout import ASCEND_ARGS, FOUND, TASK, WIDEST
from kernels.qap.exact.lines import TreeLines

LARGEST_N = 32
"""A warp holds a row of pairs: a lane per location."""
LEAF = 3
ROOM = 1 << 25
"""Room and prices stay below this, so that a path of 32 of them fits int32."""
BATCH = 8192
SHARE_OF_MEMORY = 0.4
SWEEPS, PATIENCE, SHARP = 30, 7, 1.0
TOP_LEVELS, TOP_SIZE, TOP_SWEEPS, TOP_PATIENCE = 3, 19, 60, 20
"""On so many levels below the root, or down to so many facilities left where that is lower, nodes are few, and the
ascent goes on for longer: all below gains by it."""

NODE = np.dtype(
    [("slot", np.int32), ("line", np.int32), ("bound", np.int64), ("leaders", np.int32, WIDEST)]
    + [(name, np.int8, WIDEST) for name in ("facilities", "locations", "fixed")]
)
"""`facilities`, `locations`: what is left, by local index; `fixed`: location by facility, -1 where left."""


def warm_up() -> None:
    """Compile the tree's kernels, which are the same for every problem."""
    gpu_forms.compiled()


@dataclass
class Level:
    """Nodes with `size` facilities left: their slots on the device, and what waits to be branched on."""

    size: int
    capacity: int
    free: list[int] = field(default_factory=list)
    waiting: Records = field(default_factory=lambda: np.empty(0, NODE))

    def __post_init__(self) -> None:
        self.free = list(range(self.capacity))

    @property
    def work(self) -> int:
        """About how many children wait to be made."""
        return len(self.waiting) * self.size

    @functools.cached_property
    def arena(self) -> Any:
        """The slots; taken from the device when the tree first comes this deep."""
        return cupy.empty(self.capacity * slot_size(self.size), cupy.int32)


@dataclass
class Flight:
    """A launch under way: its parents' slots and its children, and where the answer lands."""

    level: Level
    parents: list[int]
    children: Records
    limit: int
    answer: Integers32
    landed: Any
    alive: tuple[Any, ...]


def slot_size(m: int) -> int:
    """Numbers of a node with m facilities left."""
    return m * m + m * (m - 1) // 2 * m * m


def fits(problem: QuadraticAssignment) -> bool:
    """True when the tree can be grown on a device."""
    return LEAF < problem.n <= LARGEST_N and problem.integer


class DeviceTree:
    """A tree under way.

    Attributes:
        incumbent: (1,) int64, shared with whoever searches; best: a better permutation that a leaf was, if any.
        nodes: children made so far.
    """

    def __init__(
        self, problem: QuadraticAssignment, linear: Integers, ascent: DualAscent, incumbent: Integers, step: int,
        stop: Bytes | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.linear, self.incumbent, self.step = problem, linear, incumbent, step
        self.best: tuple[int, Indices] | None = None
        self.nodes = 0
        self.sweeps, self.patience, self.sharp, self.batch = SWEEPS, PATIENCE, SHARP, BATCH
        self.top, self.top_sweeps = max(TOP_LEVELS, problem.n - TOP_SIZE), TOP_SWEEPS
        self.top_patience = TOP_PATIENCE
        gap = int(incumbent[0]) * ascent.scale - ascent.total
        self.divisor = 1
        while gap // self.divisor + 1 >= ROOM:
            self.divisor *= 2
        self._lines = TreeLines(problem.n, symmetry.automorphisms(problem, stop))
        self._ascent = ascent
        self._levels: dict[int, Level] = {}
        self._flying: deque[Flight] = deque()

    @functools.cached_property
    def _forms(self) -> dict[int, tuple[Any, gpu_forms.TreeForm]]:
        """By facilities left: the kernel that makes such children, and its form."""
        return gpu_forms.by_size(range(LEAF, self.problem.n))

    @property
    def limit(self) -> int:
        """The greatest bound that may still hide something better than the incumbent, in the prices' units."""
        return ((int(self.incumbent[0]) - self.step) * self._ascent.scale) // self.divisor

    def run(self, stop: Bytes) -> bool:
        """Grow the tree to its end; False when `stop` (1,) cut it short."""
        if self._ascent.total // self.divisor > self.limit:
            return True
        with cupy.cuda.Stream(non_blocking=True) as stream:  # beside the population's launches, not behind them
            self._plant()
            while not stop[0]:
                level = self._next()
                if level is not None:
                    self._launch(level)
                elif not self._flying:
                    return True
                if self._flying and (level is None or len(self._flying) > 1):
                    self._collect(self._flying.popleft())
            stream.synchronize()  # what still runs writes into memory that is about to be given back
        return False

    def _plant(self) -> None:
        """The root, from the ascent on the host, and empty levels below it."""
        n, ascent = self.problem.n, self._ascent
        budget = SHARE_OF_MEMORY * bytes_free() / (4 * sum(map(slot_size, range(LEAF, n))))
        capacity = int(min(2 * self.batch, budget))
        self.batch = min(self.batch, capacity // 2)
        self._levels = {m: Level(m, capacity) for m in range(LEAF, n)}
        root = Level(n, 1)
        room = self.limit - ascent.total // self.divisor
        above = branch.root(ascent)
        leaders, prices = (np.minimum(x // self.divisor, room + 1) for x in (above.leaders, above.prices))
        root.arena[:] = cupy.asarray(np.concatenate((leaders.ravel(), prices.ravel())).astype(np.int32))
        root.waiting = self._topmost(leaders, room)
        self._levels[n] = root

    def _topmost(self, leaders: Integers, room: int) -> Records:
        """(1,) NODE: the root, with the line that symmetry leaves the least work below."""
        n = self.problem.n
        nodes = np.zeros(1, NODE)
        nodes["facilities"][0, :n] = nodes["locations"][0, :n] = np.arange(n)
        nodes["fixed"] = -1
        nodes["bound"] = self._ascent.total // self.divisor
        self._lines.choose(nodes[0], leaders, room)
        return nodes

    def _next(self) -> Level | None:
        """The deepest level that fills a launch, else the one with most to do and room below it, else the deepest.

        While a launch is under way nothing small is taken: its children will make more of it.
        """
        waiting = [level for level in self._levels.values() if level.waiting.size]
        waiting.sort(key=lambda level: level.size)
        roomy = [level for level in waiting if len(self._levels[level.size - 1].free) >= self.batch]
        for level in roomy:
            if level.work >= 4 * self.batch:
                return level
        most = max(roomy, key=lambda level: level.work, default=None)
        if self._flying and (most is None or most.work < self.batch):
            return None
        if most is not None and most.work >= self.batch:
            return most
        return waiting[0] if waiting else None

    def _launch(self, level: Level) -> None:
        """Make children of as many nodes as the level below has slots for."""
        m, below = level.size, self._levels[level.size - 1]
        limit = self.limit
        most = min(self.batch, len(below.free))
        if most < m:
            raise MemoryError(f"{self.batch} nodes a launch are too few")
        count = len(level.waiting)
        taken = level.waiting[max(0, count - most) :]
        open_ = self._open(taken, m, limit)
        used = np.cumsum(open_.sum(axis=1)[::-1])  # from the end of the stack
        keep = max(1, int(np.searchsorted(used, most, side="right")))
        taken, open_ = taken[-keep:], open_[-keep:]
        level.waiting = level.waiting[: count - keep]
        children, tasks = self._children(taken, open_, m, limit, below)
        if len(tasks):
            self._flying.append(self._ascend(level, taken["slot"].tolist(), children, tasks, limit))
        else:
            level.free.extend(taken["slot"].tolist())

    def _open(self, nodes: Records, m: int, limit: int) -> Mask:
        """(nodes, m) bool: places of each node's line that may hold something better, one of each class of equals."""
        open_: Mask = nodes["leaders"][:, :m] <= (limit - nodes["bound"])[:, None]
        for at in self._lines.symmetric(nodes):
            node, line = nodes[at], int(nodes["line"][at])
            open_[at] &= self._lines.first_of_equals(node, "locations" if line < m else "facilities", m)
        return open_

    def _children(self, parents: Records, open_: Mask, m: int, limit: int, below: Level) -> tuple[Records, Records]:
        at, place = np.nonzero(open_)
        children, tasks = np.empty(at.size, NODE), np.empty(at.size, TASK.dtype)
        line = parents["line"][at]
        of_row = line < m
        tasks["i"], tasks["j"] = np.where(of_row, line, place), np.where(of_row, place, line - m)
        tasks["parent"] = parents["slot"][at]
        tasks["slot"] = [below.free.pop() for _ in range(at.size)]
        children["slot"] = tasks["slot"]
        tasks["room"] = limit - parents["bound"][at]
        index = np.arange(WIDEST)
        each = np.arange(at.size)
        children["fixed"] = parents["fixed"][at]
        facility = parents["facilities"][at, tasks["i"]]
        children["fixed"][each, facility] = parents["locations"][at, tasks["j"]]
        for name, gone in (("facilities", "i"), ("locations", "j")):
            source = np.minimum(index + (index >= tasks[gone][:, None]), WIDEST - 1)
            children[name] = np.take_along_axis(parents[name][at], source, axis=1)
        self.nodes += at.size
        return children, tasks

    def _ascend(self, level: Level, parents: list[int], children: Records, tasks: Records, limit: int) -> Flight:
        """Queue the launch and the way back of what it finds."""
        below, count = self._levels[level.size - 1], len(tasks)
        found = cupy.empty((count, FOUND), cupy.int32)
        device_tasks = cupy.asarray(tasks.view(np.int32))
        buffers = {"parents": level.arena, "arena": below.arena, "tasks": device_tasks, "found": found}
        top = self.problem.n - below.size <= self.top
        sweeps, patience = (self.top_sweeps, self.top_patience) if top else (self.sweeps, self.patience)
        rule = {"sweeps": sweeps, "patience": patience, "sharp": self.sharp}
        kernel, way = self._forms[below.size]
        arguments = ASCEND_ARGS.packed(**buffers, **rule, m=below.size, group=way.group)
        kernel((count,), (32 * below.size,), arguments, shared_mem=way.shared)
        answer: Integers32 = cupyx.empty_pinned(found.shape, np.int32)
        found.get(out=answer, blocking=False)
        landed = cupy.cuda.Event(disable_timing=True)
        landed.record()
        return Flight(level, parents, children, limit, answer, landed, (found, device_tasks))

    def _collect(self, flight: Flight) -> None:
        """Wait for a launch; keep the children that may hold something better."""
        flight.landed.synchronize()
        below, answer, children = self._levels[flight.level.size - 1], flight.answer, flight.children
        flight.level.free.extend(flight.parents)
        alive = answer[:, 0] >= 0
        below.free.extend(children["slot"][~alive].tolist())
        children, answer = children[alive], answer[alive]
        children["bound"], children["line"] = flight.limit - answer[:, 0], answer[:, 1]
        children["leaders"] = answer[:, 2:]
        for at in self._lines.symmetric(children):
            start = int(children["slot"][at]) * slot_size(below.size)
            leaders = below.arena[start : start + below.size**2].get().reshape(below.size, below.size)
            self._lines.choose(children[at], leaders.astype(np.int64), int(answer[at, 0]))
        if below.size == LEAF:
            for child in children:
                self._finish(child)
            below.free.extend(children["slot"].tolist())
        else:
            below.waiting = np.concatenate((below.waiting, children))

    def _finish(self, node: Records) -> None:
        """Every way to place the last three."""
        best = np.full(self.problem.n + 1, -1, np.int64)
        best[0] = self.incumbent[0]
        facilities, locations = (node[name][:LEAF].astype(np.int64) for name in ("facilities", "locations"))
        fixed = node["fixed"][: self.problem.n].astype(np.int64)
        branch.finish(
            facilities, locations, fixed, self.problem.flow, self.problem.distance, self.linear, self.incumbent, best
        )
        if best[1] >= 0:
            self.best = int(best[0]), best[1:].copy()
