"""From inputs and options to a problem whose cost is a CSR matrix."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kernels.problems import Inputs, InvalidProblem
from kernels.problems.sparse_transport import SparseTransport, balanced, sparse_transport
from kernels.uot.strengths import SHARES

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

TAKEN = ("cost", "a", "b", "f0", "g0")
"""Inputs of such a problem."""


def sparse_problem(inputs: Inputs, options: "TransportOptions") -> SparseTransport:
    """The problem of a job.

    Raises:
        InvalidProblem: names the input or option that is wrong and what was expected.
    """
    _check(inputs, options)
    problem = _settled(sparse_transport(inputs, options.reference), options)
    problem.check_range()
    b, factor = balanced(problem)
    return replace(problem, b=b, mass_factor=factor)


def _check(inputs: Inputs, options: "TransportOptions") -> None:
    """Refuse what such a problem has no use for."""
    for name, wrong, expected in (
        ("method", options.method not in ("auto", "log"), "auto or log"),
        ("storage", options.storage not in ("auto", "float64"), "auto or float64"),
        ("marginals", options.marginals != "kl", "kl"),
        ("mass", options.mass is not None, "it left out"),
        ("mass_share", options.mass_share is not None, "it left out"),
        ("divergence", options.divergence, "false"),
        ("output", options.output != "plan", "plan, which is no larger than the costs"),
        ("gradients", options.gradients, "false"),
        ("barycentric", options.barycentric, "false"),
        ("top_k", options.top_k > 0, "0"),
    ):
        if wrong:
            raise InvalidProblem(name, f"is {getattr(options, name)} with a sparse cost; expected {expected}")
    for name in inputs:
        if name not in TAKEN:
            raise InvalidProblem(name, f"is given beside a sparse cost; expected {', '.join(TAKEN)} alone")


def _settled(problem: SparseTransport, options: "TransportOptions") -> SparseTransport:
    """The problem with its strengths: numbers, and shares of the scale of its costs."""
    kind, asked = options.reg_scale, (options.reg, *options.strengths)
    if kind == "none" and "auto" not in asked:
        return replace(problem, reg=float(asked[0]), reg_m=(float(asked[1]), float(asked[2])))
    name = "mean" if kind == "none" else kind
    scale = cost_scale(problem, name)
    shares = (SHARES[0], SHARES[1], SHARES[1])
    values = [
        share * scale if one == "auto" else float(one) * (1.0 if kind == "none" else scale)
        for one, share in zip(asked, shares, strict=True)
    ]
    told = {"cost_scale": scale, "reg_scale": name}
    return replace(problem, reg=values[0], reg_m=(values[1], values[2]), told=told)


def cost_scale(problem: SparseTransport, kind: str) -> float:
    """The mean (by a_i b_j) or median size of the costs that are stored between lines with mass; 1 where that is 0."""
    used = problem.used
    sizes = abs(problem.values[used])
    top = float(sizes.max(initial=0.0))
    if not 0 < top < np.inf:
        return 1.0
    sizes /= top
    if kind == "median":
        return top * (float(np.median(sizes)) or 1 / top)
    a, b = problem.a / problem.a.max(), problem.b / problem.b.max()
    weights = a[problem.entry_rows[used]] * b[problem.entry_columns[used]]
    weight = float(weights.sum())
    mean = float((weights * sizes).sum()) / weight if weight else 0.0
    return top * mean or 1.0
