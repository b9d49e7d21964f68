"""What the tests of device certificates share: the certificate itself, and what it is held against."""

import importlib
from typing import Any

from kernels import SOLVERS, Certificate, Claim, Deadline, Inputs, Solution, Solver, recheck
from kernels.certificates.gpu.checksum import Pending
from kernels.problems import Csr


def solved(solver: str, inputs: Inputs, options: Any, limit_s: float = 20) -> tuple[Any, Solution, Certificate]:
    """Problem, the CPU's answer, and the CPU's certificate of it."""
    card = SOLVERS[solver]
    chosen = card.options(**options)
    problem = card.build(inputs, chosen)
    solution = card.solve(problem, chosen, Deadline(limit_s), "cpu")
    return problem, solution, card.certify(problem, solution)


def certify_on_device(card: Solver, problem: Any, solution: Solution) -> Certificate | None:
    """The device's certificate, however small the problem is; None where it leaves that to the CPU's."""
    module = importlib.import_module(card.device_certificate)
    if not module.suits(problem):
        return None
    found: Certificate | None = module.certify(problem, solution, Pending(module.arrays(problem)))
    return found


def disproved(solver: str, inputs: Inputs, options: Any, solution: Solution, found: Certificate) -> list[str]:
    """What the slow, exact certificate finds wrong in what the device's says."""
    if isinstance(inputs.get("benefit"), Csr):
        return []
    ended = found.termination or solution.termination
    claim = Claim(
        ended.value,
        found.objective,
        found.bound,
        found.gap_abs,
        found.gap_rel,
        found.max_violation,
        solution.arrays,
        solution.facts | found.facts,
    )
    return [f"{said.name}: {said.words}" for said in recheck(solver, inputs, options, claim) if said.holds is False]


def differences(device: Certificate, cpu: Certificate, steps: float = 0.0) -> list[str]:
    """Where two certificates of one answer differ: words, and numbers by more than `steps` of 2^-52, relative."""
    found = []
    for name in ("holds", "termination", "loose"):
        if getattr(device, name) != getattr(cpu, name):
            found.append(f"{name}: {getattr(device, name)} on the device, {getattr(cpu, name)} on the CPU")
    for name in ("objective", "bound"):
        here, there = getattr(device, name), getattr(cpu, name)
        if (here is None) != (there is None) or (
            here is not None and abs(here - there) > steps * 2.0**-52 * abs(there)
        ):
            found.append(f"{name}: {here!r} on the device, {there!r} on the CPU")
    return found
