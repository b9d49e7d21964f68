"""What the machine's loopback does without a service: bytes to a process that reads them, and requests to an empty one.

The least that receiving can take, and the most requests that one process can answer in Python. Both vary from host to
host, and with what others do there: a figure of the service says little without them.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from typing import Any

from benchmarks.callers import call

SLICE = 1 << 20
ANSWER = b'{"termination":"optimal","filled":"' + b"x" * 2250 + b'"}'
"""About as long as that of a small job."""
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]
READY_S = 30.0
Message = MutableMapping[str, Any]


def bare_ms(size: int) -> float:
    """Milliseconds to send `size` bytes to another process, which reads them into memory that it touched before."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = os.fork()
        if receiver == 0:
            _receive(listener, size)
        try:
            data = memoryview(bytes(SLICE))
            with socket.create_connection(listener.getsockname()) as line:
                line.recv(1)  # its memory is touched
                started = time.perf_counter()
                left = size
                while left:
                    left -= line.send(data[:left])
                line.recv(1)
                return 1e3 * (time.perf_counter() - started)
        finally:
            os.waitpid(receiver, 0)


def _receive(listener: socket.socket, size: int) -> None:
    """In a process of its own, which ends here."""
    try:
        line, _ = listener.accept()
        held = memoryview(bytearray(b"\1") * size)
        line.sendall(b".")
        while held:
            held = held[line.recv_into(held) :]
        line.sendall(b".")
    finally:
        os._exit(0)


async def app(scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Any]) -> None:
    """An application of ASGI that reads a request and answers it, and does nothing else."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})


def bare_per_s(jobs: Sequence[bytes], connections: int, seconds: float) -> float:
    """How many posts of `jobs` a second an empty application answers, on the server that the API runs on.

    Raises:
        SystemExit: it does not answer within READY_S.
    """
    with _empty() as port:
        call(port, jobs, connections, 0.5)
        begun = time.monotonic()
        taken, _ = call(port, jobs, connections, seconds)
        return len(taken) / (time.monotonic() - begun)


@contextlib.contextmanager
def _empty() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "benchmarks.bare:app", "--port", str(port), "--lifespan", "off"]
    fast = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    process = subprocess.Popen([*command, *fast])
    try:
        until = time.monotonic() + READY_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            if time.monotonic() > until:
                raise SystemExit("an empty application does not answer")
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()
