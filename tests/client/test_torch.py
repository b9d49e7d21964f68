"""Tensors in, tensors out, gradients in closed form beside finite differences. Skipped where torch is not installed."""

from typing import Any

import pytest
from allot_client import Client
from scipy.optimize import linear_sum_assignment

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("default_service")
PRECISE: dict[str, Any] = {"tolerance": 1e-12, "storage": "float64"}
STEPS = {"eps": 1e-4, "atol": 1e-4, "rtol": 1e-3}


def test_gradients_of_the_loss() -> None:
    from allot_client.torch import sinkhorn_loss

    torch.manual_seed(0)
    cost, a, b = (torch.rand(*shape, dtype=torch.float64) + 0.5 for shape in ((5, 4), (5,), (4,)))
    inputs = tuple(one.requires_grad_() for one in (cost, a, b))
    assert torch.autograd.gradcheck(
        lambda *given: sinkhorn_loss(*given, reg=0.2, reg_m=(1.0, 2.0), **PRECISE), inputs, **STEPS
    )


def test_gradients_of_the_divergence() -> None:
    from allot_client.torch import sinkhorn_divergence

    torch.manual_seed(1)
    inputs = tuple(torch.randn(n, 2, dtype=torch.float64, requires_grad=True) for n in (6, 5))
    assert torch.autograd.gradcheck(lambda x, y: sinkhorn_divergence(x, y, reg=0.3, **PRECISE), inputs, **STEPS)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "bool", "int32", "float64"])
def test_tensors_come_back(allot: Client, name: str) -> None:
    cost = (torch.rand(6, 7) * 5).to(getattr(torch, name))
    answer = allot.lap(cost)
    assert isinstance(answer.assignment, torch.Tensor)
    plain = cost.double().numpy()
    assert answer.objective == pytest.approx(plain[linear_sum_assignment(plain)].sum())


def test_matching_as_detectors_do_it() -> None:
    from allot_client.torch import linear_assignment, ot_plan

    cost = torch.rand(4, 9)
    rows, columns = linear_assignment(cost)
    assert [rows.tolist(), columns.tolist()] == [part.tolist() for part in linear_sum_assignment(cost.numpy())]
    assert ot_plan(cost, reg=0.2).shape == (4, 9)


@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_the_loss_and_its_gradient_are_those_of_pot(strength: float) -> None:
    """POT minimises <C, P> + reg KL(P | a b') + reg_m KL of both marginals; autograd goes through its iterations."""
    ot: Any = pytest.importorskip("ot")
    from allot_client.torch import sinkhorn_loss

    torch.manual_seed(2)
    x, y = (torch.randn(n, 2, dtype=torch.float64) for n in (7, 5))
    a, b = (torch.rand(n, dtype=torch.float64) + 0.5 for n in (7, 5))
    a, b = a / a.sum(), b / b.sum()
    ours = torch.cdist(x, y).square().requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    plan = ot.unbalanced.sinkhorn_unbalanced(
        a, b, theirs, 0.3, strength, reg_type="kl", stopThr=1e-14, numItermax=10**5
    )

    def divergence(p: Any, q: Any) -> Any:
        return torch.special.xlogy(p, p / q).sum() - p.sum() + q.sum()

    value = (plan * theirs).sum() + 0.3 * divergence(plan, a[:, None] * b)
    value = value + strength * (divergence(plan.sum(1), a) + divergence(plan.sum(0), b))
    value.backward()
    loss = sinkhorn_loss(ours, a, b, reg=0.3, reg_m=strength, **PRECISE)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(float(value.detach()), rel=1e-8)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-5, atol=1e-8)


def test_the_divergence_is_that_of_three_losses_of_pot() -> None:
    ot: Any = pytest.importorskip("ot")
    from allot_client.torch import sinkhorn_divergence

    torch.manual_seed(3)
    x, y = (torch.randn(6, 2, dtype=torch.float64) for _ in range(2))
    reg = 0.4

    def balanced(left: Any, right: Any) -> float:
        cost, mass = torch.cdist(left, right).square(), torch.full((6,), 1 / 6, dtype=torch.float64)
        plan = ot.sinkhorn(mass, mass, cost, reg, stopThr=1e-14, numItermax=10**5)
        return float((plan * cost).sum() + reg * torch.special.xlogy(plan, plan * 36).sum())

    expected = balanced(x, y) - balanced(x, x) / 2 - balanced(y, y) / 2
    found = sinkhorn_divergence(x, y, reg=reg, reg_m=float("inf"), **PRECISE)
    assert float(found.detach()) == pytest.approx(expected, abs=1e-7)


