import numpy as np
import pytest

from kernels import SOLVERS, Csr, Device, solve_each_form
from kernels.warming import DTYPES, variants


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_type_is_compiled(solver: str) -> None:
    found = {
        (value.values if isinstance(value, Csr) else value).dtype
        for inputs in variants(SOLVERS[solver])
        for value in inputs.values()
    }
    assert {np.dtype(dtype) for dtype in DTYPES} <= found


@pytest.mark.parametrize("solver", ["auction", "lap", "uot"])
def test_every_form_is_solved_without_complaint(solver: str, device: Device) -> None:
    solve_each_form(SOLVERS[solver], device)
