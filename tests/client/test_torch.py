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
