"""What comes back: a solution is data, and its certificate is other code's word for it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kernels.problems import Array

Number = int | float


class Termination(StrEnum):
    """Why a solver stopped. None of these is an error."""

    OPTIMAL = "optimal"
    CONVERGED = "converged"
    GAP_REACHED = "gap_reached"
    TIME_LIMIT = "time_limit"
    ITERATION_LIMIT = "iteration_limit"
    STOPPED = "stopped"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class OnDevice:
    """An input array of a problem, the very object, and its copy in device memory."""

    host: Array
    device: Any


@dataclass
class Solution:
    """The outcome of one solve.

    `arrays` holds the answer by the field's names (`assignment`, `u`, `v`, `prices`, `plan`, `f`, `g`,
    `permutation`, `hall_rows`, ...), on the host. `facts` holds small JSON values that describe the run (bids, rounds,
    phases, ...). `timings_ms` may hold h2d, solve, certify (on the device) and d2h.
    `evidence` holds arrays that only the certificate reads (the duals behind a bound); it is not part of the answer
    and need not be stored. `uploads` holds inputs that the solver leaves in device memory, as they arrived, so that a
    certificate on the device need not copy them again; whoever certifies last drops them.
    """

    termination: Termination
    method: str
    arrays: dict[str, Array]
    iterations: int = 0
    seed: int | None = None
    timings_ms: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, Array] = field(default_factory=dict, repr=False)
    uploads: list[OnDevice] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Certificate:
    """What was proved of a solution, recomputed from the problem by code that shares nothing with the solver.

    `objective` is recomputed from the answer; `bound` is a proved bound on the optimum (below when minimising, above
    when maximising), None when there is none. `gap_abs` = |objective - bound| and `gap_rel` = gap_abs /
    max(|objective|, |bound|), 0 when both are 0. `max_violation` is the largest constraint violation found, in the
    units named in `proved`. `holds` is None where no certificate was asked for, and False when the answer is not one: a
    column used twice, a forbidden entry, a plan with negative mass; the job then fails. `termination` is the word that
    the gap earns, where that is not the word that the solver claimed (an optimum whose duals leave a gap is
    "converged"); None leaves the solver's word. `loose` says that some part of the answer is called optimal and was not
    proved so, which is worth mending whatever the word of the whole. For a batch, objective and bound are sums and
    violations maxima.
    """

    objective: Number | None
    bound: Number | None
    gap_abs: Number | None
    gap_rel: float | None
    max_violation: Number
    holds: bool | None
    proved: str
    facts: dict[str, Any] = field(default_factory=dict)
    termination: Termination | None = None
    loose: bool = False

    def stated(self, word: Termination) -> dict[str, Any]:
        """What an answer that ended with `word` says of its proof; the objective stands in the answer itself.

        `verified` tells of `optimal` and `infeasible` whether this certificate proved it. A branch and bound's word is
        not proved here. Other words claim no such thing, and have None; an answer without a certificate has False.
        """
        names = ("bound", "gap_abs", "gap_rel", "max_violation", "holds", "proved", "facts")
        verified = None if self.holds is not None else False
        if self.holds is not None and word in (Termination.OPTIMAL, Termination.INFEASIBLE):
            verified = self.holds and self.facts.get("verified") is not False
        told = {name: getattr(self, name) for name in names}
        if self.holds is None:
            told["max_violation"] = None
        return {**told, "verified": verified}


def unheard(fraction: float) -> None:
    """Takes a certificate's progress where nobody listens."""
