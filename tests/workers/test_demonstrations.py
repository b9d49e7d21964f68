"""What `allot demo` shows: the right answer stands up to its check, a wrong one does not."""

import json

import pytest

from kernels import SOLVERS, Deadline, Demonstration, Solver, WrongAnswer
from workers.runtime.shown import inputs_of

ALL = [(card, one) for card in SOLVERS.values() for one in card.demonstrations()]


def test_every_solver_is_shown() -> None:
    assert {card.name for card, _ in ALL} == SOLVERS.keys()


@pytest.mark.parametrize(("card", "one"), ALL, ids=lambda value: getattr(value, "title", ""))
def test_the_check_tells_right_from_wrong(card: Solver, one: Demonstration) -> None:
    options = card.options.model_validate_json(json.dumps(one.options), strict=True)
    problem = card.build(inputs_of(one), options)
    solution = card.solve(problem, options, Deadline(60.0))
    certificate = card.certify(problem, solution)
    answer = {"objective": certificate.objective, "certificate": vars(certificate)}
    one.check(answer, solution.arrays)
    assert certificate.objective is not None
    with pytest.raises(WrongAnswer):
        one.check({**answer, "objective": certificate.objective * 1.01 + 1}, solution.arrays)
