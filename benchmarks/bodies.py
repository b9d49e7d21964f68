"""Where the time of large bodies goes, both ways: python -m benchmarks.bodies [--mib 512] [--back 400] [--repeats 3].

A service of its own on this machine, with one worker. Up: a float64 matrix that is much wider than long, whose
solution is next to nothing, is posted by the client's own way with `Prefer: wait`; then the same bytes as a blob, whose
201 waits for the disk. Back: one row of costs, whose answer has a dual for each column, so as many bytes as its input;
the answer is fetched as safetensors. Beside the milliseconds stand the processor time of each process and the bare copy
of as many bytes through the loopback in the same run, which the ratios divide by. To compare with a commit before, copy
this file to a worktree of it. `--profile FILE` has perf sample the API meanwhile.
"""

import argparse
import os
import signal
import subprocess
import time
from typing import Any

import numpy as np
import psutil
from allot_client import Client
from allot_client import body as bodies
from allot_client.flows import Call

from benchmarks.bare import bare_ms
from benchmarks.own import Service, service
from benchmarks.rows import Rows
from benchmarks.small_jobs import cpu_ms, roles

MIB = 1 << 20
ROWS = 16


class Asked:
    """What the client asks, the milliseconds it took, and the processor time of all."""

    def __init__(self, there: Service) -> None:
        self.client = Client(f"http://127.0.0.1:{there.port}")
        self._processes = {**roles(there.process), "client": [psutil.Process()]}

    def __call__(self, call: Call) -> tuple[Any, dict[str, float]]:
        """The answer, and what it took."""
        before, begun = cpu_ms(self._processes), time.perf_counter()
        answer = self.client._carry_out(call)
        taken = {"client_ms": 1e3 * (time.perf_counter() - begun)}
        assert answer.status in (200, 201), answer.content[:500]
        after = cpu_ms(self._processes)
        return answer, taken | {f"cpu_{role}_ms": after[role] - before[role] for role in before}


def job(cost: Any, **headers: str) -> Call:
    """A job whose answer is waited for."""
    body = bodies.job_body({"solver": "lap"}, {"cost": cost})
    return Call("POST", "/v1/jobs", {"Content-Type": body.media_type, "Prefer": "wait=60", **headers}, body=body,
                timeout_s=120)  # fmt: skip


def up(ask: Asked, cost: Any) -> tuple[str, dict[str, float]]:
    """A job from POST to answer."""
    answer, taken = ask(job(cost))
    document = answer.json()
    return document["id"], {f"{name}_ms": ms for name, ms in document["timings_ms"].items()} | taken


def kept(ask: Asked, cost: Any) -> dict[str, float]:
    """A blob, until the disk has it."""
    body = bodies.Body(bodies.npy_pieces(cost), "application/octet-stream")
    _, taken = ask(Call("POST", "/v1/blobs", {"Content-Type": body.media_type}, body=body, timeout_s=120))
    return taken


def back(ask: Asked, job_id: str) -> dict[str, float]:
    """The answer of a job that has ended."""
    from allot_client.flows import SAFETENSORS
    from allot_client.safetensors import Safetensors

    answer, taken = ask(Call("GET", f"/v1/jobs/{job_id}/result", {"Accept": SAFETENSORS}, timeout_s=120))
    begun = time.perf_counter()
    _, arrays = Safetensors.read(answer.content)
    assert np.isfinite(arrays["v"]).all()
    return taken | {"looked_at_ms": 1e3 * (time.perf_counter() - begun)}


def middle(taken: list[dict[str, float]]) -> dict[str, float]:
    """The run whose client waited for the median time."""
    return sorted(taken, key=lambda one: one["client_ms"])[len(taken) // 2]


def add(rows: Rows, what: str, size: int, taken: list[dict[str, float]]) -> None:
    """Write down one row; the first run is not counted."""
    bare = float(np.median([bare_ms(size) for _ in range(3)]))
    told = middle(taken[1:] or taken)
    rows.add(what=what, mib=size / MIB, best_ms=min(one["client_ms"] for one in taken), **told, bare_ms=bare,
             ratio=told["client_ms"] / bare, load=os.getloadavg()[0])  # fmt: skip


def measure(there: Service, arguments: argparse.Namespace) -> None:
    """All rows."""
    ask, rows, rng = Asked(there), Rows("bodies"), np.random.default_rng(0)
    if arguments.mib:
        size = arguments.mib * MIB
        cost = rng.random((ROWS, size // 8 // ROWS))
        taken = []
        for number in range(arguments.repeats + 1):
            cost[0, 0] = number  # other bytes
            job_id, told = up(ask, cost)
            taken.append(told)
            ask.client.job(job_id).delete()
        add(rows, "POST to answer", size, taken)
        add(rows, "blob to 201", size, [kept(ask, cost) for _ in range(arguments.repeats + 1)])
        del cost
    if arguments.back:
        size = arguments.back * MIB
        job = ask.client.submit("lap", {"cost": rng.random((1, size // 8))})
        assert job.wait()["state"] == "succeeded"
        add(rows, "GET of an answer", size, [back(ask, job.id) for _ in range(arguments.repeats + 1)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512, help="on the way up; 0 for none")
    parser.add_argument("--back", type=int, default=400, help="MiB of the answer; 0 for none")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", help="file for perf's samples of the API")
    arguments = parser.parse_args()
    os.environ.setdefault("ALLOT_WARM_SOLVERS", "lap")
    with service(workers=1) as there:
        profiler = None
        if arguments.profile:
            command = ["perf", "record", "-q", "-g", "-F", "499", "-e", "cpu-clock", "-o", arguments.profile, "-p"]
            profiler = subprocess.Popen([*command, str(there.process.pid)])
        try:
            measure(there, arguments)
        finally:
            if profiler is not None:
                profiler.send_signal(signal.SIGINT)
                profiler.wait()


if __name__ == "__main__":
    main()
