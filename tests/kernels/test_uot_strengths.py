"""Strengths in units of the costs, and a default that gives no empty plan."""

import math
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Certificate, Deadline, Inputs, InvalidProblem, Solution, solve_and_prove
from kernels.uot.build import outlined

CARD = SOLVERS["uot"]
LEAST = math.exp(-1 / 2.05)
"""Of masses that sum to 1, with reg .05 and reg_m 1 in units of the mean cost (cost_scale.py)."""


def prove(inputs: Inputs, **options: Any) -> tuple[Solution, Certificate]:
    chosen = CARD.options.model_validate(options)
    return solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, Deadline(), "cpu")


def costs(seed: int, m: int = 9, n: int = 12) -> Any:
    return np.random.default_rng(seed).lognormal(0, 3, (m, n))


@pytest.mark.parametrize("power", [-60, 0, 60])
@pytest.mark.parametrize("seed", range(4))
def test_the_default_gives_no_empty_plan(seed: int, power: int) -> None:
    solution, certificate = prove({"cost": np.ldexp(costs(seed), power)})
    assert certificate.holds
    assert solution.arrays["plan"].sum() >= LEAST * (1 - 1e-6)
    assert "warning" not in certificate.facts


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_the_default_moves_mass_between_far_points(metric: str) -> None:
    rng = np.random.default_rng(0)
    points = {"x": rng.normal(size=(64, 784)), "y": rng.normal(size=(48, 784)) + 5}
    solution, _ = prove(points, metric=metric)
    assert solution.arrays["plan"].sum() >= LEAST * (1 - 1e-6)


def test_the_default_holds_where_masses_are_on_the_dearest_pairs() -> None:
    cost = np.zeros((40, 40))
    cost[0, 0] = 1e9
    mass = np.full(40, 1e-9)
    mass[0] = 1 - mass[1:].sum()
    solution, _ = prove({"cost": cost, "a": mass, "b": mass})
    assert solution.arrays["plan"].sum() >= LEAST * (1 - 1e-6)


@pytest.mark.parametrize("kind", ["mean", "median"])
def test_reg_is_relative_to_the_permitted_costs(kind: str) -> None:
    cost = costs(1)
    cost[2, 3] = cost[4, 4] = np.inf
    size = float(getattr(np, kind)(cost[np.isfinite(cost)]))
    solution, _ = prove({"cost": cost}, reg=0.3, reg_m=2.0, reg_scale=kind)
    assert solution.facts["cost_scale"] == pytest.approx(size)
    assert solution.facts["reg"] == pytest.approx(0.3 * size)
    assert solution.facts["reg_m"] == pytest.approx([2 * size, 2 * size])
    again, _ = prove({"cost": cost}, reg=solution.facts["reg"], reg_m=solution.facts["reg_m"])
    assert again.arrays["plan"] == pytest.approx(solution.arrays["plan"], rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "inner"])
@pytest.mark.parametrize("kind", ["mean", "median"])
def test_points_have_the_scale_of_their_costs(metric: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(30, 3)) + 4, rng.normal(size=(20, 3))
    apart = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    cost = {"sqeuclidean": apart, "euclidean": np.sqrt(apart), "inner": -(x @ y.T)}[metric]
    options = CARD.options.model_validate({"metric": metric, "reg_scale": kind})
    of_points = CARD.build({"x": x, "y": y}, options).told["cost_scale"]
    assert of_points == pytest.approx(getattr(np, kind)(abs(cost)))


def test_the_mean_weighs_by_mass() -> None:
    cost, a, b = costs(3, 5, 6), np.arange(5.0), np.arange(1.0, 7.0)
    wanted = (a[:, None] * b * cost).sum() / (a.sum() * b.sum())
    options = CARD.options.model_validate({"reg_scale": "mean"})
    assert CARD.build({"cost": cost, "a": a, "b": b}, options).told["cost_scale"] == pytest.approx(wanted)


@pytest.mark.parametrize("cost", [np.zeros((3, 4)), np.full((3, 4), np.inf)])
def test_costs_without_a_size_have_the_scale_one(cost: Any) -> None:
    solution, certificate = prove({"cost": cost})
    assert solution.facts["reg"] == 0.05
    assert certificate.holds


