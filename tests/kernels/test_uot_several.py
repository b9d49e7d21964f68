"""Point clouds of their own sizes in one job, and debiased divergences: each problem is solved and certified alone."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, Inputs, InvalidProblem, Solution, solve_and_prove
from kernels.problems.several import SeveralTransports, taken_apart
from tests.conftest import need_gpu

CARD = SOLVERS["uot"]
SIZES = ((5, 7), (1, 4), (12, 3))


def prove(inputs: Inputs, **options: Any) -> tuple[Solution, Certificate]:
    chosen = CARD.options.model_validate(options)
    return solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, Deadline(), "cpu")


def clouds(seed: int = 0) -> list[dict[str, Array]]:
    rng = np.random.default_rng(seed)
    found = []
    for m, n in SIZES:
        a, b = rng.random(m) + 0.1, rng.random(n) + 0.1
        found.append({"x": rng.normal(size=(m, 3)), "y": rng.normal(size=(n, 3)), "a": a / a.sum(), "b": b / b.sum()})
    return found


def flat(problems: list[dict[str, Array]]) -> dict[str, Array]:
    joined = {name: np.concatenate([one[name] for one in problems]) for name in problems[0]}
    return joined | {"sizes": np.array(SIZES)}


@pytest.mark.parametrize("options", [
    {}, {"reg": 0.3, "reg_m": 1.0}, {"reg_m": "inf"}, {"output": "potentials", "top_k": 2}, {"metric": "euclidean"},
    {"output": "potentials", "reg_m": "inf"},
])  # fmt: skip
def test_each_cloud_is_answered_as_if_alone(options: dict[str, Any]) -> None:
    problems = clouds()
    solution, certificate = prove(flat(problems), **options)
    built = CARD.build(flat(problems), CARD.options.model_validate(options))
    apart = taken_apart(built, solution.arrays)
    assert apart is not None
    assert certificate.holds
    listed = certificate.facts["problems"]
    for k, inputs in enumerate(problems):
        alone, proof = prove(inputs, **options)
        assert listed["terminations"][k] == alone.termination.value == "gap_reached"
        assert (listed["objectives"][k], listed["bounds"][k]) == (proof.objective, proof.bound)
        assert apart[k].keys() == alone.arrays.keys()
        for name, array in alone.arrays.items():
            assert np.array_equal(apart[k][name], array), name


def test_a_plan_of_one_cloud_that_is_wrong_fails_the_job() -> None:
    options = CARD.options.model_validate({"reg": 0.3, "reg_m": 1.0})
    problem = CARD.build(flat(clouds()), options)
    solution = CARD.solve(problem, options, Deadline())
    assert CARD.certify(problem, solution).holds
    solution.arrays["plan"] = solution.arrays["plan"].copy()
    solution.arrays["plan"][-1] = -1.0
    assert CARD.certify(problem, solution).holds is False
    solution.arrays["plan"] = solution.arrays["plan"][:-1]
    assert CARD.certify(problem, solution).holds is False


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"sizes": np.array([[5, 7], [1, 4]])}, "x"),
        ({"sizes": np.array([[5, 7], [1, 4], [12, 0]])}, "sizes"),
        ({"sizes": np.array([5, 7])}, "sizes"),
        ({"sizes": np.array(SIZES, float)}, "sizes"),
        ({"a": np.ones(3)}, "a"),
        ({"cost": np.ones((2, 2))}, "sizes"),
    ],
)
def test_wrong_sizes_are_named(change: dict[str, Array], field: str) -> None:
    with pytest.raises(InvalidProblem) as wrong:
        CARD.build({**flat(clouds()), **change}, CARD.options())
    assert wrong.value.field == field


def values(certificate: Certificate) -> list[tuple[Fraction, Fraction]]:
    listed = certificate.facts["problems"]
    return [(Fraction(low), Fraction(high)) for low, high in zip(listed["bounds"], listed["objectives"], strict=True)]


@pytest.mark.parametrize("options", [{}, {"reg": 0.2, "reg_m": "inf"}, {"metric": "euclidean", "reg_m": 2.0}])
def test_a_divergence_is_that_of_three_solves(options: dict[str, Any]) -> None:
    inputs = clouds()[0]
    solution, certificate = prove(inputs, divergence=True, tolerance=1e-9, **options)
    reg = solution.facts["reg"][0]
    strengths = {"reg": reg, "reg_m": solution.facts["reg_m"][0], "tolerance": 1e-9}
    rest = {name: value for name, value in options.items() if name == "metric"}
    sides = {"": ("x", "y", "a", "b"), "_xx": ("x", "x", "a", "a"), "_yy": ("y", "y", "b", "b")}
    alone = []
    for suffix, names in sides.items():
        part = dict(zip(("x", "y", "a", "b"), (inputs[name] for name in names), strict=True))
        found, proof = prove(part, **strengths, **rest)
        assert np.allclose(found.arrays["plan"], solution.arrays["plan" + suffix], rtol=1e-3, atol=1e-9)
        assert proof.objective is not None
        alone.append(proof.objective)
    apart = (inputs["a"].sum() - inputs["b"].sum()) ** 2
    wanted = alone[0] - alone[1] / 2 - alone[2] / 2 + reg / 2 * apart
    assert certificate.bound is not None
    assert certificate.objective is not None
    scale = 1e-8 * sum(abs(one) for one in alone)
    assert certificate.bound - scale <= wanted <= certificate.objective + scale
    assert certificate.bound <= certificate.objective
    assert certificate.facts["divergences"] == [[certificate.bound, certificate.objective]]


def test_the_interval_of_a_divergence_is_rounded_outward() -> None:
    inputs = clouds(3)[0]
    inputs["a"] = 3 * inputs["a"]  # the masses differ
    solution, certificate = prove(inputs, divergence=True, reg=0.2, reg_m=1.0)
    (xy, xx, yy), reg = values(certificate), Fraction(0.2)
    apart = (sum(map(Fraction, inputs["a"].tolist())) - sum(map(Fraction, inputs["b"].tolist()))) ** 2
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert Fraction(certificate.bound) <= xy[0] - xx[1] / 2 - yy[1] / 2 + reg / 2 * apart
    assert Fraction(certificate.objective) >= xy[1] - xx[0] / 2 - yy[0] / 2 + reg / 2 * apart
    assert solution.termination.value == "gap_reached"


def test_a_divergence_of_a_cloud_with_itself_holds_zero() -> None:
    x = clouds()[2]["x"]
    _, certificate = prove({"x": x, "y": x}, divergence=True)
    assert certificate.bound is not None
    assert certificate.objective is not None
    assert certificate.bound <= 0 <= certificate.objective


def test_divergences_of_costs_come_in_batches() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 6, 2)), rng.normal(size=(4, 5, 2))
    between, of_x, of_y = (((p[:, :, None] - q[:, None]) ** 2).sum(axis=3) for p, q in ((x, y), (x, x), (y, y)))
    inputs = {"cost": between, "cost_xx": of_x, "cost_yy": of_y}
    solution, certificate = prove(inputs, divergence=True, reg=0.5, reg_m=1.0)
    assert solution.arrays["plan_xx"].shape == (4, 6, 6)
    for k in range(4):
        _, one = prove({"x": x[k], "y": y[k]}, divergence=True, reg=0.5, reg_m=1.0)
        low, high = certificate.facts["divergences"][k]
        assert low <= one.objective
        assert one.bound <= high


def test_divergences_of_clouds_of_their_own_sizes() -> None:
    problems = clouds()
    solution, certificate = prove(flat(problems), divergence=True)
    assert solution.arrays["plan_xx"].shape == (sum(m * m for m, _ in SIZES),)
    for k, inputs in enumerate(problems):
        _, one = prove(inputs, divergence=True)
        assert certificate.facts["divergences"][k] == [one.bound, one.objective]


def test_an_unproved_divergence_has_the_solvers_value() -> None:
    inputs = clouds()[0]
    _, proved = prove(inputs, divergence=True, tolerance=1e-9)
    _, certificate = prove(inputs, divergence=True, tolerance=1e-9, certificate="none")
    assert certificate.objective == pytest.approx(proved.objective, rel=1e-6)
    assert certificate.bound is None


@pytest.mark.parametrize(
    ("inputs", "options", "field"),
    [
        ({"cost": np.ones((2, 3))}, {}, "cost_xx"),
        ({"cost": np.ones((2, 3)), "cost_xx": np.ones((2, 3)), "cost_yy": np.ones((3, 3))}, {}, "cost_xx"),
        ({"x": np.ones((2, 1)), "y": np.ones((2, 1))}, {"reference": "uniform"}, "divergence"),
        ({"x": np.ones((2, 1)), "y": np.ones((2, 1))}, {"reg_m": (1.0, 2.0)}, "reg_m"),
    ],
)
def test_what_is_no_divergence_is_named(inputs: Inputs, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as wrong:
        CARD.build(inputs, CARD.options.model_validate({"divergence": True, **options}))
    assert wrong.value.field == field


def test_the_estimate_covers_several_problems() -> None:
    problem = CARD.build(flat(clouds()), CARD.options())
    assert isinstance(problem, SeveralTransports)
    whole = CARD.estimate(problem, CARD.options(), "cpu")
    parts = [CARD.estimate(part, CARD.options(), "cpu") for part in problem.parts]
    assert whole.seconds == pytest.approx(sum(part.seconds for part in parts))
    assert whole.host_bytes >= max(part.host_bytes for part in parts)


@pytest.mark.gpu
@pytest.mark.parametrize("size", [20, 250])
@pytest.mark.parametrize("options", [
    {"reg_m": "inf", "output": "potentials"}, {"reg_m": 2.0, "output": "potentials", "metric": "euclidean"},
    {"reg_m": ["inf", 1.0]},
], ids=str)  # fmt: skip
def test_clouds_of_one_size_are_solved_in_one_launch(options: dict[str, Any], size: int) -> None:
    need_gpu()
    rng = np.random.default_rng(size)
    x, y = rng.random((3 * size, 2)), rng.random((3 * (size - 3), 2))
    inputs = {"x": x, "y": y, "sizes": np.array([[size, size - 3]] * 3)}
    chosen = CARD.options.model_validate(options | {"reg": 0.1, "tolerance": 1e-3})
    solution, certificate = solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, Deadline(), "gpu")
    assert solution.method == "batch"
    assert certificate.holds
    assert certificate.facts["largest_gap_rel"] <= 1e-3


@pytest.mark.parametrize(
    "inputs",
    [
        {"cost": np.array([[np.inf, np.inf], [1, 1]]), "cost_xx": 1 - np.eye(2), "cost_yy": 1 - np.eye(2)},
        {"x": np.zeros((1, 2)), "y": np.ones((2, 2)), "a": np.zeros(1), "b": np.array([1.0, 2.0])},
    ],
)
def test_a_divergence_without_a_plan_between_the_sides_is_infeasible(inputs: Inputs) -> None:
    """Its problems have not the same arrays: the first has none."""
    solution, certificate = prove(inputs, reg=1.0, reg_m="inf", divergence=True)
    assert solution.termination == "infeasible"
    assert certificate.holds
    assert certificate.facts["problems"]["objectives"][0] is None
    claims = ["gap_reached", *solution.facts["terminations"][1:]]
    lie = replace(solution, facts={**solution.facts, "terminations": claims})
    chosen = CARD.options.model_validate({"reg": 1.0, "reg_m": "inf", "divergence": True})
    refused = CARD.certify(CARD.build(inputs, chosen), lie, lambda _: None)
    assert not refused.holds
    assert "f is missing" in refused.proved
