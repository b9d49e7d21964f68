"""The form of a job: equal where jobs may be solved in one go, and different where anything of their solve is."""

import math
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Estimate
from workers.jobs.form import SHORT_S, form_of

SHORT = Estimate(1, 1, SHORT_S / 2)
LOOP: dict[str, Any] = {"reg": 0.1, "reg_m": "inf", "output": "potentials"}


def form(inputs: dict[str, Any], solver: str = "uot", queue: Any = "gpu", **options: Any) -> str:
    card = SOLVERS[solver]
    chosen = card.options.model_validate((LOOP if solver == "uot" else {}) | options)
    return form_of(card, card.build(inputs, chosen), chosen, queue, SHORT)


def clouds(sizes: list[tuple[int, int]], seed: int = 0, dtype: Any = np.float64, d: int = 2) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    m, n = (sum(size[side] for size in sizes) for side in (0, 1))
    found = {"x": rng.random((m, d)).astype(dtype), "y": rng.random((n, d)).astype(dtype)}
    return found | {"sizes": np.array(sizes)}


def costs(count: int, m: int, n: int, seed: int = 0, dtype: Any = np.float64) -> Array:
    return np.random.default_rng(seed).random((count, m, n)).astype(dtype)


TWO = [(4, 5), (4, 5)]
APART: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "": (clouds(TWO), {}),
    "more problems": (clouds([*TWO, (4, 5)]), {}),
    "another size": (clouds([(4, 6), (4, 6)]), {}),
    "sizes of their own": (clouds([(4, 5), (5, 4)]), {}),
    "in another order": (clouds([(5, 4), (4, 5)]), {}),
    "another dimension": (clouds(TWO, d=3), {}),
    "float32": (clouds(TWO, dtype=np.float32), {}),
    "another metric": (clouds(TWO), {"metric": "euclidean"}),
    "another reference": (clouds(TWO), {"reference": "uniform"}),
    "another reg": (clouds(TWO), {"reg": 0.2}),
    "a reg for each": (clouds(TWO) | {"regs": np.array([0.1, 0.2])}, {}),
    "the other way round": (clouds(TWO) | {"regs": np.array([0.2, 0.1])}, {}),
    "another reg_m": (clouds(TWO), {"reg_m": 2.0}),
    "a reg_m for each": (clouds(TWO) | {"regs_m": np.array([2.0, math.inf])}, {}),
    "another tolerance": (clouds(TWO), {"tolerance": 1e-3}),
    "a divergence": (clouds(TWO), {"divergence": True}),
    "costs": ({"cost": costs(2, 4, 5)}, {}),
    "costs in float32": ({"cost": costs(2, 4, 5, dtype=np.float32)}, {}),
    "costs with regs": ({"cost": costs(2, 4, 5), "regs": np.array([0.1, 0.2])}, {}),
    "one matrix": ({"cost": costs(1, 4, 5)[0]}, {}),
}


def test_what_differs_has_another_form() -> None:
    forms = {name: form(inputs, **options) for name, (inputs, options) in APART.items()}
    assert all(forms.values())
    for name, one in forms.items():
        assert [other for other, same in forms.items() if same == one] == [name]


@pytest.mark.parametrize("sizes", [TWO, [(3, 3), (7, 2), (7, 2)]])
def test_other_numbers_have_the_same_form(sizes: list[tuple[int, int]]) -> None:
    """Masses too, and what the columns' were multiplied with to fit the rows'."""
    given = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        a, b = (np.concatenate([rng.dirichlet(np.ones(size[side])) for size in sizes]) for side in (0, 1))
        given.append(clouds(sizes, seed) | {"a": a, "b": b * (1 + seed * 1e-9)})
    assert form(given[0]) == form(given[1]) != ""


SAME: dict[str, tuple[str, Any]] = {
    "a small matrix": ("lap", lambda rng: {"cost": rng.integers(0, 50, (8, 8))}),
    "a batch": ("lap", lambda rng: {"cost": rng.random((3, 8, 9))}),
    "points": ("lap", lambda rng: {"x": rng.random((9, 2)), "y": rng.random((9, 2))}),
    "with prices": ("lap", lambda rng: {"cost": rng.random((6, 7)), "reject_rows": rng.random(6)}),
    "benefits": ("auction", lambda rng: {"benefit": rng.integers(0, 90, (6, 6))}),
    "points to sell": ("auction", lambda rng: {"x": rng.random((6, 3)), "y": rng.random((8, 3))}),
    "flows": ("qap", lambda rng: {name: rng.integers(0, 9, (7, 7)) for name in ("flow", "distance")}),
    "costs": ("uot", lambda rng: {"cost": rng.random((5, 6))}),
    "a batch of costs": ("uot", lambda rng: {"cost": rng.random((2, 5, 6)).astype(np.float32)}),
}


@pytest.mark.parametrize("case", SAME)
def test_numbers_alone_make_no_other_form(case: str) -> None:
    solver, make = SAME[case]
    forms = {form(make(np.random.default_rng(seed)), solver=solver, queue="cpu") for seed in range(6)}
    assert len(forms - {""}) == len(forms) == 1


@pytest.mark.parametrize("solver", ["lap", "auction"])
def test_points_of_other_sizes_have_another_form(solver: str) -> None:
    rng = np.random.default_rng(0)
    sizes = [(9, 9, 2), (9, 10, 2), (10, 10, 2), (9, 9, 3)]
    forms = {form({"x": rng.random((m, d)), "y": rng.random((n, d))}, solver=solver) for m, n, d in sizes}
    assert len(forms) == len(sizes)


def test_a_factor_of_rounding_makes_no_other_form() -> None:
    given = [{"cost": costs(1, 4, 5)[0], "a": np.full(4, 0.25), "b": np.full(5, 0.2 * by)} for by in (1, 1 + 1e-9)]
    problems = [SOLVERS["uot"].build(one, SOLVERS["uot"].options.model_validate(LOOP)) for one in given]
    assert len({problem.mass_factor for problem in problems}) == 2
    assert form(given[0]) == form(given[1]) != ""


def test_who_goes_on_from_an_answer_has_no_form() -> None:
    """Also where only a part of the problem does."""
    assert form(clouds(TWO) | {"g0": np.zeros(10)}) == ""
    assert form({"cost": costs(2, 4, 5), "f0": np.zeros((2, 4)), "g0": np.zeros((2, 5))}) == ""


def test_queue_and_solver_are_of_the_form() -> None:
    assert len({form(clouds(TWO), queue=queue) for queue in ("cpu", "gpu")}) == 2
    square = np.arange(9).reshape(3, 3)
    assert form({"cost": square}, solver="lap") != form({"benefit": square}, solver="auction")


def test_who_takes_long_has_no_form() -> None:
    card = SOLVERS["uot"]
    options = card.options.model_validate(LOOP)
    problem = card.build(clouds(TWO), options)
    for needs in (Estimate(1, 1, SHORT_S), Estimate(1, 1, 0.6 * SHORT_S, 0.6 * SHORT_S)):
        assert form_of(card, problem, options, "gpu", needs) == ""


def test_a_training_loops_minibatch_has_a_form() -> None:
    """By its own estimate: 32 problems of 256 x 256, without a certificate, on a GPU."""
    card = SOLVERS["uot"]
    options = card.options.model_validate(LOOP | {"certificate": "none", "tolerance": 1e-3})
    problems = [card.build(clouds([(256, 256)] * 32, seed, np.float32), options) for seed in range(2)]
    forms = {form_of(card, one, options, "gpu", card.estimate(one, options, "gpu")) for one in problems}
    assert len(forms - {""}) == 1
