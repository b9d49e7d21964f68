"""Waiting for a service: the first worker that is ready says nothing of the others, or of what it still warms up."""

import contextlib
import time

import psutil
from allot_client import Client

MOST_S = 280.0
LOOK_S, CALM, MOST_CALM_S = 2.0, 0.15, 120.0
"""Seconds between two looks, the share of one core that a calm service takes at most, and how long it may take."""


def until_warm(client: Client, device: str) -> None:
    """Return once a worker of that device is there and none is starting.

    Raises:
        TimeoutError.
    """
    give_up = time.monotonic() + MOST_S
    while not _is_warm(client, device):
        if time.monotonic() > give_up:
            raise TimeoutError(f"no {device} worker is ready after {MOST_S:.0f} s")
        time.sleep(0.2)


def _is_warm(client: Client, device: str) -> bool:
    workers = client.devices()["workers"]
    states = {worker["device"]: worker["state"] for worker in workers}
    return device in states and all(state == "idle" for state in states.values())


def until_calm(serve: psutil.Process) -> float:
    """Return once a service that nobody asks for anything does next to nothing; how many seconds that took.

    A worker that is ready still loads loops and runs larger problems ahead, at low priority.

    Raises:
        TimeoutError.
    """
    begun, before = time.monotonic(), _processor_s(serve)
    while True:
        time.sleep(LOOK_S)
        now = _processor_s(serve)
        if now - before < CALM * LOOK_S:
            return time.monotonic() - begun
        if time.monotonic() - begun > MOST_CALM_S:
            raise TimeoutError(f"the service took {now - before:.1f} s of processors in {LOOK_S} s, unasked")
        before = now


def _processor_s(serve: psutil.Process) -> float:
    """That all processes of a service have had."""
    total = 0.0
    for process in (serve, *serve.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it may have just ended
            total += sum(process.cpu_times()[:2])
    return total
