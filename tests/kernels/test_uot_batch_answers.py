"""Answers of many plans at once are those of each plan by itself."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline
from kernels.problems.transport import UnbalancedTransport
from kernels.solution import Termination
from kernels.uot.batch.answers import Stack, answers
from kernels.uot.cpu.answer import answer
from kernels.uot.support import support

CARD = SOLVERS["uot"]


def one_by_one(problem: UnbalancedTransport, f: Any, g: Any) -> dict[str, Any]:
    options = CARD.options.model_validate({"output": "potentials"})
    ended = Termination.GAP_REACHED, "log", {"tolerance": 1e-3}
    return dict(answer(support(problem), options, (f, g), *ended, Deadline()).arrays)


@pytest.mark.parametrize("reference", ["product", "uniform"])
@pytest.mark.parametrize("reg_m", [(np.inf, np.inf), (np.inf, 2.0), (0.7, np.inf), (1.0, 3.0)], ids=str)
def test_all_at_once_is_one_by_one(reg_m: tuple[float, float], reference: str) -> None:
    rng = np.random.default_rng(3)
    cost, reg = rng.random((5, 7, 9)), rng.random(5) * 0.3 + 0.05
    a, b = rng.random((5, 7)) + 0.1, rng.random((5, 9)) + 0.1
    b *= (a.sum(axis=1) / b.sum(axis=1))[:, None]
    f, g = rng.normal(size=(5, 7)) * 0.1, rng.normal(size=(5, 9)) * 0.1
    f[1] += 1e6
    g[1] -= 1e6  # a constant that hides all digits
    f[2] += 700 * reg[2]  # too far off for an exponential
    stack = Stack(
        cost, a, b, reg, cost.min(axis=(1, 2)), (np.isinf(reg_m[0]), np.isinf(reg_m[1])), reference == "product"
    )
    found = answers(np, stack, f, g)
    assert found.one(2) is None
    for k in (0, 1, 3, 4) if np.isinf(reg_m).all() else (0, 3, 4):
        mine = found.one(k)
        assert mine is not None
        problem = UnbalancedTransport(a[k], b[k], float(reg[k]), reg_m, cost[k], reference=reference)
        wanted = one_by_one(problem, f[k], g[k])
        assert mine.keys() == wanted.keys()
        for name, array in wanted.items():
            np.testing.assert_allclose(mine[name], array, rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_line_that_underflowed_is_left_to_others() -> None:
    cost = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    one = np.ones((1, 2))
    stack = Stack(cost, one, one, np.array([1e-3]), np.zeros(1), (True, True), True)
    assert answers(np, stack, np.array([[0.0, -2.0]]), np.zeros((1, 2))).one(0) is None
    assert answers(np, stack, np.zeros((1, 2)), np.zeros((1, 2))).one(0) is not None
