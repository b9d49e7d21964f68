"""One owner attacks, another goes on working: what the second one feels of it.

    python -m tests.attack.neighbour [--requests 34000] [--seconds 300]

A service of its own on this machine gets two owners. The second one submits, polls, streams and fetches all the time,
first alone and then beside the attack (flood.py), from another address. Told are the answers that the attacker got,
the slowest answer to each request of the second owner, by how much it is later than the usual one of a quiet service,
how late their jobs start once a worker is free, and what the API and its clerks grew by. `--row` keeps the figures.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import redis

from benchmarks.rows import Rows
from benchmarks.soak import Service
from tests.attack.hostile import SMALL
from tests.weight import Weight
from workers.runtime.keyring import Keyring

ATTACKER, NEIGHBOUR = "eve", "bob"
ADDRESS = "127.0.0.2"
"""Whence the second owner asks: connections are counted by address."""
QUIET_S = 15.0
MOST_LATER_S = 1.0
MOST_GROWN_MIB = 200.0
"""By the whole attack: hundreds of bodies, streams and connections at once. One body below 1 MiB may cost 100 MB, which
tests/app/test_growth.py holds each to."""
ENVIRON = {"ALLOT_API_KEYS_IN_REDIS": "1", "ALLOT_WARM_SOLVERS": "lap,qap", "ALLOT_MCP": "1"}
Taken = dict[str, list[float]]


class Neighbour:
    """The second owner: two clients, one that polls and one that follows events."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key
        self._ended = threading.Event()
        self.taken: Taken = defaultdict(list)
        self.wrong: list[str] = []
        self.jobs: list[str] = []
        self._threads = [threading.Thread(target=self._work, args=(end,)) for end in (self._poll, self._follow)]

    def __enter__(self) -> "Neighbour":
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        for one in self._threads:
            one.join()

    def _work(self, end: Any) -> None:
        transport = httpx.HTTPTransport(local_address=ADDRESS)
        headers = {"Authorization": f"Bearer {self._key}"}
        with httpx.Client(transport=transport, base_url=self._url, headers=headers, timeout=60) as client:
            while not self._ended.is_set():
                try:
                    answer = self._timed(client, "submit", "POST", "/v1/jobs", content=SMALL,
                                         headers={"Content-Type": "application/json"})  # fmt: skip
                    job = answer.json()["id"]
                    self.jobs.append(job)
                    end(client, job)
                    self._timed(client, "fetch", "GET", f"/v1/jobs/{job}/result")
                except (httpx.HTTPError, KeyError, ValueError) as error:
                    self.wrong.append(repr(error)[:300])
                self._ended.wait(0.02)

    def _poll(self, client: httpx.Client, job: str) -> None:
        while self._timed(client, "poll", "GET", f"/v1/jobs/{job}").json()["ended_at"] is None:
            time.sleep(0.02)

    def _follow(self, client: httpx.Client, job: str) -> None:
        begun = time.monotonic()
        with client.stream("GET", f"/v1/jobs/{job}/events") as stream:
            stream.raise_for_status()
            lines = stream.iter_lines()
            next(lines)
            self.taken["stream"].append(time.monotonic() - begun)
            for _ in lines:
                pass

    def _timed(self, client: httpx.Client, what: str, verb: str, path: str, **more: Any) -> httpx.Response:
        begun = time.monotonic()
        answer = client.request(verb, path, **more)
        self.taken[what].append(time.monotonic() - begun)
        if answer.status_code >= 400:
            raise ValueError(f"{answer.status_code} {verb} {path}: {answer.text[:200]}")
        return answer


@contextmanager
def owners(folder: Path) -> Iterator[tuple[Service, str, str]]:
    """A service with two workers, and the keys of both owners."""
    service = Service(folder, 2, ENVIRON)
    try:
        service.ready()
        ring = Keyring(service.redis_url)
        yield service, ring.create(ATTACKER)[0], ring.create(NEIGHBOUR)[0]
    finally:
        service.stop()


def attacked(service: Service, key: str, requests: int, seconds: float) -> dict[str, Any]:
    """Attack; what the attacker says of it."""
    command = [sys.executable, "-m", "tests.attack.flood", service.url, key]
    command += ["--requests", str(requests), "--seconds", str(seconds)]
    told: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told


