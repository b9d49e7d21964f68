"""The tables of docs/operations/sizing.md, from rows that were measured and from the solvers' own estimates.

python -m benchmarks.sizing            writes them into the page
python -m benchmarks.loads             measures what a job of each solver takes of a worker (--device gpu on a GPU)
python -m benchmarks.footprint         measures what a job takes in Redis and on disk
python -m benchmarks.housekeeping      measures whether housekeeping keeps up
python -m benchmarks.soak              counts what a service holds after a first part of its load, and at the end
"""

import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernels import SOLVERS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/operations/sizing.md"
RESULTS = ROOT / "benchmarks/results"
README = ROOT / "docs/operations/README.md"
SOAK = {
    "rss_mib": "memory of the API's process, MiB",
    "all_rss_mib": "memory of all processes, MiB",
    "files": "open files of the API's process",
    "all_files": "open files of all processes",
    "keys": "keys of Redis",
    "redis_mib": "memory of Redis, MiB",
    "disk_mib": "arrays on disk, MiB",
}
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


def loads_table(device: str) -> str:
    """What one job of each solver took, of the latest rows of each size."""
    cores = device == "cpu"
    names = ["loads"] if cores else sorted(path.stem for path in RESULTS.glob("loads_*.jsonl"))
    latest = {(row["solver"], row["n"], name.partition("_")[2].upper()): row for name in names for row in rows(name)}
    heads = ["n", "seconds of a core" if cores else "seconds", "input", "at the peak", "estimated"]
    heads = ["solver", *([] if cores else ["GPU"]), *heads]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---|" * (not cores) + "---:|" * 5]
    for (solver, n, gpu), row in sorted(latest.items()):
        spent = f"{row['core_seconds' if cores else 'seconds']:.2g}"
        spent = "its limit" if row["termination"] == "time_limit" else spent
        memory = [gib(row[f"{what}_bytes"]) for what in ("input", "peak", "estimated")]
        lines.append(f"| {' | '.join([solver, *([] if cores else [gpu]), str(n), spent, *memory])} |")
    return "\n".join(lines) if latest else "Not measured yet: `python -m benchmarks.loads --device gpu`."


def soak_table() -> str:
    """What the longest soak counted, the latest of these."""
    row = max(enumerate(rows("soak")), key=lambda one: (one[1]["minutes"], one[0]))[1]
    solved, killed, wrong = row["counts"]["solved"], sum(row["kills"].values()), len(row["wrong"])
    lines = [
        f"{row['minutes']:g} minutes: {solved} jobs, {killed} kills, {wrong} wrong answers, "
        f"{', '.join(row['grown']) or 'nothing'} grew.",
        "",
        f"| counted | after {0.3 * row['minutes']:.0f} minutes | after {row['minutes']:g} |",
        "|---|---:|---:|",
    ]
    return "\n".join(
        lines + [f"| {told} | {row['first'][name]:g} | {row['last'][name]:g} |" for name, told in SOAK.items()]
    )


def gib(count: int) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"


def redis_table() -> str:
    """What a tiny job takes in each stage of its life, of the latest rows."""
    latest = {row["redis"]: row for row in rows("footprint")}
    stages = {"waiting": "while it waits", "ended": "when it has its answer", "expired": "when it has expired"}
    lines = ["| a tiny job, with its arrays of 128 bytes | bytes of Redis | of a Redis with its own defaults | files |"]
    lines += ["|---|---:|---:|---:|"]
    for stage, told in stages.items():
        cells = [str(max(0, latest[name][stage])) for name in ("as the service starts it", "with its defaults")]
        files = latest["as the service starts it"].get(f"files_{stage}", 0)
        lines.append(f"| {told} | {' | '.join(cells)} | {files} |")
    return "\n".join(lines)


def housekeeping_table() -> str:
    """Whether anything stayed behind at the rates that the service takes."""
    latest = {row["what"]: row for row in rows("housekeeping")}
    lines = ["| what is taken, for 20 s | a second | most that was overdue by a second | in the last 5 s |"]
    lines += ["|---|---:|---:|---:|"]
    for what, row in latest.items():
        lines.append(f"| {what} | {row['a_second']} | {row['most_overdue']} | {row['overdue_in_last_quarter']} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "seconds": seconds_table,
    "bytes": bytes_table,
    "loads": partial(loads_table, "cpu"),
    "loads-gpu": partial(loads_table, "gpu"),
    "redis": redis_table,
    "housekeeping": housekeeping_table,
    "soak": soak_table,
}


def page(text: str) -> str:
    """The page with its tables as they are now."""
    for name, table in TABLES.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        if mark:
            text = before + mark + table() + "\n" + rest[rest.index("<!-- end -->") :]
    return text


def main() -> None:
    """Write the pages."""
    for path in (PAGE, README):
        path.write_text(page(path.read_text()))


if __name__ == "__main__":
    main()
