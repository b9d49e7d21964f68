"""`certificate: none`: the answer is there, and nothing about it is called proved."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Certificate, Deadline, Inputs, Solution, Termination, solve_and_prove
from tests.instances import transport

CARD = SOLVERS["uot"]


def prove(inputs: Inputs, **options: Any) -> tuple[Solution, Certificate]:
    chosen = CARD.options.model_validate(options)
    return solve_and_prove(CARD, CARD.build(inputs, chosen), chosen, Deadline(), "cpu")


@pytest.mark.parametrize("reg_m", [1.0, "inf", (0.5, "inf")])
@pytest.mark.parametrize("output", ["plan", "potentials"])
@pytest.mark.parametrize("reference", ["product", "uniform"])
def test_the_answer_is_that_of_a_job_with_a_certificate(reg_m: Any, output: str, reference: str) -> None:
    inputs = transport.balanced(20, 30)
    options = {"reg": 0.1, "reg_m": reg_m, "output": output, "reference": reference, "tolerance": 1e-7}
    proved, whole = prove(inputs, **options)
    solution, certificate = prove(inputs, certificate="none", **options)
    assert proved.termination is Termination.GAP_REACHED
    assert solution.termination is Termination.CONVERGED
    assert all(np.array_equal(solution.arrays[name], array) for name, array in proved.arrays.items())
    assert certificate.objective == pytest.approx(whole.objective, rel=1e-6)
    assert (certificate.bound, certificate.gap_abs, certificate.gap_rel, certificate.holds) == (None,) * 4
    stated = certificate.stated(solution.termination)
    assert stated["verified"] is False
    assert stated["holds"] is None
    assert stated["max_violation"] is None
    assert solution.timings_ms["certify"] == 0


def test_no_problem_of_a_batch_is_called_proved_either() -> None:
    solution, certificate = prove(transport.batch(3, 20, 30), certificate="none")
    assert solution.termination is Termination.CONVERGED
    assert solution.facts["terminations"] == ["converged"] * 3
    assert sum(solution.facts["objectives"]) == pytest.approx(certificate.objective)


def test_an_end_by_iterations_stays_one() -> None:
    solution, _ = prove(transport.balanced(20, 30), certificate="none", iterations=1, tolerance=1e-9)
    assert solution.termination is Termination.ITERATION_LIMIT


def test_an_unproved_infeasible_is_not_verified() -> None:
    cost = np.array([[0.0, np.inf], [1.0, np.inf]])
    solution, certificate = prove({"cost": cost}, reg_m="inf", certificate="none")
    assert solution.termination is Termination.INFEASIBLE
    assert certificate.objective is None
    assert certificate.stated(solution.termination)["verified"] is False


def test_no_time_is_kept_for_a_certificate() -> None:
    problem = CARD.build(transport.balanced(200, 300), CARD.options())
    needs = {
        kind: CARD.estimate(problem, CARD.options.model_validate({"certificate": kind}), "cpu").certify_seconds
        for kind in ("full", "none")
    }
    assert needs["none"] == 0 < needs["full"]
