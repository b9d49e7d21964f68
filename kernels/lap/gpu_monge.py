"""Costs that sorting solves (`monge.py`), on the GPU: the guess is sorted there, the proof's sweep decides."""

import functools
from typing import Any

import cupy
import cupyx
import numpy as np

from kernels.lap import monge
from kernels.lap.gpu_proof import named, prove


@functools.cache
def _aside(device: int) -> Any:
    with cupy.cuda.Device(device):
        return cupy.cuda.Stream(non_blocking=True)


class Look:
    """`monge.corner` of a matrix on the device, which a stream of its own fetches while the search is under way.

    Made before the search is launched, since the sample must wait for what fills the matrix and for nothing else.
    """

    def __init__(self, cost: Any) -> None:
        self._n, self._view = len(cost), monge.sample(cost)
        self._sample: Any = None
        self._filled = cupy.cuda.Event(disable_timing=True)
        self._filled.record()

    def fetch(self) -> None:
        """Enqueue the copy; nothing waits."""
        if self._view is None:
            return
        self._sample = cupyx.empty_pinned(self._view.shape, self._view.dtype)
        self._arrived = cupy.cuda.Event(disable_timing=True)
        with _aside(cupy.cuda.Device().id) as stream:
            stream.wait_event(self._filled)
            cupy.ascontiguousarray(self._view).get(out=self._sample, blocking=False)
            self._arrived.record()

    def corner(self, negate: bool) -> tuple[int, int] | None:
        """Waits for the sample, not for what was enqueued after it."""
        if self._sample is None:
            return None
        self._arrived.synchronize()
        return monge.corner_of(self._sample, self._n, -1 if negate else 1)


def solve_on_device(cost: Any, negate: bool, at: tuple[int, int]) -> tuple[monge.Guess, dict[str, int | float]] | None:
    """Sort and prove; None when the costs have no Monge order.

    Args:
        cost: (n, n) on the device.
        at: what `monge.corner` answered for it.
    Returns:
        The assignment (n,) int32 and the duals of the minimisation, on the device, and their proof.
    """
    found = monge.guess(cost, -1 if negate else 1, at, cupy)
    if found is None:
        return None
    answer = monge.Guess(found.assignment.astype(np.int32), found.u, found.v)
    proof = named(prove(cost, negate, answer.u, answer.v, answer.assignment))
    if not max(proof["violation"], proof["slack"]) <= monge.tolerance(cost):
        return None
    return answer, proof
