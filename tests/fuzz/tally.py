"""`python -m tests.fuzz.tally`: adds up the rows of all runs, by device and version of the certificates."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.report import ROOT, certificate_version

COUNTS = ("cases", "wrong", "misleading", "refused", "unshown", "slow", "mutations", "mutations_fooled")
HEAD = ("device", "certificates", "cases", "wrong", "misleading", "refused", "unshown", "slow", "corrupted answers",
        "fooled")  # fmt: skip
BEGIN, END = "<!-- fuzz -->", "<!-- /fuzz -->"


def added_up(lines: Sequence[str]) -> dict[tuple[str, str], Counter[str]]:
    """Counts by (device, version)."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        row = json.loads(line)
        found.setdefault((row["device"], row["certificates"]), Counter()).update({name: row[name] for name in COUNTS})
    return found


def table(counts: dict[tuple[str, str], Counter[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for (device, version), sums in sorted(counts.items()):
        lines.append(f"| {device} | {version} | " + " | ".join(f"{sums[name]:,}" for name in COUNTS) + " |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.tally", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", type=Path, default=sorted((ROOT / "benchmarks/results").glob("fuzz_*.jsonl"))
    )
    parser.add_argument("--into", type=Path, metavar="PAGE", help="the page, between its two marks")
    parser.add_argument("--all", action="store_true", help="earlier versions of the certificates as well")
    args = parser.parse_args(argv)
    counts = added_up([line for path in args.rows for line in path.read_text().splitlines() if line.strip()])
    if not args.all:
        counts = {key: sums for key, sums in counts.items() if key[1] == certificate_version(key[0])}
    if args.into is None:
        print(table(counts))
        return 0
    before, rest = args.into.read_text().split(BEGIN)
    args.into.write_text(f"{before}{BEGIN}\n{table(counts)}\n{END}{rest.split(END)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
