"""What a tiny job takes of Redis and of the disk: while it waits, when it has its answer, and when it has expired.

    python -m benchmarks.footprint [--jobs 3000]

It starts a service of its own and submits assignments of 4 x 4 over HTTP while the one worker stands still; then the
worker goes on. A row is added for a Redis as the service starts it, and one for a Redis with its own defaults. Bytes
are those of Redis above what it held before, over the number of jobs, the jobs' arrays (`arrays`) included.
"""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import redis

from benchmarks.rows import Rows
from benchmarks.soak import Service

TTL_S = 40
ENVIRON = {
    "ALLOT_WARM_SOLVERS": "lap",
    "ALLOT_RESULT_TTL_S": str(TTL_S),
    "ALLOT_BLOB_TTL_S": str(TTL_S),
    "ALLOT_MAX_QUEUED": "1000000",
    "ALLOT_LOST_AFTER_S": "60",
}
DEFAULTS = {"hash-max-ziplist-value": 64, "stream-node-max-bytes": 4096}
"""Of a Redis that nobody configured."""
COST = [[0.25, 1.5, 2.75, 3.125], [4.5, 1.25, 3.5, 0.125], [2.5, 2.25, 1.75, 1.125], [0.5, 3.75, 1.0, 2.0]]
ARRAYS = 4 * 4 * 8


def measured(configured: dict[str, int], count: int) -> dict[str, Any]:
    """Bytes of Redis a job in each stage of its life, and files."""
    with tempfile.TemporaryDirectory(prefix="allot-footprint-") as folder:
        service = Service(Path(folder), 1, ENVIRON)
        try:
            service.ready()
            with redis.Redis.from_url(service.redis_url, decode_responses=True) as client:
                for name, value in configured.items():
                    client.config_set(name, value)
                return _stages(service, client, count)
        finally:
            service.stop()


def _stages(service: Service, client: Any, count: int) -> dict[str, Any]:
    job = {"solver": "lap", "inputs": {"cost": COST}}
    with httpx.Client(base_url=service.url, timeout=60) as http:
        http.post("/v1/jobs", json=job, headers={"Prefer": "wait=30"}).raise_for_status()
        (worker,) = service.processes()["worker"]
        before = _bytes(client)
        os.kill(worker.pid, signal.SIGSTOP)
        try:
            for _ in range(count):
                http.post("/v1/jobs", json=job).raise_for_status()
            waiting, held = _bytes(client), _files(service)
        finally:
            os.kill(worker.pid, signal.SIGCONT)
        while client.zcard("allot:active"):
            time.sleep(0.2)
        time.sleep(1)
        ended, kept = _bytes(client), _files(service)
        time.sleep(TTL_S + 3)
        expired = _bytes(client)
    stages = {"waiting": waiting, "ended": ended, "expired": expired}
    told = {name: round((there - before) / count) for name, there in stages.items()}
    return {**told, "arrays": ARRAYS, "files_waiting": held, "files_ended": kept}


def _bytes(client: Any) -> int:
    told = client.info("memory")
    return int(told["used_memory"]) - sum(int(told[name]) for name in ("mem_clients_normal", "mem_aof_buffer"))


def _files(service: Service) -> int:
    return sum(path.is_file() for path in (service.folder / "data/blobs").rglob("*"))


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=3000)
    count = parser.parse_args().jobs
    rows = Rows("footprint")
    for name, configured in (("as the service starts it", {}), ("with its defaults", DEFAULTS)):
        rows.add(what="a tiny job in Redis", redis=name, jobs=count, **measured(configured, count))


if __name__ == "__main__":
    main()
