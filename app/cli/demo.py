"""`allot demo`: start the whole service, solve all four problems over HTTP, check every answer, print one table, stop.

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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, save_npz
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from kernels import Array

READY_S = 300.0
GPU_READY_S = 120.0
NUG12_BEST = 578
COLUMNS = ("problem", "size", "method", "device", "objective", "bound", "gap", "ms", "verified", "proved")


class WrongAnswer(Exception):
    """An answer that this file's own arithmetic refutes."""


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
                rows = [solve(client, Path(folder)) for solve in PROBLEMS]
        except (WrongAnswer, httpx.HTTPError, TimeoutError) as wrong:
            print(f"allot demo: {wrong}", file=sys.stderr)
            return 1
    print(table(rows))
    print(f"All answers are right and proved; everything is stopped. {time.perf_counter() - begun:.1f} s in all.")
    return 0


@contextlib.contextmanager
def service(folder: Path, workers: int | None) -> Iterator[httpx.Client]:
    """`allot serve` on a free port with its data in `folder`, ready; it is stopped with the block."""
    command = [sys.executable, "-m", "app.cli.main", "serve", "--port", "0", "--data-dir", str(folder / "data")]
    command += ["--workers", str(workers)] if workers is not None else []
    env = {name: value for name, value in os.environ.items() if not name.startswith("ALLOT_")}
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


def post(client: httpx.Client, solver: str, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Submit as JSON and wait for the answer."""
    device = device_for(client, solver)
    body = {"solver": solver, "inputs": inputs, "options": options, "device": device, "time_limit_s": 20}
    return _answer(client.post("/v1/jobs", json=body, headers={"Prefer": "wait=60"}))


def upload(client: httpx.Client, solver: str, **files: tuple[str, bytes]) -> dict[str, Any]:
    """Submit as multipart and wait for the answer."""
    job = json.dumps({"solver": solver, "device": device_for(client, solver), "time_limit_s": 20})
    return _answer(client.post("/v1/jobs", data={"job": job}, files=files, headers={"Prefer": "wait=60"}))


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.status_code != 200:
        raise WrongAnswer(f"{response.status_code} {response.text[:600]}")
    answer: dict[str, Any] = response.json()
    return answer


def require(holds: bool, what: str, answer: Mapping[str, Any]) -> None:
    """Raise WrongAnswer with the evidence unless `holds`."""
    if not holds:
        raise WrongAnswer(f"{what}; objective {answer.get('objective')}, certificate {answer.get('certificate')}")


def npy(array: Array) -> bytes:
    """The bytes of an .npy file."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def lap(client: httpx.Client, folder: Path) -> Row:
    """A dense assignment, sent as one .npy part."""
    n = 500
    cost = np.random.default_rng(1).uniform(0, 1000 * n, (n, n))
    answer = upload(client, "lap", cost=("cost.npy", npy(cost)))
    pairs = linear_sum_assignment(cost)
    found = cost[np.arange(n), answer["assignment"]].sum()
    require(np.isclose(found, cost[pairs].sum(), rtol=1e-12), "lap differs from SciPy", answer)
    require(np.isclose(answer["objective"], found, rtol=1e-9), "lap's objective is not its assignment's", answer)
    return Row("lap", f"{n} x {n}", answer)


def batched_lap(client: httpx.Client, folder: Path) -> Row:
    """A hundred small assignments in one job, through an uploaded blob."""
    count, n = 100, 32
    costs = np.random.default_rng(2).integers(0, 1000, (count, n, n))
    blob = client.post("/v1/blobs", content=npy(costs)).json()  # a reference, used as it is
    answer = post(client, "lap", {"cost": blob}, {})
    best = sum(int(cost[linear_sum_assignment(cost)].sum()) for cost in costs)
    require(answer["objective"] == best, "a batch of laps differs from SciPy", answer)
    return Row("lap, batch", f"{count} x {n} x {n}", answer)


def dense_auction(client: httpx.Client, folder: Path) -> Row:
    """A dense auction, sent as JSON."""
    n = 150
    benefit = np.random.default_rng(3).integers(1, 10_000, (n, n))
    answer = post(client, "auction", {"benefit": benefit.tolist()}, {})
    best = int(benefit[linear_sum_assignment(benefit, maximize=True)].sum())
    require(answer["objective"] == best, "the dense auction differs from SciPy", answer)
    return Row("auction", f"{n} x {n}", answer)


def sparse_auction(client: httpx.Client, folder: Path) -> Row:
    """A sparse auction, sent as the .npz that SciPy writes."""
    n = 1000
    rng = np.random.default_rng(4)
    graph = csr_array((rng.random((n, n)) < 0.1) * rng.integers(1, 10_000, (n, n)))
    graph.setdiag(1)
    path = folder / "graph.npz"
    save_npz(path, graph)
    answer = upload(client, "auction", benefit=("graph.npz", path.read_bytes()))
    best = int(graph[min_weight_full_bipartite_matching(graph, maximize=True)].sum())
    require(answer["objective"] == best, "the sparse auction differs from SciPy", answer)
    return Row("auction, CSR", f"{n} x {n}, {graph.nnz} edges", answer)


def uot(client: httpx.Client, folder: Path) -> Row:
    """Unbalanced transport between two clouds of points; the plan comes back as bytes."""
    m, n, reg, reg_m = 300, 400, 0.05, 1.0
    rng = np.random.default_rng(5)
    x, y = rng.random((m, 2)), rng.random((n, 2)) + 0.1
    cost = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    a, b = rng.random(m), rng.random(n)
    inputs = {"cost": cost.tolist(), "a": a.tolist(), "b": b.tolist()}
    answer = post(client, "uot", inputs, {"reg": reg, "reg_m": reg_m, "tolerance": 1e-5})
    packed = client.get(answer["links"]["result"], headers={"Accept": "application/x-npz"})
    plan = np.load(io.BytesIO(packed.raise_for_status().content))["plan"].astype(np.float64)
    found = transport_value(plan, cost, a, b, reg, reg_m)
    require(np.isclose(answer["objective"], found, rtol=1e-4), f"the plan is worth {found}", answer)
    require(answer["certificate"]["gap_rel"] <= 1e-5, "the transport plan is not within its tolerance", answer)
    return Row("uot", f"{m} x {n}", answer)


def transport_value(plan: Array, cost: Array, a: Array, b: Array, reg: float, reg_m: float) -> float:
    """The primal objective of a plan, written out."""

    def kl(p: Array, q: Array) -> float:
        logs = np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / q), 0)
        return float((logs - p + q).sum())

    masses = kl(plan.sum(axis=1), a) + kl(plan.sum(axis=0), b)
    return float((plan * cost).sum()) + reg * kl(plan, np.outer(a, b)) + reg_m * masses


