"""Derivatives in the answer against finite differences of the certified optimum, and where rows go."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, InvalidProblem, solve_and_prove

CARD = SOLVERS["uot"]
STEP = 1e-4


def solved(inputs: dict[str, Array], **options: Any) -> tuple[dict[str, Array], float]:
    chosen = CARD.options.model_validate({"tolerance": 1e-12, "reg": 0.3, **options})
    problem = CARD.build(inputs, chosen)
    solution, certificate = solve_and_prove(CARD, problem, chosen, Deadline(), "cpu")
    assert certificate.objective is not None
    return solution.arrays, float(certificate.objective)


def problem(seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    x, y, a, b = rng.normal(size=(5, 2)), rng.normal(size=(4, 2)), rng.random(5) + 0.2, rng.random(4) + 0.2
    return {"x": x, "y": y, "a": a / a.sum(), "b": b / b.sum()}


def difference(inputs: dict[str, Array], name: str, direction: Array, options: dict[str, Any]) -> float:
    values = [solved({**inputs, name: inputs[name] + sign * STEP * direction}, **options)[1] for sign in (1, -1)]
    return (values[0] - values[1]) / (2 * STEP)


CASES: dict[str, dict[str, Any]] = {
    "relaxed": {"reg_m": 1.0},
    "balanced": {"reg_m": "inf"},
    "one side": {"reg_m": (2.0, "inf")},
    "euclidean": {"reg_m": 1.0, "metric": "euclidean"},
    "inner": {"reg_m": 2.0, "metric": "inner"},
    "uniform": {"reg_m": 1.0, "reference": "uniform"},
    "potentials": {"reg_m": 1.0, "output": "potentials"},
    "balanced potentials": {"reg_m": "inf", "output": "potentials"},
    "divergence": {"reg_m": 1.0, "divergence": True},
    "balanced divergence": {"reg_m": "inf", "divergence": True},
    "divergence, euclidean": {"reg_m": 1.0, "divergence": True, "metric": "euclidean"},
}


@pytest.mark.parametrize("name", ["x", "y", "a", "b"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_finite_differences(case: str, name: str) -> None:
    inputs, options = problem(), CASES[case]
    found = solved(inputs, gradients=True, **options)[0][f"grad_{name}"]
    assert found.shape == inputs[name].shape
    rng = np.random.default_rng(1)
    for _ in range(2):
        direction = rng.normal(size=found.shape)
        if name in "ab":
            direction -= direction.mean()  # exact sides need equal masses
        wanted = difference(inputs, name, direction, options)
        assert float((found * direction).sum()) == pytest.approx(wanted, rel=2e-4, abs=2e-6)


def test_masses_that_are_not_equal_have_their_term_in_a_divergence() -> None:
    inputs = problem()
    inputs["a"] = 2 * inputs["a"]
    options = {"reg_m": 1.0, "divergence": True}
    found = solved(inputs, gradients=True, **options)[0]
    for name in "ab":
        direction = np.ones_like(inputs[name])
        wanted = difference(inputs, name, direction, options)
        assert float(found[f"grad_{name}"].sum()) == pytest.approx(wanted, rel=1e-4)


def test_gradients_of_costs_are_the_plan_and_those_of_masses() -> None:
    inputs = problem()
    cost = ((inputs["x"][:, None] - inputs["y"]) ** 2).sum(axis=2)
    found, _ = solved({"cost": cost, "a": inputs["a"], "b": inputs["b"]}, reg_m=1.0, gradients=True)
    same, _ = solved(inputs, reg_m=1.0, gradients=True)
    assert found["grad_a"] == pytest.approx(same["grad_a"], abs=1e-6)
    assert "grad_x" not in found


def test_gradients_of_several_clouds_are_those_of_each() -> None:
    each = [problem(0), problem(1)]
    joined = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
    for options in ({"reg_m": 1.0}, {"reg_m": 1.0, "divergence": True}):
        found, _ = solved(joined | {"sizes": np.array([[5, 4], [5, 4]])}, gradients=True, **options)
        alone = [solved(one, gradients=True, **options)[0] for one in each]
        for name in ("grad_x", "grad_y", "grad_a", "grad_b"):
            assert found[name] == pytest.approx(np.concatenate([one[name] for one in alone]), abs=1e-9)


@pytest.mark.parametrize("output", ["plan", "potentials"])
def test_rows_go_to_the_mean_of_their_columns(output: str) -> None:
    inputs = problem()
    inputs["a"][2] = 0
    plan = solved(inputs, reg_m=1.0)[0]["plan"]
    found, _ = solved(inputs, reg_m=1.0, barycentric=True, output=output)
    held = np.arange(5) != 2
    wanted = (plan @ inputs["y"])[held] / plan.sum(axis=1)[held, None]
    assert found["barycentric"][held] == pytest.approx(wanted)
    assert np.isnan(found["barycentric"][2]).all()


def test_costs_have_no_places_to_go_to() -> None:
    with pytest.raises(InvalidProblem) as wrong:
        CARD.build({"cost": np.ones((2, 2))}, CARD.options.model_validate({"barycentric": True}))
    assert wrong.value.field == "barycentric"
