"""Where the small problems of `map` wait while requests are under way: one gate for threads, one for asyncio.

What goes together, and how, is in `allot_client.together`; here is only when it goes. A gate has no clock and no loop:
a problem that finds a request free starts it, and the end of a request starts the next, with all that came meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from typing import Any

from allot_client import flows
from allot_client.results import Result
from allot_client.together import Waiting, gathered, solve_all

AT_ONCE = 2
"""Requests under way: the service solves one while the next is written and the last is read."""


class Gate:
    """For threads. `senders` runs the requests; it must not run what waits here."""

    def __init__(
        self, run: Callable[[flows.Flow[Any]], Any], retry: flows.Retry, senders: Executor, at_once: int
    ) -> None:
        self.run, self._retry, self._senders, self._at_once = run, retry, senders, at_once
        self._lock, self._waiting, self._sending = threading.Lock(), list[Waiting](), 0

    def put(self, task: flows.Task, kind: Hashable) -> Future[Result]:
        """The answer to come of one problem, which goes with those of its kind that wait beside it."""
        own = Waiting(task, kind, Future())
        with self._lock:
            self._waiting.append(own)
            self._start()
        future: Future[Result] = own.outcome
        return future

    def _start(self) -> None:
        """With the lock held: the next request, where there is one to send and one is free."""
        self._waiting = [one for one in self._waiting if not one.outcome.cancelled()]
        if self._waiting and self._sending < self._at_once:
            self._sending += 1
            self._senders.submit(self._send, gathered(self._waiting.pop(0), self._waiting))

    def _send(self, together: list[Waiting]) -> None:
        outcomes: list[Any]
        together = [one for one in together if one.outcome.set_running_or_notify_cancel()]
        try:
            outcomes = self.run(solve_all([one.task for one in together], self._retry)) if together else []
        except BaseException as wrong:
            outcomes = [wrong] * len(together)
        for one, outcome in zip(together, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                one.outcome.set_exception(outcome)
            else:
                one.outcome.set_result(outcome)
        with self._lock:
            self._sending -= 1
            self._start()

    def close(self) -> None:
        """Send nothing more."""
        with self._lock:
            for one in self._waiting:
                one.outcome.cancel()
            self._waiting.clear()


class AsyncGate:
    """For asyncio. A request is a task of its own, so that a caller who gives up takes no other along."""

    def __init__(
        self, run: Callable[[flows.Flow[Any]], Awaitable[Any]], retry: flows.Retry, at_once: int = AT_ONCE
    ) -> None:
        self.run, self._retry, self._at_once = run, retry, at_once
        self._waiting, self._sending = list[Waiting](), set[asyncio.Task[None]]()

    async def solve(self, task: flows.Task, kind: Hashable) -> Result:
        """The answer of one problem, which goes with those of its kind that wait beside it."""
        outcome: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(task, kind, outcome))
        self._start()
        return await outcome

    def _start(self) -> None:
        self._waiting = [one for one in self._waiting if not one.outcome.done()]
        if not self._waiting or len(self._sending) >= self._at_once:
            return
        together = gathered(self._waiting.pop(0), self._waiting)
        sender = asyncio.create_task(self._send(together))
        self._sending.add(sender)
        sender.add_done_callback(self._sent)

        def nobody_left(_: Any) -> None:
            if all(one.outcome.done() for one in together):
                sender.cancel()

        for one in together:
            one.outcome.add_done_callback(nobody_left)

    def _sent(self, sender: asyncio.Task[None]) -> None:
        self._sending.discard(sender)
        self._start()

    async def _send(self, together: list[Waiting]) -> None:
        outcomes: list[Any]
        try:
            outcomes = await self.run(solve_all([one.task for one in together], self._retry))
        except Exception as wrong:
            outcomes = [wrong] * len(together)
        for one, outcome in zip(together, outcomes, strict=True):
            if one.outcome.done():  # its caller has given up
                continue
            if isinstance(outcome, BaseException):
                one.outcome.set_exception(outcome)
            else:
                one.outcome.set_result(outcome)


class Call:
    """One call of a function that `map` was given: its gate, and its seat among those that may run at a time.

    A call that waits at the gate does nothing, so it gives its seat to the next.
    """

    def __init__(self, gate: Any, seats: Any) -> None:
        self.gate, self._seats, self.left = gate, seats, False

    def leave(self) -> None:
        """Give the seat up, once."""
        if not self.left:
            self.left = True
            self._seats.release()


CALL: ContextVar[Call | None] = ContextVar("CALL", default=None)
"""The call that this code is part of, inside a function that `map` was given."""


def gate_here(run: Any) -> Any:
    """The gate of the `map` of the client that runs flows by `run`, for which a call leaves its seat; else None."""
    call = CALL.get()
    if call is None or call.gate.run != run:
        return None
    call.leave()
    return call.gate
