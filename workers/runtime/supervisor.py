"""Starts one worker per visible GPU (or several) and N CPU workers, starts them again, and stops them all.

    python -m workers.runtime.supervisor [--cpu-workers N] [--no-gpu]

Whoever dies takes along what he started: the kernel sends SIGKILL down the chain service, worker, child. A job that
was running is lost by its worker and found by another's janitor.
"""

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field, replace

from workers.runtime import devices, logs
from workers.runtime.config import Settings
from workers.runtime.process import cpus, program
from workers.runtime.redis_server import EmbeddedRedis
from workers.runtime.signals import signals

POLL_S = 0.05
FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
STEADY_S = 60.0
"""A worker that lived so long starts again with the first delay."""
FORCED_S = 3.0
log = logging.getLogger(__name__)


@dataclass
class _Place:
    """Where one worker runs, and how its starts went."""

    arguments: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    due: float = 0.0
    delay_s: float = FIRST_DELAY_S
    starts: int = field(default=0)


class Supervisor:
    """Keeps the workers of one machine alive. `settings.redis_url` must be set.

    Args:
        settings: passed on to every worker through its environment.
        cpu_workers: how many; None for one per four cores, at least two, so that there is an elsewhere for the job
            of one that dies. Two workers may use each core: solves pause, and one alone should have the machine.
        gpus: UUIDs; None for all that are visible. Each worker gets `settings.gpus_per_worker` of them, the last what
            is left; `settings.workers_per_gpu` workers get the same ones.
    """

    def __init__(self, settings: Settings, cpu_workers: int | None = None, gpus: list[str] | None = None) -> None:
        self._environ = os.environ | settings.to_env()
        self._settings = settings
        workers = max(2, cpus() // 4) if cpu_workers is None else cpu_workers
        threads = max(1, cpus() // max(1, workers // 2))
        self._places = [_Place(["--device", "cpu", "--threads", str(threads)]) for _ in range(workers)]
        self._look_for_gpus = gpus is None
        self._add(gpus or [])
        self._stopping = threading.Event()
        self._drain = True
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the workers and watch them from a thread of this process."""
        # The watching thread starts every worker: a worker dies with the thread that started it.
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._thread.start()

    def stop(self, drain: bool = True) -> None:
        """Stop every worker; running jobs get `drain_s` when `drain`, then go back to the queue."""
        self._drain = drain
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def alive(self) -> list[int]:
        """Process ids of the workers that run."""
        processes = [place.process for place in self._places]
        return [process.pid for process in processes if process is not None and process.poll() is None]

    def restarts(self) -> int:
        """How often a worker had to be started again."""
        return sum(max(0, place.starts - 1) for place in self._places)

    def _add(self, uuids: list[str]) -> None:
        size = max(1, self._settings.gpus_per_worker)
        shares = [uuids[k : k + size] for k in range(0, len(uuids), size)]
        sharers = max(1, self._settings.workers_per_gpu)
        self._places += [
            _Place(["--device", "gpu", "--gpu", ",".join(share)]) for share in shares for _ in range(sharers)
        ]
        ready, pinned = self._settings.ready_bytes, self._settings.pinned_bytes
        each = replace(
            self._settings, ready_bytes=ready // max(1, len(shares) * sharers), pinned_bytes=pinned // sharers
        )
        self._environ |= each.to_env()

    def _watch(self) -> None:
        for place in self._places:
            self._tend(place)
        if self._look_for_gpus:  # the driver may take a second to say, for which workers on CPUs need not wait
            self._add([gpu.uuid for gpu in devices.visible_gpus()])
            for place in self._places:
                self._tend(place)
        while not self._stopping.wait(POLL_S):
            for place in self._places:
                self._tend(place)
        self._end()

    def _tend(self, place: _Place) -> None:
        now = time.monotonic()
        if place.process is not None:
            code = place.process.poll()
            if code is None:
                return
            steady = now - place.started > STEADY_S
            place.delay_s = FIRST_DELAY_S if steady else min(LONGEST_DELAY_S, 2 * place.delay_s)
            place.due = now + place.delay_s
            place.process = None
            log.warning("worker %s ended with %s; again in %.1f s", place.arguments, code, place.delay_s)
        if now >= place.due:
            place.process = subprocess.Popen(
                program("workers.runtime.worker", "--parent", str(os.getpid()), *place.arguments),
                env=self._environ,
                stdin=subprocess.DEVNULL,
                process_group=0,  # a Ctrl-C in the terminal is for the service alone
            )
            place.started = now
            place.starts += 1

    def _end(self) -> None:
        waits = [self._settings.drain_s if self._drain else 0.0, FORCED_S]
        for wait_s in waits:
            self._signal(signal.SIGTERM)
            give_up = time.monotonic() + wait_s
            while self.alive() and time.monotonic() < give_up:
                time.sleep(POLL_S)
        self._signal(signal.SIGKILL)
        for place in self._places:
            if place.process is not None:
                place.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def main() -> None:
    """Run workers in the foreground, with a Redis of their own when no ALLOT_REDIS_URL is set."""
    parser = argparse.ArgumentParser(description="Run Allot's workers on this machine.")
    parser.add_argument("--cpu-workers", type=int, help="one per four cores, at least two, when left out")
    parser.add_argument("--no-gpu", action="store_true", help="leave the GPUs alone")
    arguments = parser.parse_args()
    logs.configure(logging.INFO)
    settings = Settings.from_env()
    with signals() as (asked, _), contextlib.ExitStack() as stack:
        if not settings.redis_url:
            settings = settings.with_redis(stack.enter_context(EmbeddedRedis(settings.data_dir, fsync=settings.fsync)))
        supervisor = Supervisor(settings, arguments.cpu_workers, [] if arguments.no_gpu else None)
        supervisor.start()
        stack.callback(supervisor.stop)
        asked.wait()


if __name__ == "__main__":
    main()
