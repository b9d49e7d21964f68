"""RQ's names in Redis, as RQ itself has them, and the Lua that keeps its books within the scripts of a job's record."""

import functools
import time
from pathlib import Path

from rq.executions import Execution, ExecutionRegistry
from rq.job import Job
from rq.queue import Queue
from rq.registry import StartedJobRegistry
from rq.worker import Worker

from workers.rq.allowed import JOB_FUNCTION

BELL = "allot:bell:"
_NAMES = {
    "RQ_QUEUE": Queue.redis_queue_namespace_prefix,  # + queue: a list of the ids that wait
    "RQ_QUEUES": Queue.redis_queues_keys,
    "RQ_STARTED": StartedJobRegistry.key_template.format(""),  # + queue: job:execution by the time of its loss
    "RQ_JOB": Job.redis_job_namespace_prefix,  # + id: a hash
    "RQ_EXECUTION": Execution("", "", None).key.removesuffix(":"),  # + id:execution: a hash
    "RQ_EXECUTIONS": ExecutionRegistry.key_template.format(""),  # + id: the job's executions
    "RQ_WORKER": Worker.redis_worker_namespace_prefix,  # + name: a hash; its executions beside it
    "RQ_FUNCTION": JOB_FUNCTION,
    "RQ_BELL": BELL,  # + queue: a channel on which idle workers hear that the list has something for them
}

LUA = (
    "".join(f"local {name} = '{value}'\n" for name, value in _NAMES.items())
    + Path(__file__).with_name("books.lua").read_text()
)

RENEW = LUA + "redis.call('DEL', 'allot:nothing')\n" + Path(__file__).with_name("renew.lua").read_text()
"""A deletion first: after one, Redis refuses nothing for want of memory, and no job is lost with its heartbeat."""


def stamp() -> str:
    """This moment as RQ writes it."""
    second, microsecond = divmod(time.time_ns() // 1000, 1_000_000)
    return f"{_utc(second)}.{microsecond:06d}Z"


@functools.lru_cache(4)
def _utc(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
