"""What a run of the fuzzer leaves: lines for a person, one JSON row of counts, the smallest failing cases."""

import ast
import hashlib
import json
import platform
import subprocess
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.case import Case, to_json
from tests.fuzz.judge import Verdict
from tests.fuzz.pool import Failure, Plan, Tally, case_of
from tests.fuzz.shrink import as_python, shrunk, sort_of
from tests.fuzz.trial import verdicts

ROOT = Path(__file__).parents[2]
ENTRIES = (
    "assignment.py",
    "auction.py",
    "transport.py",
    "quadratic.py",
    "barycenter/__init__.py",
    "brief/__init__.py",
    "flow/__init__.py",
    "gromov/__init__.py",
    "lowrank/__init__.py",
    "metrics/__init__.py",
    "multimarginal/__init__.py",
    "partial/__init__.py",
    "ranked/__init__.py",
    "rejecting/__init__.py",
    "relaxed/__init__.py",
    "selected/__init__.py",
    "several/__init__.py",
    "swept/__init__.py",
    "tree/__init__.py",
)
"""Where the certificates begin, in kernels/certificates/."""
ON_DEVICE = ("rejecting/on_device.py", "gpu/gpu_auction.py", "several/gpu.py")
"""And those of a device."""
OUTCOMES = ("right", "turned away", "wrong", "misleading", "refused", "unshown", "slow")


@cache
def certificate_version(device: str = "cpu") -> str:
    """A hash of the files that certify answers of a device: counts may be added up over runs of one version.

    Those are all kinds of certificates that cases are drawn for; on a device its own, and their sources, as well.
    """
    import kernels

    folder = Path(kernels.__file__).parent / "certificates"
    files = _reached(folder, [folder / name for name in ENTRIES])
    if device.startswith("gpu"):
        files |= _reached(folder, [folder / name for name in ON_DEVICE])
        files |= {path for suffix in ("*.cu", "*.cuh") for path in (folder / "gpu").glob(suffix)}
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


def _reached(folder: Path, entries: list[Path]) -> set[Path]:
    """The files of the certificates that some of them import, directly or not, and these."""
    found: set[Path] = set()
    waiting = list(entries)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            places = [
                folder.joinpath(*name.split(".")[2:]) for name in names if name.startswith("kernels.certificates.")
            ]
            files = [file for at in places for file in (at.with_suffix(".py"), at / "__init__.py")]
            waiting += [file for file in files if file.is_file()]
    return found


def row(plan: Plan, tally: Tally) -> dict[str, Any]:
    """The counts of a run, and what was run."""
    by_solver: dict[str, Counter[str]] = {name: Counter() for name in plan.solvers}
    families: dict[str, Counter[str]] = {name: Counter() for name in plan.solvers}
    for (solver, family, outcome), count in tally.counts.items():
        by_solver[solver][outcome] += count
        families[solver][family.split(",")[0]] += count
    return {
        "bench": "fuzz",
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _commit(),
        "certificates": certificate_version(plan.device),
        "device": plan.device + (" over http" if plan.url else ""),
        "machine": _machine(plan.device),
        "numpy": np.__version__,
        "seed": plan.seed,
        "jobs": plan.jobs,
        "limit_s": plan.limit_s,
        "seconds": round(tally.seconds, 1),
        "cases": tally.cases,
        **{outcome.replace(" ", "_"): tally.of(outcome) for outcome in OUTCOMES},
        "mutations": sum(tally.mutations.values()),
        "mutations_fooled": sum(n for (_, kind), n in tally.mutations.items() if kind != "covered"),
        "scaled": sum(tally.scaled.values()),
        "scaled_otherwise": sum(n for (_, other), n in tally.scaled.items() if other),
        "certified_on_the_device": sum(n for (_, where), n in tally.certified.items() if where == "gpu"),
        "certified": {name: _by_place(tally, name) for name in plan.solvers},
        "by_solver": {name: dict(sorted(counts.items())) for name, counts in by_solver.items()},
        "families": {name: dict(sorted(counts.items())) for name, counts in families.items()},
    }


def _by_place(tally: Tally, solver: str) -> dict[str, int]:
    return {where: count for (name, where), count in sorted(tally.certified.items()) if name == solver}


def table(tally: Tally) -> str:
    """Counts by solver and outcome."""
    solvers = sorted({solver for solver, _, _ in tally.counts})
    lines = ["solver      cases " + "".join(f"{outcome:>13}" for outcome in OUTCOMES)]
    for solver in solvers:
        counts = [sum(n for (s, _, o), n in tally.counts.items() if (s, o) == (solver, out)) for out in OUTCOMES]
        lines.append(f"{solver:8}{sum(counts):9} " + "".join(f"{count:13}" for count in counts))
    if tally.mutations:
        fooled = sum(n for (_, kind), n in tally.mutations.items() if kind != "covered")
        lines.append(f"{sum(tally.mutations.values())} corrupted answers, {fooled} fooled a certificate or broke it")
    if tally.scaled:
        other = sum(n for (_, differs), n in tally.scaled.items() if differs)
        lines.append(f"{sum(tally.scaled.values())} problems asked again in other units, {other} answered otherwise")
    return "\n".join(lines)


def sorts(tally: Tally) -> dict[tuple[str, str, str], list[Failure]]:
    """Failures that say the same, most frequent first."""
    found: dict[tuple[str, str, str], list[Failure]] = {}
    for failure in tally.failures:
        found.setdefault((failure.solver, failure.kind, sort_of(failure.why)), []).append(failure)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def keep(plan: Plan, failures: list[Failure], folder: Path, seconds: float) -> str:
    """Shrink the first of some like failures, keep it as a regression, and say how to reproduce it."""
    failure = failures[0]
    case = case_of(plan, failure.k)
    if (
        failure.kind in ("mutation", "scale", "slow") or plan.url or "CUDA" in failure.why
    ):  # which would end this process
        return f"case {failure.k} of seed {plan.seed}: {failure.why}\n{_runs(plan, case)}"

    def fails(smaller: Case) -> bool:
        return any(_alike(v, failure) for v in verdicts(plan, smaller)[1])

    small = shrunk(case, fails, seconds)
    found = [v for v in verdicts(plan, small)[1] if _alike(v, failure)]
    why = found[0].why if found else failure.why
    text = to_json(small, verdict=failure.kind, why=why)
    name = f"{failure.solver}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text + "\n")
    return f"{failure.kind}: {why}\nkept as {name} (case {failure.k} of seed {plan.seed})\n{_runs(plan, small)}"


def _runs(plan: Plan, case: Case) -> str:
    return as_python(case).replace('"cpu"', f'"{plan.device}"')


def _alike(verdict: Verdict, failure: Failure) -> bool:
    return verdict.kind == failure.kind and sort_of(verdict.why) == sort_of(failure.why)


def write(path: Path, found: dict[str, Any]) -> None:
    """Append the row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(found) + "\n")


def _commit() -> str:
    import os

    if told := os.environ.get("ALLOT_COMMIT"):
        return told
    done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _machine(device: str) -> str:
    if device == "gpu":
        try:
            import cupy

            return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
        except Exception:  # no cupy here: the service has the GPU
            pass
    cpuinfo = Path("/proc/cpuinfo")
    names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")] if cpuinfo.exists() else []
    return f"{names[0].split(':', 1)[1].strip()} x {len(names)}" if names else platform.machine()
