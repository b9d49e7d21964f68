"""How strong the entropy and the penalties are: as they were asked for, and as the costs of a problem make them."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kernels.problems.arrays import Floats, Inputs, InvalidProblem, Reals, numeric
from kernels.problems.cost_scale import cost_scale
from kernels.problems.transport import UnbalancedTransport

if TYPE_CHECKING:
    from kernels.uot import TransportOptions

Wanted = float | Literal["auto"]
SHARES = (0.05, 1.0)
"""Of the scale of the costs: reg and reg_m where they are left to us."""


def settled(
    problem: UnbalancedTransport, reg: Wanted, reg_m: tuple[Wanted, Wanted], kind: str, of: Reals | None = None
) -> UnbalancedTransport:
    """The problem with its strengths: numbers and shares of the scale of its costs, or of those of `of`.

    Raises:
        InvalidProblem: a share that float64 does not hold.
    """
    left = [one == "auto" for one in (reg, *reg_m)]
    if kind == "none" and not any(left):
        return replace(problem, reg=float(reg), reg_m=(float(reg_m[0]), float(reg_m[1])))
    sample = problem if of is None else UnbalancedTransport(np.ones(len(of)), np.ones(of.shape[1]), 1.0, (1.0, 1.0), of)
    name = "mean" if kind == "none" else kind
    scale = cost_scale(sample, name)
    shares = (SHARES[0], SHARES[1], SHARES[1])
    values = [
        _strength(field, share if auto else float(given), 1.0 if kind == "none" and not auto else scale, name)
        for field, given, auto, share in zip(("reg", "reg_m", "reg_m"), (reg, *reg_m), left, shares, strict=True)
    ]
    told = {**problem.told, "cost_scale": scale, "reg_scale": name}
    return replace(problem, reg=values[0], reg_m=(values[1], values[2]), told=told)


def _strength(field: str, share: float, scale: float, name: str) -> float:
    """So much of the scale. Raises InvalidProblem where it underflows to 0, or overflows."""
    found = share * scale
    if found > 0 and (found < math.inf or share == math.inf):
        return found
    told = f"is {share:g} times the {name} of the costs, {scale:g}, which float64 rounds to {found:g}"
    raise InvalidProblem(field, f"{told}; expected a number above 0")


def wanted(strength: Any) -> Wanted:
    """A strength as it was asked for, as a number or "auto"."""
    return "auto" if strength == "auto" else float(strength)


def number(strength: Any) -> float:
    """A strength where it is one; 1 until the costs tell."""
    return 1.0 if strength == "auto" else float(strength)


def strengths_of(inputs: Inputs, count: int, options: "TransportOptions") -> list[tuple[Any, Any]]:
    """reg and reg_m of each problem."""
    regs, regs_m = [options.reg] * count, [options.strengths] * count
    if "regs" in inputs:
        given = _numbers("regs", inputs["regs"], ((count,),))
        regs = given.tolist()
    if "regs_m" in inputs:
        given = _numbers("regs_m", inputs["regs_m"], ((count,), (count, 2)))
        regs_m = [tuple(pair) for pair in (given if given.ndim == 2 else np.stack([given, given], axis=1)).tolist()]
    return list(zip(regs, regs_m, strict=True))


def _numbers(name: str, value: Any, shapes: tuple[tuple[int, ...], ...]) -> Floats:
    found = numeric(name, value, ndim=(1, 2)) if isinstance(value, np.ndarray) else None
    if found is None or found.shape not in shapes:
        told = "is sparse" if found is None else f"has shape {found.shape}"
        raise InvalidProblem(name, f"{told}; expected {' or '.join(map(str, shapes))}")
    if not (found > 0).all():
        raise InvalidProblem(name, "holds a number that is not above 0; expected strengths above 0")
    return found.astype(np.float64)
