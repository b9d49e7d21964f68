"""What a worker does all day: it takes jobs, one at a time or small ones together, and sees its child through them.

It renews its claim on the job in hand, enforces deadlines and recovers other workers' jobs (the janitor). It imports
neither cupy nor numba, so that nothing that a kernel does can take it down. Of RQ it knows the verbs of workers/rq
alone.
"""

import contextlib
import json
import logging
import secrets
import signal
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

import redis

from workers.jobs.failure import SHUTDOWN, STOPPED, Failure, device_lost, died
from workers.jobs.fresh import WARMING
from workers.jobs.janitor import Janitor
from workers.jobs.job import Device
from workers.jobs.records import IDLE_S, Limits, Order, Records
from workers.rq import DEQUEUE_S, Hands, Held
from workers.runtime import devices
from workers.runtime.config import Settings
from workers.runtime.connection import connect
from workers.runtime.link import ChildFailed, Link
from workers.runtime.nvml import LastHour, Nvml
from workers.runtime.patience import Patience
from workers.runtime.post import Post
from workers.runtime.process import host_bytes

AWAY_S = 1.0
"""Between two attempts to take a job while Redis is away."""
AWAY = (redis.ConnectionError, redis.TimeoutError)
MOST_AT_ONCE = 64
"""Small jobs of one form that are taken together: what queued up meanwhile, so that none waits for company."""
FINAL = ("deadline", "cancelled", "stopped")
"""What ended the child would end the next one too, or was asked for."""
log = logging.getLogger("workers.runtime.worker")  # the name of the program that this is the work of


