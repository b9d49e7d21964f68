"""kill -9 of an API process at every point in the life of a long body.

Nothing acknowledged is lost, and whoever repeats the request with its Idempotency-Key is answered once and rightly.
"""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.conftest import Service
from tests.app.test_wire import folder_of, npy
from workers.store.digests import digest_of
from workers.store.names import name_of
from workers.store.store import LEFT_S

DIES = """
import os, signal, socket, sys
from pathlib import Path
import uvicorn
from app.http.config import HttpSettings
from app.http.main import create_app
from workers.jobs.entry import Entry
from workers.runtime.config import Settings
from workers.store.blocks import Blocks
from workers.store.folder import Folder
from workers.store.store import Store

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

{point} = die
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
settings = Settings(redis_url=sys.argv[1], data_dir=Path(sys.argv[2]), max_elements=1 << 22, arena_dir=sys.argv[3])
app = create_app(settings, HttpSettings())
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])
"""
NAMELESS, LAST = "before its bytes have a name", "before the disk has the bytes"
POINTS = {
    "while receiving": "Blocks._end",
    "before it is checked": "Blocks.flush",
    "before the job is there": "Entry.submit",
    NAMELESS: "Folder.lay",
    LAST: "Folder.settle",
}


def send(url: str, cost: Any, key: str) -> httpx.Response:
    files: Any = {"job": (None, json.dumps({"solver": "lap"})), "cost": ("cost.npy", npy(cost))}
    return httpx.post(f"{url}/v1/jobs", files=files, headers={"Prefer": "wait=30", "Idempotency-Key": key}, timeout=60)


def sent_to_who_dies(port: str, point: str, cost: Any, key: str) -> None:
    """A request without an answer, unless the process dies behind the submission: the solve may be faster then."""
    try:
        send(f"http://127.0.0.1:{port}", cost, key)
    except httpx.TransportError:
        return
    assert point == LAST


def until_true(check: Any) -> None:
    give_up = time.monotonic() + 20
    while not check():
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.mark.parametrize("point", POINTS)
def test_an_api_process_dies(point: str, service: Service) -> None:
    number = list(POINTS).index(point)
    cost = np.random.default_rng(100 + number).random((4, 400_000))
    command = [sys.executable, "-c", DIES.format(point=POINTS[point])]
    command += [service.settings.redis_url, str(service.settings.data_dir), service.settings.arena_dir]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        sent_to_who_dies(port, point, cost, f"wire-death-{number}")
        assert process.wait(20) == -signal.SIGKILL
    answer = send(service.url, cost, f"wire-death-{number}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["objective"] == pytest.approx(cost.min(axis=1).sum())
    was_there = point in (NAMELESS, LAST)
    assert ("idempotency-replayed" in answer.headers) is was_there
    name = name_of(digest_of(npy(cost)), "local")
    until_true(lambda: not folder_of(service.app).is_laid(name))
    assert folder_of(service.app).path(name).read_bytes() == npy(cost)


def test_what_a_dead_api_process_laid_is_settled_without_it(service: Service) -> None:
    cost = np.random.default_rng(120).random((4, 400_000))
    command = [sys.executable, "-c", DIES.format(point="Folder.settle")]
    command += [service.settings.redis_url, str(service.settings.data_dir), service.settings.arena_dir]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        sent_to_who_dies(port, LAST, cost, "wire-left")
        assert process.wait(20) == -signal.SIGKILL
    folder, name = folder_of(service.app), name_of(digest_of(npy(cost)), "local")
    assert folder.is_laid(name)
    old = time.time() - 2 * LEFT_S
    slab = folder.swift(name)
    assert slab is not None
    os.utime(slab, (old, old))
    until_true(lambda: not folder.is_laid(name))  # a worker's janitor
    assert folder.path(name).read_bytes() == npy(cost)


def test_a_worker_dies_while_it_has_laid_bytes_mapped(service: Service, tmp_path: Any) -> None:
    """The mapping goes with the process, the bytes do not; the next one maps them again, settled or not."""
    folder, name = folder_of(service.app), name_of(digest_of(b"mapped"), "local")
    written = folder.temporary / "mapped"
    written.write_bytes(b"mapped")
    assert folder.lay(name, written)
    code = (
        "import numpy, os, signal, sys\nfound = numpy.memmap(sys.argv[1], numpy.uint8, 'c')\nfound[0] = 0\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code, str(folder.path(name))])
        assert folder.path(name).read_bytes() == b"mapped"
        folder.settle(name)
    folder.delete(name)
