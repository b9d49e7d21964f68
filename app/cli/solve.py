"""`allot solve FILE`: read a problem, solve it in this process, print the answer with its certificate."""

import json
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from allot_client import bar
from allot_client.cli import each
from allot_client.commands import check_out, show
from allot_client.files import Read, Wanted, jobs_of, option_values, read_job
from allot_client.results import Home, Result, read_result
from allot_client.tasks import NO_HOME
from pydantic import ValidationError

from app.intake.alternatives import of_one_option
from app.intake.document import allowed_inputs
from kernels import (
    SOLVERS,
    Array,
    Csr,
    Deadline,
    Device,
    InvalidProblem,
    OptionsOf,
    Problem,
    Progress,
    Solver,
    solve_and_prove,
)
from workers.store.codec import Form, decode


def solve_file(args: Namespace) -> int:
    """Run the command; 0 for answers, 1 when a certificate does not hold. Raises ValueError for wrong input."""
    problems = jobs_of(args.problem)
    check_out(args, len(problems))

    def one(given: Sequence[str]) -> int:
        read = read_job(given, Wanted(args.solver, option_values(args.option), args.names, args.sheet), read_other)
        card = SOLVERS[read.solver]
        check_names(read.inputs, card)
        watched = bar.wanted(args.progress) and not args.json
        answer = solve(card, read, known_options(read.options, card), args.device, args.time_limit, watched)
        return 0 if show(answer, args, read) else 1

    return each(problems, one)


def check_names(inputs: Mapping[str, Any], card: Solver) -> None:
    """Raise InvalidProblem for an input that the solver does not take: building a problem reads those that it knows."""
    for name in inputs:
        if name not in card.specs and name not in card.files:
            raise InvalidProblem(name, f"is no input; {allowed_inputs(card)}")


def read_inputs(path: Path, card: Solver) -> dict[str, Array | Csr]:
    """What a file of arrays holds as inputs of a solver: arrays by name, a matrix as the one that a matrix is."""
    decoded = read_other(path)
    if isinstance(decoded, dict):
        return dict(decoded)
    if card.main is None:
        raise InvalidProblem("file", f"holds one matrix; {card.name} takes {', '.join(card.specs)}")
    return {card.main.name: decoded}


def read_other(path: Path) -> Array | Csr | dict[str, Array]:
    """A file that is no table, as the service reads it; booleans as the client sends them."""
    found = decode(path, Form(filename=path.name), field=path.name)
    if isinstance(found, dict):
        return {name: _numbers(array) for name, array in found.items()}
    return replace(found, values=_numbers(found.values)) if isinstance(found, Csr) else _numbers(found)


def _numbers(array: Array) -> Array:
    """0 and 1 for False and True, which a solver refuses among costs: nobody says there that they are numbers."""
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def known_options(values: Mapping[str, Any], card: Solver) -> Any:
    """Options by name as the solver's own. Raises: InvalidProblem."""
    for name in values:
        if name not in card.options.model_fields:
            known = ", ".join(card.options.model_fields) or "none"
            raise InvalidProblem(f"--option {name}", f"is no option of {card.name}, which has: {known}")
    try:
        return card.options.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as wrong:
        first = next(of_one_option([{**one, "loc": ("options", *one["loc"])} for one in wrong.errors()]))
        raise InvalidProblem(f"--option {'.'.join(map(str, first['loc'][1:]))}", first["msg"]) from None


def solve(card: Solver, read: Read, options: Any, device: str, time_limit_s: float | None, watched: bool) -> Result:
    """Solve, certify, and lay the answer out as the HTTP result is."""
    begun = time.perf_counter()
    problem = card.build(read.inputs, options)
    build_s = time.perf_counter() - begun
    where = pick_device(card, problem, options, device)
    _load(card, where)
    limit_s = None if time_limit_s is None else max(0.0, time_limit_s - build_s)  # as in a worker, building counts
    deadline = Deadline(limit_s, on_progress=show_progress if watched else None)
    solution, certificate = solve_and_prove(card, problem, options, deadline, where)
    if watched:
        bar.clear()
    document = {
        "id": "",
        "solver": card.name,
        "termination": solution.termination,
        "objective": certificate.objective,
        "certificate": certificate.stated(solution.termination),
        "method": solution.method,
        "device": where,
        "iterations": solution.iterations,
        "options": options.model_dump(mode="json", exclude_defaults=True),
        "facts": solution.facts,
        "timings_ms": {
            "load": build_s * 1e3,
            "solve": solution.timings_ms["solve"],
            "certify": solution.timings_ms["certify"],
        },
        **card.grouped(solution.arrays),
    }
    names = read.row_names, read.column_names
    home = Home(NO_HOME.bring, *names, label_names=read.label_names, within=read.within)
    return read_result(document, solution.arrays, home)


def _load(card: Solver, device: Device) -> None:
    """Import the solver, and compile what is not on the disk: neither is solving. On a GPU make its context, too."""
    from workers.runtime import loops

    if device == "cpu" and loops.kept([card.name], device):
        card.load(device)
    else:
        card.warm_up(device)


def pick_device(card: Solver[Problem, OptionsOf], problem: Problem, options: OptionsOf, asked: str) -> Device:
    """The device to solve on in this process."""
    if asked == "cpu" or "gpu" not in card.modules:
        if asked == "gpu":
            raise InvalidProblem("--device", f"{card.name} has no GPU solver")
        return "cpu"
    from workers.runtime import devices

    there = bool(devices.visible_gpus())
    if asked == "gpu" and not there:
        raise InvalidProblem("--device", "there is no CUDA device here; `allot doctor` says why")
    return "gpu" if there and (asked == "gpu" or card.prefers_gpu(problem, options)) else "cpu"


def show_progress(progress: Progress) -> None:
    """One line that overwrites itself."""
    bar.show(asdict(progress))