def test_a_batch_of_losses_is_one_request_and_has_their_gradients(allot: Client) -> None:
    from allot_client.torch import sinkhorn_divergence, sinkhorn_loss

    torch.manual_seed(4)
    costs, a, b = (torch.rand(*shape, dtype=torch.float64) + 0.2 for shape in ((3, 5, 4), (5,), (3, 4)))
    shared = [one.requires_grad_() for one in (costs, a, b)]
    losses = sinkhorn_loss(*shared, reg=0.2, reg_m=(1.0, 2.0), **PRECISE)
    weights = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    (losses * weights).sum().backward()
    alone = [one.detach().clone().requires_grad_() for one in shared]
    for k, weight in enumerate(weights):
        loss = sinkhorn_loss(alone[0][k], alone[1], alone[2][k], reg=0.2, reg_m=(1.0, 2.0), **PRECISE)
        torch.testing.assert_close(losses[k], loss)
        (weight * loss).backward()
    for one, other in zip(shared, alone, strict=True):
        torch.testing.assert_close(one.grad, other.grad)

    x, y = (torch.randn(3, n, 2, dtype=torch.float64, requires_grad=True) for n in (6, 5))
    values = sinkhorn_divergence(x, y, reg=0.3, **PRECISE)
    values.sum().backward()
    for k in range(3):
        left, right = (side.detach()[k].clone().requires_grad_() for side in (x, y))
        one = sinkhorn_divergence(left, right, reg=0.3, **PRECISE)
        one.backward()
        torch.testing.assert_close(values[k], one, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(x.grad[k], left.grad, rtol=1e-5, atol=1e-7)
        torch.testing.assert_close(y.grad[k], right.grad, rtol=1e-5, atol=1e-7)


def test_a_scaled_reg_has_the_gradients_of_that_reg() -> None:
    from allot_client.torch import sinkhorn_loss

    torch.manual_seed(5)
    cost = torch.rand(5, 4, dtype=torch.float64) * 30
    masses, slopes = torch.rand(5, dtype=torch.float64), []
    mean = float((masses @ cost).mean() / masses.sum())  # the mean counts each entry by its masses
    for options in ({"reg": 0.1, "reg_scale": "mean"}, {"reg": 0.1 * mean, "reg_m": mean}):
        a = masses.clone().requires_grad_()
        sinkhorn_loss(cost, a, **options, **PRECISE).backward()
        slopes.append(a.grad)
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-8)


def test_a_batch_of_matchings() -> None:
    from allot_client.torch import linear_assignment

    for costs in (torch.rand(3, 4, 6), [torch.rand(4, 6), torch.rand(3, 2), torch.rand(5, 5)]):
        for (rows, columns), cost in zip(linear_assignment(costs), costs, strict=True):
            expected = linear_sum_assignment(cost.numpy())
            assert [rows.tolist(), columns.tolist()] == [part.tolist() for part in expected]


def test_types_and_no_gradient() -> None:
    from allot_client.torch import sinkhorn_divergence, sinkhorn_loss

    for name in ("float16", "bfloat16", "float32"):
        kind = getattr(torch, name)
        cost = torch.rand(4, 5).to(kind).requires_grad_()
        loss = sinkhorn_loss(cost)
        loss.backward()
        assert (loss.dtype, cost.grad.dtype) == (kind, kind)
        points = torch.randn(4, 2).to(kind).requires_grad_()
        sinkhorn_divergence(points, points.detach() + 1).backward()
        assert points.grad.dtype == kind
    with torch.no_grad():
        assert not sinkhorn_loss(torch.rand(3, 3, requires_grad=True)).requires_grad
    cost = torch.rand(3, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(sinkhorn_loss(cost), cost, create_graph=True)
    with pytest.raises(RuntimeError):  # and not a second derivative of 0
        slope.sum().backward()


def test_a_plan_has_the_type_of_its_costs() -> None:
    from allot_client.torch import ot_plan

    costs = torch.rand(3, 4, 5)
    plans = ot_plan(costs, reg=0.2)
    assert (plans.dtype, plans.shape) == (torch.float32, costs.shape)
    assert (plans @ torch.ones(5)).shape == (3, 4)


def test_a_value_of_whole_costs_is_no_whole_number() -> None:
    from allot_client.torch import sinkhorn_loss

    cost = torch.tensor([[1, 1], [2, 3]])
    value = sinkhorn_loss(cost, reg=0.5)
    assert value.dtype == torch.get_default_dtype()
    assert 0 < value.item() == pytest.approx(sinkhorn_loss(cost.double(), reg=0.5).item(), rel=1e-5)


def test_what_is_no_tensor_or_does_not_fit_is_told() -> None:
    from allot_client.torch import sinkhorn_loss

    cost = torch.rand(3, 4)
    with pytest.raises(TypeError, match="cost is a ndarray; expected a tensor"):
        sinkhorn_loss(cost.numpy())
    for wrong in (torch.rand(3), torch.rand(0, 4), torch.rand(1, 1, 2, 2)):
        with pytest.raises(ValueError, match=r"cost has shape .*; expected \(m, n\) or"):
            sinkhorn_loss(wrong)
    with pytest.raises(ValueError, match=r"a has shape \(4,\); expected \(3,\), as cost is \(3, 4\)"):
        sinkhorn_loss(cost, torch.ones(4), torch.ones(3))
    with pytest.raises(ValueError, match=r"b has shape \(3,\); expected \(2, 4\) or \(4,\)"):
        sinkhorn_loss(cost.expand(2, 3, 4), None, torch.ones(3))


def test_one_row_of_masses_is_that_of_every_problem() -> None:
    from allot_client.torch import sinkhorn_loss

    costs, mass = torch.rand(2, 3, 4, dtype=torch.float64), torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    assert torch.equal(sinkhorn_loss(costs, mass[None]), sinkhorn_loss(costs, mass))


def test_a_sparse_tensor_is_told(allot: Client) -> None:
    with pytest.raises(ValueError, match=r"sparse_coo; expected a dense one"):
        allot.lap(torch.eye(3).to_sparse())
