"""Proof for several transport problems that were answered together: each by the certificate of one problem, alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from kernels.certificates import flow, transport
from kernels.certificates.several.divergence import debiased
from kernels.certificates.several.places import checked
from kernels.certificates.several.stated import misstated
from kernels.problems.arrays import Array
from kernels.problems.exact_transport import ExactTransport
from kernels.problems.several import SeveralTransports, taken_apart
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Certificate, Solution, unheard


def certify(
    problem: UnbalancedTransport | SeveralTransports | ExactTransport,
    solution: Solution,
    progress: Callable[[float], None] = unheard,
) -> Certificate:
    """Recompute primal, dual and marginals of one problem, of each of a batch, or of each of several."""
    if isinstance(problem, ExactTransport):
        return flow.certify(problem, solution, progress)
    if wrong := misstated(problem, solution.facts):
        return Certificate(None, None, None, None, float("inf"), False, f"nothing: {wrong}")
    if isinstance(problem, UnbalancedTransport):
        return checked(problem, solution, transport.certify(problem, solution, progress))
    apart = taken_apart(problem, solution.arrays)
    if apart is None or any(not isinstance(a, np.ndarray) for arrays in apart for a in arrays.values()):
        return Certificate(None, None, None, None, float("inf"), False, "nothing: these arrays are not of the problems")
    each = replace(solution, arrays=_by_problem(apart))
    found = transport.certify(cast(UnbalancedTransport, problem), each, progress)
    return debiased(problem, found) if problem.divergence and "problems" in found.facts else found


def _by_problem(apart: list[dict[str, Array]]) -> dict[str, Any]:
    """The arrays by name, each an array of one object for each problem; None where it lacks one, as without a plan."""
    names = dict.fromkeys(name for arrays in apart for name in arrays)
    found = {}
    for name in names:
        column = np.empty(len(apart), object)
        for k, arrays in enumerate(apart):
            column[k] = arrays.get(name)
        found[name] = column
    return found