def test_what_is_given_in_numbers_is_taken_as_it_is() -> None:
    solution, _ = prove({"cost": costs(5)}, reg=0.25, reg_m=(3.0, "inf"))
    assert (solution.facts["reg"], solution.facts["reg_m"]) == (0.25, [3.0, "inf"])
    assert "cost_scale" not in solution.facts
    mixed, _ = prove({"cost": costs(5)}, reg=0.25)
    assert mixed.facts["reg"] == 0.25
    assert mixed.facts["reg_m"][0] == mixed.facts["cost_scale"]


def test_each_problem_of_a_batch_has_its_own_scale_and_answer() -> None:
    batch = np.stack([np.ldexp(costs(k), 20 * k) for k in range(3)])
    solution, certificate = prove({"cost": batch})
    assert solution.arrays["plan"].shape == batch.shape
    for k in range(3):
        alone, proof = prove({"cost": batch[k]})
        assert solution.facts["reg"][k] == alone.facts["reg"]
        assert solution.arrays["plan"][k] == pytest.approx(alone.arrays["plan"])
        assert certificate.facts["problems"]["objectives"][k] == proof.objective
        assert certificate.facts["problems"]["terminations"][k] == "gap_reached"


def test_each_problem_of_a_batch_has_the_strengths_that_are_given_for_it() -> None:
    batch = np.stack([costs(k) for k in range(3)])
    regs, regs_m = np.array([0.5, 1.0, 2.0]), np.array([[1.0, np.inf], [np.inf, np.inf], [3.0, 3.0]])
    solution, certificate = prove({"cost": batch, "regs": regs, "regs_m": regs_m}, tolerance=1e-8)
    for k in range(3):
        alone, proof = prove({"cost": batch[k]}, reg=regs[k], reg_m=tuple(regs_m[k].tolist()), tolerance=1e-8)
        assert solution.arrays["plan"][k] == pytest.approx(alone.arrays["plan"])
        assert certificate.facts["problems"]["bounds"][k] == proof.bound
    assert certificate.facts["mass_factor"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({"regs": np.ones(2)}, "regs"),
        ({"cost": np.ones((3, 2, 2)), "regs": np.ones(2)}, "regs"),
        ({"cost": np.ones((2, 2, 2)), "regs": np.array([1.0, 0.0])}, "regs"),
        ({"cost": np.ones((2, 2, 2)), "regs_m": np.ones((2, 3))}, "regs_m"),
    ],
)
def test_wrong_strengths_are_named(inputs: Inputs, field: str) -> None:
    with pytest.raises(InvalidProblem) as wrong:
        CARD.build({"cost": np.ones((2, 2)), **inputs}, CARD.options())
    assert wrong.value.field == field


def test_an_estimate_of_a_stand_in_reads_a_corner_alone() -> None:
    wide = np.lib.stride_tricks.as_strided(np.ones(1), (10**6, 10**6), (0, 0))
    problem = CARD.build({"cost": np.ones((2, 2))}, CARD.options())
    assert outlined(problem, wide[:64, :64], CARD.options()).reg == 0.05
    assert CARD.outline is not None
    assert CARD.outline({"cost": wide}, CARD.options()).reg == 0.05


@pytest.mark.parametrize(
    ("cost", "options", "field"),
    [
        (4e-219, {"reg": 1e-200, "reg_scale": "mean"}, "reg"),
        (2e199, {"reg": 0.1, "reg_m": 1e300, "reg_scale": "median"}, "reg_m"),
        (1e-300, {"reg": 1.0, "reg_m": 1e-100, "reg_scale": "mean"}, "reg_m"),
        (5e-324, {"reg": "auto"}, "reg"),
    ],
)
def test_a_share_that_float64_does_not_hold_is_named(cost: float, options: dict[str, Any], field: str) -> None:
    """It was 0 or infinite, and ended in a division by zero."""
    with pytest.raises(
        InvalidProblem, match=r"times the (mean|median) of the costs, .* which float64 rounds to"
    ) as told:
        CARD.build({"cost": np.full((2, 1), cost)}, CARD.options.model_validate(options))
    assert told.value.field == field
