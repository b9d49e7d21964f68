"""Transport and assignment as parts of a model: tensors in, tensors out, gradients in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from allot_client import gradients
from allot_client.client import Client
from allot_client.results import TransportResult
from allot_client.scipy import default_client


class _Loss(torch.autograd.Function):
    """The value of a transport problem, or of each of a batch; its derivatives are those of the envelope theorem."""

    @staticmethod
    def forward(
        ctx: Any, cost: Any, a: Any, b: Any, reg: float, reg_m: tuple[float, float], client: Client, more: Any
    ) -> Any:
        asked = {"certificate": "none", **more}
        answer = client.uot(cost, a=a, b=b, reg=reg, reg_m=[_spelled(one) for one in reg_m], **asked)
        ctx.save_for_backward(answer.plan, answer.f, answer.g, a, b)
        ctx.reg, ctx.reg_m = _strengths(answer, reg, reg_m)
        kind = cost.dtype if cost.is_floating_point() else torch.get_default_dtype()  # a value is no whole number
        return cost.new_tensor(_objective(answer, cost.ndim == 3), dtype=kind)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Any) -> Any:
        plan, f, g, a, b = ctx.saved_tensors
        by_cost = upstream[..., None, None] * plan if ctx.needs_input_grad[0] else None
        masses: list[Any] = []
        for k, (potential, mass, other, axis) in enumerate(((f, a, b, -1), (g, b, a, -2))):
            if not ctx.needs_input_grad[1 + k]:
                masses.append(None)
                continue
            marginal = _host(plan.sum(dim=axis))
            total = _host(other).sum(axis=-1, keepdims=True)
            slope = gradients.by_mass(_host(potential), _host(mass), marginal, ctx.reg_m[k], ctx.reg, total)
            masses.append(upstream[..., None] * _like(slope, mass))
        return by_cost, *masses, None, None, None, None


def sinkhorn_loss(
    cost: Any, a: Any = None, b: Any = None, *, reg: float = 0.05, reg_m: Any = 1.0, client: Client | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """The value of entropic transport between masses a and b (uniform when left out) at costs `cost` (m, n).

    A batch of costs (batch, m, n) is one request and has a value each (batch,); `a` and `b` are then (batch, m) and
    (batch, n), or one vector for all. Differentiable once in cost, a and b; a `reg_scale` counts as a constant. No
    certificate is asked for, which would take longer than the answer; `certificate="full"` brings it back.
    """
    if not isinstance(cost, torch.Tensor):
        raise TypeError(f"cost is a {type(cost).__name__}; expected a tensor, as torch.as_tensor(cost)")
    if cost.ndim not in (2, 3) or 0 in cost.shape:
        raise ValueError(f"cost has shape {tuple(cost.shape)}; expected (m, n) or (batch, m, n), none of them 0")
    *batch, m, n = cost.shape
    a, b = (_masses(name, mass, cost, (*batch, count)) for name, mass, count in (("a", a, m), ("b", b, n)))
    pair = tuple(float(one) for one in reg_m) if isinstance(reg_m, (tuple, list)) else (float(reg_m), float(reg_m))
    return _Loss.apply(cost, a, b, float(reg), pair, client or default_client(), options)


def _masses(name: str, mass: Any, cost: Any, shape: tuple[int, ...]) -> Any:
    """Masses of each line of one side: uniform when left out, one vector for all of a batch. Raises: ValueError."""
    if mass is None:
        kind = cost.dtype if cost.is_floating_point() else torch.get_default_dtype()
        return cost.new_full((shape[-1],), 1 / shape[-1], dtype=kind).expand(shape)
    shared = shape[-1:] if len(shape) == 1 else (1, shape[-1])
    if tuple(mass.shape) not in (shape, shape[-1:], shared):
        one = f"({shape[-1]},)"
        expected = one if len(shape) == 1 else f"{shape} or {one}"
        raise ValueError(f"{name} has shape {tuple(mass.shape)}; expected {expected}, as cost is {tuple(cost.shape)}")
    return mass.expand(shape)


class _Divergence(torch.autograd.Function):
    """The divergence of two clouds, or of each pair of a batch; the service gives its derivatives with the answer."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, reg: float, reg_m: tuple[float, float], client: Client, more: Any) -> Any:
        asked = {"certificate": "none", "output": "potentials", **more, "divergence": True, "gradients": True}
        clouds = {"x": x, "y": y} if x.ndim == 2 else {"x": list(x), "y": list(y)}
        answer = client.uot(**clouds, reg=reg, reg_m=[_spelled(one) for one in reg_m], **asked)
        slopes = (_like(answer.arrays[name], side).reshape(side.shape) for name, side in (("grad_x", x), ("grad_y", y)))
        ctx.save_for_backward(*slopes)
        return x.new_tensor(_objective(answer, x.ndim == 3))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Any) -> Any:
        by_x, by_y = (upstream[..., None, None] * slope for slope in ctx.saved_tensors)
        return by_x, by_y, None, None, None, None