def qap(client: httpx.Client, folder: Path) -> Row:
    """A QAPLIB file, uploaded as it is; every improvement is followed as it is found."""
    name, text = qaplib_file()
    job = {"solver": "qap", "device": device_for(client, "qap"), "time_limit_s": 5, "options": {"seed": 1}}
    response = client.post("/v1/jobs", data={"job": json.dumps(job)}, files={"qaplib": (name, text.encode())})
    if response.status_code != 202:
        raise WrongAnswer(f"{response.status_code} {response.text[:600]}")
    follow(client, response.json()["links"]["events"])
    answer = _answer(client.get(response.json()["links"]["result"]))
    numbers = np.array(text.split(), dtype=np.int64)
    n = int(numbers[0])
    flow, distance = numbers[1:].reshape(2, n, n)
    permutation = np.array(answer["permutation"])
    require(sorted(permutation.tolist()) == list(range(n)), "qap gives no permutation", answer)
    found = int((flow * distance[np.ix_(permutation, permutation)]).sum())
    require(answer["objective"] == found, f"the permutation costs {found}", answer)
    require(answer["certificate"]["bound"] <= found, "the lower bound is above the answer", answer)
    require(name != "nug12.dat" or found == NUG12_BEST, f"nug12 is {NUG12_BEST} at best", answer)
    return Row(f"qap {name}", f"{n}", answer)


def qaplib_file() -> tuple[str, str]:
    """(name, text): nug12 where ALLOT_QAPLIB_DIR has it, else a grid of 3 x 4 places with random flows."""
    known = Path(os.environ.get("ALLOT_QAPLIB_DIR", "")) / "nug12.dat"
    if known.is_file():
        return known.name, known.read_text()
    places = np.array([(i, j) for i in range(3) for j in range(4)])
    distance = np.abs(places[:, None] - places[None]).sum(axis=2)
    flow = np.triu(np.random.default_rng(6).integers(0, 10, (12, 12)), 1)
    rows = [" ".join(map(str, row)) for matrix in (flow + flow.T, distance) for row in matrix.tolist()]
    return "grid12.dat", "\n".join(["12", "", *rows, ""])


def follow(client: httpx.Client, url: str) -> None:
    """Print what the job's event stream says until it ends."""
    with client.stream("GET", url, headers={"Accept": "text/event-stream"}) as stream:
        for line in stream.iter_lines():
            if not line.startswith("data: "):
                continue
            told = json.loads(line.removeprefix("data: "))
            if told.get("objective") is not None:
                seconds, bound = told.get("elapsed_s", 0.0), told.get("bound")
                print(f"  qap, {seconds:5.2f} s: objective {told['objective']}, bound {bound}")
            elif "state" in told:
                print(f"  qap is {told['state']}")


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


PROBLEMS: tuple[Callable[[httpx.Client, Path], Row], ...] = (lap, batched_lap, dense_auction, sparse_auction, uot, qap)
