"""How the API carries many who wait: a lone small job, jobs from 64 clients, thousands of long polls and streams.

    python -m benchmarks.waiters [--waiters 5000] [--jobs 600] [--api-workers 1]

It starts a service of its own in a temporary folder, speaks HTTP over plain sockets (so that the client costs little)
and prints one line a figure. Nothing is solved while the waiters hang on: their job sits behind one that is long.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import psutil

N = 32
READY_S = 300.0


class Connection:
    """One keep-alive connection to the service."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> "Connection":
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    def close(self) -> None:
        """Hang up."""
        self.writer.close()

    async def ask(self, verb: str, path: str, body: bytes = b"", headers: str = "") -> tuple[int, bytes]:
        """One request: (status, body); a body without a length is read to its last chunk."""
        head = f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + body)
        told = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = re.search(r"content-length: (\d+)", told)
        if length:
            return int(told[9:12]), await self.reader.readexactly(int(length[1]))
        return int(told[9:12]), await self.reader.readuntil(b"0\r\n\r\n") if "chunked" in told else b""


def small_job(seed: int) -> bytes:
    cost = [[(seed * 7919 + i * 104729 + j * 1299709) % 1000 for j in range(N)] for i in range(N)]
    return json.dumps({"solver": "lap", "inputs": {"cost": cost}}).encode()


def long_job(seconds: float) -> bytes:
    matrix = [[(i * 7 + j * 13) % 31 for j in range(40)] for i in range(40)]
    job = {"solver": "qap", "inputs": {"flow": matrix, "distance": matrix}, "time_limit_s": seconds}
    return json.dumps(job).encode()


@contextmanager
def service(api_workers: int) -> Iterator[tuple[int, psutil.Process]]:
    """A service with one CPU worker: (its port, its first process)."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
    env |= {"ALLOT_WARM_SOLVERS": "lap,qap"}
    with tempfile.TemporaryDirectory(prefix="allot-waiters-") as folder:
        command = [sys.executable, "-m", "app.cli.main", "serve", "--port", "0", "--workers", "1", "--data-dir", folder]
        command += ["--api-workers", str(api_workers)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
            assert process.stdout is not None
            found = re.search(r":(\d+)  ", process.stdout.readline())
            try:
                assert found is not None
                yield int(found[1]), psutil.Process(process.pid)
            finally:
                process.send_signal(signal.SIGTERM)


def api_processes(first: psutil.Process) -> list[psutil.Process]:
    """The processes that answer HTTP."""
    others = [child for child in first.children() if "app.cli" in " ".join(child.cmdline())]
    return others or [first]


async def until_ready(port: int) -> None:
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up:
        connection = await Connection(port).open()
        status, _ = await connection.ask("GET", "/readyz")
        connection.close()
        if status == 200:
            return
        await asyncio.sleep(0.5)
    raise TimeoutError("the service did not become ready")


async def lone(port: int, count: int) -> None:
    """The median of a lone small job, from POST to answer."""
    connection = await Connection(port).open()
    took = []
    for seed in range(count):
        body, begun = small_job(seed), time.perf_counter()
        status, _ = await connection.ask("POST", "/v1/jobs", body, "Prefer: wait=20\r\n")
        assert status == 200, status
        took.append(1000 * (time.perf_counter() - begun))
    print(f"lone small job: p50 {statistics.median(took):.1f} ms, best {min(took):.1f} ms")


async def crowd(port: int, processes: list[psutil.Process], clients: int, jobs: int) -> None:
    """Jobs a second that `clients` get answered, and CPU of the API a job."""
    seeds, statuses = iter(range(jobs)), []
    connections = [await Connection(port).open() for _ in range(clients)]
    cpu = sum(sum(one.cpu_times()[:2]) for one in processes)

    async def client(connection: Connection) -> None:
        for seed in seeds:
            status, _ = await connection.ask("POST", "/v1/jobs", small_job(seed), "Prefer: wait=60\r\n")
            statuses.append(status)

    begun = time.perf_counter()
    await asyncio.gather(*map(client, connections))
    took = time.perf_counter() - begun
    cpu = 1000 * (sum(sum(one.cpu_times()[:2]) for one in processes) - cpu) / jobs
    right = statuses.count(200)
    print(f"{clients} clients: {jobs / took:.0f} jobs/s, {right} of {jobs} answered 200, API {cpu:.2f} CPU ms a job")


async def hang_on(port: int, processes: list[psutil.Process], what: str, count: int) -> None:
    """Memory of `count` that wait for one job, how soon others are answered meanwhile, and when all have ended."""
    connection = await Connection(port).open()
    _, told = await connection.ask("POST", "/v1/jobs", long_job(100))
    links = json.loads(told)["links"]
    path = f"{links['self']}?wait=60" if what == "long polls" else links["events"]
    before = sum(one.memory_info().rss for one in processes)
    connections = [await Connection(port).open() for _ in range(count)]
    statuses: list[int] = []

    async def wait(held: Connection) -> None:
        status, _ = await held.ask("GET", path)
        statuses.append(status)

    tasks = [asyncio.create_task(wait(held)) for held in connections]
    await asyncio.sleep(3 + count / 1000)
    held = (sum(one.memory_info().rss for one in processes) - before) / count / 1024
    connection.close()
    connection, begun = await Connection(port).open(), time.perf_counter()
    status, _ = await connection.ask("GET", "/v1/jobs?limit=1")
    other = time.perf_counter() - begun
    early = len(statuses)
    begun = time.perf_counter()
    await connection.ask("POST", links["cancel"])
    await asyncio.gather(*tasks, return_exceptions=True)
    took = time.perf_counter() - begun
    print(
        f"{count} {what}: {held:.1f} KiB each, {early} ended early, another request {1000 * other:.0f} ms ({status}); "
        f"all ended {took:.2f} s after the cancel, {statuses.count(200)} with 200"
    )
    for each in connections:
        each.close()


async def measure(arguments: argparse.Namespace, port: int, first: psutil.Process) -> None:
    await until_ready(port)
    processes = api_processes(first)
    steps: list[Callable[[], Awaitable[None]]] = [
        lambda: lone(port, 100),
        lambda: crowd(port, processes, 64, arguments.jobs),
        lambda: hang_on(port, processes, "long polls", arguments.waiters),
        lambda: hang_on(port, processes, "event streams", arguments.waiters),
    ]
    for step in steps:
        await step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--waiters", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--api-workers", type=int, default=1)
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with service(arguments.api_workers) as (port, first):
        asyncio.run(measure(arguments, port, first))


if __name__ == "__main__":
    main()
