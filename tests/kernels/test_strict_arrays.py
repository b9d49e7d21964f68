"""The stand-in for CuPy refuses what CuPy refuses."""

import numpy as np
import pytest

from tests.kernels.strict_arrays import StrictArray, StrictModule


def test_the_stand_in_is_strict() -> None:
    module = StrictModule()
    there = module.asarray(np.ones(3))
    assert isinstance(there + 1, StrictArray)
    for wrong in (
        lambda: there + np.ones(3),
        lambda: np.ones(3) + there,
        lambda: np.asarray(there),
        lambda: np.sqrt(there),
    ):
        with pytest.raises(TypeError):
            wrong()
    assert (there + there).get().tolist() == [2.0, 2.0, 2.0]
