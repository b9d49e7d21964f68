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
