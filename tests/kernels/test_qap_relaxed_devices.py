"""The semidefinite bound on a device: its steps beside the host's, its products, and what a solve makes of it."""

import numpy as np
import pytest

from kernels import SOLVERS, Deadline, Device
from kernels.certificates.relaxed.bound import proved_bound
from kernels.problems import QuadraticAssignment
from kernels.qap import QapOptions
from kernels.qap.bounds.relaxed.ascent import Ascent
from kernels.qap.bounds.relaxed.cone import ByProducts
from tests.conftest import need_gpu
from tests.kernels.strict_arrays import STRICT
from tests.kernels.test_qap_branch import grid
from tests.kernels.test_qap_relaxed import instance, optimum

DEVICES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]


def loaded(problem: QuadraticAssignment) -> None:
    """What CuPy has not met it compiles, for seconds, as a worker lets it before its first job."""
    need_gpu()
    from kernels.qap.bounds.relaxed import gpu_floor, leaders

    leaders.warm_up()
    gpu_floor.warm_up(problem)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["symmetric", "linear", "forbidden"])
def test_a_solve_raises_its_floor_while_it_searches(kind: str, device: Device) -> None:
    """Named, at a size where `auto` leaves it out: the bound rises, and the certificate has it."""
    problem = instance(np.random.default_rng(5), 11, kind)
    if device == "gpu":
        loaded(problem)
    told: list[int | float | None] = []
    deadline = Deadline(20, on_progress=lambda progress: told.append(progress.bound))
    options = QapOptions(bounds=("gilmore-lawler", "sdp"), rounds=3)
    solution = SOLVERS["qap"].solve(problem, options, deadline, device)
    certificate = SOLVERS["qap"].certify(problem, solution)
    checked = certificate.facts["bounds_checked"]
    assert isinstance(checked, dict)
    others = [value for name, value in checked.items() if name.startswith("gilmore-lawler")]
    assert checked["sdp"] == solution.facts["bounds"]["sdp"] > max(others)
    assert certificate.bound == checked["sdp"]
    bounds = [bound for bound in told if bound is not None]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("device", DEVICES)
def test_floats_of_a_solve_are_bounded_too(device: Device) -> None:
    if device == "gpu":
        loaded(instance(np.random.default_rng(8), 11, "symmetric"))
    rng = np.random.default_rng(8)
    for scale in (1.0, 2.0**-3):
        flow, distance = rng.random((2, 11, 11)) if scale == 1 else rng.integers(0, 9, (2, 11, 11)) * scale
        problem = QuadraticAssignment(flow, distance)
        solution = SOLVERS["qap"].solve(problem, QapOptions(bounds=("sdp",), rounds=2), Deadline(20), device)
        certificate = SOLVERS["qap"].certify(problem, solution)
        assert isinstance(certificate.facts["bounds_checked"], dict)
        assert "sdp" in certificate.facts["bounds_checked"]
        assert "claimed_bound" not in certificate.facts
        assert certificate.bound is not None
        assert certificate.objective is not None
        assert certificate.bound <= certificate.objective


@pytest.mark.gpu
def test_auto_raises_it_on_a_gpu_inside_its_share_of_the_time() -> None:
    flow, distance = np.random.default_rng(3).integers(0, 50, (2, 26, 26))
    problem = QuadraticAssignment(flow + flow.T, distance + distance.T)
    loaded(problem)
    SOLVERS["qap"].solve(problem, QapOptions(), Deadline(2), "gpu")  # the search compiles its kernels for this size
    deadline = Deadline(6)
    solution = SOLVERS["qap"].solve(problem, QapOptions(), deadline, "gpu")
    assert deadline.elapsed_s < 6.5
    certificate = SOLVERS["qap"].certify(problem, solution)
    checked = certificate.facts["bounds_checked"]
    assert isinstance(checked, dict)
    assert checked["sdp"] > max(value for name, value in checked.items() if name != "sdp")
    assert certificate.gap_rel is not None
    assert certificate.gap_rel < 0.1


@pytest.mark.gpu
def test_auto_comes_to_it_soon_where_members_tie() -> None:
    """On a grid few costs differ. The search before the bound once took all of the time there."""
    problem = grid(4, 5, 2)
    loaded(problem)
    SOLVERS["qap"].solve(problem, QapOptions(), Deadline(2), "gpu")
    solution = SOLVERS["qap"].solve(problem, QapOptions(), Deadline(2), "gpu")
    checked = SOLVERS["qap"].certify(problem, solution).facts["bounds_checked"]
    assert isinstance(checked, dict)
    assert checked["sdp"] > max(value for name, value in checked.items() if name != "sdp")


@pytest.mark.gpu
def test_the_steps_of_a_device_are_those_of_the_host() -> None:
    """Step by step, and the bounds that they end with."""
    need_gpu()
    import cupy

    from kernels.qap.bounds.relaxed.gpu_arithmetic import DeviceArithmetic

    problem = instance(np.random.default_rng(4), 9, "symmetric")
    by = DeviceArithmetic()
    there = Ascent(problem, cupy, ByProducts(cupy, 1e-4, by), np.float64, factorise=cupy.linalg.cholesky, arithmetic=by)
    here = Ascent(problem, project=ByProducts(np, 1e-4), dtype=np.float64)
    for _ in range(40):
        there.step()
        here.step()
        assert float(there._next_beta) == pytest.approx(here._next_beta, rel=1e-6)
        assert float(there._project.shift) == pytest.approx(here._project.shift, rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(there._y.get(), here._y, atol=1e-8)
        np.testing.assert_allclose(there._z.get(), here._z, atol=1e-6)
    found, twin = there.measure(), here.measure()
    assert found is not None
    assert twin is not None
    assert found.raw == pytest.approx(twin.raw, rel=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("order", [50, 325, 842, 1700])
def test_signs_by_halves_are_those_of_the_eigenvalues(order: int) -> None:
    need_gpu()
    import cupy

    from kernels.qap.bounds.relaxed.gpu_signs import Signs

    rng = np.random.default_rng(order)
    vectors, _ = np.linalg.qr(rng.standard_normal((order, order)))
    sizes = rng.permutation(np.geomspace(1e-3, 1.0, order)) * rng.choice([-1.0, 1.0], order)
    matrix = (vectors * (1e4 * sizes)) @ vectors.T
    wanted = (vectors * np.sign(sizes)) @ vectors.T
    signs = Signs(order)
    for _ in range(2):  # the second time in memory that holds something
        sign, product = (one.get() for one in signs(cupy.asarray(matrix.astype(np.float32)), 1e-4))
        assert np.linalg.norm(sign - wanted) < 1e-3 * np.linalg.norm(wanted)
        assert np.linalg.norm(product - matrix @ wanted) < 2e-4 * np.linalg.norm(matrix)


@pytest.mark.parametrize("kind", ["symmetric", "forbidden"])
def test_the_same_code_runs_on_arrays_of_a_device(kind: str) -> None:
    """Every function that it calls is one of CuPy's, no host array meets one of the device; the bound is as good."""
    problem = instance(np.random.default_rng(4), 7, kind)
    there = Ascent(problem, xp=STRICT, project=ByProducts(STRICT), dtype=np.float64, factorise=STRICT.linalg.cholesky)
    here = Ascent(problem, dtype=np.float64)
    for _ in range(60):
        there.step()
        here.step()
    found, twin = there.measure(), here.measure()
    assert found is not None
    assert twin is not None
    assert found.raw == pytest.approx(twin.raw, rel=0.03)
    proved = proved_bound(problem, found.evidence)
    assert proved is not None
    assert found.value <= proved <= optimum(problem)
