import numpy as np
import pytest

from kernels import SOLVERS, Csr, Device, warm_up
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
def test_a_solver_warms_up_without_complaint(solver: str, device: Device) -> None:
    warm_up(SOLVERS[solver], device)
