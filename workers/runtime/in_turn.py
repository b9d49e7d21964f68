"""Who of several workers compiles what: what two compile at the same time is compiled twice.

A compiler keeps what it made on disk, where the next process finds it in a tenth of a second. So each worker begins
with a solver that nobody else is at, and comes to the others when they are done. Whoever meets a solver that another is
at goes on from the other end: two meet in the middle, and not both before the longest.
"""

import fcntl
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernels import Device, Solver


def in_turn(cards: Iterable[Solver], locks: Path, device: Device) -> Iterator[Solver]:
    """Each card once. The caller warms it up before it asks for the next.

    Args:
        cards: in the order in which they are begun, where nobody else has begun them.
        locks: a folder of the processes that share a disk cache. A lock goes with the process that holds it.
        device: what is compiled for one has nothing to do with the other.
    """
    locks.mkdir(parents=True, exist_ok=True)
    left, others = list(cards), []
    while left:
        card = left.pop(0)
        with (locks / f"{card.name}-{device}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                others.append(card)
                left.reverse()
                continue
            yield card
    for card in others:
        with (locks / f"{card.name}-{device}").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)  # those who come to it now all find it compiled
            yield card
