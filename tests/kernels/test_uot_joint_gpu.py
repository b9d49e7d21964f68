"""Transports of several jobs swept in one launch of a GPU, as test_uot_joint.py has them without one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels import Array, Termination
from tests.conftest import need_gpu
from tests.kernels.test_uot_joint import CARD, alone, built, chosen, clouds, company, costs, own, require_same, weighed

ON_GPU: dict[str, tuple[Callable[[int], dict[str, Array]], dict[str, Any]]] = {
    "a loop's points": (lambda seed: clouds(seed, 8, 256, 256), {}),
    "euclidean": (lambda seed: clouds(seed, 5, 200, 230), {"metric": "euclidean", "reg_m": 1.0}),
    "masses": (lambda seed: weighed(seed, 7, 100, 120), {}),
    "small": (lambda seed: clouds(seed, 20, 30, 40), {"reg_m": ["inf", 1.0]}),
    "one row": (lambda seed: costs(seed, 9, 1, 7), {"reg_m": 2.0}),
    "one column": (lambda seed: costs(seed, 9, 7, 1), {"reg_m": 2.0}),
    "costs": (lambda seed: costs(seed, 6, 128, 128), {}),
    "costs in float32": (lambda seed: costs(seed, 8, 256, 256, np.float32), {}),
    "costs with regs": (lambda seed: own(seed, count=5, m=60, n=64), {}),
    "costs, certified on the device": (lambda seed: costs(seed, 4, 200, 150, np.float32), {"reg_m": 2.0}),
}


@pytest.mark.gpu
@pytest.mark.parametrize("certificate", ["full", "none"])
@pytest.mark.parametrize("form", ON_GPU)
def test_on_a_gpu_each_answer_is_that_of_a_solve_by_itself(form: str, certificate: str) -> None:
    need_gpu()
    make, more = ON_GPU[form]
    options = chosen(certificate=certificate, **more)
    problems = built([make(seed) for seed in range(5)], options)
    for problem, answer in zip(problems, company(problems, options), strict=True):
        require_same(answer, alone(problem, options), 5)


@pytest.mark.gpu
def test_on_a_gpu_a_poisonous_member_spoils_no_other() -> None:
    need_gpu()
    closed, hard = costs(1, 4, 100, 90), costs(2, 4, 100, 90)
    closed["cost"][3, :, 5] = np.inf
    hard["cost"][1] *= 100
    options = chosen(iterations=64)
    problems = built([costs(0, 4, 100, 90), closed, hard, costs(3, 4, 100, 90)], options)
    found = company(problems, options)
    assert [answer is not None for answer in found] == [True, False, False, True]
    for k in (0, 3):
        require_same(found[k], alone(problems[k], options), 3)
    assert alone(problems[1], options)[0].termination is Termination.INFEASIBLE


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(200, 230), (50, 40)])
@pytest.mark.parametrize("form", ["points", "costs"])
def test_on_a_gpu_a_job_of_one_problem_is_a_batch_of_one(form: str, shape: tuple[int, int]) -> None:
    """As good as the answer that it has alone, by another way."""
    need_gpu()
    m, n = shape
    options = chosen()
    given = [clouds(seed, 1, m, n) if form == "points" else costs(seed, 1, m, n) for seed in range(4)]
    inputs: list[dict[str, Array]] = [
        {"x": one["x"], "y": one["y"]} if form == "points" else {"cost": one["cost"][0]} for one in given
    ]
    problems = built(inputs, options)
    for one, problem, answer in zip(given, problems, company(problems, options), strict=True):
        assert answer is not None
        solution, certificate = answer
        stack = one if form == "points" else one | {"regs": np.array([0.1])}
        batch, _ = alone(CARD.build(stack, options), options)
        for name, array in solution.arrays.items():
            np.testing.assert_array_equal(array, batch.arrays[name].reshape(array.shape), err_msg=name)
        _, proof = alone(problem, options)
        assert certificate.holds
        assert certificate.objective == pytest.approx(proof.objective, rel=2e-3)
        assert solution.facts["solved_together"] == 4


@pytest.mark.gpu
def test_on_a_gpu_mixed_kinds_keep_their_places() -> None:
    need_gpu()
    options = chosen(certificate="none")
    inputs = [
        clouds(0, 4, 90, 80),
        costs(1, 4, 90, 80),
        clouds(2, 4, 90, 80),
        costs(3, 4, 90, 80),
        clouds(4, 6, 90, 80),
    ]
    problems = built(inputs, options)
    found = company(problems, options)
    for k, members in enumerate((3, 2, 3, 2, 3)):
        require_same(found[k], alone(problems[k], options), members)
