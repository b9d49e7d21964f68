"""Runs a case the way a worker does, and writes down what came back."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels import SOLVERS, Certificate, Deadline, Device, InvalidProblem, Solution, solve_and_prove
from tests.fuzz.case import Case


@dataclass
class Outcome:
    """What a case came to: an answer with its certificate, a refusal of the input, or an exception."""

    certificate: Certificate | None = None
    solution: Solution | None = None
    problem: Any = None
    seconds: float = 0.0
    limit_s: float = 0.0
    turned_away: str = ""
    error: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def _stopped_at(poll: int) -> Callable[[], bool]:
    left = iter(range(poll))
    return lambda: next(left, None) is None


def run(case: Case, device: Device = "cpu", limit_s: float = 0.5) -> Outcome:
    """Build, solve, certify, mend: the real path, under the case's time limit or `limit_s`."""
    card = SOLVERS[case.solver]
    outcome = Outcome(limit_s=limit_s if case.time_limit_s is None else case.time_limit_s)
    begun = time.perf_counter()
    deadline = Deadline(outcome.limit_s, None if case.polls is None else _stopped_at(case.polls))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                options = card.options(**case.options)
                outcome.problem = card.build(case.inputs, options)
                outcome.solution, outcome.certificate = solve_and_prove(
                    card, outcome.problem, options, deadline, device
                )
    except InvalidProblem as error:
        if outcome.problem is None:
            outcome.turned_away = str(error)
        else:
            outcome.error = f"InvalidProblem after the problem was built: {error}"
    except Exception as error:  # whatever it is, the answer is missing
        outcome.error = f"{type(error).__name__}: {error}"[:300]
    outcome.seconds = time.perf_counter() - begun
    return outcome
