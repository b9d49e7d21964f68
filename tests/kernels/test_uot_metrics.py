"""Costs by name: against SciPy's, and stated as what they are."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from kernels import SOLVERS, Deadline, InvalidProblem, solve_and_prove
from kernels.problems.worked_out import WORKED_OUT, worked_out

CARD = SOLVERS["uot"]


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine", "correlation"])
@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_costs_are_those_of_scipy(metric: str, size: float) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 5)), rng.normal(size=(7, 5))
    power = {"cosine": 0, "correlation": 0, "sqeuclidean": 2}.get(metric, 1)
    wanted = cdist(x, y, metric) * size**power
    assert worked_out(size * x, size * y, metric) == pytest.approx(wanted, rel=1e-12, abs=1e-15 * size**power)


def test_angles_on_the_sphere() -> None:
    places = np.array([[0.0, 0.0], [90.0, 0.0], [180.0, 0.0], [0.0, 90.0], [1e-7, 0.0]])  # longitude, latitude
    wanted = np.radians([[0, 90, 180, 90, 1e-7]])
    assert worked_out(places[:1], places, "geodesic") == pytest.approx(wanted, rel=1e-9, abs=1e-20)
    radians = np.radians(places)
    level = np.cos(radians[:, 1])
    vectors = np.stack([level * np.cos(radians[:, 0]), level * np.sin(radians[:, 0]), np.sin(radians[:, 1])], axis=1)
    assert worked_out(3 * vectors, vectors, "geodesic") == pytest.approx(
        worked_out(places, places, "geodesic"), abs=1e-15
    )


@pytest.mark.parametrize("metric", WORKED_OUT)
@pytest.mark.parametrize("divergence", [False, True])
def test_an_answer_says_what_its_costs_are(metric: str, divergence: bool) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(9, 3)), rng.normal(size=(7, 3))
    options = CARD.options.model_validate({"metric": metric, "divergence": divergence})
    solution, certificate = solve_and_prove(CARD, CARD.build({"x": x, "y": y}, options), options, Deadline(), "cpu")
    told = solution.facts["costs"]
    assert set(told if isinstance(told, list) else [told]) == {"worked out in float64"}
    plain = CARD.options.model_validate({"divergence": divergence})
    names = {"cost": (x, y)} | ({"cost_xx": (x, x), "cost_yy": (y, y)} if divergence else {})
    costs = {name: worked_out(*clouds, metric) for name, clouds in names.items()}
    _, same = solve_and_prove(CARD, CARD.build(costs, plain), plain, Deadline(), "cpu")
    assert certificate.holds
    assert (certificate.objective, certificate.bound) == (same.objective, same.bound)


def test_clouds_of_their_own_sizes_may_have_any_metric() -> None:
    rng = np.random.default_rng(2)
    inputs = {"x": rng.normal(size=(5, 3)), "y": rng.normal(size=(6, 3)), "sizes": np.array([[2, 2], [3, 4]])}
    options = CARD.options.model_validate({"metric": "cosine"})
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, options), options, Deadline(), "cpu")
    assert certificate.holds
    assert solution.arrays["plan"].shape == (2 * 2 + 3 * 4,)


@pytest.mark.parametrize(
    ("inputs", "metric", "field"),
    [
        ({"x": np.zeros((2, 3)), "y": np.ones((2, 3))}, "cosine", "x"),
        ({"x": np.ones((2, 3)), "y": np.ones((2, 3))}, "correlation", "x"),
        ({"x": np.ones((2, 4)), "y": np.ones((2, 4))}, "geodesic", "x"),
        ({"x": np.full((2, 2), 91.0), "y": np.ones((2, 2))}, "geodesic", "x"),
        ({"x": np.ones((2, 3)), "y": np.ones((2, 4))}, "cityblock", "y"),
        ({"x": np.ones((2, 3)), "y": np.ones((2, 3)), "cost": np.ones((2, 2))}, "cityblock", "cost"),
    ],
)
def test_points_without_such_a_cost_are_named(inputs: dict[str, Any], metric: str, field: str) -> None:
    with pytest.raises(InvalidProblem) as wrong:
        CARD.build(inputs, CARD.options.model_validate({"metric": metric}))
    assert wrong.value.field == field
