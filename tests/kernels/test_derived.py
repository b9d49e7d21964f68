"""The size of the costs, worked out once for two builds of one problem: of what is told, only the strengths know."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, deriving
from kernels.problems import cost_scale

CARD = SOLVERS["uot"]
COST = np.random.default_rng(0).random((300, 400))
OPTIONS = CARD.options()


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the size is worked out."""
    times: list[int] = []
    mean = cost_scale._mean

    def counted(*given: Any) -> float:
        times.append(1)
        return mean(*given)

    monkeypatch.setattr(cost_scale, "_mean", counted)
    return times


def test_a_second_build_does_not_look_again(worked_out: list[int]) -> None:
    with deriving() as numbers:
        first = CARD.build({"cost": COST}, OPTIONS)
    assert numbers.found == [first.told["cost_scale"]]
    with deriving(numbers.found) as again:
        second = CARD.build({"cost": COST}, OPTIONS)
    assert (second.reg, second.reg_m, second.told) == (first.reg, first.reg_m, first.told)
    assert again.found == numbers.found
    assert len(worked_out) == 1
    assert CARD.build({"cost": COST}, OPTIONS).reg == first.reg  # outside of the block nobody is told
    assert len(worked_out) == 2


def test_each_of_several_problems_has_its_own(worked_out: list[int]) -> None:
    batch = np.stack([COST, 3 * COST, COST[:, ::-1]])
    with deriving() as numbers:
        first = CARD.build({"cost": batch}, OPTIONS)
    assert len(numbers.found) == len(worked_out) == 3
    with deriving(numbers.found):
        second = CARD.build({"cost": batch}, OPTIONS)
    assert [part.reg for part in second.parts] == [part.reg for part in first.parts]
    assert len(worked_out) == 3


@pytest.mark.parametrize("told", [[], [0.0], [-1.0], [float("nan")], [float("inf")], [1.5]])
def test_what_cannot_be_is_worked_out(told: list[float], worked_out: list[int]) -> None:
    wanted = CARD.build({"cost": COST}, OPTIONS).reg
    with deriving(told):
        assert CARD.build({"cost": COST}, OPTIONS).reg == wanted
    assert len(worked_out) == 2


def test_small_problems_tell_nothing() -> None:
    with deriving() as numbers:
        CARD.build({"cost": COST[:9, :9]}, OPTIONS)
    assert numbers.found == []


def test_a_wrong_number_is_another_strength_that_the_proof_states_and_no_looser_proof() -> None:
    """The certificate is told the strengths, and nothing of how they came about: it holds for the problem it names."""
    with deriving([0.9]):
        wrong = CARD.build({"cost": COST}, OPTIONS)
    plain = CARD.build({"cost": COST}, CARD.options(reg=wrong.reg, reg_m=wrong.reg_m))
    assert wrong.reg == pytest.approx(0.05 * 0.9)
    solution = CARD.solve(wrong, OPTIONS, Deadline(20.0), "cpu")
    of_wrong, of_plain = CARD.certify(wrong, solution), CARD.certify(replace(plain, told=wrong.told), solution)
    assert (of_wrong.bound, of_wrong.objective, of_wrong.holds) == (of_plain.bound, of_plain.objective, True)
    assert solution.facts["cost_scale"] == 0.9
    right = CARD.build({"cost": COST}, OPTIONS)
    assert CARD.certify(right, solution).objective != of_wrong.objective  # an audit, which builds anew, sees it
