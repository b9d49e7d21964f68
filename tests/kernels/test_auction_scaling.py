"""Benefits times a power of two take the same steps: the fixed point and the schedule of epsilons move with them."""

import numpy as np
import pytest

from kernels.auction.scaling import epsilons, fixed_point, proves
from kernels.problems.points import Points


@pytest.mark.parametrize("complete", [True, False])
def test_the_fixed_point_moves_with_the_benefits(complete: bool) -> None:
    """Among benefits beside powers of two, where a rounded logarithm falls on the wrong side at some scales."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        benefits = (1 + rng.integers(-3, 4, (2, 3)) * 2.0**-52) * 2.0 ** rng.integers(-8, 9)
        given = fixed_point(benefits, complete)
        for k in range(-380, 381, 19):
            moved = fixed_point(benefits * 2.0**k, complete)
            assert (moved.scale * 2.0**k, moved.span) == (given.scale, given.span)
            assert epsilons(moved, None, 2, 2) == epsilons(given, None, 2, 2)
            assert epsilons(moved, 0.1 * 2.0**k, 2, 2) == epsilons(given, 0.1, 2, 2)
            for epsilon in (0.1, 1e-17):  # above a step of the fixed point, and below
                assert proves(moved, epsilon * 2.0**k, 3) == proves(given, epsilon, 3)
        assert given.scale == 2.0 ** np.round(np.log2(given.scale))


def test_the_fixed_point_leaves_its_room_and_no_more() -> None:
    for largest in (1 - 2.0**-53, 1.0, 1 + 2.0**-52, 1.5, 5e-324, 1e300):
        unit = fixed_point(np.array([[largest, 0.0]]), complete=True)
        room = 2.0**57 / (2 * largest)
        assert unit.scale <= min(room, 2.0**1000) < 2 * unit.scale or room == np.inf


def test_points_too() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0]])
    given = fixed_point(Points(x, x, "cityblock", None), complete=True)
    moved = fixed_point(Points(x * 2.0**30, x * 2.0**30, "cityblock", None), complete=True)
    assert (moved.scale * 2.0**30, moved.span) == (given.scale, given.span)
