"""Labels that a plan carries over, and means of points: what is shown is what the certificate recomputes."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, Device, InvalidProblem, Solution, solve_and_prove
from kernels.problems.transport import UnbalancedTransport

CARD = SOLVERS["uot"]


def clouds(seed: int = 0) -> dict[str, Array]:
    """Three groups of columns, and rows near two of them; one row has no mass."""
    rng = np.random.default_rng(seed)
    middles, labels = np.array([[0.0, 0], [6, 0], [0, 6]]), rng.integers(0, 3, 30)
    labels[:3] = [0, 1, 2]
    x = middles[rng.integers(0, 2, 20)] + rng.normal(size=(20, 2))
    a = np.full(20, 1 / 19)
    a[4] = 0
    return {"x": x, "y": middles[labels] + rng.normal(size=(30, 2)), "a": a, "labels": labels}


def solved(
    inputs: dict[str, Array], device: Device = "cpu", **options: Any
) -> tuple[UnbalancedTransport, Solution, Certificate]:
    chosen = CARD.options.model_validate({"reg": 0.5, "reg_m": 1.0, **options})
    problem = CARD.build(inputs, chosen)
    return problem, *solve_and_prove(CARD, problem, chosen, Deadline(), device)


@pytest.mark.parametrize("options", [{}, {"output": "potentials"}, {"reg_m": "inf"}, {"reference": "uniform"}], ids=str)
def test_a_row_has_the_label_of_most_of_its_mass(options: dict[str, Any], device: Device) -> None:
    inputs = clouds()
    plan = solved({**inputs}, **{**options, "output": "plan"})[1].arrays["plan"]
    _, solution, certificate = solved(inputs, device, **options)
    assert certificate.holds
    assert certificate.facts["label_share_within"] < 1e-5
    held = plan.sum(axis=1) > 0
    assert not held[4]
    each = np.stack([plan[:, inputs["labels"] == code].sum(axis=1) for code in range(3)], axis=1)
    assert solution.arrays["label"][held].tolist() == each[held].argmax(axis=1).tolist()
    shares = each[held].max(axis=1) / plan[held].sum(axis=1)
    assert solution.arrays["label_share"][held] == pytest.approx(shares, abs=1e-5)
    assert (solution.arrays["label"][4], solution.arrays["label_share"][4]) == (-1, 0)


def test_labels_go_with_costs_as_well() -> None:
    cost = np.array([[0.0, 0, 9], [9, 9, 0]])
    solution = solved({"cost": cost, "labels": np.array([1, 1, 0])}, reg=0.1)[1]
    assert solution.arrays["label"].tolist() == [1, 0]
    assert (solution.arrays["label_share"] > 0.99).all()


@pytest.mark.parametrize("output", ["plan", "potentials"])
@pytest.mark.parametrize("name", ["label", "label_share", "barycentric"])
def test_what_the_plan_does_not_say_is_refused(name: str, output: str) -> None:
    problem, solution, certificate = solved(clouds(1), barycentric=True, output=output)
    assert certificate.holds
    assert certificate.facts["barycentric_within"] < 1e-5
    changed = solution.arrays[name].copy()
    changed[7] = (changed[7] + 1) % 3 if name == "label" else changed[7] + 0.1
    for wrong in (changed, solution.arrays[name][:-1], np.full_like(solution.arrays[name], 99)):
        solution.arrays[name] = wrong
        proof = CARD.certify(problem, solution)
        assert proof.holds is False
        assert proof.proved.startswith("nothing: ")


@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ({"labels": np.zeros(29, int)}, {}),
        ({"labels": np.full(30, 0.5)}, {}),
        ({"labels": np.full(30, -1)}, {}),
        ({"labels": np.full(30, 30)}, {}),
        ({"labels": np.zeros(30, int)}, {"divergence": True}),
        ({"labels": np.zeros(30, int)}, {"method": "exact", "reg": "auto", "reg_m": "auto"}),
    ],
)
def test_labels_that_say_nothing_are_named(inputs: dict[str, Array], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidProblem, match="labels"):
        solved(clouds() | inputs, **options)
