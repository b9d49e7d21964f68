"""A branch and bound whose nodes somebody else holds, a device say: levels of nodes, deepest first, and their log.

The host knows of each node what is fixed, its bound and the line to branch on. What its costs are, and what becomes of
the children of a launch, is known to `Slots` (gpu_branch.py, branch.cu).
"""

from collections import deque

import numpy as np

from kernels.problems.arrays import Bytes, Indices, Integers, Integers32, Records
from kernels.qap.exact import branch, symmetry
from kernels.qap.exact.layout import TASK, WIDEST
from kernels.qap.exact.ledger import LEAF as CLOSED
from kernels.qap.exact.ledger import OPEN, Ledger
from kernels.qap.exact.lines import TreeLines
from kernels.qap.exact.log import Log, Record
from kernels.qap.exact.nodes import LEAF, NODE, Flight, Guide, Level, Slots, slot_size
from kernels.qap.exact.planting import Ground

ROOM = 1 << 25
"""Room and prices stay below this, so that a path of 32 of them fits int32."""
BATCH = 8192
SHARE_OF_MEMORY = 0.4
SWEEPS, PATIENCE = 30, 7
TOP_LEVELS, TOP_SIZE, TOP_SWEEPS, TOP_PATIENCE = 3, 19, 60, 20
"""On so many levels below the root, or down to so many facilities left where that is lower, nodes are few, and the
ascent goes on for longer: all below gains by it."""


