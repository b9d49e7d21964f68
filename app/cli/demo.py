"""`allot demo`: start the service, solve a problem of each kind over HTTP, check the answers, print a table, stop.

Exit status 0 only when every answer is right: each objective is worked out again here from the arrays that came
back, and compared with SciPy where SciPy can solve the problem.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from kernels import SOLVERS, Demonstration, Solver, WrongAnswer
from workers.runtime.process import program

READY_S = 300.0
GPU_READY_S = 120.0
COLUMNS = ("problem", "size", "method", "device", "objective", "bound", "gap", "ms", "verified", "proved")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    problem: str
    size: str
    answer: Mapping[str, Any]


def demo(args: Namespace) -> int:
    """Run the demonstration."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="allot-demo-") as folder:
        try:
            with service(Path(folder), args.workers) as client:
                print(f"Ready after {time.perf_counter() - begun:.1f} s. Every answer is checked again on this side.")
                rows = [shown(client, card, one) for card in SOLVERS.values() for one in card.demonstrations()]
        except (WrongAnswer, httpx.HTTPError, TimeoutError) as wrong:
            print(f"allot demo: {wrong}", file=sys.stderr)
            return 1
    print(table(rows))
    print(f"All answers are right and proved; everything is stopped. {time.perf_counter() - begun:.1f} s in all.")
    return 0


@contextlib.contextmanager
def service(folder: Path, workers: int | None) -> Iterator[httpx.Client]:
    """`allot serve` on a free port with its data in `folder`, ready; it is stopped with the block."""
    command = program("app.cli.main", "serve", "--port", "0", "--data-dir", str(folder / "data"))
    command += ["--workers", str(workers)] if workers is not None else []
    env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
    env["ALLOT_WARM_FORMS"] = "shown"
    log = (folder / "log").open("w+")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=env, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        if found is None:
            log.seek(0)
            raise WrongAnswer(f"the service did not start: {line}{log.read()[-2000:]}")
        print(line.strip())
        with httpx.Client(base_url=found[0], timeout=90) as client:
            _wait_until_ready(client, process)
            yield client
    finally:
        process.terminate()
        process.wait(60)
        log.close()


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen[str]) -> None:
    give_up = time.monotonic() + READY_S
    print("Workers warm up (the first start after an install compiles) ...", flush=True)
    while client.get("/readyz").status_code != 200:
        if process.poll() is not None or time.monotonic() > give_up:
            raise WrongAnswer("the service did not get ready")
        time.sleep(0.1)
    give_up = time.monotonic() + GPU_READY_S  # a GPU that never gets ready must not keep the others waiting
    while _still_warming(client) and time.monotonic() < give_up:
        time.sleep(0.1)


def _still_warming(client: httpx.Client) -> bool:
    """True while a worker is there that cannot solve yet: a GPU's takes longer than a CPU's."""
    return any(worker["state"] not in ("idle", "busy") for worker in client.get("/v1/devices").json()["workers"])


def device_for(client: httpx.Client, solver: str) -> str:
    """ "gpu" where there is one and the solver can use it, so that the demonstration shows it; else "auto"."""
    devices = {one["name"]: one["devices"] for one in client.get("/v1/solvers").json()["solvers"]}
    workers = client.get("/v1/devices").json()["workers"]
    there = any(worker["device"] == "gpu" and worker["state"] in ("idle", "busy") for worker in workers)
    return "gpu" if there and "gpu" in devices[solver] else "auto"


def shown(client: httpx.Client, card: Solver, one: Demonstration) -> Row:
    """Send one problem in its way, wait for the answer and check it."""
    job: dict[str, Any] = {"solver": card.name, "inputs": dict(one.inputs), "options": dict(one.options)}
    job |= {"device": device_for(client, card.name), "time_limit_s": one.seconds}
    wait = {} if one.way == "followed" else {"Prefer": "wait=60"}
    if one.way == "blob":
        reference = client.post("/v1/blobs", content=one.data).json()  # it is used as it is
        job["inputs"] = {one.name: reference}
    if one.way in ("json", "blob"):
        response = client.post("/v1/jobs", json=job, headers=wait)
    else:
        files = {one.name: (one.filename, one.data)}
        response = client.post("/v1/jobs", data={"job": json.dumps(job)}, files=files, headers=wait)
    if one.way == "followed" and response.status_code == 202:
        follow(client, card.name, response.json()["links"]["events"])
        response = client.get(response.json()["links"]["result"])
    answer = _answer(response)
    packed = client.get(answer["links"]["result"], headers={"Accept": "application/x-npz"})
    with np.load(io.BytesIO(packed.raise_for_status().content)) as arrays:
        one.check(answer, dict(arrays))
    return Row(one.title, one.size, answer)


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.status_code != 200:
        raise WrongAnswer(f"{response.status_code} {response.text[:600]}")
    answer: dict[str, Any] = response.json()
    return answer


def follow(client: httpx.Client, solver: str, url: str) -> None:
    """Print what the job's event stream says until it ends."""
    with client.stream("GET", url, headers={"Accept": "text/event-stream"}) as stream:
        for line in stream.iter_lines():
            if not line.startswith("data: "):
                continue
            told = json.loads(line.removeprefix("data: "))
            if told.get("objective") is not None:
                seconds, bound = told.get("elapsed_s", 0.0), told.get("bound")
                print(f"  {solver}, {seconds:5.2f} s: objective {told['objective']}, bound {bound}")
            elif "state" in told:
                print(f"  {solver} is {told['state']}")


def table(rows: list[Row]) -> str:
    """The rows as text, columns aligned."""
    cells = [list(COLUMNS)]
    for row in rows:
        answer, proof = row.answer, row.answer["certificate"]
        gap = "-" if proof["gap_rel"] is None else f"{proof['gap_rel']:.1e}" if proof["gap_rel"] else "0"
        milliseconds = f"{answer['timings_ms']['solve']:.1f}"
        cells.append([row.problem, row.size, answer["method"], answer["device"], _number(answer["objective"]),
                      _number(proof["bound"]), gap, milliseconds, _verified(answer), proof["proved"][:90]])  # fmt: skip
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(["", lines[0], "-" * min(max(map(len, lines)), 160), *lines[1:], ""])


def _verified(answer: Mapping[str, Any]) -> str:
    """ "yes" or "no" beside an optimum, whether it was proved; the word itself beside other answers."""
    verified = answer["certificate"]["verified"]
    return str(answer["termination"]) if verified is None else "yes" if verified else "no"


def _number(value: float | None) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.8g}"
