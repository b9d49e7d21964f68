"""What a tree that grows by levels has searched so far, from which its log is written (log.py).

A row for each node that was branched on, in arrays of the nodes with as many facilities left: its line, and an entry
for each child: OPEN, LEAF, the row of a child that was branched on itself, or bytes that are kept as they are (a twin,
or a subtree of an earlier log). A node without an open child is closed, and with it perhaps the one above.

Rows of closed nodes make room where the log would become too long: the children of the lowest levels go first, as
whoever checks the log can most easily do without them. Nodes that are open stay, as does all above them.
"""

from dataclasses import dataclass, field

import numpy as np

from kernels.problems.arrays import Bytes, Indices, Integers32
from kernels.qap.exact import log

OPEN, LEAF = -1, -2
"""Entries. From 0 on they are rows of the level below; from -3 down, bytes that are kept."""
FIRST_ROWS, ROWS_AT_ONCE = 64, 1 << 16
"""Rows of a level at first, and how many are packed at once."""


@dataclass
class Rows:
    """Nodes with m facilities left that were branched on.

    Attributes:
        line: (capacity,) uint8; entries: (capacity, m) int32; left: (capacity,) int32, the children not closed yet.
        above, place: (capacity,) int32, the row in the level above, and which of its children this is.
        spare: (capacity,) int32, of which the first `free` are rows that are free.
    """

    m: int
    line: Bytes = field(init=False)
    entries: Integers32 = field(init=False)
    left: Integers32 = field(init=False)
    above: Integers32 = field(init=False)
    place: Integers32 = field(init=False)
    spare: Integers32 = field(init=False)
    free: int = 0

    def __post_init__(self) -> None:
        self.line, self.entries = np.zeros(0, np.uint8), np.zeros((0, self.m), np.int32)
        self.left, self.above, self.place, self.spare = np.zeros((4, 0), np.int32)

    def take(self, count: int) -> Indices:
        """(count,) free rows."""
        before = len(self.line)
        if count > self.free:
            more = max(FIRST_ROWS, count - self.free, before // 2)
            for name in ("line", "entries", "left", "above", "place", "spare"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate((array, np.zeros((more, *array.shape[1:]), array.dtype))))
            self.give(np.arange(before, before + more))
        self.free -= count
        return self.spare[self.free : self.free + count].astype(np.int64)

    def give(self, rows: Indices) -> None:
        """Those are free."""
        self.spare[self.free : self.free + len(rows)] = rows
        self.free += len(rows)

    @property
    def closed(self) -> Indices:
        """Rows without an open child."""
        used = np.ones(len(self.line), np.bool_)
        used[self.spare[: self.free]] = False
        return np.flatnonzero(used & (self.left == 0))


class Ledger:
    """The tree of a problem of size n, of whose log at most `most` bytes are wanted.

    Attributes:
        table: the automorphisms that twins name.
    """

    def __init__(self, n: int, most: int, table: list[log.Side]) -> None:
        self.n, self.most, self.table = n, most, list(table)
        self._kept: list[bytes] = []
        self._twins: dict[log.Side, int] = {}
        above = Rows(1)  # the root, whose entry is the only one of its row 0
        above.take(FIRST_ROWS)
        above.entries[0, 0], above.left[0] = OPEN, 1
        self._rows = {m: Rows(m) for m in range(n + 1)} | {n + 1: above}
        self._bytes, self._cut = 1, 0

    def keep(self, data: bytes) -> int:
        """The entry of a subtree that is closed, as a log has it."""
        if data == bytes([log.LEAF]):
            return LEAF
        self._kept.append(data)
        return -2 - len(self._kept)

    def twin(self, side: log.Side) -> int:
        """The entry of a child that is the image of a sibling under that automorphism."""
        if side not in self._twins:
            if side not in self.table:
                self.table.append(side)
            self._twins[side] = self.keep(bytes([log.TWIN]) + self.table.index(side).to_bytes(2, "little"))
        return self._twins[side]

    def branch(self, above: Indices, places: Indices, lines: Indices, entries: Integers32) -> Indices:
        """Nodes are branched on; their rows.

        Args:
            above, places: (nodes,), the row of each in the level above (0 for the root), and which child it is.
            lines: (nodes,), which line. entries: (nodes, m) of the children, at least one of each node OPEN.
        """
        m = entries.shape[1]
        at, rows = self._rows[m].take(len(lines)), self._rows[m]
        rows.line[at], rows.entries[at] = lines, entries
        rows.above[at], rows.place[at] = above, places
        rows.left[at] = (entries == OPEN).sum(axis=1)
        self._rows[m + 1].entries[above, places] = at
        self._bytes += m * len(lines) + self._beyond(entries)
        if self._bytes > self.most:
            self._make_room()
        return at

    def close(self, m: int, rows: Indices, places: Indices) -> None:
        """Nothing better is below those children of rows with m facilities left, each of which was open."""
        self._rows[m].entries[rows, places] = LEAF
        while len(rows):
            level = self._rows[m]
            np.subtract.at(level.left, rows, 1)
            closed = np.unique(rows)
            closed = closed[level.left[closed] == 0]
            if m > self.n:
                return
            rows = level.above[closed].astype(np.int64)
            if m < self._cut:
                self._fold(m, closed)
            m += 1

    def _fold(self, m: int, closed: Indices) -> None:
        """Those closed rows become leaves of the level above."""
        level = self._rows[m]
        self._rows[m + 1].entries[level.above[closed], level.place[closed]] = LEAF
        self._bytes -= m * len(closed) + self._beyond(level.entries[closed])
        level.entries[closed] = LEAF
        level.left[closed] = 0
        level.give(closed)

    def _beyond(self, entries: Integers32) -> int:
        """What is kept as bytes takes so many more than a leaf each would."""
        return sum(len(self._kept[-3 - entry]) - 1 for entry in entries[entries < LEAF].tolist())

    def _make_room(self) -> None:
        """Fold closed nodes, level by level from the lowest, until the log is short enough again, if it can be."""
        while self._bytes > self.most and self._cut <= self.n:
            self._fold(self._cut, self._rows[self._cut].closed)
            self._cut += 1

    def packed(self) -> bytes:
        """The tree in preorder, as a log has it. What does not fit is left out below its lowest levels' nodes."""
        for lowest in range(self.n + 2):
            sizes = self._sizes(lowest)
            if sizes[self.n + 1][0] - 1 <= self.most:
                break
        return self._written(sizes, lowest)

    def _sizes(self, lowest: int) -> dict[int, Indices]:
        """By facilities left: of each row the bytes of its subtree, where those below `lowest` are a leaf, or open."""
        sizes = {0: np.ones(1, np.int64)}
        for m in range(1, self.n + 2):
            level = self._rows[m]
            sizes[m] = np.ones(max(1, len(level.line)), np.int64)
            for start in range(0, len(level.line) if m >= lowest else 0, ROWS_AT_ONCE):
                some = slice(start, start + ROWS_AT_ONCE)
                sizes[m][some] += self._each(level.entries[some], sizes[m - 1]).sum(axis=1)
        return sizes

    def _each(self, entries: Integers32, of_rows: Indices) -> Indices:
        """Bytes of each entry, where rows of the level below have those."""
        kept = np.array([1, 1, *map(len, self._kept)], np.int64)
        return np.where(entries >= 0, of_rows[np.maximum(entries, 0)], kept[np.maximum(-1 - entries, 0)])

    def _written(self, sizes: dict[int, Indices], lowest: int) -> bytes:
        """The log of those sizes: where each row begins follows from where the row above does, level by level."""
        out = np.full(int(sizes[self.n + 1][0]), log.LEAF, np.uint8)
        rows, starts = np.zeros(1, np.int64), np.zeros(1, np.int64)
        for m in range(self.n + 1, 0, -1):
            level = self._rows[m]
            if m < lowest:
                out[starts] = np.where(level.left[rows] == 0, log.LEAF, log.OPEN)
                break
            out[starts] = level.line[rows]
            below = [
                self._write(out, level.entries[rows[start : start + ROWS_AT_ONCE]], starts[start:], sizes[m - 1])
                for start in range(0, len(rows), ROWS_AT_ONCE)
            ]
            rows, starts = (np.concatenate(parts) for parts in zip(*below, strict=True))
            if not len(rows):
                break
        return out[1:].tobytes()

    def _write(self, out: Bytes, entries: Integers32, starts: Indices, of_rows: Indices) -> tuple[Indices, Indices]:
        """The children of rows that begin there; those that are rows themselves, and where they begin."""
        each = self._each(entries, of_rows)
        at = starts[: len(entries), None] + 1 + np.cumsum(each, axis=1) - each
        out[at[entries == OPEN]] = log.OPEN
        for offset, entry in zip(at[entries < LEAF].tolist(), entries[entries < LEAF].tolist(), strict=True):
            data = self._kept[-3 - entry]
            out[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        return entries[entries >= 0].astype(np.int64), at[entries >= 0]