class LevelTree:
    """A tree under way, whose nodes those slots hold. `stop` (1,) leaves out symmetries that are still looked for.

    Attributes:
        best: a better permutation that a leaf was, if any; the incumbent is lowered to it.
        nodes: children made so far.
    """

    def __init__(self, slots: Slots, ground: Ground, stop: Bytes | None = None) -> None:
        self.problem, self.linear = ground.problem, ground.linear
        self.incumbent, self.step = ground.incumbent, ground.step
        self.best: tuple[int, Indices] | None = None
        self.nodes = 0
        self.sweeps, self.patience, self.batch = SWEEPS, PATIENCE, BATCH
        self.top, self.top_sweeps = max(TOP_LEVELS, self.problem.n - TOP_SIZE), TOP_SWEEPS
        self.top_patience = TOP_PATIENCE
        gap = int(self.incumbent[0]) * ground.ascent.scale - ground.ascent.total
        self.divisor = 1
        while gap // self.divisor + 1 >= ROOM:
            self.divisor *= 2
        self._slots, self._ascent = slots, ground.ascent
        self._lines = TreeLines(self.problem.n, symmetry.automorphisms(self.problem, stop))
        self._levels: dict[int, Level] = {}
        self._flying: deque[Flight] = deque()
        self._resumed = ground.resumed
        table = self._resumed.table if self._resumed else []
        self._ledger = Ledger(self.problem.n, ground.log_bytes, table) if ground.log_bytes else None
        self._guides: dict[tuple[int, int], Guide] = {}

    @property
    def limit(self) -> int:
        """The greatest bound that may still hide something better than the incumbent, in the prices' units."""
        return ((int(self.incumbent[0]) - self.step) * self._ascent.scale) // self.divisor

    @property
    def log(self) -> Log | None:
        """The tree so far; read it once the tree has ended. None where none is kept."""
        if self._ledger is None:
            return None
        return Log(Record(raw=self._ledger.packed()), int(self.incumbent[0]), self._ledger.table)

    def run(self, stop: Bytes) -> bool:
        """Grow the tree to its end; False when `stop` (1,) cut it short."""
        if self._ascent.total // self.divisor > self.limit:
            self._close(self.problem.n, np.zeros(1, NODE))
            return True
        with self._slots.at_work():
            self._plant()
            while not stop[0]:
                level = self._next()
                if level is not None:
                    self._launch(level)
                elif not self._flying:
                    return True
                if self._flying and (level is None or len(self._flying) > 1):
                    self._collect(self._flying.popleft())
        return False

    def _plant(self) -> None:
        """The root, from the ascent on the host, and empty levels below it."""
        n, ascent = self.problem.n, self._ascent
        budget = SHARE_OF_MEMORY * self._slots.bytes_free() / (4 * sum(map(slot_size, range(LEAF, n))))
        capacity = int(min(2 * self.batch, budget))
        self.batch = min(self.batch, capacity // 2)
        self._levels = {m: Level(m, capacity) for m in range(LEAF, n)}
        root = Level(n, 1)
        room = self.limit - ascent.total // self.divisor
        above = branch.root(ascent)
        leaders, prices = (np.minimum(x // self.divisor, room + 1) for x in (above.leaders, above.prices))
        self._slots.plant(n, np.concatenate((leaders.ravel(), prices.ravel())).astype(np.int32), capacity)
        root.waiting = self._topmost(leaders, room)
        if self._resumed is not None:
            self._guide(n, 0, self._resumed.root)
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
        taken = level.waiting[max(0, count - most) :].copy()
        entries = self._entries(taken, m, limit)
        used = np.cumsum((entries == OPEN).sum(axis=1)[::-1])  # from the end of the stack
        keep = max(1, int(np.searchsorted(used, most, side="right")))
        taken, entries = taken[-keep:], entries[-keep:]
        level.waiting = level.waiting[: count - keep]
        open_ = (entries == OPEN).any(axis=1)
        self._close(m, taken[~open_])
        level.free.extend(taken["slot"][~open_].tolist())
        taken, entries = taken[open_], entries[open_]
        if len(taken):
            children, tasks = self._children(taken, entries, limit, below)
            self._flying.append(self._ascend(level, taken["slot"].tolist(), children, tasks, limit))

    def _entries(self, nodes: Records, m: int, limit: int) -> Integers32:
        """(nodes, m) int32, of the ledger: places of each node's line that may hold something better are OPEN.

        Of each class of equals one is; the others are twins of it.
        """
        open_ = nodes["leaders"][:, :m] <= (limit - nodes["bound"])[:, None]
        entries = np.where(open_, OPEN, CLOSED).astype(np.int32)
        for at in self._lines.symmetric(nodes):
            node, line = nodes[at], int(nodes["line"][at])
            side = "locations" if line < m else "facilities"
            for place in np.flatnonzero(open_[at] & ~self._lines.first_of_equals(node, side, m)).tolist():
                twin = self._lines.twin(node, side, int(node[side][place]))
                if twin is not None:
                    entries[at, place] = CLOSED if self._ledger is None else self._ledger.twin(twin)
        if self._guides:
            for at, slot in enumerate(nodes["slot"].tolist()):
                guide = self._guides.get((m, slot))
                if guide is not None and nodes["bound"][at] <= limit:
                    nodes["line"][at], entries[at] = guide.line, guide.entries
        return entries

    def _children(self, parents: Records, entries: Integers32, limit: int, below: Level) -> tuple[Records, Records]:
        at, place = np.nonzero(entries == OPEN)
        m = entries.shape[1]
        children, tasks = np.empty(at.size, NODE), np.empty(at.size, TASK.dtype)
        line = parents["line"][at]
        of_row = line < m
        tasks["i"], tasks["j"] = np.where(of_row, line, place), np.where(of_row, place, line - m)
        tasks["parent"] = parents["slot"][at]
        tasks["slot"] = below.take(at.size)
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
        children["place"], children["above"] = place, 0
        if self._ledger is not None:
            above, which, lines = (parents[name].astype(np.int64) for name in ("above", "place", "line"))
            children["above"] = self._ledger.branch(above, which, lines, entries)[at]
        self._guide_children(m, parents, children, at, place)
        self.nodes += at.size
        return children, tasks

    def _guide_children(self, m: int, parents: Records, children: Records, at: Indices, place: Indices) -> None:
        """Children of guided parents are guided too, where the log goes on below them."""
        guides = {row: self._guides.pop((m, slot)) for row, slot in enumerate(parents["slot"].tolist())
                  if (m, slot) in self._guides} if self._guides else {}  # fmt: skip
        if guides:
            for row, which, slot in zip(at.tolist(), place.tolist(), children["slot"].tolist(), strict=True):
                if row in guides:
                    self._guide(m - 1, slot, guides[row].below[which])

    def _guide(self, m: int, slot: int, record: Record) -> None:
        """Go on below that node as its record says."""
        if record.children and self._ledger is not None:
            keep = self._ledger.keep
            entries = [OPEN if one.open else keep(one.raw or bytes([one.code])) for one in record.children]
            self._guides[m, slot] = Guide(record.code, np.array(entries, np.int32), record.children)

    def _ascend(self, level: Level, parents: list[int], children: Records, tasks: Records, limit: int) -> Flight:
        """Queue the launch and the way back of what it finds."""
        m = level.size - 1
        top = self.problem.n - m <= self.top
        sweeps, patience = (self.top_sweeps, self.top_patience) if top else (self.sweeps, self.patience)
        return Flight(level, parents, children, limit, self._slots.launch(m, tasks, sweeps, patience))

    def _collect(self, flight: Flight) -> None:
        """Wait for a launch; keep the children that may hold something better."""
        answer, children = flight.answer(), flight.children
        below = self._levels[flight.level.size - 1]
        flight.level.free.extend(flight.parents)
        alive = answer[:, 0] >= 0
        dead = children["slot"][~alive].tolist()
        below.free.extend(dead)
        if self._guides:
            for slot in dead:
                self._guides.pop((below.size, slot), None)
        self._close(below.size, children[~alive])
        children, answer = children[alive], answer[alive]
        children["bound"], children["line"] = flight.limit - answer[:, 0], answer[:, 1]
        children["leaders"] = answer[:, 2:]
        for at in self._lines.symmetric(children):
            leaders = self._slots.leaders(below.size, int(children["slot"][at]))
            self._lines.choose(children[at], leaders.astype(np.int64), int(answer[at, 0]))
        if below.size == LEAF:
            for child in children:
                self._finish(child)
            below.free.extend(children["slot"].tolist())
            self._close(LEAF, children)
        else:
            below.waiting = np.concatenate((below.waiting, children))

    def _close(self, m: int, nodes: Records) -> None:
        """Nothing better is below these nodes with m facilities left."""
        if self._ledger is not None and len(nodes):
            self._ledger.close(m + 1, nodes["above"].astype(np.int64), nodes["place"].astype(np.int64))

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
