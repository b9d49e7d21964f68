"""The certificate of transport on the device (`uot`): matrices and points, one problem or a batch.

The primal value of the returned plan is rounded up, the dual value of its potentials down, as in the CPU's certificate.
It says nothing (None) of infeasible problems, of plans with single entries beside their potentials, of plans that
follow from potentials where a balanced side meets forbidden entries (there may be no plan, and then potentials grow
without end), of lists of the largest entries, of potentials that are no numbers or cost the primal value its digits,
of numbers that the units of gpu_units.py do not hold, and where a plan is none or a claimed word is not earned: there
the CPU's certificate, which has finer means, has the word.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.certificates.gpu.checksum import Pending
from kernels.certificates.gpu.gpu_arrays import compare, copied, on_device
from kernels.certificates.gpu.gpu_problem import Asked, Part, logs_of, part_of, reach_of, together
from kernels.certificates.gpu.gpu_sums import FACTS, Sides, Swept, sweep
from kernels.certificates.gpu.gpu_units import Units, units_of
from kernels.problems import Array, UnbalancedTransport
from kernels.solution import Certificate, Solution, Termination

FEWEST = 1 << 16
"""Entries below which the CPU's certificate is there before a device has been told what to do."""
NEXT_TO_NONE_S, ENTRIES_A_SECOND = 0.02, 1e9
"""Of launches and copies back; of both sweeps, with the plan's way to the device."""
LARGEST = 1e300
"""A potential beyond it is not one."""
FAINT = 1e-6
"""Of the given mass: a plan below it is as good as empty, and the answer says so."""
BESIDE = ("entry_rows", "entry_columns", "entry_values")
WORST = (
    Termination.OPTIMAL,
    Termination.GAP_REACHED,
    Termination.CONVERGED,
    Termination.ITERATION_LIMIT,
    Termination.TIME_LIMIT,
    Termination.STOPPED,
    Termination.INFEASIBLE,
)


def inputs(problem: UnbalancedTransport) -> list[Array] | None:
    """`arrays`, where the problem is large enough; None where the CPU's certificate is to be used."""
    entries = (problem.batch or 1) * problem.shape[0] * problem.shape[1]
    return arrays(problem) if entries >= FEWEST and suits(problem) else None


def seconds(problem: UnbalancedTransport) -> float:
    """About what a certificate takes at most, on a device that is fast at float64."""
    dimension = 0 if problem.x is None else problem.x.shape[1]
    entries = (problem.batch or 1) * problem.shape[0] * problem.shape[1]
    return NEXT_TO_NONE_S + entries * (1 + dimension / 16) / ENTRIES_A_SECOND


def suits(problem: UnbalancedTransport) -> bool:
    """Whether this certificate is for the problem."""
    units = units_of(problem)
    return units is not None and units.fits(problem) and all(array.flags.c_contiguous for array in arrays(problem))


def arrays(problem: UnbalancedTransport) -> list[Array]:
    """The arrays whose checksums `certify` asks for."""
    given = (problem.x, problem.y) if problem.cost is None else (problem.cost,)
    return [array for array in given if array is not None]


def certify(problem: UnbalancedTransport, solution: Solution, checksums: Pending) -> Certificate | None:
    """Recompute primal, dual and marginals from the costs or points on the device.

    Raises:
        InputChanged: they are not those that arrived.
    """
    claims = _claims(problem, solution) if suits(problem) else None
    units = units_of(problem)
    vectors = None if claims is None or units is None else _vectors(problem, solution.arrays, units)
    if claims is None or vectors is None or units is None:
        return None
    plan = solution.arrays.get("plan")
    geometry = [on_device(array, solution) for array in arrays(problem)]
    scaled = replace(
        problem,
        reg=problem.reg * units.of_costs,
        reg_m=(problem.reg_m[0] * units.of_costs, problem.reg_m[1] * units.of_costs),
    )
    copy = None if plan is None else copied(np.ascontiguousarray(plan))
    swept = sweep(Sides(scaled, vectors, geometry, copy, units))
    compare(arrays(problem), swept.checksums, checksums)
    if swept.bad.any() or not np.isfinite(swept.facts[:, : FACTS.index("shown_a")]).all():
        return None
    implicit = plan is None
    balanced = any(map(math.isinf, problem.reg_m))
    if implicit and balanced and problem.cost is not None and math.isinf(float(geometry[0].max())):
        return None
    told = solution.facts.get("tolerance")
    tolerance = float(told) if isinstance(told, int | float) and math.isfinite(told) else 0.0
    reach, logs = (reach_of(problem) * units.of_costs, logs_of(problem)) if implicit and balanced else (0.0, 0.0)
    asked = Asked(scaled, units, tolerance, reach, logs)
    parts = [part_of(asked, row, claim, implicit) for row, claim in zip(swept.facts, claims, strict=True)]
    return _certificate(problem, solution, swept, [part for part in parts if part is not None])


