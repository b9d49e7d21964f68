"""Waiting for a service's workers: the first one that is ready says nothing of the others."""

import time

from allot_client import Client

MOST_S = 280.0


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
