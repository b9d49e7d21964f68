"""`map`: many problems, some at a time, answers in the problems' order; for threads and for asyncio.

Where the function is the client's own `lap`, tasks are made here and no thread waits for a small one. Any other
function is called; the small problems that it solves wait for each other there.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from allot_client import flows, tasks
from allot_client.gates import AT_ONCE, CALL, AsyncGate, Call, Gate
from allot_client.together import likeness
from allot_client.watching import open_bar

if TYPE_CHECKING:
    from allot_client.aio import AsyncClient
    from allot_client.client import Client

AHEAD = 256
"""Small problems that are read before their answers are taken."""
INPUTS = ("x", "y", "u0", "v0", "reject_rows", "reject_cols")


def arguments_of(solve: Any, lap: Any) -> dict[str, Any] | None:
    """The arguments of a partial application of `lap`, a bound method; None where `solve` is anything else."""
    given: dict[str, Any] = {}
    while isinstance(solve, functools.partial) and not solve.args:
        given = {**solve.keywords, **given}
        solve = solve.func
    return given if solve == lap and "cost" not in given else None


def task_of(problem: Any, arguments: Mapping[str, Any]) -> flows.Task:
    """What `lap(problem, **arguments)` sends."""
    options = {name: value for name, value in arguments.items() if name not in (*INPUTS, "timeout_s")}
    return tasks.lap(problem, options, {name: arguments.get(name) for name in INPUTS})


class _Threads:
    """The problems of one `map` under way, in threads."""

    def __init__(self, client: Client, solve: Callable[[Any], Any], concurrency: int, stack: ExitStack) -> None:
        self._client, self._solve, self._arguments = client, solve, arguments_of(solve, client.lap)
        self.ahead = max(AHEAD, 2 * concurrency)
        self._share, self._seats = self.ahead // (2 * concurrency), threading.Semaphore(concurrency)
        at_once = min(AT_ONCE, concurrency)
        self._pool = stack.enter_context(ThreadPoolExecutor(concurrency if self._arguments is not None else at_once))
        self._gate = Gate(client._run, client.retry, self._pool, at_once)
        if self._arguments is None:  # its calls wait at the gate, so that requests need threads of their own
            self._pool = stack.enter_context(ThreadPoolExecutor(self.ahead))
        stack.callback(self._gate.close)

    def start(self, problem: Any) -> tuple[Future[Any], int]:
        """The answer to come of a problem, and its share of `ahead`."""
        if self._arguments is None:
            return self._pool.submit(self._called, problem), self._share
        timeout_s = self._arguments.get("timeout_s")
        try:
            task = task_of(problem, self._arguments)
        except Exception as wrong:  # told when it is this problem's turn
            future: Future[Any] = Future()
            future.set_exception(wrong)
            return future, 1
        kind = likeness(task) if timeout_s is None else None
        if kind is not None:
            return self._gate.put(task, kind), 1
        return self._pool.submit(self._client._solve, task, timeout_s), self._share

    def _called(self, problem: Any) -> Any:
        self._seats.acquire()
        call = Call(self._gate, self._seats)
        CALL.set(call)
        try:
            return self._solve(problem)
        finally:
            if call.left:
                self._share = 1  # what this function solves is small: more of it may be read ahead
            call.leave()


def in_threads(
    client: Client, solve: Callable[[Any], Any], problems: Iterable[Any], concurrency: int, progress: bool,
    return_exceptions: bool,
) -> Iterator[Any]:  # fmt: skip
    """See `Client.map`."""
    step, close = open_bar(progress, len(problems) if isinstance(problems, Sized) else None)
    waiting: deque[tuple[Future[Any], int]] = deque()

    def next_answer() -> Any:
        future, _ = waiting.popleft()
        wrong = future.exception()
        if wrong is not None and not (return_exceptions and isinstance(wrong, Exception)):
            raise wrong
        step()
        return wrong or future.result()

    with ExitStack() as stack:
        stack.callback(close)
        under_way = _Threads(client, solve, concurrency, stack)
        stack.callback(lambda: [future.cancel() for future, _ in waiting])
        held = 0
        for problem in problems:
            waiting.append(under_way.start(problem))
            held += waiting[-1][1]
            while waiting and (held >= under_way.ahead or waiting[0][0].done()):
                held -= waiting[0][1]
                yield next_answer()
        while waiting:
            yield next_answer()


class _Tasks:
    """The problems of one `map` under way, in asyncio."""

    def __init__(self, client: AsyncClient, solve: Callable[[Any], Awaitable[Any]], concurrency: int) -> None:
        self._client, self._solve, self._arguments = client, solve, arguments_of(solve, client.lap)
        self.ahead = max(AHEAD, 2 * concurrency)
        self._share = self.ahead // (2 * concurrency)
        self._seats = asyncio.Semaphore(concurrency)
        self._gate = AsyncGate(client._run, client.retry, min(AT_ONCE, concurrency))

    def start(self, problem: Any) -> tuple[asyncio.Task[Any], int]:
        """The answer to come of a problem, and its share of `ahead`."""
        if self._arguments is None or self._arguments.get("timeout_s") is not None:
            return asyncio.create_task(self._called(problem)), self._share
        try:
            task = task_of(problem, self._arguments)
        except Exception as wrong:  # told when it is this problem's turn
            return asyncio.create_task(_raise(wrong)), 1
        kind = likeness(task)
        if kind is not None:
            return asyncio.create_task(self._gate.solve(task, kind)), 1
        return asyncio.create_task(self._sent(task)), self._share

    async def _called(self, problem: Any) -> Any:
        await self._seats.acquire()
        call = Call(self._gate, self._seats)
        CALL.set(call)
        try:
            return await self._solve(problem)
        finally:
            if call.left:
                self._share = 1
            call.leave()

    async def _sent(self, task: flows.Task) -> Any:
        async with self._seats:
            return await self._client._solve(task, None)


async def _raise(wrong: Exception) -> None:
    raise wrong


async def in_tasks(
    client: AsyncClient, solve: Callable[[Any], Awaitable[Any]], problems: Iterable[Any], concurrency: int,
    progress: bool, return_exceptions: bool,
) -> AsyncIterator[Any]:  # fmt: skip
    """See `AsyncClient.map`."""
    step, close = open_bar(progress, len(problems) if isinstance(problems, Sized) else None)
    waiting: deque[tuple[asyncio.Task[Any], int]] = deque()

    async def next_answer() -> Any:
        await asyncio.wait([waiting[0][0]])
        task, _ = waiting.popleft()
        wrong = task.exception()
        if wrong is not None and not (return_exceptions and isinstance(wrong, Exception)):
            raise wrong
        step()
        return wrong or task.result()

    under_way, held = _Tasks(client, solve, concurrency), 0
    try:
        for problem in problems:
            waiting.append(under_way.start(problem))
            held += waiting[-1][1]
            await asyncio.sleep(0)  # it begins before the next is read
            while waiting and (held >= under_way.ahead or waiting[0][0].done()):
                held -= waiting[0][1]
                yield await next_answer()
        while waiting:
            yield await next_answer()
    finally:
        for task, _ in waiting:
            task.cancel()
        await asyncio.gather(*(task for task, _ in waiting), return_exceptions=True)
        close()
