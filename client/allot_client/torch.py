"""Transport and assignment as parts of a model: tensors in, tensors out, gradients in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from allot_client import gradients
from allot_client.client import Client
from allot_client.results import TransportResult
from allot_client.scipy import default_client


class _Loss(torch.autograd.Function):
    """The value of a transport problem; its derivatives are those of the envelope theorem."""

    @staticmethod
    def forward(
        ctx: Any, cost: Any, a: Any, b: Any, reg: float, reg_m: tuple[float, float], client: Client, more: Any
    ) -> Any:
        asked = {"certificate": "none", **more}
        answer = client.uot(cost, a=a, b=b, reg=reg, reg_m=[_spelled(one) for one in reg_m], **asked)
        ctx.save_for_backward(answer.plan, answer.f, answer.g, a, b)
        ctx.reg, ctx.reg_m = reg, reg_m
        return cost.new_tensor(answer.objective)

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        plan, f, g, a, b = ctx.saved_tensors
        by_cost = upstream * plan if ctx.needs_input_grad[0] else None
        masses: list[Any] = []
        for k, (potential, mass, other, axis) in enumerate(((f, a, b, 1), (g, b, a, 0))):
            if not ctx.needs_input_grad[1 + k]:
                masses.append(None)
                continue
            marginal = _host(plan.sum(dim=axis))
            slope = gradients.by_mass(
                _host(potential), _host(mass), marginal, ctx.reg_m[k], ctx.reg, float(other.sum())
            )
            masses.append(upstream * torch.from_numpy(slope).to(mass))
        return by_cost, *masses, None, None, None, None


def sinkhorn_loss(
    cost: Any, a: Any = None, b: Any = None, *, reg: float = 0.05, reg_m: Any = 1.0, client: Client | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """The value of entropic transport between masses a and b (uniform when left out) at costs `cost` (m, n).

    Differentiable in cost, a and b. No certificate is asked for, which would take longer than the answer;
    `certificate="full"` brings it back.
    """
    m, n = cost.shape
    a = cost.new_full((m,), 1 / m) if a is None else a
    b = cost.new_full((n,), 1 / n) if b is None else b
    pair = tuple(float(one) for one in reg_m) if isinstance(reg_m, (tuple, list)) else (float(reg_m), float(reg_m))
    return _Loss.apply(cost, a, b, float(reg), pair, client or default_client(), options)


class _Divergence(torch.autograd.Function):
    """The divergence of two clouds; the service gives its derivatives with the answer."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, reg: float, reg_m: Any, client: Client, more: Any) -> Any:
        asked = {"certificate": "none", "output": "potentials", **more, "divergence": True, "gradients": True}
        answer = client.uot(x=x, y=y, reg=reg, reg_m=reg_m, **asked)
        ctx.save_for_backward(*(_like(answer.arrays[name], side) for name, side in (("grad_x", x), ("grad_y", y))))
        return x.new_tensor(answer.objective)

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        by_x, by_y = ctx.saved_tensors
        return upstream * by_x, upstream * by_y, None, None, None, None


def sinkhorn_divergence(
    x: Any, y: Any, *, reg: float = 0.05, reg_m: Any = 1.0, client: Client | None = None, **options: Any
) -> Any:
    """The debiased divergence between two clouds of points with equal masses (Feydy et al., 2019).

    W(x, y) - W(x, x) / 2 - W(y, y) / 2 at squared euclidean costs; differentiable in x and y. The masses of each cloud
    sum to 1, so the term for unequal masses vanishes. One request solves all three, without a certificate unless
    `certificate="full"` asks for it.
    """
    strengths = [_spelled(float(one)) for one in (reg_m if isinstance(reg_m, (tuple, list)) else (reg_m, reg_m))]
    return _Divergence.apply(x, y, float(reg), strengths, client or default_client(), options)


def ot_plan(cost: Any, a: Any = None, b: Any = None, *, client: Client | None = None, **options: Any) -> Any:
    """The transport plan, as a tensor where `cost` is; no gradient flows through it."""
    answer: TransportResult = (client or default_client()).uot(cost, a=a, b=b, **options)
    return answer.plan


def linear_assignment(cost: Any, *, maximize: bool = False, client: Client | None = None) -> tuple[Any, Any]:
    """Rows and columns of the best assignment as index tensors, as matchers in detection models use them."""
    answer = (client or default_client()).lap(cost, maximize=maximize)
    rows = torch.nonzero(answer.assignment >= 0)[:, 0]
    return rows, answer.assignment[rows]


def _host(tensor: Any) -> Any:
    return np.asarray(tensor.detach().double().cpu())


def _like(array: Any, tensor: Any) -> Any:
    """An array of the answer in the type and on the device of a tensor."""
    return torch.as_tensor(array).to(tensor)


def _spelled(strength: float) -> float | str:
    return "inf" if math.isinf(strength) else strength
