"""What a build makes of few bytes is told before it is made, by every solver that makes it."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, InvalidProblem, TooMuch, asking, at_most

POINTS = np.random.default_rng(0).random((300, 2))
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "distances within spaces": ("gromov", {"x": POINTS, "y": POINTS[:3]}, {}),
    "costs of features": (
        "gromov",
        {"x": POINTS[:9], "y": POINTS[:9], "x_features": POINTS[:9], "y_features": POINTS[:9]},
        {"alpha": 0.5},
    ),
    "costs of a plan without entropy": ("uot", {"x": POINTS, "y": POINTS}, {"method": "exact"}),
    "costs that no kernel works out": ("uot", {"x": POINTS, "y": POINTS}, {"metric": "cosine"}),
    "costs of a divergence": ("uot", {"x": POINTS, "y": POINTS[:1]}, {"metric": "cosine", "divergence": True}),
    "costs that are drawn for their size": ("uot", {"x": POINTS, "y": POINTS}, {"reg_scale": "median", "reg": 0.1}),
    "costs of a barycenter": ("barycenter", {"x": POINTS, "histograms": np.ones((2, 300))}, {}),
    "costs of clouds": ("barycenter", {"x": np.stack([POINTS] * 3), "support": POINTS[:99]}, {"reg": 0.1}),
    "costs of a coupling of low rank": ("lowrank", {"x": POINTS, "y": POINTS}, {"metric": "cosine"}),
    "costs between three clouds": ("multimarginal", {"x": POINTS, "y": POINTS[:9], "z": POINTS[:7]}, {"reg": 0.1}),
    "a plan of three clouds": (
        "multimarginal",
        {"x": POINTS, "y": POINTS[:9], "z": POINTS[:7]},
        {"reg": 0.1, "output": "plan"},
    ),
    "points of a barycenter": ("barycenter", {"x": np.stack([POINTS] * 3)}, {"support_points": 500}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_made_is_told_first(name: str) -> None:
    solver, inputs, options = CASES[name]
    card = SOLVERS[solver]
    told: list[int] = []
    with asking(told.append):
        card.build(inputs, card.options(**options))
    assert sum(told) > 99
    with asking(at_most(sum(told))):
        card.build(inputs, card.options(**options))
    with asking(at_most(sum(told) - 1)), pytest.raises(TooMuch):
        card.build(inputs, card.options(**options))
    card.build(inputs, card.options(**options))  # nobody asks


def test_many_problems_of_one_entry_are_no_small_thing() -> None:
    """They take time, but hardly memory: more of them count no more."""
    card, told = SOLVERS["uot"], list[int]()
    for count in (2, 40, 4000):
        with asking(told.append):
            card.build({"cost": np.ones((count, 1, 1))}, card.options())
    assert told == [2 << 11, 40 << 11, 1 << 17]


def test_points_that_are_drawn_may_not_be_any_number() -> None:
    card = SOLVERS["barycenter"]
    with pytest.raises(InvalidProblem, match="support_points: of dimension 20000 are 16384"):
        card.build({"x": np.ones((2, 1, 20_000), np.int8)}, card.options(support_points=1 << 14))
