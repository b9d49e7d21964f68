"""From POST to answer, with our own client: python -m benchmarks.last_mile [--device gpu] [--only lap] [--repeats 5].

A service of its own on this machine: one API process, the embedded Redis, one worker. Each case is asked `repeats`
times with fresh numbers, so that nothing is found by its digest; `first` is the first of them, of a form that is cold
there, and has its stations. Of the median run the row says where each millisecond went. The service tells its own
stations. `preparing` is the client's time before it sends, `reading` that from the answer's first byte to its last.
`missing` is what is in none of them. `bare` is the time of a copy of as many bytes through a socket of this machine,
just before; of many clients it is how many posts a second an application that does nothing answers. CPU milliseconds
are those of each process, a request, over all runs: they say something where other work slows the clock down.

Rows of two GPUs take --gpus 2. 5000 waiting clients are measured by `python -m benchmarks.waiters`. A tree without git
tells its commit by ALLOT_COMMIT. Peers run in this process, on the CPU, on the same problem.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import psutil
from allot_client import Client
from scipy.optimize import linear_sum_assignment

from benchmarks.asked import Asked
from benchmarks.bare import bare_ms, bare_per_s
from benchmarks.callers import call
from benchmarks.own import service
from benchmarks.rows import Rows, on_gpu
from benchmarks.small_jobs import bodies, cpu_ms, roles
from benchmarks.warm import until_calm, until_warm

Draw = Callable[[np.random.Generator], dict[str, Any]]
Peer = Callable[[Mapping[str, Any]], Any]
SMALL_JOBS = 200
"""Of 32 x 32, one after the other."""
CLIENTS = 64
CLIENTS_S = 10.0


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        solver: the client's method that is asked.
        draw: what it is asked: arrays and options.
        must, goal: milliseconds aimed at.
        peer: who solves the same in this process.
        on_cpu: whether it is worth a CPU's time.
        gpus: that it takes.
    """

    name: str
    solver: str
    draw: Draw
    must: float
    goal: float
    peer: tuple[str, Peer] | None = None
    on_cpu: bool = False
    gpus: int = 1


def _lap(n: int) -> Draw:
    return lambda rng: {"cost": rng.random((n, n))}


def _batch(rng: np.random.Generator) -> dict[str, Any]:
    return {"cost": rng.random((1000, 64, 64), np.float32)}


def _lap_points(rng: np.random.Generator) -> dict[str, Any]:
    x, y = rng.random((2, 8192, 50))
    return {"x": x, "y": y, "metric": "sqeuclidean"}


def _points(n: int) -> Draw:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        x, y = rng.random((2, n, 3), np.float32)
        return {"x": x, "y": y, "output": "potentials"}

    return draw


def _transport(n: int) -> Draw:
    return lambda rng: {"cost": rng.random((n, n), np.float32)}


def _scipy(given: Mapping[str, Any]) -> Any:
    return linear_sum_assignment(given["cost"])


def _lapx(given: Mapping[str, Any]) -> Any:
    from lap import lapjv

    return lapjv(given["cost"])


PEER = ("lapx", _lapx) if find_spec("lap") else ("SciPy", _scipy)
ROWS = (
    Row("lap 1024 x 1024 float64", "lap", _lap(1024), 15, 8, PEER, on_cpu=True),
    Row("lap 4096 x 4096 float64", "lap", _lap(4096), 180, 80, PEER, on_cpu=True),
    Row("lap 8192 x 8192 float64", "lap", _lap(8192), 500, 260),
    Row("lap 1000 of 64 x 64 float32", "lap", _batch, 40, 20, on_cpu=True),
    Row("lap 8192 x 8192 from points of 50", "lap", _lap_points, 60, 30),
    Row("uot 4096 x 4096 points of 3, potentials", "uot", _points(4096), 30, 18, on_cpu=True),
    Row("uot 20,000 x 20,000 points of 3, potentials", "uot", _points(20_000), 150, 95),
    Row("uot 4096 x 4096 float32, plan", "uot", _transport(4096), 224, 104, on_cpu=True),
    Row("uot 10,240 x 10,240 float32, plan", "uot", _transport(10_240), 1400, 650),
    Row("uot 30,000 x 30,000 float32, plan", "uot", _transport(30_000), 5000, 2200, gpus=2),
)


