"""The worker: an rq.Worker whose work-horse is a persistent child, pinned to its GPUs or to a share of the cores.

The parent keeps RQ's books, beats its heart, enforces deadlines and recovers other workers' jobs (the janitor). It
imports neither cupy nor numba, so that nothing that a kernel does can take it down. What RQ calls "work-horse
finished" is here "the child answered"; what it calls "killed" is "the child is gone".

    python -m workers.gpu_worker --device cpu|gpu [--gpu UUID[,UUID]] [--threads N]
"""

import argparse
import contextlib
import json
import logging
import os
import signal
import threading
import time
import uuid
from collections.abc import Sequence
from types import FrameType
from typing import Any

import redis
from rq import Worker
from rq.exceptions import StopRequested
from rq.executions import Execution
from rq.job import Job as RqJob
from rq.queue import Queue
from rq.serializers import JSONSerializer
from rq.timeouts import HorseMonitorTimeoutException
from rq.utils import now
from rq.worker.base import WorkerStatus

from workers import devices
from workers.allowed import AllowedJob, NoPenalty
from workers.config import Settings
from workers.connection import connect
from workers.failure import CANCELLED, SHUTDOWN, STOPPED, Failure, device_lost, died, overran
from workers.janitor import Janitor
from workers.job import Device
from workers.link import ChildFailed, Link
from workers.process import cpus, die_with, host_bytes, with_threads
from workers.records import Records

EXIT_NO_CHILD = 75
EXIT_SILENT = 1 << 8
"""As os.wait has it: what a child is taken to have died of that left in peace, but without an answer."""
LIFE_S = 60
"""Of RQ's own entry for a worker; ours in allot:workers carries the time of each heartbeat."""
DEQUEUE_S = 1
log = logging.getLogger(__name__)


