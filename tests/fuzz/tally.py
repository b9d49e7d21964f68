"""`python -m tests.fuzz.tally`: adds up the rows of all runs, by device and version of the certificates."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.report import ROOT, certificate_version

COUNTS = ("cases", "wrong", "misleading", "refused", "unshown", "slow", "mutations", "mutations_fooled")
HEAD = ("device", "certificates", "last run", "cases", "wrong", "misleading", "refused", "unshown", "slow",
        "corrupted answers", "fooled")  # fmt: skip
CURRENT = "In bold: runs of the certificates as they are here, {versions}."
OUTDATED = "No run is of the certificates as they are here, {versions}: they have changed since the last one."
BEGIN, END = "<!-- fuzz -->", "<!-- /fuzz -->"


def added_up(lines: Sequence[str]) -> dict[tuple[str, str], Counter[str]]:
    """Counts by (device, version), in the order of their last runs."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for row in sorted(map(json.loads, lines), key=lambda row: str(row["when"])):
        key = row["device"], row["certificates"]
        sums = found.pop(key, Counter())
        sums.update({name: row[name] for name in COUNTS})
        found[key] = sums
    return found


def last_runs(lines: Sequence[str]) -> dict[tuple[str, str], str]:
    """When each (device, version) was last run, to the minute."""
    rows = sorted(map(json.loads, lines), key=lambda row: str(row["when"]))
    return {(row["device"], row["certificates"]): row["when"][:16].replace("T", " ") for row in rows}


def table(counts: dict[tuple[str, str], Counter[str]], last: dict[tuple[str, str], str]) -> str:
    """A Markdown table, the newest version of each device first and this commit's in bold, and what bold means."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    now = {device: certificate_version(device) for device in ("cpu", "gpu")}
    newest = list(counts.items())[::-1]
    for (device, version), sums in sorted(newest, key=lambda one: one[0][0]):
        shown = f"**{version}**" if version == now[device] else version
        lines.append(
            f"| {device} | {shown} | {last[device, version]} | "
            + " | ".join(f"{sums[name]:,}" for name in COUNTS)
            + " |"
        )
    said = CURRENT if any(now[device] == version for device, version in counts) else OUTDATED
    return "\n".join([*lines, "", said.format(versions=f"{now['cpu']} on CPUs and {now['gpu']} on GPUs")])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.tally", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", type=Path, default=sorted((ROOT / "benchmarks/results").glob("fuzz_*.jsonl"))
    )
    parser.add_argument("--into", type=Path, metavar="PAGE", help="the page, between its two marks")
    parser.add_argument("--all", action="store_true", help="earlier versions of the certificates as well")
    args = parser.parse_args(argv)
    lines = [line for path in args.rows for line in path.read_text().splitlines() if line.strip()]
    counts, last = added_up(lines), last_runs(lines)
    if not args.all:
        counts = {key: sums for key, sums in counts.items() if key[1] == certificate_version(key[0])}
    if args.into is None:
        print(table(counts, last))
        return 0
    before, rest = args.into.read_text().split(BEGIN)
    args.into.write_text(f"{before}{BEGIN}\n{table(counts, last)}\n{END}{rest.split(END)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
