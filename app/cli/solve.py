"""`allot solve FILE`: read one file, solve it in this process, print the answer with its certificate."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError

from app.answers.answer import grouped, json_bytes
from kernels import SOLVERS, Array, Csr, Deadline, Device, InvalidProblem, Progress, Solver, solve_and_prove
from workers.store.codec import Decoded, Form, InvalidUpload, decode

LINE = 78
"""Characters of the line that shows progress."""


def solve_file(args: Namespace) -> int:
    """Run the command; 0 for an answer, 1 when its certificate does not hold, 2 for wrong input."""
    try:
        decoded = decode(args.file, Form(filename=args.file.name), field=args.file.name)
        card = SOLVERS[args.solver or guess_solver(decoded)]
        inputs = named(decoded, card)
        options = card.options.model_validate_json(json.dumps(option_values(args.option, card)), strict=True)
        document = solve(card, inputs, options, args.device, args.time_limit, args.json)
    except (InvalidProblem, InvalidUpload, OSError) as wrong:
        print(f"allot: {wrong}")
        return 2
    except ValidationError as wrong:
        for error in wrong.errors():
            print(f"allot: option {'.'.join(map(str, error['loc']))}: {error['msg']}")
        return 2
    print(json_bytes(document, indent=2).decode() if args.json else describe(document))
    return 0 if document["certificate"]["holds"] else 1


def named(decoded: Decoded, card: Solver) -> dict[str, Array | Csr]:
    """What a file holds as inputs of a solver: arrays by name as they are, a matrix as the one that a matrix is."""
    if isinstance(decoded, dict):
        return dict(decoded)
    if card.main is None:
        raise InvalidProblem("file", f"holds one matrix; {card.name} takes {', '.join(card.specs)}")
    return {card.main.name: decoded}


def guess_solver(decoded: Decoded) -> str:
    """The first solver that takes what a file holds: all required inputs, or one matrix, dense or sparse."""
    for card in SOLVERS.values():
        if isinstance(decoded, dict):
            required = {spec.name for spec in card.inputs if spec.required}
            takes = required <= decoded.keys() <= card.specs.keys()
        else:
            takes = card.main is not None and (card.main.sparse or not isinstance(decoded, Csr))
        if takes:
            return card.name
    held = ", ".join(decoded) if isinstance(decoded, dict) else "one matrix"
    raise InvalidProblem("file", f"holds {held}, which no solver takes; name one with --solver")


def option_values(pairs: Sequence[str], card: Solver) -> dict[str, Any]:
    """`name=value` pairs as options; a value is JSON, and a bare word is a string."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in card.options.model_fields:
            known = ", ".join(card.options.model_fields) or "none"
            raise InvalidProblem(f"--option {pair}", f"is not NAME=VALUE with an option of {card.name}: {known}")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def solve(
    card: Solver, inputs: dict[str, Any], options: Any, device: str, time_limit_s: float | None, quiet: bool
) -> dict[str, Any]:
    """Solve, certify, and lay the answer out as the HTTP result is."""
    begun = time.perf_counter()
    problem = card.build(inputs, options)
    build_s = time.perf_counter() - begun
    where = pick_device(card, problem, options, device)
    card.warm_up(where)  # compiling is not solving
    limit_s = None if time_limit_s is None else max(0.0, time_limit_s - build_s)  # as in a worker, building counts
    watched = sys.stderr.isatty() and not quiet
    deadline = Deadline(limit_s, on_progress=show_progress if watched else None)
    solution, certificate = solve_and_prove(card, problem, options, deadline, where)
    if watched:
        print(" " * LINE, end="\r", file=sys.stderr)
    return {
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
        **grouped(card, solution.arrays),
    }


def pick_device(card: Solver, problem: Any, options: Any, asked: str) -> Device:
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
    """One line that overwrites itself: the phase and how much of it is done, and what is known so far."""
    gap = "" if progress.gap is None else f"  gap {progress.gap:.3%}"
    done = "" if progress.fraction is None else f" {progress.fraction:.0%}"
    phase = f"{progress.phase}{done}"
    objective = "" if progress.objective is None else f"  {progress.objective}"
    line = f"{progress.elapsed_s:7.1f} s  {phase:12}  iteration {progress.iteration}{objective}{gap}"
    print(f"{line:{LINE}}", end="\r", file=sys.stderr, flush=True)


def describe(document: dict[str, Any]) -> str:
    """The answer for a person: what was found, what was proved, and the arrays, cut short."""
    certificate = document["certificate"]
    facts = certificate["facts"]
    verified = {True: " (verified)", False: " (not verified)"}.get(certificate["verified"], "")
    claimed = f"  claimed {facts['claimed_bound']}" if "claimed_bound" in facts else ""
    lines = [
        f"{document['solver']} by {document['method']} on {document['device']}: {document['termination']}"
        f"{verified} in {document['timings_ms']['solve']:.1f} ms",
        f"objective {document['objective']}  bound {certificate['bound']}{claimed}  gap {certificate['gap_rel']}",
        f"proved: {certificate['proved']}" + ("" if certificate["holds"] else "  -- IT DOES NOT HOLD"),
    ]
    standard = {"solver", "termination", "objective", "certificate", "method", "device", "iterations", "timings_ms"}
    standard |= {"options", "facts"}
    for name, value in document.items():
        if name not in standard:
            for label, array in value.items() if isinstance(value, dict) else [(name, value)]:
                text = np.array2string(array, threshold=20, edgeitems=4, max_line_width=110)
                lines.append(f"{label} = {text}")
    return "\n".join(lines)
