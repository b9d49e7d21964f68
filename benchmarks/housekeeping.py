"""Whether housekeeping keeps up: jobs or uploads as fast as the service takes them, all due two seconds later.

    python -m benchmarks.housekeeping [--seconds 20]

It starts a service of its own with one worker. Each second it counts what has been due for more than a second and is
still there. A row has how many a second were taken, and the most that was ever overdue, in all and in the last
quarter of the time: where housekeeping falls behind, the latter is the larger and grows with `--seconds`.
"""

import argparse
import asyncio
import json
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from benchmarks.rows import Rows
from benchmarks.soak import Service
from benchmarks.waiters import Connection

CLIENTS = 32
LATE_S = 1.0
ENVIRON = {
    "ALLOT_WARM_SOLVERS": "lap",
    "ALLOT_RESULT_TTL_S": "2",
    "ALLOT_BLOB_TTL_S": "2",
    "ALLOT_TOMBSTONE_TTL_S": "1",
    "ALLOT_REQUESTS_PER_S": "0",
}
JOB = json.dumps({"solver": "lap", "inputs": {"cost": [[4, 1], [2, 0]]}}).encode()
HEADERS = "X-Dtype: uint8\r\nX-Shape: 20480\r\n"


def job() -> tuple[str, bytes, str]:
    return "/v1/jobs", JOB, ""


def upload() -> tuple[str, bytes, str]:
    """Bytes that nobody has."""
    return "/v1/blobs", secrets.token_bytes(20 << 10), HEADERS


async def flood(port: int, seconds: float, made: Callable[[], tuple[str, bytes, str]]) -> int:
    """How many were taken of those that CLIENTS connections sent, one after the other."""
    until, taken = time.monotonic() + seconds, 0

    async def client() -> None:
        nonlocal taken
        connection = await Connection(port).open()
        while time.monotonic() < until:
            path, body, headers = made()
            status, told = await connection.ask("POST", path, body, headers)
            if status in (200, 201, 202):
                taken += 1
            elif status == 429:
                await asyncio.sleep(0.1)
            else:
                raise RuntimeError(f"{status} {told[:200]!r}")
        connection.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return taken


async def overdue(client: Any, books: str, seconds: float) -> list[int]:
    """What has been due for more than LATE_S, each second."""
    seen = []
    for _ in range(int(seconds)):
        await asyncio.sleep(1)
        now = float(client.time()[0])
        seen.append(int(await asyncio.to_thread(client.zcount, books, "-inf", now - LATE_S)))
    return seen


def measured(
    service: Service, books: str, seconds: float, made: Callable[[], tuple[str, bytes, str]]
) -> dict[str, Any]:
    """One flood."""

    async def both() -> tuple[int, list[int]]:
        taken, seen = await asyncio.gather(flood(port, seconds, made), overdue(client, books, seconds))
        return taken, seen

    port = int(service.url.rpartition(":")[2])
    with redis.Redis.from_url(service.redis_url) as client:
        taken, seen = asyncio.run(both())
    last = seen[-max(1, len(seen) // 4) :]
    return {"a_second": round(taken / seconds), "most_overdue": max(seen), "overdue_in_last_quarter": max(last)}


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds
    rows = Rows("housekeeping")
    with tempfile.TemporaryDirectory(prefix="allot-housekeeping-") as folder:
        service = Service(Path(folder), 1, ENVIRON)
        try:
            service.ready()
            for what, books, made in (("jobs", "allot:expiry", job), ("uploads", "allot:blobs", upload)):
                rows.add(what=what, seconds=seconds, **measured(service, books, seconds, made))
        finally:
            service.stop()


if __name__ == "__main__":
    main()
