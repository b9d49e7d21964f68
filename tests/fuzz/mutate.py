"""Corrupts answers: a certificate must refuse the corrupted one, or state a bound and a gap that are still true."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernels import SOLVERS, Array, Device, Solution, Termination
from kernels.on_device import Certifier
from kernels.solution import unheard
from tests.fuzz.case import Case
from tests.fuzz.draw import Draw, Seeded, one_of
from tests.fuzz.judge import Verdict, judge_answer
from tests.fuzz.outcome import run

PER_CASE = 4


def mutants(case: Case, plan: Any, k: int) -> Iterator[tuple[str, Verdict | None]]:
    """(what was corrupted, the verdict when the certificate let itself be fooled) for some corruptions of an answer."""
    outcome = run(case, plan.device, plan.limit_s)
    if outcome.solution is None or not outcome.solution.arrays:
        return
    draw = Seeded(plan.seed, 99, k)
    for _ in range(PER_CASE):
        what, solution = corrupted(draw, outcome.solution)
        yield what, verdict_on(case, outcome.problem, solution, plan.device)


def verdict_on(case: Case, problem: Any, solution: Solution, device: Device = "cpu") -> Verdict | None:
    """What a certificate of a corrupted answer gets wrong; None when it refuses it or tells the truth about it."""
    try:
        with np.errstate(all="ignore"):
            certificate = Certifier(SOLVERS[case.solver], problem, device).certify(solution, unheard)
    except Exception as error:
        return Verdict("raised", f"certify raised {type(error).__name__}: {error}")
    if not certificate.holds or (certificate.objective is None and certificate.bound is None):
        return None
    found = [v for v in judge_answer(case, solution, certificate) if v.kind in ("wrong", "misleading")]
    found = [v for v in found if "exact side" not in v.why]  # stated as a violation, and priced in the objective
    if case.solver == "auction" and (certificate.termination or solution.termination) is not Termination.OPTIMAL:
        found = [v for v in found if not v.why.startswith("profits")]  # of which other words say nothing
    return found[0] if found else None


def corrupted(draw: Draw, solution: Solution) -> tuple[str, Solution]:
    """A copy with one thing changed, by one ulp to a lot, and what that was."""
    bad = copy.deepcopy(solution)
    places = [(bad.arrays, name) for name in sorted(bad.arrays)] + [
        (bad.evidence, name) for name in sorted(bad.evidence)
    ]
    if draw.whole(0, 9) == 0:
        bad.termination = one_of(draw, (Termination.OPTIMAL, Termination.CONVERGED, Termination.TIME_LIMIT))
        return "termination", bad
    if bad.facts.get("bounds") and draw.whole(0, 3) == 0:
        name = one_of(draw, sorted(bad.facts["bounds"]))
        bad.facts["bounds"][name] = bad.facts["bounds"][name] * 1.001 + 1
        return f"bound {name}", bad
    holder, name = one_of(draw, places)
    holder[name] = _changed(draw, np.array(holder[name]))
    return name, bad


def _changed(draw: Draw, array: Array) -> Array:
    if array.size == 0:
        return array
    flat = array.reshape(-1)
    at = draw.whole(0, flat.size - 1)
    with np.errstate(all="ignore"):
        if array.dtype.kind == "b":
            flat[at] = not flat[at]
        elif array.dtype.kind in "iu":
            other = draw.whole(0, flat.size - 1)
            kind = one_of(draw, ("swap", "one", "much", "copy"))
            if kind == "swap":
                flat[at], flat[other] = flat[other], flat[at]
            elif kind == "copy":
                flat[at] = flat[other]
            else:
                wide = 1 << draw.whole(1, 8 * array.dtype.itemsize - 4)
                moved = one_of(draw, (1, -1)) * (1 if kind == "one" else wide)
                flat[at] = (int(flat[at]) + moved) % 256 if array.dtype == np.uint8 else flat[at] + moved
        else:
            size = max(abs(float(flat[at])), float(np.finfo(array.dtype).tiny))
            step = one_of(draw, (0.0, 1e-12, 1e-6, 1e-3, 1.0, 1e6, np.nan, np.inf))
            up = one_of(draw, (1.0, -1.0))
            flat[at] = (
                np.nextafter(flat[at], flat.dtype.type(up * np.inf)) if step == 0 else flat[at] + up * step * size
            )
    return flat.reshape(array.shape)
