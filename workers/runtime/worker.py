"""The worker: it takes jobs one at a time and hands each to a persistent child, pinned to its GPUs or to a share of
the cores.

The parent renews its claim on the job in hand, enforces deadlines and recovers other workers' jobs (the janitor). It
imports neither cupy nor numba, so that nothing that a kernel does can take it down. Of RQ it knows the verbs of
workers/rq alone.

    python -m workers.runtime.worker --device cpu|gpu [--gpu UUID[,UUID]] [--threads N]
"""

import argparse
import contextlib
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

import redis

from workers.jobs.failure import SHUTDOWN, STOPPED, Failure, device_lost, died
from workers.jobs.janitor import Janitor
from workers.jobs.job import Device
from workers.jobs.records import Records
from workers.rq import Hands, Held
from workers.runtime import devices
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.runtime.link import ChildFailed, Link
from workers.runtime.patience import Patience
from workers.runtime.process import cpus, die_with, host_bytes, with_threads

EXIT_NO_CHILD = 75
EXIT_REDIS_AWAY = 69
AWAY_S = 1.0
"""Between two attempts to take a job while Redis is away."""
AWAY = (redis.ConnectionError, redis.TimeoutError)
FINAL = ("deadline", "cancelled", "stopped")
"""What ended the child would end the next one too, or was asked for."""
log = logging.getLogger(__name__)


class PinnedWorker:
    """One queue, one child, one job at a time."""

    def __init__(self, settings: Settings, device: Device, threads: int, gpus: Sequence[devices.Gpu] = ()) -> None:
        self.settings = settings
        self.device: Device = device
        self._gpus = gpus
        self._redis = connect(settings.redis_url)
        self._records = Records(self._redis)
        self._host_bytes = host_bytes()
        self._stop_requested = False
        self._published = 0.0
        self._held: Held | None = None
        self._why_killed: Failure | None = None
        environ = with_threads(os.environ | settings.to_env(), threads)
        if gpus:
            environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in gpus)
        environ.setdefault("CUPY_CACHE_DIR", str(settings.data_dir / "cupy"))
        self.link = Link(device, environ)
        raw = connect(settings.redis_url, text=False)
        self._hands = Hands(device, raw, lost_after_s=settings.lost_after_s, stop=self.link.kill)

    def serve(self) -> None:
        """Start the child, then work until asked to stop. Raises ChildFailed."""
        signal.signal(signal.SIGINT, self.request_stop)
        signal.signal(signal.SIGTERM, self.request_stop)
        self._ensure_child()
        janitor = threading.Thread(target=Janitor(self.settings).run, name="janitor", daemon=True)
        janitor.start()
        try:
            with self._hands:
                while not self._stop_requested:
                    self._turn()
        finally:
            self.link.end()
            with contextlib.suppress(redis.RedisError):
                self._redis.hdel("allot:workers", self._hands.name)

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        """First signal: leave after the job in hand (the flag is read before each take; Redis is not asked here)."""
        self._stop_requested = True
        signal.signal(signal.SIGINT, self.request_force_stop)
        signal.signal(signal.SIGTERM, self.request_force_stop)

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        """Second signal: end the child too; its job goes back to the queue and loses no attempt."""
        self._kill_for(SHUTDOWN)

    def _kill_for(self, why: Failure) -> None:
        self._why_killed = why
        self.link.kill()

    def _ensure_child(self) -> None:
        """Start a child when there is none; a job in hand waits for it."""
        if not self.link.alive:
            self.link.start(self.settings.warm_up_s, self._while_starting, self.settings.heartbeat_s)

    def _while_starting(self) -> None:
        if self._stop_requested:
            self.link.kill()
        elif self._held is not None:
            self._renew(self._held)
        elif self._published:
            with contextlib.suppress(redis.RedisError):
                self._beat()

    def _turn(self) -> None:
        """Wait for a job, and see it through. What Redis does not hear of counts as lost, and the janitor finds it."""
        try:
            self._beat()
            self._held = self._hands.take()
            if self._held is not None:
                self._work(self._held)
        except AWAY as error:
            log.warning("Redis is away: %s", error)
            time.sleep(AWAY_S)
        self._held = None
        if not self._stop_requested:
            self._ensure_child()

    def _work(self, held: Held) -> None:
        """Hand the job to the child, wait for its answer, and give the job back with what came of it."""
        self._why_killed = None
        self._ensure_child()
        self.link.send({"job": held.job_id, "execution": held.execution})
        try:
            outcome = self._answer(held)
        except EOFError:
            self._lose(held, self.link.reap())
            return
        held.done("dropped" if outcome == "fenced" else "ended")

    def _answer(self, held: Held) -> str:
        """What the child says of the job. Raises EOFError when it is gone, or about to go."""
        begun = time.monotonic()
        patience = Patience(self.settings.hard_margin_s, self.settings.cancel_grace_s)
        while (message := self.link.hear(self.settings.heartbeat_s)) is None:
            if self._renew(held):
                self._kill_if_overdue(held, patience, time.monotonic() - begun)
        if "lost" in message:
            self._why_killed = device_lost(message["lost"])
            raise EOFError
        return str(message["done"])

    def _renew(self, held: Held) -> bool:
        """Called each second of a job, to keep it; False while Redis is away."""
        try:
            held.renew()
            self._publish()
        except AWAY as error:
            log.warning("Redis is away during job %s: %s", held.job_id, error)
            return False
        return True

    def _kill_if_overdue(self, held: Held, patience: Patience, ran_s: float) -> None:
        """Kill a child that is taken for hung (workers/runtime/patience.py)."""
        with contextlib.suppress(*AWAY):
            why = patience.over(ran_s, time.time(), self._records.awaited(held.job_id))
            if why is not None:
                self._kill_for(why)

    def _lose(self, held: Held, last: str) -> None:
        """The child is gone: the job runs again, or fails for good, first in our record and then in RQ's books."""
        why = STOPPED if held.stopped else self._why_killed or died(last)
        log.warning("job %s lost its child, which ended with %s (%s)", held.job_id, last, why["code"])
        again = why is SHUTDOWN or (held.may_run_again and why["code"] not in FINAL)
        fate = self._records.lose(held.job_id, held.execution, again, why)
        if fate == "queued":
            held.done("again", why["detail"], counts=why is not SHUTDOWN)
        else:
            held.done("failed" if fate == "failed" else "dropped", why["detail"])

    def _beat(self) -> None:
        """Stay listed while no job is in hand."""
        if self._due():
            self._hands.beat()
            self._publish()

    def _due(self) -> bool:
        return time.monotonic() - self._published > 0.5 * self.settings.heartbeat_s

    def _publish(self) -> None:
        if self._due():
            self._published = time.monotonic()
            self._redis.hset("allot:workers", self._hands.name, json.dumps(self._public()))

    def _public(self) -> dict[str, Any]:
        gpu = None
        if self._gpus:  # the first is the one on which all solve; few can use the others
            known = ("bytes_free", "bytes_total", "name")
            told = {name: self.link.told[name] for name in known if name in self.link.told}
            gpu = self._gpus[0].to_json() | told | {"count": len(self._gpus)}
        return {
            "device": self.device,
            "queue": self.device,
            "state": "idle" if self._held is None else "busy",
            "heartbeat": time.time(),
            "host_bytes": self._host_bytes,
            "gpu": gpu,
            "broken": self.link.told.get("broken", {}),
        }


