"""`allot-client`: solve, submit, watch, get, jobs and cancel, against a service. The service's `allot` adds its own."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

NAMES = ("auto", "both", "rows", "columns", "none")
"""Which lines of a table hold names."""
SOLVERS = (
    "lap",
    "auction",
    "uot",
    "qap",
    "gromov",
    "barycenter",
    "lowrank",
    "multimarginal",
    "lawler",
)
Commands = Any
"""What `add_subparsers` returns; argparse has no public name for it."""


def add_problem(command: argparse.ArgumentParser) -> None:
    """The arguments that say what is to be solved."""
    files = (
        ".csv, .tsv, .xlsx, .h5ad or .npy matrix, QAPLIB .dat, sparse .npz; several are solved one after another; "
        "NAME=FILE, or NAME=FILE.xlsx:SHEET, names each input of one problem"
    )
    command.add_argument("problem", nargs="+", metavar="FILE", help=files)
    command.add_argument("--solver", choices=SOLVERS, help="default: what the files look like")
    command.add_argument(
        "--option", "-o", action="append", default=[], metavar="NAME=VALUE",
        help="an option of the solver, as in -o seed=3; an unknown name lists what there is",
    )  # fmt: skip
    command.add_argument("--time-limit", type=float, metavar="SECONDS")
    command.add_argument("--device", choices=("auto", "gpu", "cpu"), default="auto")
    command.add_argument("--names", choices=NAMES, default="auto", help="which lines of a table are names (auto)")
    command.add_argument("--sheet", help="of an .xlsx file; default: the first, or all inputs of a layout")


def add_output(command: argparse.ArgumentParser) -> None:
    """The arguments that say where the answer goes."""
    command.add_argument("--out", type=Path, metavar="FILE", help=".npz, .json, or a table: .csv, .tsv, .xlsx")
    command.add_argument("--json", action="store_true", help="print each answer as one line of JSON")


def add_progress(command: argparse.ArgumentParser) -> None:
    """Whether progress is shown."""
    shown = "show how far it is (default on a terminal; never elsewhere)"
    command.add_argument("--progress", action=argparse.BooleanOptionalAction, help=shown)


def add_remote(commands: Commands) -> None:
    """The commands that talk to a service."""
    submit = commands.add_parser("submit", help="send a problem to a service and print the job's id")
    add_problem(submit)
    watch = commands.add_parser("watch", help="follow a job to its end")
    watch.add_argument("id")
    add_output(watch)
    get = commands.add_parser("get", help="wait for a job's answer and show it")
    get.add_argument("id")
    get.add_argument("--wait", type=float, metavar="SECONDS", help="give up after so long; default: wait for the end")
    get.add_argument(
        "--like", type=Path, metavar="FILE", nargs="+",
        help="a table whose names are put on the answer; of a layout both, as flow=FILE distance=FILE",
    )  # fmt: skip
    add_output(get)
    jobs = commands.add_parser("jobs", help="list your jobs, the newest first")
    jobs.add_argument("--state", choices=("queued", "running", "succeeded", "failed", "cancelled"))
    jobs.add_argument("--solver")
    jobs.add_argument("--limit", type=int, default=20, help="at most so many (20)")
    cancel = commands.add_parser("cancel", help="stop jobs and keep the best answers found so far")
    cancel.add_argument("id", nargs="+")
    for command in (submit, jobs, cancel):
        command.add_argument("--json", action="store_true", help="print one line of JSON each")
    for command in (submit, watch, get, jobs, cancel):
        add_service(command)


def add_service(command: argparse.ArgumentParser) -> None:
    """Which service is meant."""
    address = "the service (ALLOT_URL, else http://127.0.0.1:8000); its key is read from ALLOT_API_KEY"
    command.add_argument("--url", help=address)


def parser() -> argparse.ArgumentParser:
    """Every command and option."""
    from allot_client import __version__

    root = argparse.ArgumentParser(prog="allot-client", description="Assignment problems, answered with a proof.")
    root.add_argument("--version", action="version", version=f"allot-client {__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    solve = commands.add_parser("solve", help="have a problem solved by a service and show the answer")
    for add in (add_problem, add_output, add_progress, add_service):
        add(solve)
    add_remote(commands)
    return root


def run_remote(args: argparse.Namespace) -> int:
    """Run one of the commands that talk to a service: 0, 1 for an answer that does not hold, 2 for what went wrong."""
    from allot_client import commands

    return guarded(getattr(commands, args.command), args)


def guarded(command: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a command; what the user can mend is told in a sentence, on standard error."""
    from allot_client.errors import AllotError

    try:
        return command(args)
    except BrokenPipeError:  # whoever read the answer has seen enough, as `head` does
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # nothing is left to flush when Python ends
        return 0
    except (AllotError, OSError, ValueError) as wrong:
        print(f"allot: {_sentence(wrong)}", file=sys.stderr)
    except KeyboardInterrupt:
        print("allot: stopped by you", file=sys.stderr)
        return 130
    return 2


def each(problems: Sequence[Sequence[str]], one: Callable[[Sequence[str]], int]) -> int:
    """Call `one` for each problem. Of several, what is wrong with one is told, and ends no other.

    Returns:
        the highest of what `one` returned, 2 for a problem that is wrong.
    """
    from allot_client.together import OWN_FAULTS

    if len(problems) == 1:
        return one(problems[0])
    status = 0
    for given in problems:
        try:
            status = max(status, one(given))
        except BrokenPipeError:
            raise
        except (OSError, ValueError, *OWN_FAULTS) as wrong:
            said, files, status = _sentence(wrong), " ".join(given), 2
            print(f"allot: {said if files in said else f'{files}: {said}'}", file=sys.stderr)
    return status


def _sentence(wrong: Exception) -> str:
    if isinstance(wrong, FileNotFoundError):
        return f"there is no file {wrong.filename}"
    if isinstance(wrong, OSError):
        return f"{wrong.filename or 'a file'} cannot be read or written: {wrong.strerror}"
    return str(wrong)


def parsed(root: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments; of one that is unknown it is said where options of solvers go."""
    args, unknown = root.parse_known_args(argv)
    if unknown:
        name = unknown[0].partition("=")[0].lstrip("-").replace("-", "_")
        flag = unknown[0].startswith("--") and hasattr(args, "option")
        hint = f"; an option of the solver is given as -o {name}=VALUE" if flag else ""
        root.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command."""
    return run_remote(parsed(parser(), argv))


if __name__ == "__main__":
    sys.exit(main())
