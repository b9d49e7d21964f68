"""Small transports of several jobs swept in one launch of a GPU, each answered as if it had been alone.

Each problem has a block of its own (batch.cu), which knows nothing of the others. So a batch, or a list of problems of
one shape, has the bits that it has by itself. A job of one problem goes another way alone (see `solve_jointly`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.card import Device
from kernels.company import in_groups
from kernels.deadline import Deadline
from kernels.on_device import Certifier
from kernels.problems.several import SeveralTransports
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, Solution, Termination, unheard
from kernels.unproved import unproved
from kernels.uot.batch.suited import AXES, at_once, shows, suits, vectors_alone
from kernels.uot.build import Entropic, Transport
from kernels.uot.estimate import spread_of
from kernels.uot.iteration.layout import ITERATIONS
from kernels.uot.several import of_all
from kernels.uot.stages import together
from kernels.uot.units import NOTICED, fits_float32

if TYPE_CHECKING:
    from kernels.uot import TransportOptions
    from kernels.uot.batch.gpu_sweeps import Swept

Answer = tuple[Solution, Certificate]
LARGEST = 1 << 24
"""Entries of a launch, at 24 bytes of device memory each."""
LONE_SWEEPS = 224
"""After which a job of one problem is left to its own way, which takes fewer: three launches."""


def solve_jointly(
    problems: Sequence[Transport], options: "TransportOptions", deadline: Deadline, device: Device
) -> list[Answer | None]:
    """Solve small transports, batches of them and lists of one shape in as few launches as hold them.

    Problem: as `kernels.uot.gpu.solve` of each.
    Args:
        problems: without potentials to start from.
        options: the same for all; potentials alone are asked for.
        deadline: of all together.
        device: "gpu", or none is solved together.
    Returns:
        Of each problem its solution and its certificate, or None for one that is to be solved by itself: it has not
        converged in float32, its certificate does not earn it its word, or it would go another way alone.
    Guarantee: of batches and lists arrays, iterations, facts and certificate are those of a solve by itself, bit by
        bit. One problem is solved as a batch of one: as good an answer, within the same tolerance, of a method that
        says "batch". Where options say more of how to solve it than the defaults do, it is left to itself.
    Complexity: that of one batch of all; a certificate each.
    """
    found: list[Answer | None] = [None] * len(problems)
    if device != "gpu" or not _leave_the_way(options):
        return found
    kinds: dict[Any, list[int]] = {}
    for k, problem in enumerate(problems):
        kind = _kind(problem, options)
        if kind is not None:
            kinds.setdefault(kind, []).append(k)
    for numbers in kinds.values():
        for group in in_groups(numbers, lambda k: _entries(problems[k]), LARGEST):
            if len(group) > 1 and not deadline.expired():
                members: Any = [problems[k] for k in group]
                for k, answer in zip(group, _together(members, options, deadline, device), strict=True):
                    found[k] = answer
    return found


def _leave_the_way(options: "TransportOptions") -> bool:
    """Whether options leave it to us how the problems are solved."""
    free = options.method in ("auto", "log", "points") and options.storage in ("auto", "float32")
    return free and not options.divergence and vectors_alone(options)


def _kind(problem: Transport, options: "TransportOptions") -> Any:
    """Problems with the same answer here may share a launch; None for one that is solved by itself."""
    if isinstance(problem, SeveralTransports):
        fits = problem.form != "one" and at_once(problem, options) and problem.parts[0].g0 is None
        return _kind_of("list", problem.parts) if fits else None
    if not isinstance(problem, UnbalancedTransport) or problem.f0 is not None or problem.g0 is not None:
        return None
    if not suits(problem, options):
        return None
    if problem.batch is not None:
        return _kind_of("batch", [problem]) if fits_float32(problem) else None
    pinned = options.method != "auto" or options.storage != "auto" or not options.acceleration
    other = problem.labels is not None or (problem.cost is None and problem.metric not in AXES)
    return None if pinned or other else _kind_of("one", [problem])


def _kind_of(form: str, parts: Sequence[UnbalancedTransport]) -> Any:
    """What a launch is told once for all of its problems, and what their arrays must have in common."""
    first = parts[0]
    given = ("cost",) if first.cost is not None else ("x", "y")
    columns = [[getattr(part, name) for part in parts] for name in given]
    dtypes = tuple(np.result_type(*{array.dtype for array in column}).str for column in columns)
    unit = 1.0 if form == "batch" else first.reg
    strengths = (first.reg if form == "batch" else 1.0, first.reg_m[0] / unit, first.reg_m[1] / unit)
    small = min(part.reg for part in parts) < NOTICED
    return form, first.shape, columns[0][0].shape[-1], dtypes, strengths, small, first.metric, first.reference


def _entries(problem: Any) -> int:
    m, n = problem.shape
    return (problem.batch or 1) * int(m) * int(n)


def _together(
    members: Sequence[Entropic], options: "TransportOptions", deadline: Deadline, device: Device
) -> list[Answer | None]:
    """Of each member its answer, None where it has none from here."""
    from kernels.uot import CARD

    found: list[Answer | None] = [None] * len(members)
    first = members[0].parts[0] if isinstance(members[0], SeveralTransports) else members[0]
    if not shows(first, spread_of(first), options.tolerance):
        return found  # each would have to go on in float64
    begun_s = deadline.elapsed_s
    proves = options.certificate != "none"
    certifiers = [Certifier(CARD, member, device) if proves else None for member in members]
    solutions = _solutions(members, options, deadline)
    solve_ms = 1e3 * (deadline.elapsed_s - begun_s) / len(members)
    for k, (member, solution, certifier) in enumerate(zip(members, solutions, certifiers, strict=True)):
        if solution is None or deadline.expired():
            continue
        since_s = deadline.elapsed_s
        certificate = unproved(CARD, member, solution) if certifier is None else certifier.certify(solution, unheard)
        if certifier is not None and not _earned(certificate):
            continue
        solution.timings_ms = {"solve": solve_ms, "certify": 1e3 * (deadline.elapsed_s - since_s)}
        found[k] = solution, certificate
    return found


def _earned(certificate: Certificate) -> bool:
    """Whether a certificate leaves nothing that a solve by itself would try to better."""
    listed = certificate.facts.get("problems", {}).get("objectives", [certificate.objective])
    known = certificate.objective is not None and None not in listed
    return bool(certificate.holds) and known and not certificate.loose and certificate.termination is None


def _solutions(members: Sequence[Entropic], options: "TransportOptions", deadline: Deadline) -> list[Solution | None]:
    """Of each member its solution, None where not all of its problems have converged to what is surely small enough."""
    from kernels.uot.batch import gpu_sweeps

    sizes = [member.batch or 1 for member in members]
    starts = np.cumsum([0, *sizes[:-1]])
    if isinstance(members[0], UnbalancedTransport) and members[0].batch is not None:
        work, fits = gpu_sweeps.work_of_batches([one for one in members if isinstance(one, UnbalancedTransport)])
    else:
        parts = [part for one in members for part in (one.parts if isinstance(one, SeveralTransports) else (one,))]
        work, fits = gpu_sweeps.work_of_stack(parts)
    whole = np.logical_and.reduceat(fits, starts)
    if not whole.all():
        rest = iter(
            _solutions([one for one, fit in zip(members, whole, strict=True) if fit], options, deadline)
            if whole.any()
            else ()
        )
        return [next(rest) if fit else None for fit in whole]
    alone = isinstance(members[0], UnbalancedTransport) and members[0].batch is None
    limit = min(options.iterations, LONE_SWEEPS) if alone else None
    done = gpu_sweeps.swept(work, options, deadline, starts, limit)
    slices = (slice(start, start + size) for start, size in zip(starts.tolist(), sizes, strict=True))
    through = done.through & np.logical_and.reduceat(done.sure, starts)
    found = [
        _solution(one, some, done, options) if ended else None
        for one, some, ended in zip(members, slices, through, strict=True)
    ]
    for solution in found:
        if solution is not None:
            solution.facts["solved_together"] = len(members)
    return found


def _solution(member: Entropic, some: slice, done: "Swept", options: "TransportOptions") -> Solution | None:
    """The solution of a member that has converged; None where an answer is out of the ordinary."""
    arrays = None if done.found is None else done.found.some(some)
    if arrays is None:
        return None
    iterations = done.status[some, ITERATIONS].astype(int).tolist()
    if member.batch is not None:
        solution = together([Termination.GAP_REACHED] * len(iterations), iterations, "batch", options)
        solution.arrays = arrays
        return of_all(member, solution)
    arrays = {name: array[0] for name, array in arrays.items()}
    facts: dict[str, Any] = {"tolerance": options.tolerance, "gap": float(done.gap[some.start])}
    facts |= {"stages": [member.reg], "rejected": 0, "storage": "float32"}
    return of_all(member, Solution(Termination.GAP_REACHED, "batch", arrays, iterations[0], facts=facts))
