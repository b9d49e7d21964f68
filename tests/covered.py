"""`python -m tests.covered`: keeps what `make coverage` measured, and quotes it in README.md.

The figure stands in benchmarks/results/coverage.json with what it depends on: the machine and the commit. README.md has
a sentence made of it between two marks. `--into FOLDER` writes both elsewhere, for tests.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conftest import gpu_is_here

ROOT = Path(__file__).parent.parent
KEPT = "benchmarks/results/coverage.json"
BEGIN, END = "<!-- coverage -->", "<!-- /coverage -->"
FOLDERS = ("app", "workers", "kernels", "client/allot_client")


def measured(report: dict[str, Any]) -> dict[str, float]:
    """Percent of lines and branches that were run, of each folder and of all, from coverage's JSON report."""
    sums = {name: [0, 0] for name in (*FOLDERS, "all")}
    for path, found in report["files"].items():
        summary = found["summary"]
        run = summary["covered_lines"] + summary["covered_branches"]
        there = summary["num_statements"] + summary["num_branches"]
        for name in FOLDERS:
            if path.startswith(f"{name}/"):
                for key in (name, "all"):
                    sums[key][0] += run
                    sums[key][1] += there
    return {name: round(100 * run / there, 1) for name, (run, there) in sums.items() if there}


def sentence(kept: dict[str, Any]) -> str:
    """What README.md says of it."""
    where = "with" if kept["gpu"] else "without"
    parts = ", ".join(f"{name} {kept['percent'][name]:.0f}%" for name in FOLDERS if name in kept["percent"])
    return f"Tests run {kept['percent']['all']:.0f}% of the code's lines and branches {where} a GPU ({parts})."


def quote(page: str, kept: dict[str, Any]) -> str:
    """The page with the sentence between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{sentence(kept)}{END}{rest.split(END)[1]}"


def main(argv: Sequence[str] | None = None) -> int:
    """Read the data file of coverage, keep the figure and quote it."""
    parser = argparse.ArgumentParser(prog="python -m tests.covered", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT, help="the folder with README.md")
    args = parser.parse_args(argv)
    made = subprocess.run(
        [sys.executable, "-m", "coverage", "json", "--quiet", "-o", "-"], cwd=ROOT, check=True, capture_output=True
    )
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    kept = {
        "percent": measured(json.loads(made.stdout)),
        "gpu": gpu_is_here(),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "commit": commit.stdout.strip(),
        "when": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    into: Path = args.into
    (into / KEPT).parent.mkdir(parents=True, exist_ok=True)
    (into / KEPT).write_text(json.dumps(kept, indent=1) + "\n")
    readme = into / "README.md"
    readme.write_text(quote(readme.read_text(), kept))
    print(sentence(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
