"""A small pool of clerks, shared fairly among owners.

What is not small JSON and not plain numbers is read by a clerk, never here. A few bytes can ask for hours and for
gigabytes, and a process can be given limits and be killed. An owner holds at most all clerks but one, and those who
wait are served in turn, so that nobody's errands keep another's from being done.
"""

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from app.http.refusal import Refusal
from app.intake.errands import BYTES_PER_S
from kernels import InvalidProblem
from workers.jobs.job import StoreFull
from workers.runtime.process import program, with_threads
from workers.store.codec import InvalidUpload

MOST_WAITING = 256
"""Errands of one owner that may wait for a clerk."""
PATIENCE = 3.0
"""How much longer than its processor time an errand may take on a busy machine."""
START_S = 60.0
T = TypeVar("T")


class Clerk:
    """The hold on one process. Its methods block, so they are called in a thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""

    def ask(self, errand: Mapping[str, Any], charge: Callable[[int], object]) -> dict[str, Any]:
        """Have an errand done.

        Raises:
            what is wrong with the bytes, or what `charge` raised.
            Refusal: 413, it took more time or memory than it may.
        """
        refused: Exception | None = None
        try:
            process = self._ready()
            until = time.monotonic() + PATIENCE * (errand["seconds"] + errand["given_bytes"] / BYTES_PER_S)
            self._say(process, errand)
            while True:
                told = self._hear(process, until)
                if "charge" not in told:
                    break
                try:
                    charge(told["charge"])
                    until += PATIENCE * told["charge"] / BYTES_PER_S
                except Exception as error:
                    refused = error
                self._say(process, {"granted": refused is None})
        except (OSError, EOFError, ValueError):
            raise self._lost(errand) from None
        except BaseException:
            self.stop()
            raise
        if told.pop("last"):
            self.stop()
        if "failed" in told:
            raise refused or revived(told["failed"], errand)
        found: dict[str, Any] = told["done"]
        return found

    def _lost(self, errand: Mapping[str, Any]) -> Exception:
        """Why there is no answer: the kernel ended the process, or nobody waits for it any longer."""
        process = self._process
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process is not None:
                process.wait(0.2)  # it may be about to end
        status = None if process is None else process.returncode
        self.stop()
        if status is None or status == -signal.SIGXCPU:
            return Refusal(413, f"Reading it takes more than the {errand['seconds']:g} s that one upload may have.")
        if status < 0:
            return revived({"kind": "memory"}, errand)
        return RuntimeError(f"a clerk ended with status {status}")

    def start(self) -> None:
        """Have the process there before the first errand; one that does not come will be missed then."""
        try:
            self._ready()
        except (OSError, EOFError, ValueError):
            self.stop()

    def stop(self) -> None:
        """End the process; the next errand starts another."""
        process, self._process, self._buffer = self._process, None, b""
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    stream and stream.close()

    def _ready(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.stop()
            known = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}  # no secrets
            environ = with_threads(known, 1) | {"RUST_BACKTRACE": "0"}  # making one takes the memory that ran out
            self._process = subprocess.Popen(
                program("app.intake.clerk"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
            )
            self._hear(self._process, time.monotonic() + START_S)
        return self._process

    @staticmethod
    def _say(process: subprocess.Popen[bytes], told: Mapping[str, Any]) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(told).encode() + b"\n")
        process.stdin.flush()

    def _hear(self, process: subprocess.Popen[bytes], until: float) -> dict[str, Any]:
        assert process.stdout is not None
        while b"\n" not in self._buffer:
            if not select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                raise EOFError
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                raise EOFError
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told


def revived(failed: Mapping[str, Any], errand: Mapping[str, Any]) -> Exception:
    """The error that a clerk told of."""
    kind = failed["kind"]
    if kind == "invalid":
        return Refusal(422, failed["detail"], errors=failed["errors"])
    if kind == "refusal":
        return Refusal(failed["status"], failed["detail"])
    if kind in ("problem", "upload"):
        made = InvalidProblem if kind == "problem" else InvalidUpload
        return made(failed["field"], failed["message"])
    if kind == "full":
        return StoreFull(failed["detail"])
    if kind == "memory":
        return Refusal(
            413, f"Reading it takes more than the {errand['memory_bytes']} bytes of memory that it may have."
        )
    return RuntimeError(f"a clerk failed: {failed.get('detail', kind)}")


class Clerks:
    """The pool. Used from one event loop."""

    def __init__(self, count: int, memory_bytes: int, seconds: float) -> None:
        self._idle = [Clerk() for _ in range(count)]
        self._all = tuple(self._idle)
        self._each = max(1, count - 1)
        self._limits = {"memory_bytes": memory_bytes, "seconds": seconds}
        self._busy: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[Clerk]]] = {}
        self._threads: anyio.CapacityLimiter | None = None

    async def ask(
        self, owner: str, errand: Mapping[str, Any], given_bytes: int, charge: Callable[[int], object]
    ) -> dict[str, Any]:
        """Have an errand done as soon as it is the owner's turn. Raises as `Clerk.ask`, and 429 for too many."""
        told = {**errand, **self._limits, "given_bytes": given_bytes}
        return await self._with_one(owner, lambda clerk: clerk.ask(told, charge))

    async def prepare(self) -> None:
        """Start one, so that the first who needs it does not wait a second longer."""
        await self._with_one("", Clerk.start)

    async def _with_one(self, owner: str, call: Callable[[Clerk], T]) -> T:
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(len(self._all))
        clerk = await self._hire(owner)
        try:
            return await run_sync(call, clerk, limiter=self._threads)
        finally:
            self._busy[owner] -= 1
            self._idle.append(clerk)
            self._serve()

    def close(self) -> None:
        """End every process."""
        for clerk in self._all:
            clerk.stop()

    async def _hire(self, owner: str) -> Clerk:
        line = self._waiting.setdefault(owner, deque())
        if len(line) >= MOST_WAITING:
            detail = f"{MOST_WAITING} of your uploads wait to be read already."
            raise Refusal(429, detail, headers={"Retry-After": "5"})
        turn: asyncio.Future[Clerk] = asyncio.get_running_loop().create_future()
        line.append(turn)
        self._serve()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._busy[owner] -= 1
                self._idle.append(turn.result())
                self._serve()
            raise

    def _serve(self) -> None:
        """Give every idle clerk to the next owner in turn who may have one."""
        served = True
        while served and self._idle:
            served = False
            for owner, line in list(self._waiting.items()):
                while line and line[0].cancelled():
                    line.popleft()
                if line and self._idle and self._busy[owner] < self._each:
                    self._busy[owner] += 1
                    line.popleft().set_result(self._idle.pop())
                    self._waiting[owner] = self._waiting.pop(owner)  # at the end: others come first next time
                    served = True
                if not line:
                    del self._waiting[owner]
        self._busy = +self._busy  # forgets owners who have none
