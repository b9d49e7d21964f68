"""What a tree that grows by levels knows of its nodes, and who holds their costs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from kernels.problems.arrays import Integers32, Records
from kernels.qap.exact.layout import WIDEST
from kernels.qap.exact.log import Record

LEAF = 3
"""Facilities left, below which all is priced."""
NODE = np.dtype(
    [("slot", np.int32), ("line", np.int32), ("bound", np.int64), ("above", np.int32), ("place", np.int32)]
    + [("leaders", np.int32, WIDEST)]
    + [(name, np.int8, WIDEST) for name in ("facilities", "locations", "fixed")]
)
"""`facilities`, `locations`: what is left, by local index; `fixed`: location by facility, -1 where left; `above`,
`place`: the row of the node above in the ledger, and which of its children this is."""


class Slots(Protocol):
    """Who holds nodes: of each the leaders (m, m) and the prices (m (m - 1) / 2, m, m), int32, in a numbered slot."""

    def bytes_free(self) -> int:
        """Memory for nodes."""

    def at_work(self) -> AbstractContextManager[Any]:
        """Launches are made inside of this, and have ended behind it."""

    def plant(self, n: int, numbers: Integers32, capacity: int) -> None:
        """Slot 0 of the root, with n facilities left, holds these; each size below has so many slots."""

    def launch(self, m: int, tasks: Records, sweeps: int, patience: int) -> Callable[[], Integers32]:
        """Make children with m facilities left; returns who waits for them: (children, FOUND).

        Args:
            tasks: layout.TASK, of parents that have m + 1 left.
            sweeps: at most. patience: one that gains less than a share of the room over this is the last.
        """

    def leaders(self, m: int, slot: int) -> Integers32:
        """(m, m) of a node with m facilities left."""


@dataclass
class Level:
    """Nodes with `size` facilities left: their slots, and what waits to be branched on."""

    size: int
    capacity: int
    free: list[int] = field(default_factory=list)
    waiting: Records = field(default_factory=lambda: np.empty(0, NODE))

    def __post_init__(self) -> None:
        self.free = list(range(self.capacity))

    def take(self, count: int) -> list[int]:
        """So many free slots, the last one first."""
        taken = self.free[len(self.free) - count :]
        del self.free[len(self.free) - count :]
        return taken[::-1]

    @property
    def work(self) -> int:
        """About how many children wait to be made."""
        return len(self.waiting) * self.size


@dataclass
class Flight:
    """A launch under way: its parents' slots and its children, and who waits for what comes of them."""

    level: Level
    parents: list[int]
    children: Records
    limit: int
    answer: Callable[[], Integers32]


@dataclass
class Guide:
    """What an earlier log says of a node that it branched on, and has something open below.

    Attributes:
        line: to branch on. entries: (m,) int32, of the ledger. below: of each child what the log says.
    """

    line: int
    entries: Integers32
    below: list[Record]


def slot_size(m: int) -> int:
    """Numbers of a node with m facilities left."""
    return m * m + m * (m - 1) // 2 * m * m
