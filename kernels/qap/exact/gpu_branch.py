"""The branch and bound of branch.cu from the host: who holds the nodes of levels.py on a device."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import cupy
import cupyx
import numpy as np

from kernels.gpu_room import bytes_free
from kernels.problems.arrays import Bytes, Integers32, Records
from kernels.qap.exact import gpu_forms
from kernels.qap.exact.branch import SHARP
from kernels.qap.exact.layout import ASCEND_ARGS, FOUND
from kernels.qap.exact.levels import LevelTree
from kernels.qap.exact.nodes import LEAF, slot_size
from kernels.qap.exact.planting import Ground

LARGEST_N = 32
"""A warp holds a row of pairs: a lane per location."""


def warm_up() -> None:
    """Compile the tree's kernels, which are the same for every problem."""
    gpu_forms.compiled()


def fits(n: int) -> bool:
    """True when the tree of so many facilities, in integers, can be grown on a device."""
    return LEAF < n <= LARGEST_N


class DeviceSlots:
    """Nodes in the device's memory."""

    def __init__(self) -> None:
        self._capacity: dict[int, int] = {}
        self._arenas: dict[int, Any] = {}

    def bytes_free(self) -> int:
        """As `Slots`."""
        return bytes_free()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """As `Slots`: a stream beside the population's, whose launches these do not wait for."""
        with cupy.cuda.Stream(non_blocking=True) as stream:
            try:
                yield
            finally:  # what still runs writes into memory that is about to be given back
                stream.synchronize()

    def plant(self, n: int, numbers: Integers32, capacity: int) -> None:
        """As `Slots`."""
        self._capacity = {n: 1} | dict.fromkeys(range(LEAF, n), capacity)
        self._arena(n)[:] = cupy.asarray(numbers)

    @functools.cached_property
    def _forms(self) -> dict[int, tuple[Any, gpu_forms.TreeForm]]:
        """By facilities left: the kernel that makes such children, and its form."""
        return gpu_forms.by_size(range(LEAF, max(self._capacity)))

    def _arena(self, m: int) -> Any:
        """The slots of a size; taken from the device when the tree first comes this deep."""
        if m not in self._arenas:
            self._arenas[m] = cupy.empty(self._capacity[m] * slot_size(m), cupy.int32)
        return self._arenas[m]

    def launch(self, m: int, tasks: Records, sweeps: int, patience: int) -> Callable[[], Integers32]:
        """As `Slots`."""
        count = len(tasks)
        found = cupy.empty((count, FOUND), cupy.int32)
        device_tasks = cupy.asarray(tasks.view(np.int32))
        buffers = {"parents": self._arena(m + 1), "arena": self._arena(m), "tasks": device_tasks, "found": found}
        rule = {"sweeps": sweeps, "patience": patience, "sharp": SHARP}
        kernel, way = self._forms[m]
        arguments = ASCEND_ARGS.packed(**buffers, **rule, m=m, group=way.group)
        kernel((count,), (32 * m,), arguments, shared_mem=way.shared)
        answer: Integers32 = cupyx.empty_pinned(found.shape, np.int32)
        found.get(out=answer, blocking=False)
        landed = cupy.cuda.Event(disable_timing=True)
        landed.record()
        return functools.partial(_landed, landed, answer, (found, device_tasks))

    def leaders(self, m: int, slot: int) -> Integers32:
        """As `Slots`."""
        start = slot * slot_size(m)
        found: Integers32 = self._arena(m)[start : start + m * m].get().reshape(m, m)
        return found


def _landed(landed: Any, answer: Integers32, alive: tuple[Any, ...]) -> Integers32:
    """What a launch found; until then its arrays have to stay."""
    landed.synchronize()
    return answer


class DeviceTree(LevelTree):
    """A tree whose nodes lie on the device."""

    def __init__(self, ground: Ground, stop: Bytes | None = None) -> None:
        super().__init__(DeviceSlots(), ground, stop)
