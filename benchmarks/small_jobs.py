"""Small jobs over HTTP, and what each costs: python -m benchmarks.small_jobs [--connections 64] [--seconds 10].

A service of its own on this machine: one API process, the embedded Redis, one CPU worker. Clients on keep-alive
connections post a 32 x 32 assignment as our client does with `Prefer: wait`, each its next when the last was answered,
and once with the numbers as text. Printed are jobs per second, latency, and CPU milliseconds a job of each process and
of the client, and how many such posts a second an application that does nothing answers on the same server; then the
same for one connection, and lapx on the same matrices in this process. Rows go to
benchmarks/results/small_jobs.jsonl, or where there is a GPU to a file that is named after it, each with the load of the
machine at that time. `--solver auction` posts the same matrices as benefits of an auction. `--calls` counts instead
what does not depend on that load: function calls of the API and commands of Redis, a job. To compare with a commit
before, run it in a worktree of that commit.
"""

import argparse
import contextlib
import json
import os
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from allot_client.body import job_body

from benchmarks.bare import bare_per_s
from benchmarks.callers import call
from benchmarks.own import service
from benchmarks.rows import Rows, machine, on_gpu
from benchmarks.warm import until_calm
from workers.runtime.connection import connect

READY_S = 300.0
N = 32
PASSING = ("mem_clients_normal", "mem_clients_slaves", "mem_aof_buffer")
NAMES = {"lap": "cost", "auction": "benefit"}
"""Of the matrix, by solver."""
MARKS = (("redis-server", "redis"), ("runtime.worker", "worker"), ("runtime.child", "child"), ("serve", "api"))


def bodies(count: int, digits: bool = False, solver: str = "lap") -> list[bytes]:
    """Different jobs of one form, as our client sends them; or with the numbers as text, as `curl` would."""
    rng, name = np.random.default_rng(0), NAMES[solver]
    matrices = [rng.random((N, N)).round(6) for _ in range(count)]
    if digits:
        return [json.dumps({"solver": solver, "inputs": {name: one.tolist()}}).encode() for one in matrices]
    return [b"".join(job_body({"solver": solver}, {name: one}).slices()) for one in matrices]


def cpu_ms(processes: dict[str, list[psutil.Process]]) -> dict[str, float]:
    """CPU of each role so far."""
    return {
        role: sum(1e3 * sum(one.cpu_times()[:2]) for one in members if one.is_running())
        for role, members in processes.items()
    }


def roles(serve: psutil.Process) -> dict[str, list[psutil.Process]]:
    """Who does what among the service's processes."""
    found: dict[str, list[psutil.Process]] = {"api": [serve], "redis": [], "worker": [], "child": []}
    for process in serve.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may have just died
            words = " ".join(process.cmdline())
            role = next((role for mark, role in MARKS if mark in words), None)
            if role:
                found[role].append(process)
    return found


def measure(
    port: int, serve: psutil.Process, connections: int, seconds: float, digits: bool = False, solver: str = "lap"
) -> dict[str, Any]:
    """One row."""
    jobs, processes = bodies(64, digits, solver), roles(serve)
    before, begun, own = cpu_ms(processes), time.monotonic(), time.process_time()
    taken, wrong = call(port, jobs, connections, seconds)
    lasted, after, count = time.monotonic() - begun, cpu_ms(processes), max(1, len(taken))
    client = 1e3 * (time.process_time() - own) / count
    p50, p99 = np.percentile(taken or [0], [50, 99])
    costs = {role: round((after[role] - before[role]) / count, 3) for role in before}
    return {
        "what": "small jobs over HTTP", "solver": solver, "numbers": "digits" if digits else "bytes",
        "connections": connections, "n": N, "jobs_per_s": len(taken) / lasted,
        "p50_ms": float(p50), "p99_ms": float(p99), "cpu_ms_a_job": costs | {"all": round(sum(costs.values()), 3)},
        "client_cpu_ms_a_job": round(client, 3), "load": os.getloadavg()[0], "wrong": wrong[:3],
    }  # fmt: skip


def peer(jobs: list[bytes]) -> dict[str, Any]:
    """lapx on the same matrices, in this process and without a service around it."""
    import lap

    costs = [np.array(json.loads(body)["inputs"]["cost"]) for body in jobs]
    taken = []
    for cost in costs * 4:
        begun = time.perf_counter()
        lap.lapjv(cost)
        taken.append(1e3 * (time.perf_counter() - begun))
    return {"what": "lapx in process", "n": N, "p50_ms": float(np.median(taken)), "load": os.getloadavg()[0]}


def memory(folder: Path, port: int, solver: str) -> dict[str, Any]:
    """What a tiny job leaves in Redis when it has ended."""
    redis = connect(f"unix://{next(folder.rglob('redis.sock'))}")
    before, count = _kept_bytes(redis), 500
    line = HTTPConnection("127.0.0.1", port)
    for body in bodies(count, solver=solver):
        line.request("POST", "/v1/jobs", body, {"Content-Type": "application/json", "Prefer": "wait=20"})
        line.getresponse().read()
    kib = (_kept_bytes(redis) - before) / count / 1024
    return {"what": "an ended job in Redis", "solver": solver, "kib": kib}


def _kept_bytes(redis: Any) -> int:
    """Bytes that Redis has in use, but for those of its connections and for what goes to its log next."""
    told = redis.info("memory")
    return int(told["used_memory"]) - sum(int(told.get(name, 0)) for name in PASSING)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--solver", choices=NAMES, default="lap")
    parser.add_argument("--calls", action="store_true", help="count calls and commands; measure no time")
    arguments = parser.parse_args()
    if arguments.calls:
        from benchmarks.small_calls import main as count

        count(arguments.connections, arguments.seconds)
        return
    rows, solver = Rows(on_gpu("small_jobs") if "gpu" in machine() else "small_jobs"), arguments.solver
    with service(workers=1, solvers=solver) as there:
        port, serve, seconds = there.port, there.process, arguments.seconds
        until_calm(serve)
        measure(port, serve, arguments.connections, 2, solver=solver)
        many = measure(port, serve, arguments.connections, seconds, solver=solver)
        rows.add(**many, bare_per_s=bare_per_s(bodies(64, solver=solver), arguments.connections, seconds / 2))
        rows.add(**measure(port, serve, arguments.connections, seconds, digits=True, solver=solver))
        rows.add(**measure(port, serve, 1, seconds / 2, solver=solver))
        rows.add(**memory(there.folder, port, solver))
    if solver == "lap":
        rows.add(**peer(bodies(64, digits=True)))


if __name__ == "__main__":
    main()
