"""Threads that stay from call to call, and are woken for less than a pool of the library takes.

What some threads do together lasts a fraction of a millisecond, where all but compiled code is under Python's lock: who
wakes them, each of them as it begins and ends. A pool makes a future, a condition, two locks and an item of a queue for
each. Here one is woken by a lock that it waits for, and tells its end by another.
"""

import contextlib
import os
import threading
from collections.abc import Callable

Work = Callable[[], None]


class _Hand:
    """One thread. Whoever takes the work out of `order`, an atomic step, has it: this thread, or who gave it."""

    def __init__(self, name: str, idle: list["_Hand"]) -> None:
        self.order: list[Work] = []
        self.go, self.done = threading.Lock(), threading.Lock()
        self.error: BaseException | None = None
        self._idle = idle
        self.go.acquire()
        self.done.acquire()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        while True:
            self.go.acquire()
            try:
                work = self.order.pop()
            except IndexError:  # it was taken back
                self._idle.append(self)
                continue
            try:
                work()
            except BaseException as error:
                self.error = error
            del work  # and what it holds
            self.done.release()


class Crew:
    """Up to `most` threads, each made when it is first needed. For any thread; none of them waits for another."""

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most
        self._idle: list[_Hand] = []
        self._count, self._process = 0, os.getpid()
        self._making = threading.Lock()

    def together(self, work: Work, others: int) -> None:
        """`work` in this thread and in up to so many others; it returns once none of them is at it.

        One that has not begun when this thread is done is not waited for, and will not begin.

        Raises what `work` does: here, or else in any of the others.
        """
        given: list[_Hand] = []
        for _ in range(others):
            if (hand := self._hand()) is None:
                break
            hand.order.append(work)
            hand.go.release()
            given.append(hand)
        try:
            work()
        finally:
            errors = [error for hand in given if (error := self._ended(hand)) is not None]
        if errors:
            raise errors[0]

    def _hand(self) -> _Hand | None:
        if self._process != os.getpid():  # the threads of who forked are not here
            self._idle, self._count, self._process, self._making = [], 0, os.getpid(), threading.Lock()
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        with self._making, contextlib.suppress(RuntimeError):  # no more threads can be had
            if self._count < self._most:
                hand = _Hand(f"{self._name}_{self._count}", self._idle)
                self._count += 1
                return hand
        return None

    def _ended(self, hand: _Hand) -> BaseException | None:
        """What went wrong there, once it has ended."""
        try:
            hand.order.pop()
            return None  # it had not begun, and will say itself that it is idle
        except IndexError:
            hand.done.acquire()
        error, hand.error = hand.error, None
        self._idle.append(hand)
        return error