def main() -> None:
    """Run one worker until it is told to stop, or whoever started it is gone."""
    parser = argparse.ArgumentParser(description="Run one Allot worker.")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--gpu", help="UUIDs of its GPUs, by commas; the first visible one when left out")
    parser.add_argument("--threads", type=int, default=cpus(), help="of a CPU worker")
    parser.add_argument("--parent", type=int, help="process id of the supervisor, with which this worker dies")
    arguments = parser.parse_args()
    if arguments.parent:
        die_with(arguments.parent)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    gpus = []
    if arguments.device == "gpu":
        visible = {gpu.uuid: gpu for gpu in devices.visible_gpus()}
        wanted = arguments.gpu.split(",") if arguments.gpu else list(visible)[:1]
        gpus = [visible[name] for name in wanted if name in visible]
        if not gpus or len(gpus) < len(wanted):
            parser.error(f"there is no GPU {', '.join(name for name in wanted if name not in visible)} here")
    try:
        PinnedWorker(Settings.from_env(), arguments.device, arguments.threads, gpus).serve()
    except ChildFailed as error:
        log.error("%s", error)
        raise SystemExit(EXIT_NO_CHILD) from error
    except redis.RedisError as error:
        log.error("Redis does not answer: %s", error)
        raise SystemExit(EXIT_REDIS_AWAY) from error


if __name__ == "__main__":
    main()
