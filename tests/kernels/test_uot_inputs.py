"""What transport accepts: bad input and options are named, defaults are filled in, memory is estimated."""

from typing import Any

import numpy as np
import pytest

from kernels import Array, InvalidProblem
from kernels.uot import TransportOptions
from tests.instances import transport
from tests.kernels.test_uot import CARD, run

BAD: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("nan cost", {"cost": np.array([[np.nan, 1.0]])}, {}, "cost"),
    ("-inf cost", {"cost": np.array([[-np.inf, 1.0]])}, {}, "cost"),
    ("empty", {"cost": np.empty((0, 3))}, {}, "cost"),
    ("no cost", {"a": np.ones(3)}, {}, "cost"),
    ("flat cost", {"cost": np.ones(3)}, {}, "cost"),
    ("text", {"cost": np.array([["a", "b"]])}, {}, "cost"),
    ("long a", {"cost": np.ones((2, 3)), "a": np.ones(3)}, {}, "a"),
    ("negative b", {"cost": np.ones((2, 3)), "b": np.array([1.0, -1.0, 1.0])}, {}, "b"),
    ("nan a", {"cost": np.ones((2, 3)), "a": np.array([1.0, np.nan])}, {}, "a"),
    ("inf a", {"cost": np.ones((2, 3)), "a": np.array([1.0, np.inf])}, {}, "a"),
    ("masses differ", {"cost": np.ones((2, 2)), "a": np.ones(2), "b": np.full(2, 2.0)}, {"reg_m": "inf"}, "b"),
    ("a number for points", {"x": np.array(1.0), "y": np.ones((2, 3)), "sizes": np.array([[1, 2]])}, {}, "x"),
    ("few lines", {"x": np.ones((1, 3)), "y": np.ones((2, 3)), "sizes": np.array([[1, 3]], np.uint64)}, {}, "y"),
    ("only x", {"x": np.ones((2, 3))}, {}, "y"),
    ("cost and x", {"cost": np.ones((2, 2)), "x": np.ones((2, 3)), "y": np.ones((2, 3))}, {}, "cost"),
    ("dimensions differ", {"x": np.ones((2, 3)), "y": np.ones((2, 4))}, {}, "y"),
    ("huge dimension", {"x": np.ones((2, 2000)), "y": np.ones((2, 2000))}, {}, "x"),
    ("nan point", {"x": np.full((2, 3), np.nan), "y": np.ones((2, 3))}, {}, "x"),
    ("reg far below cost", {"cost": np.array([[0.0, 1.0]])}, {"reg": 1e-14}, "cost"),
    ("distances overflow", {"x": np.full((2, 2), 1e200), "y": np.ones((2, 2))}, {}, "x"),
    ("plan too large", {"x": np.ones((50_000, 1)), "y": np.ones((50_000, 1))}, {}, "output"),
    ("mass explodes", {"cost": np.array([[-1e4, 0.0]])}, {"reg_m": 1.0}, "cost"),
    ("warm start of wrong length", {"cost": np.ones((2, 3)), "g0": np.ones(2)}, {}, "g0"),
    ("nan warm start", {"cost": np.ones((2, 3)), "g0": np.full(3, np.nan)}, {}, "g0"),
]


@pytest.mark.parametrize(("inputs", "options", "field"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_bad_input_is_named(inputs: dict[str, Array], options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidProblem) as raised:
        CARD.build(inputs, TransportOptions.model_validate(options))
    assert raised.value.field == field
    assert "expected" in raised.value.message


@pytest.mark.parametrize(
    "options",
    [
        {"reg": 0.0},
        {"reg": -1.0},
        {"reg_m": 0.0},
        {"reg_m": [1.0, -1.0]},
        {"reg_m": [1.0]},
        {"reg_m": "infinite"},
        {"tolerance": -1e-3},
        {"iterations": 0},
        {"metric": "chebyshev"},
        {"unknown": 1},
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        TransportOptions.model_validate(options)


@pytest.mark.parametrize(
    ("given", "strengths"),
    [(2, (2, 2)), ("inf", (np.inf, np.inf)), (None, (np.inf, np.inf)), ([1.5, "inf"], (1.5, np.inf)), (np.inf,) * 2],
)
def test_reg_m_spells_infinity(given: Any, strengths: Any) -> None:
    wanted = strengths if isinstance(strengths, tuple) else (strengths, strengths)
    assert TransportOptions.model_validate({"reg_m": given}).strengths == wanted


def test_example_works_when_pasted() -> None:
    inputs = {name: np.array(value) for name, value in CARD.example["inputs"].items()}
    assert run(inputs, **CARD.example["options"])[2].holds


def test_masses_left_out_are_uniform() -> None:
    problem = CARD.build({"cost": np.ones((2, 4))}, TransportOptions())  # type: ignore[call-arg]
    np.testing.assert_array_equal(problem.a, [0.5, 0.5])
    np.testing.assert_array_equal(problem.b, np.full(4, 0.25))


def test_estimate_covers_the_kernel_and_the_plan() -> None:
    options = TransportOptions.model_validate({})
    problem = CARD.build(transport.matrix(100, 200), options)
    assert CARD.estimate(problem, options, "cpu").host_bytes >= 100 * 200 * 8 * 2


def test_a_penalty_beyond_float64_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="at most 1e\\+08, beyond"):
        run({"cost": np.ones((2, 2))}, reg=0.1, reg_m=1e300)


def test_sizes_may_be_unsigned() -> None:
    points = {"x": np.arange(6.0).reshape(3, 2), "y": np.arange(8.0).reshape(4, 2)}
    signed, unsigned = (
        CARD.build({**points, "sizes": np.array([[1, 2], [2, 2]], kind)}, CARD.options(reg=1.0))
        for kind in (np.int64, np.uint64)
    )
    assert [part.x.tolist() for part in unsigned.parts] == [part.x.tolist() for part in signed.parts]
