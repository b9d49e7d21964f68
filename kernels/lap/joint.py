"""Several small problems of one shape solved as one batch, each answered as if it had been alone.

A batch saves what every call costs whatever its size: most of the time of a problem of 32 lines. What the batch's
certificate works out of a problem is what it would work out of that problem alone, so nothing of one member's is in
another's answer.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernels.card import Device
from kernels.certificates import assignment as proofs
from kernels.certificates.assignment_groups import groups, misshapen
from kernels.deadline import Deadline
from kernels.lap import monge
from kernels.lap.members import Members, PartOf
from kernels.problems import Assignment
from kernels.problems.points import PointAssignment
from kernels.solution import Certificate, Solution, Termination

if TYPE_CHECKING:
    from kernels.lap import LapOptions

Answer = tuple[Solution, Certificate]


def solve_jointly(
    problems: Sequence[Assignment], options: "LapOptions", deadline: Deadline, device: Device
) -> list[Answer | None]:
    """Solve cold dense problems of one shape and type together.

    Problem: as `kernels.lap.cpu.solver.solve` of each.
    Args:
        problems: each (n_rows, n_cols), none with duals to start from. Batches are left to themselves.
        options: the same for all.
        deadline: of all together.
        device: where to solve.
    Returns:
        Of each problem its solution and its certificate, or None for one that is to be solved by itself: it has no
        optimum that is proved, or it would go another way alone.
    Guarantee: on a CPU the assignment, the duals and the certificate of each are those of a solve by itself, since
        each is solved so there, and only the certificate is worked out for all at once. On a GPU a batch has kernels of
        its own, so that of several optima another one may come: with a seed, or `deterministic`, nothing is solved
        together there.
    Complexity: that of the batch; one certificate for all.
    """
    alone: list[Answer | None] = [None] * len(problems)
    pinned = options.seed is not None or options.deterministic
    if any(isinstance(one, PointAssignment) or np.asarray(one.weights).ndim > 2 for one in problems):
        return alone
    if options.iteration_limit is not None or options.method != "auto" or (device == "gpu" and pinned):
        return alone
    sign = -1 if options.maximize else 1
    if device == "gpu":
        chosen = list(range(len(problems)))
    else:
        chosen = [k for k, one in enumerate(problems) if monge.corner(np.asarray(one.weights), sign) is None]
    if len(chosen) < 2:
        return alone
    weights = np.stack([np.asarray(problems[k].weights) for k in chosen])
    batch = Assignment(weights, options.maximize)
    solution = _solve(batch, options, deadline, device)
    solve_ms = 1e3 * deadline.elapsed_s / len(chosen)
    certificates = _certificates(batch, solution)
    certify_ms = 1e3 * deadline.elapsed_s / len(chosen) - solve_ms
    spent = {"solve": solve_ms, "certify": certify_ms}
    for row, (k, certificate) in enumerate(zip(chosen, certificates, strict=True)):
        if certificate is not None:
            arrays = {name: solution.arrays[name][row] for name in ("assignment", "u", "v")}
            facts = {"solved_together": len(chosen)}
            one = Solution(
                Termination.OPTIMAL, solution.method, arrays, seed=options.seed, timings_ms=dict(spent), facts=facts
            )
            alone[k] = (one, certificate)
    return alone


def _solve(batch: Assignment, options: "LapOptions", deadline: Deadline, device: Device) -> Solution:
    if device == "gpu":
        from kernels.lap import CARD

        return CARD.solve(batch, options, deadline, device)
    from kernels.lap.cpu.solver import solve_one  # compiled code

    members, iterations = Members(batch), 0
    for k, weights, _, _ in members:
        one = solve_one(weights, batch.maximize, None, None, weights.size, PartOf(deadline, k, len(members)))
        iterations += one.iterations
        members.take(k, one)
    return members.solution("sap", iterations)


def _certificates(batch: Assignment, solution: Solution) -> list[Certificate | None]:
    """The certificate of each problem, as it would be by itself; None where it does not prove an optimum.

    The parts of the certificate of a batch are put together here one by one instead of into one sum.
    """
    found: list[Certificate | None] = [None] * len(batch.weights)  # type: ignore[arg-type]
    if misshapen(batch, solution):
        return found
    for group in groups(batch, solution):
        proved = proofs._prove(group, batch, lambda fraction: None)
        for k, proof in zip(group.members.tolist(), proved, strict=True):
            if proof.ended is Termination.OPTIMAL and not proof.why:
                one = Solution(Termination.OPTIMAL, solution.method, {})
                found[k] = proofs._certificate(batch, one, [proof], False)
    return found
