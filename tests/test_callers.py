"""The clients of benchmarks: each connection asks anew when it was answered, and a wrong answer is told."""

import socket
import threading
from collections.abc import Iterator

import pytest

from benchmarks.callers import call

GOOD = b'{"termination": "optimal"}'


class Counter:
    """A service that answers every request in two pieces; its `wrong`-th of all with something else."""

    def __init__(self, wrong: int = 0) -> None:
        self.answered, self._wrong = 0, wrong
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line:
            while request := line.recv(1 << 16):
                assert request.startswith(b"POST /v1/jobs ")
                assert request.endswith(b"{}")
                self.answered += 1
                body = b"{}" if self.answered == self._wrong else GOOD
                whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
                line.sendall(whole[:25])
                line.sendall(whole[25:])

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def good() -> Iterator[Counter]:
    made = Counter()
    yield made
    made.close()


def test_every_answer_is_counted_once(good: Counter) -> None:
    taken, wrong = call(good.port, [b"{}"], connections=3, seconds=1.0)
    assert len(taken) == good.answered > 3
    assert not wrong
    assert min(taken) > 0


def test_a_connection_with_a_wrong_answer_ends_and_the_answer_is_told() -> None:
    service = Counter(wrong=2)
    taken, wrong = call(service.port, [b"{}"], connections=1, seconds=5)
    assert len(taken) == 2
    assert len(wrong) == 1
    service.close()
