"""Anderson acceleration where numbers are next to nothing: no step of it is better than a failed job."""

import numpy as np
import pytest

from kernels.uot.outer import Anderson


@pytest.mark.parametrize("size", [1e-180, 1e-163, 1e-155, 1.0, 1e160])
def test_dependent_differences_of_any_size_end_no_job(size: float) -> None:
    """Next to the least of float64 the ridge is 0, and dependent differences were a singular matrix."""
    anderson = Anderson(np, 3, 3, 1.0)
    differences = size * np.array([[-1.3922781], [-3.34111132], [-18.5251944]]) * np.ones((3, 3))
    with np.errstate(all="ignore"):
        shares = anderson._shares(differences, differences[0], np.ones(3))
    assert shares is None or shares.shape == (3,)