class PinnedWorker:
    """One queue, one child; one job at a time, or several small ones as if they were one."""

    def __init__(self, settings: Settings, device: Device, link: Link, gpus: Sequence[devices.Gpu] = ()) -> None:
        self.settings = settings
        self.device: Device = device
        self._gpus, self._nvml = gpus, Nvml([gpu.uuid for gpu in gpus])
        self._hour = LastHour()
        self._redis = connect(settings.redis_url)
        self._records = Records(self._redis)
        self._limits = Limits.of(settings)
        self._host_bytes = host_bytes()
        self._stop_requested = False
        self._published = 0.0
        self._listed = False
        self._held: list[Held] = []
        self._why_killed: Failure | None = None
        self._waits = False
        self._token = ""
        self.link = link
        raw = connect(settings.redis_url, text=False)
        self._hands = Hands(device, raw, lost_after_s=settings.lost_after_s, stop=self._stop)
        self._post = Post(self._redis, self._redis.blocking_pool, device, self._hands.name)

    def serve(self) -> None:
        """Wait for the child, then work until asked to stop. Raises ChildFailed."""
        signal.signal(signal.SIGINT, self.request_stop)
        signal.signal(signal.SIGTERM, self.request_stop)
        self._ensure_child()
        janitor = threading.Thread(target=Janitor(self.settings).run, name="janitor", daemon=True)
        janitor.start()
        try:
            with self._hands:
                self._listed = True
                self._post.open(self._name)
                while not self._stop_requested:
                    self._turn()
                self._leave()
        finally:
            self.link.end()
            self._post.close()
            with contextlib.suppress(redis.RedisError):
                self._redis.hdel("allot:workers", self._hands.name)
                self._redis.zrem(f"allot:idle:{self.device}", self._hands.name)

    @property
    def _name(self) -> str:
        return str(self.link.told.get("name", self.device))

    def _leave(self) -> None:
        """Be handed nothing more, and see through what was handed in the last moment."""
        with contextlib.suppress(*AWAY):
            self._post.leave()
            if orders := self._take(most=0):
                self._work(orders)

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        """First signal: leave after the job in hand (the flag is read before each take; Redis is not asked here)."""
        self._stop_requested = True
        signal.signal(signal.SIGINT, self.request_force_stop)
        signal.signal(signal.SIGTERM, self.request_force_stop)

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        """Second signal: end the child too; its job goes back to the queue and loses no attempt."""
        self._kill_for(SHUTDOWN)

    def _stop(self) -> None:
        """An operator stops the job in hand. The child is spared where the job has ended, as was not heard of yet."""
        if not self.link.is_done:
            self.link.kill()

    def _kill_for(self, why: Failure) -> None:
        self._why_killed = why
        self.link.kill()

    def _ensure_child(self) -> None:
        """Start a child when there is none; a job in hand waits for it."""
        if not self.link.ready:
            self.link.start(self.settings.warm_up_s, self._while_starting, self.settings.heartbeat_s)

    def _while_starting(self) -> None:
        if self._stop_requested:
            self.link.kill()
        elif self._held:
            self._renew()
        else:
            with contextlib.suppress(redis.RedisError):
                if self._listed:
                    self._beat()
                self._publish()

    def _turn(self) -> None:
        """Wait for a job, and see it through. What Redis does not hear of counts as lost, and the janitor finds it."""
        try:
            self._beat()
            orders = self._find()
            if orders:
                self._work(orders)
        except AWAY as error:
            log.warning("Redis is away: %s", error)
            time.sleep(AWAY_S)
        self._held = []
        self._hands.let_go()

    def _find(self) -> list[Order]:
        """Jobs to work on; none where a while went by without any.

        What is handed over while a child starts would be renewed by nobody, and count as lost: none may be.
        """
        waits, self._waits = self._waits, False
        if not self.link.alive:
            waits = False
            self._redis.zrem(f"allot:idle:{self.device}", self._hands.name)
            if orders := self._take(most=0):
                return orders
            self._ensure_child()
        return (not waits and self._take()) or self._next()

    def _take(self, most: int = MOST_AT_ONCE) -> list[Order]:
        """What this worker was handed and has not heard of, or jobs that wait; others learn where there are none."""
        self._token = self._token or secrets.token_hex(16)  # the same again where the last answer was lost
        orders = self._records.take(
            self.device, self._hands.name, self._name, self._token, self._limits, most=most, idle_s=IDLE_S
        )
        self._token = ""
        self._post.told([order.job_id for order in orders if order.is_straight])
        return self._held_now(orders)

    def _next(self) -> list[Order]:
        """What this worker, which is listed as waiting, is handed, or finds when it is called."""
        heard = self._post.wait(DEQUEUE_S)
        if isinstance(heard, bool):
            return self._take() if heard else []
        return self._held_now([heard])

    def _held_now(self, orders: list[Order]) -> list[Order]:
        self._held = [self._hands.hold(order.job_id, order.execution) for order in orders]
        return orders

    def _work(self, orders: list[Order]) -> None:
        """Hand jobs to the child and wait until it has written what came of them; the others are given back."""
        self._why_killed = None
        try:
            self._ensure_child()
        except ChildFailed as error:
            self._lose(orders, str(error))
            raise
        self.link.send({"worker": self._hands.name, "orders": orders})
        try:
            outcomes = self._outcomes()
        except EOFError:
            self._lose(orders, self.link.reap())
            return
        for held in self._held:
            if outcomes.get(held.job_id) != "done":
                held.done("dropped")

    def _outcomes(self) -> dict[str, str]:
        """What the child says of each job. Raises EOFError when it is gone, or about to go."""
        begun, every_s = time.monotonic(), min(self.settings.heartbeat_s, DEQUEUE_S)
        patience = {
            held.job_id: Patience(self.settings.hard_margin_s, self.settings.cancel_grace_s) for held in self._held
        }
        while "done" not in (message := self.link.hear(every_s, self._post.descriptor) or {}):
            if "lost" in message:
                self._why_killed = device_lost(message["lost"])
                raise EOFError
            if not message and self._renew():
                for held in self._held:
                    self._kill_if_overdue(held, patience[held.job_id], time.monotonic() - begun)
        # what ended long ago may have been heard of only now
        self._waits = message["waits"] and time.monotonic() - begun < every_s
        return dict(message["done"])

    def _renew(self) -> bool:
        """Called each second of a job, to keep it; False while Redis is away."""
        try:
            for held in self._held:
                held.renew()
            self._publish()
        except AWAY as error:
            log.warning("Redis is away during job %s: %s", self._held[0].job_id, error)
            return False
        return True

    def _kill_if_overdue(self, held: Held, patience: Patience, ran_s: float) -> None:
        """Kill a child that is taken for hung (workers/runtime/patience.py)."""
        with contextlib.suppress(*AWAY):
            why = patience.over(ran_s, self._redis.now(), self._records.awaited(held.job_id))
            if why is not None:
                self._kill_for(why)

    def _lose(self, orders: list[Order], last: str) -> None:
        """The child is gone: jobs run again, or fail for good, first in our record and then in RQ's books.

        Of several any may have killed it, so each runs again, alone, and none is charged an attempt. A child that died
        before it had heard of them was killed by none. They go back to the front of the queue, the last of them first.
        """
        killed = self._why_killed
        for order, held in reversed(list(zip(orders, self._held, strict=True))):
            why = STOPPED if held.stopped else killed or died(last)
            log.warning("job %s lost its child, which ended with %s (%s)", held.job_id, last, why["code"])
            again = why is SHUTDOWN or (order.runs_left > 0 and why["code"] not in FINAL)
            wanted = "stop" if why is STOPPED else "return" if not self.link.begun else "again" if again else "fail"
            fate = self._records.lose(held.job_id, held.execution, wanted, why)
            if fate in ("queued", "spared"):
                held.done("again", why["detail"], counts=fate == "queued" and self.link.begun and why is not SHUTDOWN)
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
            readings = self._nvml.readings()
            gpu = (
                self._gpus[0].to_json()
                | told
                | self._hour.of(readings)
                | {"count": len(self._gpus), "readings": readings}
            )
        return {
            "device": self.device,
            "queue": self.device,
            "state": self._state(),
            "heartbeat": self._redis.now(),
            "host_bytes": self._host_bytes,
            "gpu": gpu,
            "broken": self.link.told.get("broken", {}),
        }

    def _state(self) -> str:
        """A worker whose child is replaced stays what it was: jobs may wait for it."""
        if not self._listed:
            return f"{WARMING} {self.link.told.get('warming', '')}".rstrip()
        return "busy" if self._held else "idle"
