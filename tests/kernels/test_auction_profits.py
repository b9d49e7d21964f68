"""Profits are what prices leave to each row: `allot verify` holds the returned ones against the benefits."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Claim, Csr, Deadline, recheck, solve_and_prove
from tests.fuzz.judge import claim_of

RNG = np.random.default_rng(8)
WHOLE = RNG.integers(0, 1000, (9, 11))
FLOATS = RNG.random((9, 11)) * 10
BARRED = np.where(RNG.random((9, 11)) < 0.4, -np.inf, FLOATS)
BARRED[np.arange(9), np.arange(9)] = 1.0
GRAPH = Csr(np.array([0, 2, 4, 6]), np.array([0, 1, 1, 2, 0, 2]), np.array([7, 4, 6, 3, 5, 8]), (3, 3))
LEFT = {"benefit": RNG.integers(0, 60, (12, 7)), "reject": RNG.integers(0, 50, 12)}
HELD = RNG.random((60, 40))  # stopped in the middle, rows have paid for staying out
Options = dict[str, Any]
CASES: dict[str, tuple[Options, Options, str]] = {
    "integers": ({"benefit": WHOLE}, {}, "optimal"),
    "minimise": ({"benefit": -WHOLE}, {}, "optimal"),
    "floats": ({"benefit": FLOATS}, {}, "optimal"),
    "float32": ({"benefit": FLOATS.astype(np.float32)}, {}, "optimal"),
    "forbidden": ({"benefit": BARRED}, {}, "optimal"),
    "graph": ({"benefit": GRAPH}, {}, "optimal"),
    "rows out": (LEFT, {}, "optimal"),
    "rows out, floats": ({name: value / 7 for name, value in LEFT.items()}, {}, "optimal"),
    "rows out for 0": ({"benefit": LEFT["benefit"] - 30}, {"allow_unassigned": True}, "optimal"),
    "points": ({"x": FLOATS[:, :2], "y": FLOATS.T[:, :2]}, {"metric": "euclidean"}, "optimal"),
    "correlation": ({"x": FLOATS, "y": FLOATS[::-1] ** 2 + 1e6}, {"metric": "correlation"}, "optimal"),
    "neighbours": ({"x": FLOATS[:, :2], "y": FLOATS.T[:, :2]}, {"neighbours": 10}, "optimal"),
    "epsilon": ({"benefit": FLOATS}, {"epsilon": 0.3}, "gap_reached"),
    "epsilon, integers": ({"benefit": WHOLE}, {"epsilon": 7.3}, "gap_reached"),
    "whole epsilon": ({"benefit": WHOLE}, {"epsilon": 20}, "gap_reached"),
    "epsilon, rows out": (LEFT, {"epsilon": 2.5}, "gap_reached"),
    "stopped": ({"benefit": WHOLE}, {"finish": "auction", "iteration_limit": 1}, "iteration_limit"),
    "stopped, floats": ({"benefit": FLOATS}, {"finish": "auction", "iteration_limit": 1}, "iteration_limit"),
    "stopped, points": (
        {"x": FLOATS[:, :2], "y": FLOATS.T[:, :2]},
        {"finish": "auction", "iteration_limit": 3},
        "iteration_limit",
    ),
    "stopped, rows out": (
        {"benefit": HELD, "reject": np.full(60, 0.9)},
        {"epsilon": 0.01, "finish": "auction", "iteration_limit": 4},
        "iteration_limit",
    ),
}


def claimed(name: str) -> Claim:
    """What the solver's own answer claims."""
    inputs, options, word = CASES[name]
    card = SOLVERS["auction"]
    asked = card.options(**options)
    claim = claim_of(*solve_and_prove(card, card.build(inputs, asked), asked, Deadline(60), "cpu"))
    assert claim.termination == word
    return claim


def refuted(name: str, claim: Claim) -> set[str]:
    inputs, options, _ = CASES[name]
    return {one.name for one in recheck("auction", inputs, options, claim) if one.holds is not True}


def others(profits: Array) -> Iterator[Array]:
    """Profits of which one is another number."""
    for i in (0, len(profits) - 1):
        for step in (1, -1) if profits.dtype.kind == "i" else (1e-6, -1e-6, 1e6, -1e6, np.nan, np.inf):
            changed = profits.copy()
            changed[i] += step
            yield changed
    yield profits[:-1]


@pytest.mark.parametrize("name", CASES)
def test_right_profits_hold_and_others_do_not(name: str) -> None:
    claim = claimed(name)
    assert refuted(name, claim) == set()
    for changed in others(claim.arrays["profits"]):
        told = refuted(name, replace(claim, arrays={**claim.arrays, "profits": changed}))
        assert "profits" in told, changed - claim.arrays["profits"] if len(changed) == len(claim.arrays) else "shorter"


@pytest.mark.parametrize("stated", [np.inf, np.nan])
def test_a_violation_without_end_excuses_any_shortfall_and_no_number_none(stated: float) -> None:
    inputs = {"benefit": np.array([[5, 1], [4, 3]])}
    arrays = {"assignment": np.array([0, 1]), "prices": np.zeros(2), "profits": np.array([-7.0, -9.0])}
    claim = Claim("time_limit", 8, 9, 1, 1 / 9, stated, arrays, {})
    said = {one.name: one.holds for one in recheck("auction", inputs, {}, claim)}
    assert said["profits"] is (stated == np.inf)
