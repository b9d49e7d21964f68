"""What the commands of `allot_client.cli` do, one function each, named like the command."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allot_client import bar
from allot_client.cli import each
from allot_client.client import Client, Job
from allot_client.extents import answered_extents, counted
from allot_client.files import LAYOUTS, Read, Wanted, jobs_of, option_values, read_for_service, read_job
from allot_client.results import Home, Result
from allot_client.saving import NoTable, check_suffix, one_line, save
from allot_client.tables import read_table
from allot_client.tasks import NO_HOME
from allot_client.words import in_words


def solve(args: Namespace) -> int:
    """Send each problem, wait for its answer, show it."""
    problems = jobs_of(args.problem)
    check_out(args, len(problems))
    with Client(args.url) as client:

        def one(given: Sequence[str]) -> int:
            read = _read(args, given)
            job = _place(client, args, read)
            if bar.wanted(args.progress) and not args.json:
                _follow(job)
            return 0 if show(job.result(), args, read) else 1

        return each(problems, one)


def submit(args: Namespace) -> int:
    """Send each problem, print its job's id."""
    with Client(args.url) as client:

        def one(given: Sequence[str]) -> int:
            job = _place(client, args, _read(args, given))
            print(json.dumps(job.view()) if args.json else job.id, flush=True)
            return 0

        return each(jobs_of(args.problem), one)


def watch(args: Namespace) -> int:
    """Print what happens to a job, line by line, and then its answer."""
    check_out(args)
    with Client(args.url) as client:
        job = client.job(args.id)
        for event in job.events():
            if args.json:
                print(json.dumps({"event": event.kind, **event.data}), flush=True)
            elif event.kind == "state":
                print(f"{event.data.get('state')}", flush=True)
            elif event.kind == "incumbent":
                print(_incumbent(event.data), flush=True)
        return 0 if show(job.result(), args) else 1


def get(args: Namespace) -> int:
    """Wait for a job's answer and show it."""
    check_out(args)
    home, read = NO_HOME, None
    if args.like is not None:
        read = _like([str(one) for one in args.like])
        home = Home(NO_HOME.bring, read.row_names, read.column_names)
    with Client(args.url) as client:
        answer = Job(client, args.id, home).result(args.wait)
        if read is not None:
            answer = _named_like(answer, read, " ".join(map(str, args.like)))
        return 0 if show(answer, args, read) else 1


def jobs(args: Namespace) -> int:
    """A line for each job."""
    with Client(args.url) as client:
        for k, view in enumerate(client.jobs(state=args.state, solver=args.solver)):
            if k == args.limit:
                break
            words = f"{view['id']}  {view['solver']:8} {view['state']:10} {view['created_at']}"
            print(json.dumps(view) if args.json else words)
    return 0


def cancel(args: Namespace) -> int:
    """Stop jobs."""
    with Client(args.url) as client:
        for job_id in args.id:
            view = client.job(job_id).cancel()
            print(json.dumps(view) if args.json else f"{job_id}  {view['state']}")
    return 0


def check_out(args: Namespace, problems: int = 1) -> None:
    """Raise ValueError for an --out that cannot be written, before anything is solved for it."""
    if args.out is not None:
        check_suffix(args.out)
        if problems > 1:
            raise ValueError(f"--out names one file, and there are {problems} problems")


def show(result: Result, args: Namespace, read: Read | None = None) -> bool:
    """Save and print an answer; True when its certificate holds. What cannot be saved is printed all the same."""
    left_out = ""
    try:
        if args.out is not None:
            left_out = _save(result, args.out, read)
    finally:
        print(one_line(result) if args.json else in_words(result), flush=True)
    if left_out:
        print(f"allot: {left_out}", file=sys.stderr)
    return result.certificate.holds is not False


def _save(result: Result, out: Path, read: Read | None) -> str:
    """Write the answer; what is to be said of it, where it says that there is none and no table can."""
    try:
        save(result, out, None if read is None else read.weights)
    except NoTable:
        if result.termination != "infeasible":
            raise
        return f"an infeasible answer is no table, so nothing was written to {out}"
    return ""


def _read(args: Namespace, given: Sequence[str]) -> Read:
    wanted = Wanted(args.solver, option_values(args.option), args.names, args.sheet)
    return read_job(given, wanted, read_for_service)


def _like(given: list[str]) -> Read:
    """Tables whose names an answer gets; one alone is a table whatever its name ends in, or a whole workbook."""
    alone = len(given) == 1 and "=" not in given[0]
    return read_job(given, Wanted(), read_table if alone else read_for_service)


def _named_like(answer: Result, read: Read, files: str) -> Result:
    """The answer with the names that the tables have for its lines. Raises ValueError for those of another shape."""
    sides, (rows, columns) = ("rows", "columns"), read.extents
    if answer.document["solver"] in LAYOUTS:
        sides = ("facilities", "locations")
        if "distance" not in read.inputs:  # one table names departments, and knows no room
            answer, columns = replace(answer, column_names=None), None
    theirs = answered_extents(answer.document, answer.arrays)
    if any(one != other and None not in (one, other) for one, other in zip((rows, columns), theirs, strict=True)):
        ours = counted((rows, columns), sides)
        raise ValueError(f"--like {files} has {ours}, and the answer has {counted(theirs, sides)}")
    return answer


def _place(client: Client, args: Namespace, read: Read) -> Job:
    options: dict[str, Any] = {**read.options, "device": args.device, "time_limit_s": args.time_limit}
    job = client.submit(read.solver, read.inputs, **options)
    home = replace(job._home, bring=NO_HOME.bring, row_names=read.row_names, column_names=read.column_names)
    home = home if read.label_names is None else replace(home, label_names=read.label_names)
    return Job(client, job.id, home)


def _follow(job: Job) -> None:
    try:
        for event in job.events():
            if event.kind == "progress":
                bar.show(event.data)
    finally:
        bar.clear()


def _incumbent(data: Any) -> str:
    bound = "" if data.get("bound") is None else f"  bound {data['bound']}"
    return f"{data.get('elapsed_s') or 0.0:8.2f} s  objective {data.get('objective')}{bound}"