def _objective(answer: TransportResult, batch: bool) -> Any:
    return [one.objective for one in answer.each()] if batch else answer.objective


def sinkhorn_divergence(
    x: Any, y: Any, *, reg: float = 0.05, reg_m: Any = 1.0, client: Client | None = None, **options: Any
) -> Any:
    """The debiased divergence between two clouds of points with equal masses (Feydy et al., 2019).

    W(x, y) - W(x, x) / 2 - W(y, y) / 2 at squared euclidean costs; differentiable once in x and y. Clouds (m, d) and
    (n, d), or batches of them (batch, m, d) and (batch, n, d), which are one request and have a value each. The masses
    of each cloud sum to 1, so the term for unequal masses vanishes. One request solves all three, without a certificate
    unless `certificate="full"` asks for it.
    """
    pair = tuple(float(one) for one in (reg_m if isinstance(reg_m, (tuple, list)) else (reg_m, reg_m)))
    return _Divergence.apply(x, y, float(reg), pair, client or default_client(), options)


def ot_plan(cost: Any, a: Any = None, b: Any = None, *, client: Client | None = None, **options: Any) -> Any:
    """The transport plan, in the type and on the device of `cost`; no gradient flows through it.

    Of a batch (batch, m, n) a plan each; it is one request. The certificate is worked out too, unless
    `certificate="none"`.
    """
    answer: TransportResult = (client or default_client()).uot(cost, a=a, b=b, **options)
    return _like(answer.plan, cost) if cost.is_floating_point() else answer.plan


def linear_assignment(cost: Any, *, maximize: bool = False, client: Client | None = None) -> Any:
    """Rows and columns of the best assignment as index tensors, as matchers in detection models use them.

    Of a batch (batch, m, n), or a list of matrices of different sizes, a list of such pairs; it is one request.
    """
    answer = (client or default_client()).lap(cost, maximize=maximize)
    pairs = [_pair(one.assignment) for one in answer.each()]
    return pairs if isinstance(cost, (list, tuple)) or cost.ndim == 3 else pairs[0]


def _pair(assignment: Any) -> tuple[Any, Any]:
    rows = torch.nonzero(assignment >= 0)[:, 0]
    return rows, assignment[rows]


def _strengths(answer: TransportResult, reg: float, reg_m: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    """What was solved with: where `reg_scale` is given, the service multiplies by the scale of the costs."""
    facts = answer.document.get("facts") or {}
    if isinstance(facts.get("reg"), list):
        raise ValueError("reg_scale gives each problem of a batch another reg; expected a reg for all")
    if "reg_scale" not in facts:
        return reg, reg_m
    pair = tuple(math.inf if one in (None, "inf") else float(one) for one in facts["reg_m"])
    return float(facts["reg"]), (pair[0], pair[1])


def _host(tensor: Any) -> Any:
    return np.asarray(tensor.detach().double().cpu())


def _like(array: Any, tensor: Any) -> Any:
    """An array of the answer in the type and on the device of a tensor."""
    return torch.as_tensor(array).to(tensor)


def _spelled(strength: float) -> float | str:
    return "inf" if math.isinf(strength) else strength
