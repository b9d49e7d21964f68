"""The tables of docs/operations/sizing.md, from rows that were measured and from the solvers' own estimates.

python -m benchmarks.sizing            writes them into the page
python -m benchmarks.sizing --redis    measures what a job takes in Redis and on disk, with a server of its own
"""

import argparse
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from kernels import SOLVERS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/operations/sizing.md"
RESULTS = ROOT / "benchmarks/results"
SIZES = (1024, 2048, 4096, 8192, 16384, 32768, 65536)


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines()]


def slowest(found: Iterable[dict[str, Any]]) -> dict[int, float]:
    """The longest measured milliseconds of each size: hard families are what a machine is sized for."""
    worst: dict[int, float] = {}
    for row in found:
        if row.get("ms") is not None and row.get("holds", True):
            worst[row["n"]] = max(worst.get(row["n"], 0.0), row["ms"])
    return worst


def seconds_table() -> str:
    """Seconds of one solve, by size, of the hardest family that was measured."""
    lap = "lap_h200", lambda row: row.get("method") in ("auto", "sap")
    columns = {
        "lap, H200": slowest(row for row in rows(lap[0]) if row.get("device", "gpu") == "gpu" and lap[1](row)),
        "lap, 2 cores": slowest(rows("lap")),
    }
    lines = ["| n | " + " | ".join(columns) + " |", "|" + "---:|" * (len(columns) + 1)]
    for n in SIZES:
        cells = [f"{worst[n] / 1e3:.2g} s" if n in worst else "not measured" for worst in columns.values()]
        lines.append(f"| {n} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def bytes_table() -> str:
    """Bytes that a dense problem of n x n needs at most, as its solver's card has it."""
    card = SOLVERS["lap"]
    options = card.options()
    lines = ["| n | cost (float32) | on the GPU at most | on the host at most |", "|---:|---:|---:|---:|"]
    for n in SIZES:
        cost = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (n, n), (0, 0))
        problem = type(card.build({"cost": np.zeros((2, 2), np.float32)}, options))(cost)
        needs = card.estimate(problem, options, "gpu")
        lines.append(f"| {n} | {gib(cost.size * 4)} | {gib(needs.device_bytes)} | {gib(needs.host_bytes)} |")
    return "\n".join(lines)


def gib(count: int) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"


def redis_row(jobs: int = 500) -> dict[str, Any]:
    """What a tiny job takes while it waits and when it has ended (cancelled), and its files."""
    from workers.jobs.job import Submission
    from workers.jobs.queue import Jobs
    from workers.runtime.config import Settings
    from workers.runtime.redis_server import EmbeddedRedis

    with tempfile.TemporaryDirectory() as folder, EmbeddedRedis(Path(folder)) as url:
        made = Jobs(Settings(redis_url=url, data_dir=Path(folder)))
        cost = np.arange(16.0).reshape(4, 4)

        def submit() -> str:
            reference = made.store.put(cost, "ann")
            return made.submit(Submission("ann", "lap", {"cost": reference}, queue="cpu"))[0].id

        submit()
        before = made._redis.info("memory")["used_memory"]
        ids = [submit() for _ in range(jobs)]
        waiting = made._redis.info("memory")["used_memory"]
        for job_id in ids:
            made.cancel(job_id, "ann")
        ended = made._redis.info("memory")["used_memory"]
        files = sum(1 for path in made.store.folder.temporary.parent.rglob("*") if path.is_file())
    return {"jobs": jobs, "waiting": (waiting - before) / jobs, "ended": (ended - before) / jobs, "files": files}


def page(text: str) -> str:
    """The page with its tables as they are now."""
    for name, table in (("seconds", seconds_table()), ("bytes", bytes_table())):
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        text = before + mark + table + "\n" + rest[rest.index("<!-- end -->") :]
    return text


def main() -> None:
    """Write the page, or measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redis", action="store_true")
    if parser.parse_args().redis:
        print(json.dumps(redis_row()))
    else:
        PAGE.write_text(page(PAGE.read_text()))


if __name__ == "__main__":
    main()
