"""One problem of a transport certificate on the device: its values from the sweep's sums, and the word it earns."""

import math
from dataclasses import dataclass

import numpy as np

from kernels.certificates.gpu.gpu_sums import FACTS
from kernels.certificates.gpu.gpu_units import Units
from kernels.certificates.gpu.outward import ratio_up, total
from kernels.problems import Array, UnbalancedTransport
from kernels.solution import Termination

UNIT = 2.0**-53
LOST, SMALL_PART = 2.0**-42, 2.0**-6
"""Of its size, or of the tolerance: from there on the CPU's certificate has a better primal value."""
CLAIMS = (Termination.GAP_REACHED, Termination.OPTIMAL)


@dataclass(frozen=True)
class Asked:
    """What all problems of a batch share: `problem` and `reach` are in `units`.

    No potential has to be larger than `reach`, whose masses have logarithms of `logs` (0: not asked).
    """

    problem: UnbalancedTransport
    units: Units
    tolerance: float
    reach: float
    logs: float


@dataclass(frozen=True)
class Part:
    """One problem's certificate. `word` is what it earned."""

    objective: float
    bound: float
    gap: float
    relative: float
    violation: float
    mass: float
    given: float
    word: Termination


def part_of(asked: Asked, row: Array, claim: Termination, implicit: bool) -> Part | None:
    """None where the plan does not meet a balanced side, or its word is not earned."""
    facts = dict(zip(FACTS, row.tolist(), strict=True))
    size = max(abs(facts["primal"]), asked.problem.reg * facts["mass"])
    if not _settled(asked, facts, implicit) or not facts["loss"] <= max(LOST, SMALL_PART * asked.tolerance) * size:
        return None
    gap, lack = total([facts["primal"], -facts["dual"], facts["price"]], 1), total([facts["dual"], -facts["primal"]], 1)
    if gap is None or lack is None:
        return None
    gap = max(0.0, gap, lack)  # an objective below the bound is that of a plan that breaks a balanced side
    relative = ratio_up(gap, max(abs(facts["primal"]), abs(facts["dual"])))
    reached = relative <= asked.tolerance
    values = [asked.units.back(value) for value in (facts["primal"], facts["dual"], gap)]
    if claim in CLAIMS and not reached:
        return None
    word = Termination.GAP_REACHED if reached and claim is Termination.CONVERGED else claim
    given = min(facts["mass_a"], facts["mass_b"])
    objective, bound, apart = values
    if objective is None or bound is None or apart is None:
        return None
    return Part(objective, bound, apart, relative, facts["residual"], facts["mass"], given, word)


def reach_of(problem: UnbalancedTransport) -> float:
    """How large potentials can have to be where every entry is permitted, from the data alone.

    f_i + g_j = C_ij + reg log(P_ij / w_i v_j) fixes them but for a constant, which a relaxed side of strength r bounds
    by r log(marginal / mass); 50 stands for the logarithm of a line's length and of what is left out of it.
    """
    cost = max(map(abs, problem.cost_bounds))
    logs = 50 + logs_of(problem)
    relaxed = sum(strength for strength in problem.reg_m if math.isfinite(strength))
    return 4 * (cost + problem.reg * logs) + relaxed * logs


def logs_of(problem: UnbalancedTransport) -> float:
    """The largest logarithms of masses, one of each side."""
    return sum(float(abs(np.log(masses[masses > 0])).max(initial=0.0)) for masses in (problem.a, problem.b))


def _settled(asked: Asked, facts: dict[str, float], implicit: bool) -> bool:
    """Whether the plan meets its balanced sides but for rounding: one of each entry and of the masses of a line.

    Potentials are rounded themselves, as are the logarithms of masses that they are made of, and exp makes more of it
    where the plan follows from them; not more than for potentials as large as they can have to be.
    """
    problem = asked.problem
    rounding = 8 * UNIT * sum(problem.shape)
    if implicit:
        size = min(facts["largest_f"] + facts["largest_g"], asked.reach)
        rounding += 8 * UNIT * (size / problem.reg + asked.logs)
    balanced = [side for side, strength in zip("ab", problem.reg_m, strict=True) if math.isinf(strength)]
    return all(facts[f"apart_{side}"] <= rounding * facts[f"mass_{side}"] for side in balanced)


def together(parts: list[Part]) -> tuple[float, float, float, float] | None:
    """Objective, bound, gap and relative gap of a batch: sums, rounded outward."""
    objective, bound = total([part.objective for part in parts], 1), total([part.bound for part in parts], -1)
    gaps = total([part.gap for part in parts], 1)
    apart = None if objective is None or bound is None else total([objective, -bound], 1)
    if objective is None or bound is None or gaps is None or apart is None:
        return None
    gap = max(gaps, apart, 0.0)
    return objective, bound, gap, ratio_up(gap, max(abs(objective), abs(bound)))
