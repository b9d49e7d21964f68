"""What `allot demo` shows: the right answer stands up to its check, a wrong one does not."""

import json
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, Demonstration, Solver, WrongAnswer
from workers.store.codec import Form, decode

ALL = [(card, one) for card in SOLVERS.values() for one in card.demonstrations()]


def inputs_of(one: Demonstration) -> dict[str, Any]:
    given: dict[str, Any] = {name: np.array(lists) for name, lists in one.inputs.items()}
    if one.data:
        decoded = decode(one.data, Form(filename=one.filename))
        given |= decoded if isinstance(decoded, dict) else {one.name: decoded}
    return given


def test_every_solver_is_shown() -> None:
    assert {card.name for card, _ in ALL} == SOLVERS.keys()


@pytest.mark.parametrize(("card", "one"), ALL, ids=lambda value: getattr(value, "title", ""))
def test_the_check_tells_right_from_wrong(card: Solver, one: Demonstration) -> None:
    options = card.options.model_validate_json(json.dumps(one.options), strict=True)
    problem = card.build(inputs_of(one), options)
    solution = card.solve(problem, options, Deadline(3.0))
    certificate = card.certify(problem, solution)
    answer = {"objective": certificate.objective, "certificate": vars(certificate)}
    one.check(answer, solution.arrays)
    assert certificate.objective is not None
    with pytest.raises(WrongAnswer):
        one.check({**answer, "objective": certificate.objective * 1.01 + 1}, solution.arrays)
