"""Transport of sizes that nobody measured: solved by forms that are compiled ahead, and proved."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, shelf, solve_and_prove
from tests.conftest import need_gpu

CARD = SOLVERS["uot"]
SHAPES = [
    *((300, 451), (517, 517), (390, 777), (1013, 901), (1300, 1300), (2100, 1777), (1201, 2333), (2900, 2900)),
    *((3571, 3333), (2500, 4999), (5300, 5711), (7001, 6997), (9001, 4507), (8123, 9973), (11_503, 11_491)),
    *((6011, 14_009), (15_013, 15_017), (23_003, 12_007), (13_001, 24_001)),
]
SOURCES = ("uot/dense/log.cu", "uot/points/points.cu")


@pytest.fixture(scope="module")
def gpu() -> str:
    need_gpu()
    import cupy

    return str(cupy.cuda.Device().compute_capability)


def proved(inputs: dict[str, Any], **options: Any) -> None:
    chosen = CARD.options.model_validate({"reg": 0.05, "reg_m": 1.0, "output": "potentials", **options})
    problem = CARD.build(inputs, chosen)
    _, certificate = solve_and_prove(CARD, problem, chosen, Deadline(60), "gpu")
    assert certificate.holds
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 2e-5  # float32 leaves the largest ones with a little more than the tolerance


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_a_matrix_of_any_size_needs_no_compiler(gpu: str, m: int, n: int) -> None:
    rng = np.random.default_rng([m, n])
    before = set(shelf.used)
    proved({"cost": rng.random((m, n), np.float32), "a": rng.random(m) + 0.1, "b": rng.random(n) + 0.1})
    asked_and_ahead(before, gpu)


@pytest.mark.parametrize("d", [2, 7])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_points_of_any_number_need_no_compiler(gpu: str, m: int, n: int, d: int) -> None:
    rng = np.random.default_rng([m, n, d])
    before = set(shelf.used)
    proved({"x": rng.random((m, d)), "y": rng.random((n, d))})
    asked_and_ahead(before, gpu)


def asked_and_ahead(before: set[shelf.Form], architecture: str) -> None:
    """On a GPU for which there is a list of such forms."""
    if architecture in ("90", "100"):
        new = {form for form in shelf.used - before if form.path in SOURCES}
        assert new <= set(shelf.forms(architecture))
