"""Transport as part of a JAX model: a value with derivatives in closed form, called back on the host."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from allot_client import gradients
from allot_client.scipy import default_client


def sinkhorn_loss(cost: Any, a: Any = None, b: Any = None, reg: float = 0.05, reg_m: Any = 1.0, **options: Any) -> Any:
    """The value of entropic transport between masses a (m,) and b (n,), uniform when left out, at costs `cost` (m, n).

    `reg_m` is one strength, or one for each side; "inf" makes the marginals exact. Differentiable in cost, a and b, and
    callable under jit and vmap: the service is asked from a callback on the host, under vmap once for each problem. No
    certificate is asked for. Other options of `uot` are passed on, as `tolerance=1e-9`. Costs in bfloat16 or float16
    are solved in float32: masses of a side would not add up in these. The value is in the type of `cost`.
    """
    cost = jnp.asarray(cost)
    if not jnp.issubdtype(cost.dtype, jnp.floating):  # a value is no whole number
        cost = cost.astype(float)
    if cost.ndim != 2:
        raise ValueError(f"cost has shape {cost.shape}; expected (m, n), and of a batch jax.vmap of this")
    m, n = cost.shape
    kind = jnp.promote_types(cost.dtype, jnp.float32)
    a = jnp.full(m, 1 / m, kind) if a is None else jnp.asarray(a)
    b = jnp.full(n, 1 / n, kind) if b is None else jnp.asarray(b)
    sides = reg_m if isinstance(reg_m, (tuple, list)) else (reg_m, reg_m)
    more = tuple(sorted({"certificate": "none", **options}.items()))
    wide = [one.astype(jnp.promote_types(one.dtype, jnp.float32)) for one in (cost, a, b)]
    return _loss(*wide, float(reg), (float(sides[0]), float(sides[1])), more).astype(cost.dtype)


Options = tuple[tuple[str, Any], ...]


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4, 5))
def _loss(cost: Any, a: Any, b: Any, reg: float, reg_m: tuple[float, float], more: Options) -> Any:
    return _forward(cost, a, b, reg, reg_m, more)[0]


def _forward(
    cost: Any, a: Any, b: Any, reg: float, reg_m: tuple[float, float], more: Options
) -> tuple[Any, Any]:  # fmt: skip
    m, n = cost.shape
    shapes = tuple(jax.ShapeDtypeStruct(shape, cost.dtype) for shape in ((), (m, n), (m,), (n,)))

    def ask(cost: Any, a: Any, b: Any) -> Any:
        host = [np.asarray(one) for one in (cost, a, b)]
        strengths = ["inf" if math.isinf(one) else one for one in reg_m]
        answer = default_client().uot(host[0], a=host[1], b=host[2], reg=reg, reg_m=strengths, **dict(more))
        kind = host[0].dtype
        return tuple(np.asarray(one, kind) for one in (answer.objective, answer.plan, answer.f, answer.g))

    value, plan, f, g = jax.pure_callback(ask, shapes, cost, a, b, vmap_method="sequential")
    return value, (plan, f, g, a, b)


def _backward(
    reg: float, reg_m: tuple[float, float], more: Options, kept: Any, upstream: Any
) -> tuple[Any, Any, Any]:  # fmt: skip
    plan, f, g, a, b = kept

    def slope(potential: Any, mass: Any, marginal: Any, strength: float, other: Any) -> Any:
        def host(potential: Any, mass: Any, marginal: Any, total: Any) -> Any:
            f, a, p = (np.asarray(one, np.float64) for one in (potential, mass, marginal))
            return gradients.by_mass(f, a, p, strength, reg, float(total)).astype(np.asarray(mass).dtype)

        shape = jax.ShapeDtypeStruct(mass.shape, mass.dtype)
        total = jnp.sum(other)
        return upstream * jax.pure_callback(host, shape, potential, mass, marginal, total, vmap_method="sequential")

    return (
        upstream * plan,
        slope(f, a, plan.sum(axis=1), reg_m[0], b),
        slope(g, b, plan.sum(axis=0), reg_m[1], a),
    )


_loss.defvjp(_forward, _backward)
