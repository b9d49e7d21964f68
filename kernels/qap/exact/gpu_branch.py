"""The branch and bound of branch.cu from the host: levels of nodes on the device, deepest first.

A node is kept in each form that the problem is given in (priced.py), one or two, and is done where one form says so.
"""

import functools
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cupy
import cupyx
import numpy as np

from kernels import cuda
from kernels.problems import QuadraticAssignment
from kernels.problems.arrays import Bytes, Indices, Integers, Integers32, Mask, Records
from kernels.qap.bounds.lower import Bound
from kernels.qap.bounds.rlt1 import DualAscent
from kernels.qap.exact import branch, priced, symmetry
from kernels.qap.exact.layout import ASCEND_ARGS, FOUND, JOIN_ARGS, TASK, WIDEST

SOURCE = "qap/exact/branch.cu"
LARGEST_N = 32
"""A warp holds a row of pairs: a lane per location."""
LEAF = 3
ROOM = 1 << 25
"""Room and prices stay below this, so that a path of 32 of them fits int32."""
BATCH = 8192
SHARE_OF_MEMORY = 0.4
SWEEPS, PATIENCE, SHARP = 30, 7, 1.0

FORMS = 2
"""Of the problem, at most."""
NODE = np.dtype(
    [("slot", np.int32), ("line", np.int32), ("bound", np.int64, FORMS), ("leaders", np.int32, (FORMS, WIDEST))]
    + [(name, np.int8, WIDEST) for name in ("facilities", "locations", "fixed")]
)
"""`facilities`, `locations`: what is left, by local index; `fixed`: location by facility, -1 where left."""


def warm_up() -> None:
    """Compile the tree's kernels, which are the same for every problem."""
    for name in ("ascend", "join", "layout"):
        cuda.kernel(SOURCE, name, cooperative=False)


@dataclass
class Level:
    """Nodes with `size` facilities left: their slots on the device, and what waits to be branched on."""

    size: int
    capacity: int
    forms: int = 1
    free: list[int] = field(default_factory=list)
    waiting: Records = field(default_factory=lambda: np.empty(0, NODE))

    def __post_init__(self) -> None:
        self.free = list(range(self.capacity))

    @property
    def work(self) -> int:
        """About how many children wait to be made."""
        return len(self.waiting) * self.size

    @functools.cached_property
    def arenas(self) -> list[Any]:
        """The slots by form; taken from the device when the tree first comes this deep."""
        return [cupy.empty(self.capacity * slot_size(self.size), cupy.int32) for _ in range(self.forms)]


