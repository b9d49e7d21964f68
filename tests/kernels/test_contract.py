"""What every solver owes on every device and every instance family, whatever its method."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Csr, Deadline, Device, Termination
from tests.instances import (
    Case,
    assignment,
    auction,
    barycenter,
    gromov,
    lawler,
    lowrank,
    multimarginal,
    points,
    quadratic,
    sparse_transport,
    transport,
)

CASES: list[Case] = (
    assignment.CASES
    + auction.CASES
    + points.CASES
    + quadratic.CASES
    + transport.CASES
    + gromov.CASES
    + barycenter.CASES
    + lowrank.CASES
    + multimarginal.CASES
    + lawler.CASES
    + sparse_transport.CASES
)


def arrays_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in inputs.items():
        if isinstance(value, Csr):
            flat |= {f"{name}.{part}": getattr(value, part) for part in ("indptr", "indices", "values")}
        else:
            flat[name] = value
    return flat


def skip_without(solver: str, device: Device) -> None:
    if device not in SOLVERS[solver].modules:
        pytest.skip(f"{solver} has no {device} solver")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_certificate_holds_and_input_is_untouched(case: Case, device: Device) -> None:
    skip_without(case.solver, device)
    card = SOLVERS[case.solver]
    inputs = case.inputs()
    before = copy.deepcopy(arrays_of(inputs))
    options = card.options(**case.options)
    problem = card.build(inputs, options)
    solution = card.solve(problem, options, Deadline(60), device)
    certificate = card.certify(problem, solution)
    assert certificate.holds, certificate
    assert certificate.proved
    for name, array in arrays_of(inputs).items():
        np.testing.assert_array_equal(array, before[name], err_msg=f"the solver changed {name}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_time_still_gives_an_answer(case: Case, device: Device) -> None:
    skip_without(case.solver, device)
    card = SOLVERS[case.solver]
    options = card.options(**case.options)
    problem = card.build(case.inputs(), options)
    solution = card.solve(problem, options, Deadline(0.0), device)
    assert solution.termination in set(Termination)
    assert card.certify(problem, solution).holds


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_has_instances(solver: str) -> None:
    assert any(case.solver == solver for case in CASES)
