"""Two owners against each other on a live service, for as long as you like: shares of its workers against the weights.

    python -m benchmarks.fair --minutes 60

Each keeps a few jobs waiting all the time: quadratic assignments that take their whole time limit, which differs, and
assignments of a few milliseconds. What each had is what the service itself counts (`allot key limit OWNER`).
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import redis

from benchmarks.rows import Rows
from benchmarks.soak import ENVIRON, Service
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.runtime.keyring import Keyring

WEIGHTS = {"ann": 1, "bob": 3}
WAITING = 20
WITHIN = 0.1


def job(rng: np.random.Generator) -> dict[str, Any]:
    """Something to solve: half of the jobs are long."""
    if rng.random() < 0.5:
        cost = rng.integers(0, 100, (30, 30)).tolist()
        return {"solver": "lap", "inputs": {"cost": cost}}
    flow, distance = (rng.integers(1, 100, (20, 20)) for _ in range(2))
    inputs = {"flow": (flow + flow.T).tolist(), "distance": (distance + distance.T).tolist()}
    return {"solver": "qap", "inputs": inputs, "time_limit_s": float(rng.choice([0.3, 0.6, 1.2]))}


def keep_busy(client: httpx.Client, seed: int, until: float) -> None:
    """Have some jobs waiting until then."""
    rng, open_jobs = np.random.default_rng(seed), list[str]()
    while time.monotonic() < until:
        while len(open_jobs) < WAITING:
            answer = client.post("/v1/jobs", json=job(rng))
            answer.raise_for_status()
            open_jobs.append(answer.json()["id"])
        told = client.get(f"/v1/jobs/{open_jobs[0]}", params={"wait": 5})
        if told.status_code in (404, 410) or told.json()["state"] not in ("queued", "running"):
            open_jobs.pop(0)


def measure(service: Service, minutes: float) -> dict[str, float]:
    """Seconds of workers that each owner had."""
    jobs, ring = Jobs(Settings(redis_url=service.redis_url, data_dir=service.folder)), Keyring(service.redis_url)
    until, threads = time.monotonic() + 60 * minutes, []
    for seed, (owner, weight) in enumerate(WEIGHTS.items()):
        jobs.quotas.set(owner, {"weight": str(weight)})
        headers = {"Authorization": f"Bearer {ring.create(owner)[0]}"}
        client = httpx.Client(base_url=service.url, headers=headers, timeout=60)
        threads.append(threading.Thread(target=keep_busy, args=(client, seed, until)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = dict.fromkeys(WEIGHTS, 0.0)
    with redis.Redis.from_url(service.redis_url, decode_responses=True) as client:
        for key in client.scan_iter("allot:spent:cpu:*"):  # of two days, if midnight came between
            for owner, seconds in client.hgetall(key).items():
                found[owner] += float(seconds)
    return found


def main() -> int:
    """Record each owner's share over what it was to be; 1 when one is off by more than 10 %."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    environ = ENVIRON | {"ALLOT_API_KEYS_IN_REDIS": "1", "ALLOT_WARM_SOLVERS": "lap,qap"}
    with tempfile.TemporaryDirectory(prefix="allot-fair-") as folder:
        service = Service(Path(folder), args.workers, environ)
        try:
            service.ready()
            had = measure(service, args.minutes)
        finally:
            service.stop()
    total, weights = sum(had.values()), sum(WEIGHTS.values())
    shares = {owner: had[owner] / total / (weight / weights) for owner, weight in WEIGHTS.items()}
    Rows("fair").add(minutes=args.minutes, weights=WEIGHTS, seconds=had, share_over_weight=shares)
    return int(any(abs(share - 1) > WITHIN for share in shares.values()))


if __name__ == "__main__":
    sys.exit(main())
