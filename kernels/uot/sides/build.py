"""From inputs and options to a problem of a part of the mass, or of marginals that total variation or squares price."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.problems import FORBIDDEN, Inputs, InvalidProblem
from kernels.problems.arrays import Amounts, Mask
from kernels.problems.exact_transport import LARGEST_WHOLE, costs_of, masses_of
from kernels.problems.marginal_transport import MarginalTransport, affordable, amount
from kernels.problems.transport import UnbalancedTransport, transport
from kernels.uot.strengths import SHARES, settled

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

TAKEN = ("cost", "x", "y", "a", "b")
"""Inputs of such a problem."""


def other_marginals(options: "TransportOptions") -> bool:
    """Whether marginals are held in another way than by KL."""
    return options.marginals != "kl" or options.mass is not None or options.mass_share is not None


def marginal_transport(inputs: Inputs, options: "TransportOptions") -> MarginalTransport:
    """The problem of a job.

    Raises:
        InvalidProblem: names the input or option that is wrong and what was expected.
    """
    kind = "partial" if options.marginals == "kl" else options.marginals
    _check(inputs, options, kind)
    if options.method == "exact":
        return _without_entropy(inputs, options, kind)
    return _with_entropy(inputs, options, kind)


def _check(inputs: Inputs, options: "TransportOptions", kind: str) -> None:
    """Refuse what such a problem has no use for."""
    asked = "mass" if kind == "partial" else "marginals"
    both = options.mass is not None and options.mass_share is not None
    part = options.mass is not None or options.mass_share is not None
    for name, wrong, expected in (
        ("mass_share", both, "it left out, beside mass"),
        ("marginals", kind != "partial" and part, "kl, or no mass"),
        ("reg_m", kind == "partial" and options.reg_m != "auto", "it left out, as the marginals are limits"),
        ("reg_m", kind != "partial" and float("inf") in options.strengths, "numbers, or no marginals"),
        ("method", options.method not in ("auto", "exact"), "auto or exact"),
        ("divergence", options.divergence, "false"),
        ("top_k", options.top_k > 0, "0"),
        ("gradients", options.gradients, "false"),
        ("barycentric", options.barycentric, "false"),
        ("reg", options.method == "exact" and options.reg != "auto", "it left out with method exact"),
    ):
        if wrong:
            raise InvalidProblem(name, f"is {getattr(options, name)} with the option {asked}; expected {expected}")
    for name in inputs:
        if name not in TAKEN:
            raise InvalidProblem(name, f"is given with the option {asked}; expected cost, or x and y; a and b")


def _with_entropy(inputs: Inputs, options: "TransportOptions", kind: str) -> MarginalTransport:
    if options.output != "plan":
        asked = "mass" if kind == "partial" else "marginals"
        raise InvalidProblem("output", f"is {options.output} with the option {asked}; expected plan")
    cost, told = costs_of(inputs, options.metric)
    if cost.dtype == np.int64:
        cost = np.where(cost == FORBIDDEN, np.inf, cost)

    def settle(problem: UnbalancedTransport) -> UnbalancedTransport:
        return settled(problem, options.reg, options.strengths, options.reg_scale)

    masses = {name: inputs[name] for name in "ab" if name in inputs}
    strengths = (1.0, 1.0)
    found = transport({"cost": cost, **masses}, reg=1.0, reg_m=strengths, reference=options.reference, settle=settle)
    if found.a.ndim != 1:
        raise InvalidProblem("a", "is given for several problems; expected one problem")
    problem = MarginalTransport(cost, found.a, found.b, kind, found.reg, found.reference, told={**told, **found.told})
    if kind == "partial":
        return replace(problem, mass=amount(found.a, found.b, options.mass, options.mass_share))
    return replace(problem, strengths=found.reg_m)


def _without_entropy(inputs: Inputs, options: "TransportOptions", kind: str) -> MarginalTransport:
    cost, told = costs_of(inputs, options.metric)
    a, b = (masses_of(name, inputs.get(name), size) for name, size in zip("ab", cost.shape, strict=True))
    if not a.dtype == b.dtype == np.int64:
        a, b = a.astype(np.float64), b.astype(np.float64)
    if kind == "l2":
        raise InvalidProblem("method", "is exact with marginals l2; expected auto")
    if kind == "partial":
        if options.reg_scale != "none":
            raise InvalidProblem("reg_scale", f"is {options.reg_scale} with method exact; expected none")
        return MarginalTransport(cost, a, b, kind, mass=amount(a, b, options.mass, options.mass_share), told=told)
    return _with_strengths(MarginalTransport(cost, a, b, kind, told=told), options)


def _with_strengths(problem: MarginalTransport, options: "TransportOptions") -> MarginalTransport:
    """The problem with numbers for reg_m, in the units of its costs."""
    found = _settled(problem.cost, problem.a, problem.b, problem.permitted, options)
    strengths = found.reg_m
    cost = problem.cost
    if cost.dtype == np.int64 and not all(one.is_integer() and one <= LARGEST_WHOLE for one in strengths):
        cost = np.where(problem.permitted, cost, np.inf)
        if (cost[problem.permitted].astype(object) != problem.cost[problem.permitted].astype(object)).any():
            told = f"holds integers beyond 2^53 beside strengths {strengths}"
            raise InvalidProblem("cost", f"{told}; expected smaller ones, or whole strengths of at most 2^60")
    affordable(cost, problem.permitted, strengths)
    return replace(problem, cost=cost, strengths=strengths, told={**problem.told, **found.told})


def _settled(cost: Amounts, a: Amounts, b: Amounts, permitted: Mask, options: "TransportOptions") -> Any:
    """A problem of KL whose strengths are those that the options ask for."""
    floats = {"cost": np.where(permitted, cost, np.inf), "a": a.astype(float), "b": b.astype(float)}
    plain = transport(floats, reg=1.0, reg_m=SHARES, in_range=False)
    return settled(plain, 1.0, options.strengths, options.reg_scale)
