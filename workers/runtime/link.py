"""A worker's hold on its child: start it, send it a job, hear from it, end it.

There are two ways for the child's messages. One wakes the worker. What ends jobs behind which nobody waits goes the
other way, `quiet`: the worker has nothing to do but to wait for the next job, so that it may as well hear of both at
once. With one client that asks again and again this saves one waking of two for each job.
"""

import contextlib
import json
import mmap
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json

from workers.runtime.process import program

RECEIVE = 1 << 16
NOT_PASSED_ON = ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY")
"""Certificates count with the error of float64 products as IEEE 754 rounds them, which emulated ones do not have."""


class ChildFailed(Exception):
    """The child did not become ready."""


class Link:
    """One child process at a time, in a process group of its own."""

    def __init__(self, device: str, environ: Mapping[str, str]) -> None:
        self._device = device
        self._environ = {name: value for name, value in environ.items() if name not in NOT_PASSED_ON}
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._quiet: socket.socket | None = None
        self._heard = b""
        self._begun: mmap.mmap | None = None
        self._pending = self._ready = False
        self.told: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        """Of the child, 0 when there is none."""
        return self._process.pid if self._process else 0

    @property
    def begun(self) -> bool:
        """Whether the child has begun with what it was sent last."""
        return self._begun is not None and self._begun[0] != 0

    @property
    def alive(self) -> bool:
        """True while the child runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def ready(self) -> bool:
        """True while the child runs and can be sent jobs."""
        return self._ready and self.alive

    def begin(self) -> None:
        """Start a child, which `start` waits for."""
        self.end()
        ours, theirs = socket.socketpair()
        quiet, their_quiet = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, their_quiet, open(os.memfd_create("begun"), "r+b") as shared:
            shared.truncate(1)
            self._begun = mmap.mmap(shared.fileno(), 1)
            passed = theirs.fileno(), shared.fileno(), their_quiet.fileno()
            told = (str(passed[0]), self._device, str(os.getpid()), str(passed[1]), str(passed[2]))
            self._process = subprocess.Popen(
                program("workers.runtime.child", *told),
                env=self._environ,
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                process_group=0,
            )
        self._socket, self._quiet, self._heard, self._pending = ours, quiet, b"", True

    def start(self, within_s: float, meanwhile: Callable[[], None], every_s: float) -> None:
        """Wait until a child is ready, which is started now if none has begun.

        `meanwhile` is called about every `every_s`, and when the child has news.
        Until then `told["warming"]` says how far it is.

        Raises:
            ChildFailed: it ended, or was not ready in time.
        """
        if not self._pending:
            self.begin()
        self._pending = False
        self.told.pop("warming", None)
        meanwhile()
        give_up = time.monotonic() + within_s
        while time.monotonic() < give_up:
            try:
                message = self.hear(every_s)
            except EOFError:
                raise ChildFailed(f"the {self._device} child ended with {self.reap()} before it was ready") from None
            if message is not None and "ready" in message:
                self.told.pop("warming", None)
                self._ready = True
                return
            meanwhile()
        self.end()
        raise ChildFailed(f"the {self._device} child was not ready after {within_s} s")

    def send(self, order: Mapping[str, Any]) -> None:
        """Hand the child a job. A child that is gone is noticed by `hear`."""
        assert self._socket is not None
        assert self._begun is not None
        self._begun[0] = 0
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(to_json(order) + b"\n")

    def hear(self, timeout_s: float, other: int | None = None) -> dict[str, Any] | None:
        """The child's next message, None when there is none within `timeout_s`.

        With `other`, a descriptor, a quiet one may be heard only once there is something to be read of that, or the
        time is over.

        Raises:
            EOFError: the child is gone, and has said nothing more.
        """
        assert self._socket is not None
        assert self._quiet is not None
        while b"\n" not in self._heard:
            found = select.select([self._socket, self._quiet if other is None else other], [], [], timeout_s)[0]
            if found != [self._socket] and (quiet := self._heard_quietly()) is not None:
                return quiet
            if not found:
                return None
            if self._socket not in found:
                other = None  # jobs have come, or word of them, ahead of the end of those in hand
                continue
            try:
                chunk = self._socket.recv(RECEIVE)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                if (quiet := self._heard_quietly()) is not None:
                    return quiet
                raise EOFError
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        self.told |= message
        return message

    @property
    def is_done(self) -> bool:
        """Whether the child has ended its jobs, and the worker may not have heard of it yet."""
        return self._quiet is not None and bool(select.select([self._quiet], [], [], 0)[0])

    def _heard_quietly(self) -> dict[str, Any] | None:
        assert self._quiet is not None
        try:
            line = self._quiet.recv(RECEIVE, socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionResetError):
            return None
        if not line:
            return None
        message: dict[str, Any] = json.loads(line)
        self.told |= message
        return message

    def reap(self) -> str:
        """Wait for a child that is ending; says of what it died."""
        assert self._process is not None
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:  # it has closed its socket and lives on
            self.kill()
            code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"

    def kill(self) -> None:
        """SIGKILL to the child and whatever it has started."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """No child any more."""
        self._ready = False
        self.kill()
        if self._process is not None:
            self._process.wait()
            self._process = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._quiet is not None:
            self._quiet.close()
            self._quiet = None
