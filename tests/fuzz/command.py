"""The command line of the fuzzer."""

import argparse
import random
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz import report
from tests.fuzz.judge import SEVERE
from tests.fuzz.pool import SHARES, Plan, Pool, Tally

REGRESSIONS = Path(__file__).parent / "regressions"


def parser() -> argparse.ArgumentParser:
    """Every option."""
    found = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    found.add_argument("--cases", type=int, default=10**9, help="stop after so many")
    found.add_argument("--seconds", type=float, default=60.0, help="stop after so long (default 60)")
    found.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    found.add_argument("--solver", default=",".join(SHARES), help="names with commas (default: all)")
    found.add_argument("--seed", type=int, help="default: a new one, which is printed")
    found.add_argument("--jobs", type=int, default=1, help="processes")
    found.add_argument("--limit", type=float, default=0.5, metavar="S", help="time limit of a case that draws none")
    found.add_argument("--no-mutations", action="store_true", help="corrupt no answers")
    found.add_argument("--http", default="", metavar="URL", help="ask a running service instead of this process")
    found.add_argument(
        "--keep", type=int, default=10, metavar="N", help="shrink and keep the first of N sorts of failure"
    )
    found.add_argument("--into", type=Path, default=REGRESSIONS, help="where those are kept")
    found.add_argument("--shrink", type=float, default=8.0, metavar="S", help="seconds for each of them")
    found.add_argument("--row", type=Path, help="append the counts to this file of JSON rows")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run; 0 when nothing is wrong, misleading or refused, and no certificate was fooled."""
    args = parser().parse_args(argv)
    seed = random.SystemRandom().randrange(10**9) if args.seed is None else args.seed
    plan = Plan(seed, args.cases, args.seconds, tuple(args.solver.split(",")), args.device, args.jobs, args.limit,
                not args.no_mutations, args.http)  # fmt: skip
    print(f"seed {seed}, certificates {report.certificate_version(args.device)}", flush=True)
    tally = Pool(plan).run(_heard())
    print(report.table(tally))
    if args.row:  # first: what follows may fail, and the counts are hours of work
        report.write(args.row, report.row(plan, tally))
    kept = 0
    for (solver, kind, _), failures in report.sorts(tally).items():
        print(f"\n{len(failures)} x {solver} {kind}: {failures[0].why[:300]}  (case {failures[0].k})", flush=True)
        if kept < args.keep and kind in (*SEVERE, "unshown"):
            kept += 1
            try:
                print(report.keep(plan, failures, args.into, args.shrink), flush=True)
            except Exception:  # a smaller case may break the judge
                traceback.print_exc()
    fooled = any(kind != "covered" for _, kind in tally.mutations)
    return 1 if fooled or any(tally.of(kind) for kind in SEVERE) else 0


class _heard:
    """Prints a line every 30 seconds."""

    def __init__(self) -> None:
        self._last = time.time()

    def __call__(self, tally: Tally) -> None:
        if time.time() - self._last > 30:
            self._last = time.time()
            severe = {kind: tally.of(kind) for kind in (*SEVERE, "unshown", "slow")}
            print(f"{tally.seconds:6.0f} s  {tally.cases} cases  {severe}", file=sys.stderr, flush=True)
