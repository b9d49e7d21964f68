"""From POST to answer, with our own client: python -m benchmarks.last_mile [--device gpu] [--only lap] [--repeats 5].

A service of its own on this machine: one API process, the embedded Redis, one worker. Each case is asked `repeats`
times with fresh numbers, so that nothing is found by its digest; `first` is the first of them, of a form that is cold
there. The service's own timings of the median run say where each millisecond went; what they leave out of the caller's
time is the way there and back. Peers run in this process, on the CPU, on the same problem.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from allot_client import Client
from scipy.optimize import linear_sum_assignment

from benchmarks.rows import Rows, on_gpu
from benchmarks.small_jobs import wait_until_ready

Ask = Callable[[Client, np.random.Generator], Any]
SMALL_JOBS = 200
"""Of 32 x 32, one after the other."""


@dataclass(frozen=True)
class Row:
    """One row of the table: what is asked, the milliseconds aimed at (`goal` of `must`), and a peer in this process."""

    name: str
    ask: Ask
    must: float
    goal: float
    peer: tuple[str, Callable[[np.random.Generator], Any]] | None = None
    largest_cpu: bool = True


def _lap(n: int) -> Ask:
    return lambda client, rng: client.lap(rng.random((n, n)))


def _batch(client: Client, rng: np.random.Generator) -> Any:
    return client.lap(rng.random((1000, 64, 64), np.float32))


def _lap_points(client: Client, rng: np.random.Generator) -> Any:
    x, y = rng.random((2, 8192, 50))
    return client.lap(x=x, y=y, metric="sqeuclidean")


def _points(n: int) -> Ask:
    def ask(client: Client, rng: np.random.Generator) -> Any:
        x, y = rng.random((2, n, 3), np.float32)
        return client.uot(x=x, y=y, output="potentials")

    return ask


def _transport(n: int) -> Ask:
    return lambda client, rng: client.uot(rng.random((n, n), np.float32))


def _scipy(n: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: linear_sum_assignment(rng.random((n, n)))


def _lapx(n: int) -> Callable[[np.random.Generator], Any]:
    def run(rng: np.random.Generator) -> Any:
        from lap import lapjv

        return lapjv(rng.random((n, n)))

    return run


def _peer(n: int) -> tuple[str, Callable[[np.random.Generator], Any]]:
    return ("lapx", _lapx(n)) if find_spec("lap") else ("SciPy", _scipy(n))


ROWS = (
    Row("lap 1024 x 1024 float64", _lap(1024), 15, 8, _peer(1024)),
    Row("lap 4096 x 4096 float64", _lap(4096), 180, 80, _peer(4096)),
    Row("lap 8192 x 8192 float64", _lap(8192), 500, 260, None, largest_cpu=False),
    Row("lap 1000 of 64 x 64 float32", _batch, 40, 20),
    Row("lap 8192 x 8192 from points of 50", _lap_points, 60, 30, None, largest_cpu=False),
    Row("uot 4096 x 4096 points of 3, potentials", _points(4096), 30, 18, None, largest_cpu=False),
    Row("uot 20,000 x 20,000 points of 3, potentials", _points(20_000), 150, 95, None, largest_cpu=False),
    Row("uot 10,240 x 10,240 float32, plan", _transport(10_240), 1400, 650, None, largest_cpu=False),
)


def measure(row: Row, client: Client, repeats: int, rows: Rows, device: str) -> None:
    """Ask, and write down what it took."""
    taken, answers = [], []
    for k in range(repeats):
        rng = np.random.default_rng([7, k])
        started = time.perf_counter()
        answers.append(row.ask(client, rng))
        taken.append(1e3 * (time.perf_counter() - started))
    drawn = [_drawing(row, k) for k in range(repeats)]
    net = [total - draw for total, draw in zip(taken, drawn, strict=True)]
    middle = sorted(range(len(net)), key=net.__getitem__)[(len(net) - 1) // 2]
    answer = answers[middle]
    parts = {f"{name}_ms": value for name, value in answer.timings_ms.items()}
    peer = {}
    if row.peer is not None:
        name, run = row.peer
        started = time.perf_counter()
        run(np.random.default_rng(7))
        peer = {"peer": name, "peer_ms": 1e3 * (time.perf_counter() - started)}
    rows.add(
        what=row.name, device=device, first_ms=net[0], median_ms=statistics.median(net), best_ms=min(net),
        must_ms=row.must, goal_ms=row.goal, termination=answer.termination,
        certified_on=answer.certificate.facts.get("certified_on", "cpu"), **peer, **parts,
    )  # fmt: skip


class _Nobody:
    """Takes a call and does nothing: what is left is the drawing of the problem."""

    def lap(self, *args: Any, **options: Any) -> None: ...
    def uot(self, *args: Any, **options: Any) -> None: ...


def _drawing(row: Row, k: int) -> float:
    started = time.perf_counter()
    row.ask(_Nobody(), np.random.default_rng([7, k]))  # type: ignore[arg-type]
    return 1e3 * (time.perf_counter() - started)


def _is_warm(client: Client, device: str) -> bool:
    workers = client.devices()["workers"]
    states = {worker["device"]: worker["state"] for worker in workers}
    return device in states and all(state == "idle" for state in states.values())


def small(client: Client, rows: Rows, device: str) -> None:
    """One client, one small job after the other."""
    taken = []
    costs = np.random.default_rng(1).random((SMALL_JOBS, 32, 32))
    for cost in costs:
        started = time.perf_counter()
        client.lap(cost)
        taken.append(1e3 * (time.perf_counter() - started))
    p50, p99 = np.percentile(taken[20:], [50, 99])
    rows.add(
        what="lap 32 x 32, one client", device=device, p50_ms=float(p50), p99_ms=float(p99), must_ms=4, goal_ms=2.5
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--only", default="", help="rows whose name begins so")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="allot-bench-")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "app.cli.main", "serve", "--port", str(port), "--workers", "1"]
    command += ["--data-dir", folder]
    service = subprocess.Popen(command, env=os.environ | {"ALLOT_WARM_SOLVERS": "lap,uot"}, stdout=subprocess.DEVNULL)
    rows = Rows(on_gpu("last_mile") if arguments.device == "gpu" else "last_mile_cpu")
    try:
        wait_until_ready(port)
        with Client(f"http://127.0.0.1:{port}") as client:
            while not _is_warm(client, arguments.device):
                time.sleep(0.2)
            for row in ROWS:
                if row.name.startswith(arguments.only) and (arguments.device == "gpu" or row.largest_cpu):
                    measure(row, client, arguments.repeats, rows, arguments.device)
            if "lap 32".startswith(arguments.only):
                small(client, rows, arguments.device)
    finally:
        service.terminate()
        service.wait()


if __name__ == "__main__":
    main()
