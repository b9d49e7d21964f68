"""JAX's gradients beside finite differences. Skipped where JAX is not installed."""

from typing import Any

import numpy as np
import pytest

jax: Any = pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("default_service")


@pytest.mark.parametrize("place", [(0, (1, 2)), (1, (3,)), (2, (0,))], ids=["cost", "a", "b"])
def test_gradients_under_jit(place: tuple[int, tuple[int, ...]]) -> None:
    from allot_client.jax import sinkhorn_loss

    random = np.random.default_rng(2)
    inputs = [random.random(shape) + 0.5 for shape in ((5, 4), (5,), (4,))]
    which, index = place
    with jax.enable_x64(True):

        def loss(*given: Any) -> Any:
            cost, a, b = given
            return sinkhorn_loss(cost, a, b, 0.2, (1.0, 2.0))

        slope = jax.jit(jax.grad(loss, argnums=which))(*inputs)[index]
        ends = []
        for sign in (1, -1):
            moved = [one.copy() for one in inputs]
            moved[which][index] += sign * 1e-2
            ends.append(float(loss(*moved)))
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=2e-3, abs=1e-4)


def test_many_under_vmap() -> None:
    from allot_client.jax import sinkhorn_loss

    jnp = jax.numpy
    costs = jnp.asarray(np.random.default_rng(1).random((3, 4, 5)))
    a, b = jnp.full(4, 0.25), jnp.full(5, 0.2)

    def one(cost: Any) -> Any:
        return sinkhorn_loss(cost, a, b, 0.2, (1.0, 1.0))

    slopes = jax.jit(jax.vmap(jax.grad(one)))(costs)
    for k in range(3):
        assert float(jax.vmap(one)(costs)[k]) == pytest.approx(float(one(costs[k])), rel=1e-5)
        np.testing.assert_allclose(slopes[k], jax.grad(one)(costs[k]), rtol=1e-4, atol=1e-6)


def test_masses_may_be_left_out() -> None:
    from allot_client.jax import sinkhorn_loss

    jnp = jax.numpy
    cost = jnp.asarray(np.random.default_rng(4).random((4, 5)))
    full = sinkhorn_loss(cost, jnp.full(4, 0.25), jnp.full(5, 0.2), 0.2, (2.0, 2.0))
    assert float(sinkhorn_loss(cost, reg=0.2, reg_m=2.0)) == pytest.approx(float(full))
    assert jax.grad(lambda c: sinkhorn_loss(c, reg=0.2, reg_m="inf"))(cost).sum() == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(ValueError, match="vmap"):
        sinkhorn_loss(jnp.ones((2, 3, 3)))


def test_other_options_are_passed_on_and_a_value_is_no_whole_number() -> None:
    from allot_client.jax import sinkhorn_loss

    cost = jax.numpy.asarray([[1, 1], [2, 3]])
    exact = sinkhorn_loss(cost, reg=0.5, tolerance=1e-12)
    assert jax.numpy.issubdtype(exact.dtype, jax.numpy.floating)
    assert float(exact) == pytest.approx(float(sinkhorn_loss(cost, reg=0.5)), rel=1e-5)
    assert jax.grad(lambda c: sinkhorn_loss(c, reg=0.5, tolerance=1e-12))(cost.astype(float)).shape == (2, 2)
    with pytest.raises(Exception, match="nonsense"):
        jax.block_until_ready(sinkhorn_loss(cost, nonsense=1))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_short_floats_have_a_value_and_a_slope(name: str) -> None:
    from allot_client.jax import sinkhorn_loss

    jnp = jax.numpy
    cost = jnp.asarray(np.random.default_rng(6).random((3, 7)), name)

    def loss(cost: Any) -> Any:
        return sinkhorn_loss(cost, reg=0.2, reg_m="inf")

    value, slope = jax.jit(jax.value_and_grad(loss))(cost)
    assert (value.dtype, slope.dtype) == (cost.dtype, cost.dtype)
    assert float(value) == pytest.approx(float(loss(cost.astype(jnp.float32))), rel=1e-2)
    assert float(slope.astype(jnp.float32).sum()) == pytest.approx(1.0, rel=1e-2)