def lateness(service: Service, jobs: list[str]) -> tuple[float, float]:
    """How long jobs waited at most, and how long they still waited when a worker was free, by Redis's books."""
    with redis.Redis.from_url(service.redis_url, decode_responses=True) as client:
        ends = []
        for key in client.scan_iter("allot:job:*", count=1000):
            ended, started = client.hmget(key, "ended_at", "started_at")
            if ended and started:
                ends.append(float(ended))
        times = [client.hmget(f"allot:job:{job}", "created_at", "started_at") for job in jobs]
    ends.sort()
    waited = late = 0.0
    for created, started in ((float(one), float(two)) for one, two in times if one and two):
        free = next((end for end in itertools.islice(ends, _behind(ends, created), None)), started)
        waited, late = max(waited, started - created), max(late, started - max(created, min(free, started)))
    return waited, late


def _behind(ends: list[float], moment: float) -> int:
    return next((k for k, end in enumerate(ends) if end >= moment), len(ends))


def measure(folder: Path, requests: int, seconds: float, quiet_s: float = QUIET_S) -> dict[str, Any]:
    """All figures of one run."""
    with owners(folder) as (service, eve, bob):
        with Neighbour(service.url, bob) as alone:
            time.sleep(quiet_s)
        begun = time.monotonic()
        with Neighbour(service.url, bob) as beside, Weight(service.process.pid) as weight:
            told = attacked(service, eve, requests, seconds)
        took = time.monotonic() - begun
        waited, late = lateness(service, beside.jobs)
        ready = httpx.get(f"{service.url}/readyz", timeout=10).status_code
    usual = {what: statistics.median(taken) for what, taken in alone.taken.items()}
    slowest = {what: max(taken) for what, taken in beside.taken.items()}
    log = (folder / "log").read_text()
    return {
        "requests": told["sent"], "seconds": round(took, 1), "statuses": told["statuses"],
        "faults": told["statuses"].get("500", 0), "shown": told["faults"],
        "tracebacks": log.count("Traceback"),
        "first_traceback": log[log.index("Traceback") :][:3000] if "Traceback" in log else "",
        "neighbour_requests": sum(map(len, beside.taken.values())), "neighbour_wrong": alone.wrong + beside.wrong,
        "quiet_median_s": _rounded(usual), "quiet_slowest_s": _rounded({k: max(v) for k, v in alone.taken.items()}),
        "slowest_s": _rounded(slowest),
        "later_s": round(max(slowest[what] - usual[what] for what in usual), 3),
        "next_job_waited_s": round(waited, 3), "next_job_late_s": round(late, 3),
        **{f"{kind}_grown_mib": round(grown / 2**20, 1) for kind, grown in weight.grown.items()},
        "ready_afterwards": ready == 200,
    }  # fmt: skip


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


def broken(found: dict[str, Any], most_later_s: float = MOST_LATER_S) -> list[str]:
    """What does not hold."""
    checks = {
        "no answer is 500": not found["faults"] and not found["tracebacks"],
        "the second owner is always answered": not found["neighbour_wrong"],
        f"no answer is {most_later_s:g} s later": found["later_s"] <= most_later_s,
        "the next job starts soon": found["next_job_late_s"] <= most_later_s,
        f"the API grows by {MOST_GROWN_MIB:g} MiB at most": found["api_grown_mib"] <= MOST_GROWN_MIB,
        f"a clerk grows by {MOST_GROWN_MIB:g} MiB at most": found["clerk_grown_mib"] <= MOST_GROWN_MIB,
        "it is ready afterwards": found["ready_afterwards"],
    }
    return [name for name, holds in checks.items() if not holds]


def main() -> int:
    """Print the figures; 1 where something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=34_000)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--row", action="store_true", help="keep the figures in benchmarks/results/neighbour.jsonl")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="allot-neighbour-") as folder:
        found = measure(Path(folder), arguments.requests, arguments.seconds)
    print(json.dumps(found, indent=1))
    if arguments.row:
        Rows("neighbour").add(**found)
    wrong = broken(found)
    print("\n".join(f"does not hold: {one}" for one in wrong) or "all of it holds")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