def measure(row: Row, ask: Asked, repeats: int, rows: Rows, device: str, serve: psutil.Process) -> None:
    """Ask, and write down what it took."""
    processes = roles(serve)
    told, spent = [], dict.fromkeys(processes, 0.0)
    for k in range(repeats):
        given = row.draw(np.random.default_rng([7, k]))
        bare = bare_ms(_nbytes(given))
        before = cpu_ms(processes)
        answer, taken, preparing, reading = ask(partial(getattr(ask.client, row.solver), **given))
        for role, cpu in cpu_ms(processes).items():
            spent[role] += (cpu - before[role]) / repeats
        told.append((taken, preparing, reading, bare, answer.timings_ms, answer.termination, _certified(answer)))
    times = [one[0] for one in told]
    middle = sorted(told, key=lambda one: one[0])[(repeats - 1) // 2]
    taken, preparing, reading, bare, stations, termination, certified = middle
    parts = {name: ms for name, ms in stations.items() if name != "total"}
    parts |= {"preparing": preparing, "reading": reading}
    rows.add(
        what=row.name, device=device, mib=round(_nbytes(given) / 2**20, 1), first_ms=times[0],
        median_ms=statistics.median(times), best_ms=min(times), must_ms=row.must, goal_ms=row.goal,
        termination=termination, certified_on=certified, **_peer(row, given), bare_ms=bare,
        **{f"{name}_ms": ms for name, ms in parts.items()}, of_ms=taken, missing_ms=taken - sum(parts.values()),
        **{f"cpu_{role}_ms": round(ms, 1) for role, ms in spent.items()},
        first={name: ms for name, ms in told[0][4].items() if name != "total"},
    )  # fmt: skip


def _certified(answer: Any) -> Any:
    return answer.certificate.facts.get("certified_on", "cpu")


def _nbytes(given: Mapping[str, Any]) -> int:
    return sum(value.nbytes for value in given.values() if isinstance(value, np.ndarray))


def _peer(row: Row, given: Mapping[str, Any]) -> dict[str, Any]:
    if row.peer is None:
        return {}
    name, run = row.peer
    started = time.perf_counter()
    run(given)
    return {"peer": name, "peer_ms": 1e3 * (time.perf_counter() - started)}


def small(client: Client, rows: Rows, device: str) -> None:
    """One client, one small job after the other."""
    taken: list[float] = []
    stations: dict[str, list[float]] = {}
    for cost in np.random.default_rng(1).random((SMALL_JOBS, 32, 32)):
        started = time.perf_counter()
        answer = client.lap(cost)
        taken.append(1e3 * (time.perf_counter() - started))
        for name, ms in answer.timings_ms.items():
            stations.setdefault(name, []).append(ms)
    p50, p99 = np.percentile(taken[20:], [50, 99])
    rows.add(
        what="lap 32 x 32, one client", device=device, p50_ms=float(p50), p99_ms=float(p99), must_ms=4, goal_ms=2.5,
        **{f"{name}_ms": statistics.median(times) for name, times in stations.items()},
    )  # fmt: skip


def many(port: int, rows: Rows, device: str) -> None:
    """Many clients, each posting its next small job when the last was answered; all of them in this process."""
    jobs, begun = bodies(CLIENTS), time.monotonic()
    taken, wrong = call(port, jobs, CLIENTS, CLIENTS_S)
    lasted, bare = time.monotonic() - begun, bare_per_s(jobs, CLIENTS, 2.0)
    p50, p99 = np.percentile(taken or [0], [50, 99])
    rows.add(
        what=f"lap 32 x 32, {CLIENTS} clients", device=device, jobs_per_s=len(taken) / lasted, bare_per_s=bare,
        p50_ms=float(p50), p99_ms=float(p99), refused=len(wrong), must_per_s=1500, goal_per_s=5000,
    )  # fmt: skip


def chosen(only: str, device: str, gpus: int) -> list[Row]:
    """The rows that are asked."""
    fits = [row for row in ROWS if row.name.startswith(only) and row.gpus <= gpus]
    return [row for row in fits if device == "gpu" or row.on_cpu]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--only", default="", help="rows whose name begins so")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--gpus", type=int, default=1, help="that one worker has")
    arguments = parser.parse_args()
    rows = Rows(on_gpu("last_mile") if arguments.device == "gpu" else "last_mile_cpu")
    asked, smallest = chosen(arguments.only, arguments.device, arguments.gpus), "lap 32".startswith(arguments.only)
    solvers = ",".join(sorted({row.solver for row in asked} | ({"lap"} if smallest else set())))
    with service(solvers=solvers, ALLOT_GPUS_PER_WORKER=str(arguments.gpus)) as there, Client(there.url) as client:
        until_warm(client, arguments.device)
        ask = Asked(client)
        for row in asked:
            measure(row, ask, arguments.repeats, rows, arguments.device, there.process)
        if smallest:
            until_calm(there.process)
            small(client, rows, arguments.device)
            many(there.port, rows, arguments.device)


if __name__ == "__main__":
    main()
