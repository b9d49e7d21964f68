"""What a child does while it has no job: it loads solvers whose compiled code is on the disk, and finds memory.

Loading one takes up to two seconds, in steps of half a second at most. A step is begun only after a pause between jobs,
so that a child with work to do is never held up by more than one. A job that comes before its solver's turn loads what
it needs itself.
"""

import functools
import gc
import logging
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import IO

from kernels import Device, Solver

QUIET_S = 0.2
"""Without a job, before steps begin: other workers of this machine may be starting, and a client at its next job."""
BUSY_S, SHORT_S = 0.15, 0.05
"""Steps that take less go on one after the other for so long, each only while there is no job, and after a shorter
pause again."""
log = logging.getLogger("workers.runtime.child")


def wrong_with(card: Solver, device: Device, run: Callable[[], object]) -> str:
    """Run what belongs to a solver's warm-up; "" or what is wrong with it."""
    try:
        run()
    except Exception as error:
        log.exception("%s cannot be warmed up on %s", card.name, device)
        return f"{type(error).__name__}: {error}"[:500]
    return ""


class Beside:
    """Steps that are left to the pauses.

    Args:
        cards: solvers to load, in this order.
        device: that of this child.
        broken: hears what is wrong with all solvers that could not be run.
        others: further steps, after those. What fails of them is logged.
    """

    def __init__(
        self,
        cards: Iterable[Solver],
        device: Device,
        broken: Callable[[dict[str, str]], None],
        others: Iterable[Callable[[], object]] = (),
    ) -> None:
        self._device: Device = device
        self._broken, self._found = broken, dict[str, str]()
        cards = list(cards)
        self._steps = deque[Callable[[], object]](functools.partial(card.load, device) for card in cards)
        self._steps.extend(functools.partial(self._begin, card) for card in cards)
        self._steps.extend(others)

    def lines(self, lines: IO[bytes], channel: socket.socket) -> Iterator[bytes]:
        """What is read from `lines`, which belong to `channel` and come one at a time, each after its answer."""
        while True:
            pause_s = QUIET_S
            while self._steps and not _comes(channel, pause_s):
                pause_s = self._some(channel)
            if not (line := lines.readline()):
                return
            yield line

    def _some(self, channel: socket.socket) -> float:
        """Steps for BUSY_S, or until a job comes; how long to pause then."""
        begun, longest = time.monotonic(), 0.0
        while True:
            began = time.monotonic()
            self._step()
            ended = time.monotonic()
            longest = max(longest, ended - began)
            if not self._steps or ended >= begun + BUSY_S or _comes(channel, 0.0):
                return SHORT_S if longest < BUSY_S else QUIET_S

    def _step(self) -> None:
        try:
            self._steps.popleft()()
        except Exception:  # of an import: the solver's own step, or a job, says so again
            log.exception("what was left for a pause failed")
        if not self._steps:
            gc.collect()
            gc.freeze()  # as of what was loaded before the first job

    def _begin(self, card: Solver) -> None:
        """Have the parts of its warm-up come next."""
        parts: list[Callable[[], None]] = []
        self._run(card, lambda: parts.extend(card.steps(self._device)))
        self._steps.extendleft(functools.partial(self._run, card, part) for part in reversed(parts))

    def _run(self, card: Solver, part: Callable[[], None]) -> None:
        if wrong := wrong_with(card, self._device, part):
            self._found[card.name] = wrong
            self._broken(self._found)


def _comes(channel: socket.socket, seconds: float) -> bool:
    """Whether something is there to be read, by then."""
    return bool(select.select([channel], [], [], seconds)[0])
