import numpy as np
import pytest

from app.warm import DTYPES, variants, warm_one
from kernels import SOLVERS, Csr


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_type_is_compiled(solver: str) -> None:
    found = {
        (value.values if isinstance(value, Csr) else value).dtype
        for inputs in variants(SOLVERS[solver])
        for value in inputs.values()
    }
    assert {np.dtype(dtype) for dtype in DTYPES} <= found


def test_a_solver_warms_up_without_complaint() -> None:
    assert warm_one("lap") == ""
    assert "KeyError" in warm_one("sudoku")
