"""The process that solves: one job after another, with warm kernels and a warm CUDA context.

Started by a worker as `python -m workers.runtime.child FD DEVICE PARENT BEGUN QUIET`, with its GPU and its thread
counts already in its environment. It reads lines from the socket FD, {"worker", "orders"} with jobs to be solved
together, and answers each with {"done": outcomes by job, "waits": whether the worker is listed as waiting by now}.
Before the first it says {"warming": "3 of 8"} and so on, and then {"ready": true}. That it has begun with jobs it notes
in the one byte of the file BEGUN, which the worker reads only when this process has died. Where all went well and the
worker waits, the answer goes to the socket QUIET, which does not wake the worker (workers/runtime/link.py). It never
talks to RQ.
"""

import gc
import io
import json
import logging
import math
import mmap
import os
import platform
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from kernels import SOLVERS, Device, Solver, keep_cubins, pace_here, solve_each_form
from workers.jobs.records import Order, Records
from workers.runtime import gpu_memory, logs, loops, traces, warmed
from workers.runtime.audit import Auditor
from workers.runtime.batch import endings
from workers.runtime.beside import Beside, wrong_with
from workers.runtime.config import SHOWN, Settings
from workers.runtime.connection import connect
from workers.runtime.document import Bench, versions
from workers.runtime.in_turn import in_turn
from workers.runtime.process import die_with
from workers.runtime.run import DeviceLost, told
from workers.runtime.shown import solve_shown
from workers.store.opening import arena_for
from workers.store.pool import only_store, pool
from workers.store.store import Store, open_store

EXIT_DEVICE_LOST = 70
NICENESS = 5
"""Of what solves on cores that the API and Redis may share: a solve of minutes must not hold up a request."""
LONG_LINE = 1 << 19
"""Bytes that are read at once: a job that brings its arrays is one line."""
TOLD_EVERY_S = 0.25
log = logging.getLogger("workers.runtime.child")  # it is run as a program, and named __main__ then


def main(arguments: list[str]) -> None:
    """Serve the socket until it closes."""
    descriptor, device, parent = int(arguments[0]), arguments[1], int(arguments[2])
    begun, quiet = mmap.mmap(int(arguments[3]), 1), socket.socket(fileno=int(arguments[4]))
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logs.configure(logging.WARNING)
    if device == "gpu":
        threading.Thread(target=gpu_memory.wake, name="wake", daemon=True).start()
    else:
        os.nice(NICENESS)
    with (
        socket.socket(fileno=descriptor) as channel,
        io.BufferedReader(channel.makefile("rb", 0), LONG_LINE) as orders,
        channel.makefile("w") as lines,
    ):
        settings = Settings.from_env()
        only_store()
        keep_cubins(settings.data_dir / "cubins", [Path(folder) for folder in (settings.cubins_dir,) if folder])
        bench = _bench("gpu" if device == "gpu" else "cpu", settings)
        if bench.device == "gpu":
            warmed.begin_with(warmed.OF_USER.expanduser())
        wanted = settings.warm_solvers.split(",") if settings.warm_solvers else list(SOLVERS)
        locks = settings.data_dir / "warming"
        warm = solve_shown if settings.warm_forms == SHOWN and bench.device == "cpu" else None
        broken, later = _warm_up(bench.device, wanted, locks, lambda far: _say(lines, {"warming": far}), warm)
        traces.prepare()
        pace_here()  # of the first job this and the next would be 25 ms
        versions()
        room = Room(bench.device)
        gc.collect()
        gc.freeze()  # what has been loaded by now stays: no collection need look at it again
        _say(lines, {"ready": True, "broken": broken, "name": bench.device_name, **room.told()})
        ahead: list[Callable[[], None]] = []
        if bench.staging is not None:
            ahead = gpu_memory.taken_ahead(bench.staging, settings.ready_bytes, arena_for(settings))
        beside = Beside(later, bench.device, lambda more: _say(lines, {"broken": broken | more}), ahead)
        for line in beside.lines(orders, channel):
            begun[0] = 1
            task = from_json(line)
            try:
                outcome, waits = work([Order(**order) for order in task["orders"]], task["worker"], bench)
            except DeviceLost as error:
                _say(lines, {"lost": str(error)})
                os._exit(EXIT_DEVICE_LOST)  # nothing of CUDA may be torn down in order any more
            told_of = {"done": outcome, "waits": waits, **room.told()}
            if waits and set(outcome.values()) == {"done"}:
                quiet.sendall(to_json(told_of))
            else:
                _say(lines, told_of)
            bench.held.clear()
            _settle(bench.store)


