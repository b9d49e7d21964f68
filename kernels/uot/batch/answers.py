"""Answers of many problems of one shape at once: marginals of their plans, and exact sides made exact.

It does to a stack of plans what outcome.py and repair.py do to one, for answers that hold potentials and marginals.
What is out of the ordinary (a line that underflowed, potentials far off) is left to those.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.problems.arrays import Array, Floats, Mask
from kernels.uot.outcome import CENTRED, LARGEST_LOG_64
from kernels.uot.repair import MET

LOG2E = float(np.log2(np.e))
Send = Callable[..., Sequence[Any]]
Receive = Callable[..., Sequence[Array]]
REST = ("rest_a", "rest_b")


@dataclass(frozen=True)
class Stack:
    """Problems of one shape (batch, m, n) whose masses are all positive and whose costs are all finite.

    Attributes:
        cost: on the device, in any float type.
        a, b: (batch, m) and (batch, n), on the host.
        reg: (batch,), on the host.
        low: at most the least cost of each problem.
        exact: which sides are met exactly, the same of all.
        product: whether the reference is the product of the masses.
    """

    cost: Any
    a: Floats
    b: Floats
    reg: Floats
    low: Floats
    exact: tuple[bool, bool]
    product: bool


@dataclass(frozen=True)
class Answered:
    """What was found of a stack.

    Attributes:
        arrays: f, g, row_marginal, column_marginal, and rest_a and rest_b where the plan of some problem is more than
            P(f, g); each (batch, ...), with zeros for a problem that has none.
        rest: which problems have rest_a and rest_b.
        strange: which are out of the ordinary; their arrays mean nothing.
    """

    arrays: dict[str, Array]
    rest: Mask
    strange: Mask

    def one(self, k: int) -> dict[str, Array] | None:
        """The arrays of problem k; None where it is out of the ordinary."""
        if self.strange[k]:
            return None
        return {name: array[k] for name, array in self.arrays.items() if self.rest[k] or name not in REST}

    def some(self, which: slice) -> dict[str, Floats] | None:
        """The arrays of some problems, as if there were no others; None where one is out of the ordinary."""
        if self.strange[which].any():
            return None
        there = self.rest[which].any()
        return {name: array[which] for name, array in self.arrays.items() if there or name not in REST}


def joined(parts: list[Answered]) -> Answered:
    """Stacks one after the other."""
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for part in parts for name in part.arrays)
    sizes = {"rest_a": "f", "rest_b": "g"}
    arrays = {
        name: np.concatenate(
            [part.arrays[name] if name in part.arrays else np.zeros_like(part.arrays[sizes[name]]) for part in parts]
        )
        for name in names
    }
    rest, strange = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rest", "strange"))
    return Answered(arrays, rest, strange)


def host(*arrays: Any) -> list[Array]:
    """Arrays from where these are to the host, one by one."""
    return [np.asarray(array.get() if hasattr(array, "get") else array) for array in arrays]


def answers(steps: Any, send: Send, stack: Stack, f: Floats, g: Floats, receive: Receive = host) -> Answered:
    """Potentials and marginals of each problem's plan.

    Args:
        steps: `StackSteps`, or `DeviceSteps` where the stack's costs are on a device.
        send: takes arrays from the host to where these are.
        f, g: potentials (batch, m) and (batch, n), on the host.
        receive: takes arrays to the host; it is called once, and nothing is waited for before.
    """
    if all(stack.exact):
        f, g = _centred(f, g)
    scale = LOG2E / stack.reg[:, None]
    row, column = f * scale, g * scale
    if stack.product:
        row, column = row + np.log2(stack.a), column + np.log2(stack.b)
    strange = (row.max(axis=1) + column.max(axis=1)) / LOG2E - stack.low / stack.reg > LARGEST_LOG_64
    a, b, row, column, scale = send(stack.a, stack.b, row, column, scale)
    plan = steps.plan(stack.cost, row, column, scale)
    there: list[Any] = []
    if stack.exact[0]:
        factors, lost = steps.factors(a, plan.sum(axis=2), stack.exact[1])
        plan *= factors[:, :, None]
        there += [factors, lost]
    if stack.exact[1]:
        factors, lost = steps.factors(b, plan.sum(axis=1), stack.exact[0])
        plan *= factors[:, None, :]
        there += [factors, lost]
    *moved, of_rows, of_columns = receive(*there, plan.sum(axis=2), plan.sum(axis=1))
    if stack.exact[0]:
        f, strange = _moved(f, moved[0], stack.reg), strange | moved[1].any(axis=1)
    if stack.exact[1]:
        g, strange = _moved(g, moved[-2], stack.reg), strange | moved[-1].any(axis=1)
    found = {"f": f, "g": g, "row_marginal": of_rows, "column_marginal": of_columns}
    rest = _rest(stack, found) if all(stack.exact) else np.zeros(len(strange), bool)
    return Answered(found, rest, strange)


def _centred(f: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Potentials without the constant that two exact sides leave free, where it takes most of their digits."""
    middle = g.max(axis=1) / 2 + g.min(axis=1) / 2
    before = abs(f).max(axis=1) + abs(g).max(axis=1)
    after = abs(f + middle[:, None]).max(axis=1) + abs(g - middle[:, None]).max(axis=1)
    by = np.where(after < CENTRED * before, middle, 0.0)[:, None]
    return f + by, g - by


def _rest(stack: Stack, found: dict[str, Array]) -> Mask:
    """The last step of the rounding of repair.py; the marginals of `found` become the masses.

    Returns:
        Whose plan is more than P(f, g): rest_a and rest_b of `found` are zero for the others.
    """
    rest_a, rest_b = (
        np.maximum(mass - found[name], 0) for mass, name in ((stack.a, "row_marginal"), (stack.b, "column_marginal"))
    )
    found["row_marginal"], found["column_marginal"] = stack.a.copy(), stack.b.copy()
    missing = rest_b.sum(axis=1)
    rounding = MET * (stack.a.shape[1] + stack.b.shape[1]) * stack.a.sum(axis=1)
    wanted: Mask = (np.maximum(missing, rest_a.sum(axis=1)) > rounding) & (missing > 0)
    if wanted.any():
        found["rest_a"] = np.where(wanted[:, None], rest_a, 0.0)
        found["rest_b"] = np.where(wanted[:, None], rest_b / np.where(wanted, missing, 1.0)[:, None], 0.0)
    return wanted


def _moved(potential: Floats, factor: Floats, reg: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        step = reg[:, None] * np.log(factor)
    return np.where(np.isfinite(step), potential + step, potential)
