"""Problems that are solved together: each answer is the one that its problem gets alone."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, Device, solve_and_prove

LAP = SOLVERS["lap"]


def families(n_rows: int, n_cols: int) -> dict[str, list[Array]]:
    rng = np.random.default_rng(n_rows * 1000 + n_cols)
    forbidden = rng.random((7, n_rows, n_cols))
    forbidden[rng.random(forbidden.shape) < 0.2] = np.inf
    points = rng.random((7, n_rows, 2)), rng.random((7, n_cols, 2))
    lines = np.arange(n_rows)[:, None] * np.arange(n_cols)
    return {
        "floats": list(rng.random((7, n_rows, n_cols))),
        "halves": list(rng.random((7, n_rows, n_cols)).astype(np.float32)),
        "whole": list(rng.integers(-500, 500, (7, n_rows, n_cols))),
        "ties": list(rng.integers(0, 3, (7, n_rows, n_cols))),
        "distances": [((x[:, None] - y) ** 2).sum(-1) for x, y in zip(*points, strict=True)],
        "forbidden": list(forbidden),
        "some sorted": [*rng.integers(0, 9, (3, n_rows, n_cols)), *(lines * k for k in (1, 2, 3))],
    }


def alone(problem: Any, options: Any) -> tuple[Any, Any]:
    return solve_and_prove(LAP, problem, options, Deadline(), "cpu")


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (5, 9), (9, 5), (32, 32), (70, 70)])
def test_each_answer_is_that_of_a_solve_by_itself(shape: tuple[int, int], maximize: bool) -> None:
    options = LAP.options(maximize=maximize, seed=1)
    together = 0
    for family, costs in families(*shape).items():
        if maximize and family == "forbidden":
            costs = [-cost for cost in costs]
        problems = [LAP.build({"cost": cost}, options) for cost in costs]
        for problem, found in zip(problems, LAP.joint["cpu"](problems, options, Deadline()), strict=True):
            if found is None:  # then it is solved by itself
                continue
            together += 1
            solution, certificate = found
            wanted, proof = alone(problem, options)
            assert certificate == proof, family
            assert (solution.termination, solution.method, solution.seed) == (wanted.termination, wanted.method, 1)
            assert solution.arrays.keys() == wanted.arrays.keys()
            for name, array in solution.arrays.items():
                np.testing.assert_array_equal(array, wanted.arrays[name], err_msg=f"{family} {name}", strict=True)
    assert together > 20


def test_what_has_no_proved_optimum_is_left_to_itself() -> None:
    options = LAP.options()
    none_at_all = np.full((3, 3), np.inf)
    none_at_all[0, 0] = 1
    problems = [LAP.build({"cost": cost}, options) for cost in (np.eye(3), none_at_all, np.eye(3) + 1)]
    first, second, third = LAP.joint["cpu"](problems, options, Deadline())
    assert second is None
    assert first is not None
    assert third is not None
    assert third[1].objective == 3


def test_what_the_gpu_would_answer_otherwise_is_left_to_itself() -> None:
    for options in (LAP.options(seed=1), LAP.options(deterministic=True)):
        problems = [LAP.build({"cost": np.eye(3)}, options)] * 3
        assert LAP.joint["gpu"](problems, options, Deadline()) == [None] * 3


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_batch_is_left_to_itself(device: Device) -> None:
    rng, options = np.random.default_rng(4), LAP.options()
    for more in ({}, {"sizes": np.array([[2, 3], [4, 4], [1, 2]])}):
        problems = [LAP.build({"cost": rng.random((3, 4, 4)), **more}, options) for _ in range(3)]
        assert LAP.joint[device](problems, options, Deadline()) == [None] * 3