@dataclass
class Flight:
    """A launch under way: its parents' slots and its children, and where the answer lands."""

    level: Level
    parents: list[int]
    children: Records
    limits: Integers
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
        stop: Bytes | None = None, relaxed: Bound | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.linear, self.incumbent, self.step = problem, linear, incumbent, step
        self.best: tuple[int, Indices] | None = None
        self.nodes = 0
        self.sweeps, self.patience, self.sharp, self.batch = SWEEPS, PATIENCE, SHARP, BATCH
        self._forms = [] if relaxed is None else [priced.of_semidefinite(relaxed)]  # first: it closes most
        self._forms.append(priced.of_ascent(ascent))
        self._divisors = [_divisor(int(incumbent[0]) * form.scale - form.total) for form in self._forms]
        self._alike = symmetry.automorphisms(problem, stop)
        self._classes: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        self._kernel = cuda.kernel(SOURCE, "ascend", cooperative=False)
        self._join = cuda.kernel(SOURCE, "join", cooperative=False)
        out = cupy.zeros(1, cupy.int32)
        cuda.kernel(SOURCE, "layout", cooperative=False)((1,), (1,), (out,))
        self._shared = int(out[0])
        self._kernel.max_dynamic_shared_size_bytes = self._bytes(problem.n)
        self._levels: dict[int, Level] = {}
        self._flying: deque[Flight] = deque()

    def _bytes(self, m: int) -> int:
        return self._shared + 4 * (m - 1) * m * (m | 1)

    @property
    def limits(self) -> Integers:
        """By form, the greatest bound that may still hide something better than the incumbent, in the prices' units."""
        most = int(self.incumbent[0]) - self.step
        return np.array([most * form.scale // by for form, by in zip(self._forms, self._divisors, strict=True)])

    def run(self, stop: Bytes) -> bool:
        """Grow the tree to its end; False when `stop` (1,) cut it short."""
        if (self._totals() > self.limits).any():
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

    def _totals(self) -> Integers:
        return np.array([form.total // by for form, by in zip(self._forms, self._divisors, strict=True)])

    def _plant(self) -> None:
        """The root, from the host, and empty levels below it."""
        n, forms = self.problem.n, len(self._forms)
        slots = 4 * forms * sum(map(slot_size, range(LEAF, n)))
        capacity = int(min(2 * self.batch, SHARE_OF_MEMORY * cupy.cuda.runtime.memGetInfo()[0] / slots))
        self.batch = min(self.batch, capacity // 2)
        self._levels = {m: Level(m, capacity, forms) for m in range(LEAF, n)}
        root, node = Level(n, 1, forms), np.zeros(1, NODE)
        rooms, above = self.limits - self._totals(), []
        for form, by, room, arena in zip(self._forms, self._divisors, rooms, root.arenas, strict=True):
            leaders, prices = (np.minimum(x // by, room + 1) for x in (form.leaders, form.prices))
            arena[:] = cupy.asarray(np.concatenate((leaders.ravel(), prices.ravel())).astype(np.int32))
            above.append(leaders)
        line = _joint_line(above, rooms, self.sharp)
        node["line"], node["bound"][0, :forms] = line, self._totals()
        node["leaders"][0, :forms, :n] = [x[line] if line < n else x[:, line - n] for x in above]
        node["facilities"][0, :n] = node["locations"][0, :n] = np.arange(n)
        node["fixed"] = -1
        root.waiting = node
        self._levels[n] = root

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
        limits = self.limits
        most = min(self.batch, len(below.free))
        if most < m:
            raise MemoryError(f"{self.batch} nodes a launch are too few")
        count = len(level.waiting)
        taken = level.waiting[max(0, count - most) :]
        open_ = self._open(taken, m, limits)
        used = np.cumsum(open_.sum(axis=1)[::-1])  # from the end of the stack
        keep = max(1, int(np.searchsorted(used, most, side="right")))
        taken, open_ = taken[-keep:], open_[-keep:]
        level.waiting = level.waiting[: count - keep]
        children, tasks = self._children(taken, open_, m, below)
        if len(tasks):
            self._flying.append(self._ascend(level, taken["slot"].tolist(), children, tasks, limits))
        else:
            level.free.extend(taken["slot"].tolist())

    def _open(self, nodes: Records, m: int, limits: Integers) -> Mask:
        """(nodes, m) bool: places of each node's line that may hold something better, one of each class of equals."""
        forms = limits.size
        rooms = limits - nodes["bound"][:, :forms]
        open_: Mask = (nodes["leaders"][:, :forms, :m] <= rooms[:, :, None]).all(axis=1)
        for at in np.flatnonzero((nodes["fixed"] >= 0).sum(axis=1) <= 3) if self._symmetric else ():
            node, line = nodes[at], int(nodes["line"][at])
            open_[at] &= self._first_of_equals(node, "locations" if line < m else "facilities", m)
        return open_

    def _first_of_equals(self, node: Records, side: str, m: int) -> Mask:
        """(m,) bool: one of each class of the node's locations (facilities) that symmetry makes equal."""
        fixed = node["fixed"][: self.problem.n].astype(np.int64)
        places = np.flatnonzero(fixed >= 0)
        held = np.sort(fixed[places]) if side == "locations" else places
        key = (side, tuple(held.tolist()))
        if key not in self._classes:
            group = self._alike[1 if side == "locations" else 0]
            self._classes[key] = sorted(symmetry.representatives(node[side][:m].astype(np.int64), group, held))
        return np.isin(node[side][:m], self._classes[key])

    @property
    def _symmetric(self) -> bool:
        return any(len(group) > 1 for group in self._alike)

    def _children(self, parents: Records, open_: Mask, m: int, below: Level) -> tuple[Records, Records]:
        """Children, their bounds those of the parents, and tasks, which lack the room."""
        at, place = np.nonzero(open_)
        children, tasks = np.empty(at.size, NODE), np.empty(at.size, TASK.dtype)
        line = parents["line"][at]
        of_row = line < m
        tasks["i"], tasks["j"] = np.where(of_row, line, place), np.where(of_row, place, line - m)
        tasks["parent"] = parents["slot"][at]
        tasks["slot"] = [below.free.pop() for _ in range(at.size)]
        children["slot"] = tasks["slot"]
        children["bound"] = parents["bound"][at]
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

    def _ascend(self, level: Level, parents: list[int], children: Records, tasks: Records, limits: Integers) -> Flight:
        """Queue the launches and the way back of what they find."""
        below, count, forms = self._levels[level.size - 1], len(tasks), limits.size
        found = cupy.empty((forms, count, FOUND), cupy.int32)
        rule = {"sweeps": self.sweeps, "patience": self.patience, "sharp": self.sharp}
        given = []
        for k in range(forms):
            tasks["room"] = limits[k] - children["bound"][:, k]
            given.append(cupy.asarray(tasks.view(np.int32)))
            buffers = {"parents": level.arenas[k], "arena": below.arenas[k], "tasks": given[k], "found": found[k]}
            arguments = ASCEND_ARGS.packed(**buffers, before=found[0] if k else None, **rule, m=below.size)
            self._kernel((count,), (32 * below.size,), arguments, shared_mem=self._bytes(below.size))
        if forms > 1:
            buffers = {"arena": below.arenas[0], "other": below.arenas[1], "found": found[0], "also": found[1]}
            self._join((count,), (256,), JOIN_ARGS.packed(**buffers, tasks=given[0], m=below.size, sharp=self.sharp))
        answer: Integers32 = cupyx.empty_pinned(found.shape, np.int32)
        found.get(out=answer, blocking=False)
        landed = cupy.cuda.Event(disable_timing=True)
        landed.record()
        return Flight(level, parents, children, limits, answer, landed, (found, given))

    def _collect(self, flight: Flight) -> None:
        """Wait for a launch; keep the children that may hold something better."""
        flight.landed.synchronize()
        below, answer, children = self._levels[flight.level.size - 1], flight.answer, flight.children
        flight.level.free.extend(flight.parents)
        alive, forms = (answer[:, :, 0] >= 0).all(axis=0), len(answer)
        below.free.extend(children["slot"][~alive].tolist())
        children, answer = children[alive], answer[:, alive]
        children["bound"][:, :forms] = flight.limits - answer[:, :, 0].T
        children["line"] = answer[-1, :, 1]
        children["leaders"][:, :forms] = answer[:, :, 2:].transpose(1, 0, 2)
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


def _divisor(gap: int) -> int:
    """A power of two that brings a form's room below ROOM."""
    divisor = 1
    while gap // divisor + 1 >= ROOM:
        divisor *= 2
    return divisor


def _joint_line(leaders: list[Integers], rooms: Integers, sharp: float) -> int:
    """The line with the least work below it, where what all forms expect of a pair is multiplied (branch.cu)."""
    open_ = np.all([x <= room for x, room in zip(leaders, rooms, strict=True)], axis=0)
    share = sum((room - np.minimum(x, room)) / (room + 1) for x, room in zip(leaders, rooms, strict=True))
    work = np.where(open_, 2.0 ** (sharp * share), 0.0)
    return int(np.argmin(np.concatenate((work.sum(axis=1), work.sum(axis=0)))))
