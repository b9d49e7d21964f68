"""SIGTERM and SIGINT for a main thread that waits for them."""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType


class Flag:
    """What a signal handler sets and the main thread waits for: a threading.Event without a lock.

    A handler runs between any two steps of the main thread, also while this holds the lock of an event that it begins
    to wait for. To set the event there waits for that lock for ever: 3 of 300 processes with two busy threads never
    ended. An eventfd that is written once stays readable, and nothing has to be held to write it.
    """

    def __init__(self) -> None:
        self._number = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def __del__(self) -> None:
        os.close(self._number)

    def set(self) -> None:
        """From a handler, or any thread."""
        os.eventfd_write(self._number, 1)

    def is_set(self) -> bool:
        """Whether it was."""
        return self.wait(0)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until it is set, or for `timeout_s`; whether it is."""
        poll = select.poll()  # one of its own: what polls already refuses a handler's look
        poll.register(self._number, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else 1e3 * timeout_s))


@contextlib.contextmanager
def signals(*ignored: signal.Signals) -> Iterator[tuple[Flag, Flag]]:
    """SIGTERM and SIGINT set the first flag; those that come after it the second. `ignored` do nothing meanwhile."""
    asked, in_a_hurry = Flag(), Flag()

    def stop(number: int, frame: FrameType | None) -> None:
        (in_a_hurry if asked.is_set() else asked).set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    try:
        yield asked, in_a_hurry
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