class PinnedWorker(Worker):  # type: ignore[misc]
    """One queue, one child, one job at a time."""

    job_class = AllowedJob
    death_penalty_class = NoPenalty
    max_connection_wait_time = 2.0
    log_result_lifespan = False
    log_job_description = False

    def __init__(self, settings: Settings, device: Device, threads: int, gpus: Sequence[devices.Gpu] = ()) -> None:
        super().__init__(
            [device],
            name=f"{device}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
            connection=connect(settings.redis_url, text=False),
            serializer=JSONSerializer,
            worker_ttl=DEQUEUE_S + 15,  # RQ blocks for 15 s less than this, and we beat after each block
            job_monitoring_interval=max(1, int(settings.heartbeat_s)),
        )
        self.settings = settings
        self.device: Device = device
        self._gpus = gpus
        self._redis = connect(settings.redis_url)
        self._records = Records(self._redis)
        self._host_bytes = host_bytes()
        self._published = 0.0
        self._outcome: str | None = None
        self._why_killed: Failure | None = None
        environ = with_threads(os.environ | settings.to_env(), threads)
        if gpus:
            environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in gpus)
        environ.setdefault("CUPY_CACHE_DIR", str(settings.data_dir / "cupy"))
        self.link = Link(device, environ)

    def serve(self) -> None:
        """Start the child, then work until asked to stop. Raises ChildFailed."""
        self._install_signal_handlers()
        self._ensure_child()
        janitor = threading.Thread(target=Janitor(self.settings).run, name="janitor", daemon=True)
        janitor.start()
        try:
            self.work(logging_level="WARNING")
        finally:
            self.link.end()
            with contextlib.suppress(redis.RedisError):
                self._redis.hdel("allot:workers", self.name)

    def _ensure_child(self, job: RqJob | None = None) -> None:
        """Start a child when there is none; `job` is the one that waits for it."""
        if not self.link.alive:
            self.link.start(self.settings.warm_up_s, lambda: self._while_starting(job), self.settings.heartbeat_s)

    def _while_starting(self, job: RqJob | None) -> None:
        if self._stop_requested:
            self.link.kill()
        elif job is not None:
            assert self.execution is not None
            self.maintain_heartbeats(job, self.execution)
        elif self.birth_date is not None:
            with contextlib.suppress(redis.RedisError):
                self.heartbeat()

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        """First signal: leave after the job in hand (the flag is read before each dequeue; Redis is not asked here)."""
        self._stop_requested = True
        signal.signal(signal.SIGINT, self.request_force_stop)
        signal.signal(signal.SIGTERM, self.request_force_stop)

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        """Second signal: end the child too; its job goes back to the queue and loses no attempt."""
        self._why_killed = SHUTDOWN
        self.link.kill()

    @property
    def should_run_maintenance_tasks(self) -> bool:
        """RQ asks before every dequeue: where a worker can leave with no job in its hands. The janitor maintains."""
        if self._stop_requested:
            raise StopRequested
        return False

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """Beat in RQ's books and in ours; RQ asks for it five times a job, which is four too many for a short one."""
        due = time.monotonic() - self._published > 0.5 * self.settings.heartbeat_s
        if due or pipeline is not None:
            super().heartbeat(LIFE_S, pipeline=pipeline)
        if due:
            self._published = time.monotonic()
            self._redis.hset("allot:workers", self.name, json.dumps(self._public()))

    def set_state(self, state: str, pipeline: Any = None) -> None:
        """Tell RQ's books of a new state, once."""
        if state != self.get_state():
            super().set_state(state, pipeline=pipeline)

    def unsubscribe(self) -> None:
        """Leave RQ's command channel without waiting a second for its thread, which ends with the process."""
        if self.pubsub_thread:
            self.pubsub_thread.stop()

    def check_for_suspension(self, burst: bool) -> None:
        """`rq suspend` is not for Allot: stop the supervisor instead."""

    def _public(self) -> dict[str, Any]:
        gpu = None
        if self._gpus:  # the first is the one on which all solve; few can use the others
            known = ("bytes_free", "bytes_total", "name")
            told = {name: self.link.told[name] for name in known if name in self.link.told}
            gpu = self._gpus[0].to_json() | told | {"count": len(self._gpus)}
        return {
            "device": self.device,
            "queue": self.device,
            "state": str(getattr(self.get_state(), "value", self.get_state())),
            "heartbeat": time.time(),
            "host_bytes": self._host_bytes,
            "gpu": gpu,
            "broken": self.link.told.get("broken", {}),
        }

    def get_heartbeat_ttl(self, job: RqJob, working_time: float = 0.0) -> int:
        """How long this worker may be silent before its job counts as lost."""
        return max(2, int(self.settings.lost_after_s))

    def maintain_heartbeats(self, job: RqJob, execution: Execution) -> None:
        """Called each second of a job: beat, and kill a child that ignores its deadline or a cancellation."""
        try:
            super().maintain_heartbeats(job, execution)
            cancelled = self._redis.hget(f"allot:job:{job.id}", "cancel")
        except (redis.ConnectionError, redis.TimeoutError) as error:
            log.warning("Redis is away during job %s: %s", job.id, error)
            return
        if job.started_at is not None and (now() - job.started_at).total_seconds() > job.timeout:
            self._kill_for(overran(self.settings.hard_margin_s))
        elif cancelled is not None and time.time() - float(cancelled) > self.settings.cancel_grace_s:
            self._kill_for(CANCELLED)

    def _kill_for(self, why: Failure) -> None:
        self._why_killed = why
        self.link.kill()

    def execute_job(self, job: RqJob, queue: Queue) -> None:
        """Hand the job to the child, wait for it, and keep RQ's books of what came of it."""
        self._forget_last_job()
        execution = self.prepare_execution(job)
        self.prepare_job_execution(job, remove_from_intermediate_queue=True)
        self.fork_work_horse(job, queue)
        self.monitor_work_horse(job, queue, execution)
        if self._outcome == "fenced":
            self._drop_execution(job, execution)
        elif self._outcome is not None:
            self._close_books(job, execution)
        self.set_state(WorkerStatus.IDLE)
        if not self._stop_requested:
            self._ensure_child()

    def _forget_last_job(self) -> None:
        self._outcome = None
        self._why_killed = None

    def fork_work_horse(self, job: RqJob, queue: Queue) -> None:
        """No fork: send the job to the child that is there."""
        assert self.execution is not None
        self._ensure_child(job)
        self._horse_pid = self.link.pid
        self.link.send({"job": job.id, "execution": self.execution.id})

    def wait_for_horse(self) -> tuple[int | None, int | None, None]:
        """The child's answer as an exit status: 0 when it has one, else what it died of.

        Raises:
            HorseMonitorTimeoutException: nothing yet; RQ then beats the heart and asks again.
        """
        try:
            message = self.link.hear(self.settings.heartbeat_s)
        except EOFError:
            return self.link.pid, self.link.reap() or EXIT_SILENT, None
        if message is None:
            raise HorseMonitorTimeoutException
        if "lost" in message:
            self._why_killed = device_lost(message["lost"])
            return self.link.pid, self.link.reap(), None
        self._outcome = str(message["done"])
        return self.link.pid, os.EX_OK, None

    def kill_horse(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """RQ's stop command ends here."""
        self.link.kill()

    def handle_job_failure(
        self,
        job: RqJob,
        queue: Queue,
        started_job_registry: Any = None,
        exc_string: str = "",
        execution: Execution | None = None,
    ) -> None:
        """The child is gone: the job runs again, or fails for good, first in our record and then in RQ's books."""
        why = STOPPED if self._stopped_job_id == job.id else self._why_killed or died(exc_string)
        if why is SHUTDOWN:
            job.retries_left = (job.retries_left or 0) + 1
        elif why["code"] in ("deadline", "cancelled", "stopped"):
            job.retries_left = 0
        fate = self._records.lose(job.id, execution.id if execution else "", bool(job.should_retry), why)
        if fate in ("queued", "failed"):
            super().handle_job_failure(job, queue, started_job_registry, exc_string, execution)
        else:
            self._drop_execution(job, execution)

    def _close_books(self, job: RqJob, execution: Execution) -> None:
        """RQ's handle_job_success without dependents, results and repeats, of which our jobs have none: one trip."""
        with self.connection.pipeline() as pipeline:
            self.increment_successful_job_count(pipeline)
            self.cleanup_execution(job, pipeline, execution)
            pipeline.delete(job.key, job.execution_registry.key)
            pipeline.execute()

    def _drop_execution(self, job: RqJob, execution: Execution | None) -> None:
        """This run of the job counts for nothing: another has it, or its owner has dropped it."""
        with self.connection.pipeline() as pipeline:
            self.cleanup_execution(job, pipeline, execution)
            pipeline.execute()


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
    worker = PinnedWorker(Settings.from_env(), arguments.device, arguments.threads, gpus)
    try:
        worker.serve()
    except ChildFailed as error:
        log.error("%s", error)
        raise SystemExit(EXIT_NO_CHILD) from error


if __name__ == "__main__":
    main()
