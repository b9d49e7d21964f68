"""One measurement is one JSON line that says where, when, on what and by which command it was taken.

>>> rows = Rows("lap")
>>> rows.add(family="u", n=1024, solver="lap", ms=4.2, holds=True)   # appended to benchmarks/results/lap.jsonl
"""

import datetime
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PEERS = Path(__file__).parent / "peers"


def _output(*command: str) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def commit() -> str:
    """$ALLOT_COMMIT, or the commit of this checkout, with + when it has changes; "unknown" outside one."""
    if told := os.environ.get("ALLOT_COMMIT"):
        return told
    name = _output("git", "rev-parse", "--short=12", "HEAD")
    if not name:
        return "unknown"
    return name + ("+" if _output("git", "status", "--porcelain", "--untracked-files=no") else "")


def machine() -> dict[str, Any]:
    """CPU model and threads; GPU and driver where nvidia-smi shows one."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = f"{lines[0].split(':', 1)[1].strip()} x {len(lines)}" if lines else model
    found: dict[str, Any] = {"cpu": model}
    gpu = _output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    if gpu:
        found["gpu"], found["driver"] = (part.strip() for part in gpu[0].split(",", 1))
    return found


def on_gpu(name: str) -> str:
    """`name` with the GPU's own behind it, as "lap_h200": rows of two kinds of GPU never share a file."""
    return f"{name}_{tag_of(machine().get('gpu', ''))}"


def tag_of(gpu: str) -> str:
    """ "h200" of "NVIDIA H200", "h100" of "NVIDIA H100 80GB HBM3": the first word with a figure in it."""
    return next((word.lower() for word in gpu.split() if any(map(str.isdigit, word))), "no_gpu")


def published(name: str) -> dict[str, Any]:
    """What others say of theirs, or was measured of it elsewhere: benchmarks/peers/<name>.json, with its `source`."""
    found: dict[str, Any] = json.loads((PEERS / f"{name}.json").read_text())
    return found


class Rows:
    """Prints rows as they come and appends them to benchmarks/results/<name>.jsonl."""

    def __init__(self, name: str, folder: Path | None = None) -> None:
        self.path = (folder or RESULTS) / f"{name}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.shared = {
            "commit": commit(),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **machine(),
            "command": shlex.join(["python", "-m", *_module(), *sys.argv[1:]]),
        }

    def add(self, **row: Any) -> None:
        """Record one measurement."""
        print("  ".join(f"{key}={_short(value)}" for key, value in row.items()), flush=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row | self.shared) + "\n")


def read(name: str) -> list[dict[str, Any]]:
    """The rows of benchmarks/results/<name>.jsonl; none where there is no such file."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _module() -> list[str]:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return [spec.name] if spec else [Path(sys.argv[0]).name]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def alternate(contestants: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median milliseconds of each contestant, run in turn so that a noisy moment hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(taken) for name, taken in times.items()}
