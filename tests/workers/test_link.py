"""What a worker hears of its child: at once, or together with the next job where nothing but that is waited for."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from workers.runtime.link import Link

DONE = {"done": {"a": "done"}, "waits": True}


class Ends:
    """A link whose child is this process, and the connection on which jobs come."""

    def __init__(self) -> None:
        self.link = Link("cpu", {})
        self.link._socket, self.loud = socket.socketpair()
        self.link._quiet, self.quiet = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours, self.jobs = socket.socketpair()

    def say(self, message: Any, quietly: bool) -> None:
        if quietly:
            self.quiet.sendall(json.dumps(message).encode())
        else:
            self.loud.sendall(json.dumps(message).encode() + b"\n")

    def hear(self, timeout_s: float = 10.0, beside_jobs: bool = True) -> Any:
        return self.link.hear(timeout_s, self.ours.fileno() if beside_jobs else None)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.link.end()
    for one in (made.loud, made.quiet, made.ours, made.jobs):
        one.close()


def soon(call: Any, *arguments: Any) -> None:
    threading.Timer(0.2, call, arguments).start()


def test_what_is_said_quietly_is_heard_with_the_next_job(ends: Ends) -> None:
    ends.say(DONE, quietly=True)
    assert ends.link.is_done
    begun = time.monotonic()
    soon(ends.jobs.sendall, b"a job")
    assert ends.hear() == DONE
    assert time.monotonic() - begun >= 0.19
    assert ends.hear(0.0) is None
    assert ends.link.told == DONE


def test_what_is_said_quietly_is_heard_when_the_time_is_over(ends: Ends) -> None:
    ends.say(DONE, quietly=True)
    assert ends.hear(0.1) == DONE
    assert ends.hear(0.1) is None


def test_a_job_that_comes_first_waits_for_the_end_of_the_one_in_hand(ends: Ends) -> None:
    ends.jobs.sendall(b"a job")
    assert ends.hear(0.1) is None
    soon(ends.say, DONE, True)
    assert ends.hear() == DONE


def test_what_is_said_aloud_is_heard_at_once(ends: Ends) -> None:
    for _ in ("no job has come", "one has"):
        for beside_jobs in (True, False):
            soon(ends.say, {"lost": "all"}, False)
            assert ends.hear(beside_jobs=beside_jobs) == {"lost": "all"}
        ends.jobs.sendall(b"a job")


def test_who_does_not_listen_for_jobs_hears_all_at_once(ends: Ends) -> None:
    soon(ends.say, DONE, True)
    assert ends.hear(beside_jobs=False) == DONE


def test_what_a_child_said_before_it_died_is_heard_before_its_end(ends: Ends) -> None:
    ends.say({"broken": {}}, quietly=False)
    ends.say(DONE, quietly=True)
    ends.loud.close()
    ends.quiet.close()
    assert ends.hear() == {"broken": {}}
    assert ends.hear() == DONE
    for beside_jobs in (True, False):
        with pytest.raises(EOFError):
            ends.hear(beside_jobs=beside_jobs)
