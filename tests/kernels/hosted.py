"""A tree that grows by levels with its nodes in the host's memory, as a device would hold them."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.problems.arrays import Bytes, Integers32, Records
from kernels.qap.exact import branch
from kernels.qap.exact.ascent import ascend
from kernels.qap.exact.layout import FOUND
from kernels.qap.exact.levels import LevelTree
from kernels.qap.exact.nodes import slot_size
from kernels.qap.exact.planting import Ground, Planter

GO_ON = np.zeros(1, np.uint8)


class HostSlots:
    """As `Slots`. `after` launches, `stop` is set."""

    def __init__(self, stop: Any = None, after: int = 1 << 30) -> None:
        self._held: dict[int, Integers32] = {}
        self._stop, self.left = stop, after

    def bytes_free(self) -> int:
        return 1 << 28

    def at_work(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def plant(self, n: int, numbers: Integers32, capacity: int) -> None:
        self._held = {m: np.zeros((capacity, slot_size(m)), np.int32) for m in range(3, n)}
        self._held[n] = numbers[None]

    def launch(self, m: int, tasks: Records, sweeps: int, patience: int) -> Callable[[], Integers32]:
        answer = np.zeros((len(tasks), FOUND), np.int32)
        for at, task in enumerate(tasks):
            wide = m + 1
            held = self._held[wide][task["parent"]].astype(np.int64)
            above, prices = held[: wide * wide].reshape(wide, wide), held[wide * wide :].reshape(-1, wide, wide)
            i, j = int(task["i"]), int(task["j"])
            leaders, rest = branch.fix(above, prices, i, j)
            room = int(task["room"]) - int(above[i, j])
            room = int(ascend(leaders, rest, room, sweeps, GO_ON)) if room >= 0 else -1
            answer[at, 0] = room
            if room >= 0:
                line = int(branch.choose_line(leaders, room, *np.ones((2, m), np.bool_)))
                answer[at, 1] = line
                answer[at, 2 : 2 + m] = np.minimum(leaders[line] if line < m else leaders[:, line - m], room + 1)
                numbers = np.concatenate((leaders.ravel(), rest.ravel()))
                self._held[m][task["slot"]] = np.minimum(numbers, room + 1)
        self.left -= 1
        if self.left <= 0 and self._stop is not None:
            self._stop[0] = 1
        return lambda: answer

    def leaders(self, m: int, slot: int) -> Integers32:
        return self._held[m][slot, : m * m].reshape(m, m)


def planted(batch: int = 24, after: int = 1 << 30) -> Planter:
    """Who grows such a tree, some nodes at a time, until so many launches were made."""

    def plant(ground: Ground, stop: Bytes) -> LevelTree:
        tree = LevelTree(HostSlots(stop, after), ground, stop)
        tree.batch = batch
        return tree

    return plant