def _claims(problem: UnbalancedTransport, solution: Solution) -> list[Termination] | None:
    """The word of each problem; None where the answer has a form that is the CPU's."""
    answer, lead = solution.arrays, problem.a.shape[:-1]
    if any(not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" for array in answer.values()):
        return None
    plan, columns = answer.get("plan"), answer.get("top_columns")
    if plan is not None and (plan.shape != (*lead, *problem.shape) or plan.dtype not in (np.float32, np.float64)):
        return None
    if (columns is not None and columns.size) or any(name in answer for name in BESIDE):
        return None
    if ("rest_a" in answer) != ("rest_b" in answer) or ("rest_a" in answer and (plan is not None or lead)):
        return None
    count = problem.batch or 1
    told = solution.facts.get("terminations", [solution.termination] * count)
    words = {word.value: word for word in Termination}
    if len(told) != count or not all(word in words for word in told):
        return None
    claims = [words[word] for word in told]
    return None if Termination.INFEASIBLE in claims else claims


def _vectors(problem: UnbalancedTransport, answer: dict[str, Array], units: Units) -> dict[str, Array | None] | None:
    """What the sweep takes of both sides, potentials in `units`; None where a vector is none."""
    product = problem.reference == "product"
    found: dict[str, Array | None] = {}
    sides = (
        ("a", "f", "w", "rest_a", "shown_a", "row_marginal"),
        ("b", "g", "v", "rest_b", "shown_b", "column_marginal"),
    )
    for masses_name, potential, weight, rest, shown, marginal in sides:
        masses = problem.a if masses_name == "a" else problem.b
        held = masses > 0
        given = answer.get(potential)
        if given is None or given.shape != masses.shape:
            return None
        values = np.where(held, given, 0.0).astype(np.float64)
        if not (np.abs(values) <= LARGEST).all():  # False for NaN
            return None
        scaled = units.into(values)
        if scaled is None:
            return None
        found |= {masses_name: masses, potential: scaled, weight: masses if product else held.astype(np.float64)}
        for name, array in ((rest, answer.get(rest)), (shown, answer.get(marginal))):
            if array is not None and (array.shape != masses.shape or not np.isfinite(array).all()):
                return None
            found[name] = array
    return found


def _certificate(
    problem: UnbalancedTransport, solution: Solution, swept: Swept, parts: list[Part]
) -> Certificate | None:
    if len(parts) < len(swept.facts):
        return None
    words = _words(problem, implicit="plan" not in solution.arrays)
    worst = max((part.word for part in parts), key=WORST.index)
    if problem.batch is None:
        one, values = parts[0], (parts[0].objective, parts[0].bound, parts[0].gap, parts[0].relative)
        facts = _mass(one) | _factor(problem) | _shown(swept.facts[0], solution.arrays)
    else:
        summed = together(parts)
        if summed is None:
            return None
        values, facts = summed, _facts_together(parts, words) | _factor(problem)
    return Certificate(
        objective=values[0],
        bound=values[1],
        gap_abs=values[2],
        gap_rel=values[3],
        max_violation=max(part.violation for part in parts),
        holds=True,
        proved=words
        if problem.batch is None
        else f"for each of {len(parts)} problems: {words}; objective, bound: sums",
        facts=facts | {"certified_on": "gpu"},
        termination=None if worst is solution.termination else worst,
    )


def _mass(part: Part) -> dict[str, Any]:
    facts: dict[str, Any] = {"mass": part.mass}
    if part.mass < FAINT * part.given:
        facts["warning"] = (
            f"the plan carries {part.mass:.3g} of a given mass of {part.given:.3g}: at this reg_m it is cheaper to give"
            " up the mass than to move it; a larger reg_m, or costs of smaller scale, moves more"
        )
    return facts


def _factor(problem: UnbalancedTransport) -> dict[str, Any]:
    """What b was multiplied with, where it may have been."""
    factor = problem.mass_factor
    if not np.isinf(problem.reg_m).all():
        return {}
    return {"mass_factor": list(factor) if isinstance(factor, tuple) else factor}


def _shown(row: Array, answer: dict[str, Array]) -> dict[str, Any]:
    """How far the marginals that the answer shows may be from the plan's."""
    found = {}
    for name, fact in (("row_marginal", "shown_a"), ("column_marginal", "shown_b")):
        if name in answer:
            found[f"{name}_within"] = float(row[FACTS.index(fact)])
    return found


def _words(problem: UnbalancedTransport, implicit: bool) -> str:
    plan = "the plan that the potentials stand for" if implicit else "the returned plan"
    values = f"objective = primal value of {plan} rounded up, bound = dual value of f, g rounded down"
    arithmetic = "on the device in float64, every operation rounded outward"
    sides = " and ".join(
        name for name, strength in zip(("rows", "columns"), problem.reg_m, strict=True) if math.isinf(strength)
    )
    if not sides:
        return f"{values}, {arithmetic}; no constraint to violate"
    violation = f"violation = L1 distance of its balanced {sides} from the given masses"
    return f"{values}, {arithmetic}; {violation}, and the gap holds what that may cost at f, g"


def _facts_together(parts: list[Part], words: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "problems": {
            "terminations": [part.word.value for part in parts],
            "objectives": [part.objective for part in parts],
            "bounds": [part.bound for part in parts],
            "gaps": [part.gap for part in parts],
            "gaps_rel": [part.relative for part in parts],
            "violations": [part.violation for part in parts],
            "masses": [part.mass for part in parts],
            "proved": words,
        },
        "largest_gap_rel": max(part.relative for part in parts),
    }
    faint = [k for k, part in enumerate(parts) if part.mass < FAINT * part.given]
    if faint:
        more = f", and {len(faint) - 1} more" if len(faint) > 1 else ""
        facts["warning"] = f"problem {faint[0]}: {_mass(parts[faint[0]])['warning']}{more}"
    return facts
