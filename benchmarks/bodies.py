"""Where the time of a large body goes: python -m benchmarks.bodies [--rows 16] [--columns 1048576] [--repeats 5].

A service with one worker; float64 matrices whose solution is next to nothing when they are much wider than long. Each
is posted with `Prefer: wait`, and the milliseconds are those that the answer tells, beside what the client saw. Then
the same bytes go up as a blob, whose 201 waits for the disk.
"""

import argparse
import contextlib
import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from allot_client import body as bodies

from app.http.config import HttpSettings
from app.http.main import create_app
from app.http.server import Server
from benchmarks.rows import Rows
from workers.runtime.config import Settings
from workers.runtime.devices import visible_gpus
from workers.runtime.redis_server import EmbeddedRedis
from workers.runtime.supervisor import Supervisor


@contextlib.contextmanager
def service(folder: Path) -> Iterator[httpx.Client]:
    """A client of a service of its own: the first GPU, or one CPU worker."""
    with EmbeddedRedis(folder) as url:
        settings = Settings(data_dir=folder, warm_solvers="lap").with_redis(url)
        gpus = [gpu.uuid for gpu in visible_gpus()[:1]]
        supervisor = Supervisor(settings, cpu_workers=0 if gpus else 1, gpus=gpus)
        supervisor.start()
        server = Server(create_app(settings, HttpSettings()), HttpSettings())
        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=600) as client:
            while client.get("/readyz").status_code != 200:
                time.sleep(0.1)
            yield client
        server.stop()
        thread.join(10)
        supervisor.stop(drain=False)


def sent(client: httpx.Client, path: str, body: bodies.Body, **headers: str) -> tuple[httpx.Response, float]:
    """The answer, and the milliseconds until it was there."""
    known = {"Content-Type": body.media_type, "Content-Length": str(body.length), **headers}
    begun = time.perf_counter()
    answer = client.post(path, content=body.content(), headers=known)
    taken = 1e3 * (time.perf_counter() - begun)
    assert answer.status_code in (200, 201), answer.text
    return answer, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--columns", type=int, default=1 << 20)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rng, rows = np.random.default_rng(0), Rows("bodies")
    with tempfile.TemporaryDirectory(prefix="allot-bench-") as folder, service(Path(folder)) as client:
        stations: dict[str, list[float]] = {}
        for number in range(arguments.repeats + 1):
            cost = rng.random((arguments.rows, arguments.columns))
            answer, taken = sent(client, "/v1/jobs", bodies.job_body({"solver": "lap"}, {"cost": cost}),
                                 Prefer="wait=60")  # fmt: skip
            told: dict[str, Any] = json.loads(answer.content)
            for name, ms in {**told["timings_ms"], "seen by the client": taken}.items():
                if number:
                    stations.setdefault(name, []).append(ms)
        size = cost.nbytes / 2**20
        rows.add(what="POST to answer", mib=size, device=told["device"],
                 **{f"{name}_ms": float(np.median(values)) for name, values in stations.items()})  # fmt: skip
        body = bodies.Body(bodies.npy_pieces(cost), "application/octet-stream")
        taken_ms = [sent(client, "/v1/blobs", body)[1] for _ in range(arguments.repeats)]
        rows.add(what="blob to 201", mib=size, client_ms=float(np.median(taken_ms)))


if __name__ == "__main__":
    main()