def work(orders: Sequence[Order], worker: str, bench: Bench) -> tuple[dict[str, str], bool]:
    """Solve jobs and write their results: "done" or "fenced" of each, and whether the worker is listed as waiting.

    Raises:
        DeviceLost.
    """
    outcome: dict[str, str] = {}
    waits = False
    for part in endings(orders, bench):
        last = len(outcome) + len(part) == len(orders)
        words, waits = told(part, bench.device, worker, bench, last)
        outcome |= zip((one.job_id for one in part), words, strict=True)
    return outcome, waits


def _bench(device: Device, settings: Settings) -> Bench:
    redis = connect(settings.redis_url)
    if device == "gpu":
        gpu_memory.share(settings.workers_per_gpu)
        name, staging = gpu_memory.device_name(), gpu_memory.Staging(settings.pinned_bytes)
    else:
        name, staging = cpu_name(), None
    records, store = Records(redis), open_store(settings, redis)
    auditor = Auditor(settings.audit_share, records, store) if device == "gpu" else None
    return Bench(records, store, device, name, staging, auditor, settings.slow_s)


def _warm_up(
    device: Device,
    wanted: list[str],
    locks: Path,
    told: Callable[[str], None],
    warm: Callable[[Solver, Device], None] | None = None,
) -> tuple[dict[str, str], list[Solver]]:
    """Compile and run every kernel once, or what `warm` does, of the solvers of which not all is on the disk.

    Of the others the first part of the first alone is run: it loads numba, which takes a second of a job's time limit
    else. Returns what is wrong with those that cannot, and the solvers that are on the disk.
    `told` hears how far this is, as "3 of 8".
    """
    broken = {}
    asked = [card for card in SOLVERS.values() if card.name in wanted and device in card.modules]
    ready = warmed.ready([card.name for card in asked], device)
    later = [card for card in asked if card.name in ready]
    cards = [card for card in asked if card.name not in ready]
    ahead = device == "gpu"  # on a CPU the other types are loaded when first met, in a tenth of a second
    for card in later[:1]:
        if wrong := wrong_with(card, device, partial(_first_part, card, device)):
            broken[card.name] = wrong
    steps = (1 + ahead) * len(cards)
    for number, card in enumerate(in_turn(cards, locks, device)):
        told(f"{(1 + ahead) * number} of {steps}")
        if wrong := wrong_with(card, device, partial(warm, card, device) if warm else partial(card.warm_up, device)):
            broken[card.name] = wrong
            continue
        if warm is None:
            loops.note(card.name, device)
        if ahead:
            told(f"{2 * number + 1} of {steps}")
            _compile_ahead(card)
    if steps:
        told(f"{steps} of {steps}")
    return broken, later


def _first_part(card: Solver, device: Device) -> None:
    card.steps(device)[0]()


def _compile_ahead(card: Solver) -> None:
    """What fails here fails the jobs of its kind, with their own words; the others still find the solver."""
    if warmed.is_warm(card.name):
        return
    try:
        solve_each_form(card, "gpu")
        warmed.note(card.name)
    except Exception:
        log.exception("not every form of %s can be compiled ahead", card.name)


def _settle(store: Store) -> None:
    """Have the disk take results that were answered from memory, beside the next job; what fails a janitor does."""
    if store.owed:
        owed, store.owed = store.owed, []
        pool().threads.submit(store.settle, owed)


class Room:
    """The memory of this child's device, as its worker is told of it: no oftener than a worker can tell others."""

    def __init__(self, device: Device) -> None:
        self._device, self._due = device, -math.inf

    def told(self) -> dict[str, int]:
        """Bytes by name; nothing where the last ones are young. The driver takes as long over it as over a kernel."""
        now = time.monotonic()
        if self._device == "cpu" or now < self._due:
            return {}
        self._due = now + TOLD_EVERY_S
        free, total = gpu_memory.memory()
        return {"bytes_free": free, "bytes_total": total}


def _say(lines: Any, message: dict[str, Any]) -> None:
    lines.write(json.dumps(message) + "\n")
    lines.flush()


def cpu_name() -> str:
    """The model of this machine's processor."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main(sys.argv[1:])
