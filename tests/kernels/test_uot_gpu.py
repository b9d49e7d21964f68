"""What only the GPU solver has: geometries, clusters, 16-bit kernels, persistent launches, batches, ranks."""

from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline, Solution, Termination
from kernels.problems import UnbalancedTransport
from kernels.uot import TransportOptions
from tests.conftest import need_gpu
from tests.instances import transport

CARD = SOLVERS["uot"]


@pytest.fixture
def gpu() -> None:
    need_gpu()


SIZES = [(1, 9), (9, 1), (3, 5), (300, 517), (1024, 1024), (10240, 10240), (20480, 20480), (40960, 40960), (64, 80000)]


@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("m", "n"), SIZES)
@pytest.mark.parametrize("cluster", [1, 16])
def test_geometry_covers_the_matrix_and_fits_shared_memory(m: int, n: int, storage: str, cluster: int) -> None:
    geometry = pytest.importorskip("kernels.uot.iteration.gpu_geometry")
    if cluster == 1 and n > 10240:
        return  # such rows do not fit one block
    for stores in (False, True) if storage == "float32" else (False,):
        cut = geometry.geometry(m, n, storage, 112 // cluster, cluster, stores=stores)
        size = geometry.STORAGE[storage][1]
        assert cut.ld >= n
        assert cut.width * size % 16 == 0
        assert cut.teams * cut.count * cut.group >= m
        assert cut.pieces * cut.lanes * (16 // size) >= cut.width
        assert cut.threads % cut.lanes == 0
        assert cut.threads % 32 == 0
        assert cut.block_threads <= 1024
        assert cut.shared + geometry.STATIC_BYTES <= geometry.SHARED_BYTES
        assert cut.slots >= cut.count if cut.keeps else cut.slots >= 3 + (cluster > 1)
        assert 1 <= cut.flight <= cut.slots


def test_rows_too_long_for_shared_memory_have_no_geometry() -> None:
    geometry = pytest.importorskip("kernels.uot.iteration.gpu_geometry")
    with pytest.raises(geometry.NoGeometry, match="do not fit"):
        geometry.geometry(1000, 400_000, "float32", 7, 16, stores=False)


def solve(problem: UnbalancedTransport, **options: Any) -> Solution:
    chosen = TransportOptions.model_validate(options)
    return CARD.solve(problem, chosen, Deadline(60), "gpu")


def build(inputs: dict[str, Array], **options: Any) -> UnbalancedTransport:
    problem: UnbalancedTransport = CARD.build(inputs, TransportOptions.model_validate(options))
    return problem


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("m", "n", "options"),
    [
        (300, 517, {}),
        (700, 641, {"reg": 0.01, "reg_m": 10.0}),
        (700, 641, {"reg": 0.001, "reg_m": 1.0}),
        (513, 700, {"reg_m": "inf"}),
        (513, 700, {"reg_m": ("inf", 1.0)}),
        (400, 500, {"reference": "uniform"}),
        (400, 500, {"method": "fused"}),
        (400, 500, {"acceleration": False}),
        (600, 9000, {}),
        (60, 30000, {}),
    ],
)
def test_device_and_host_agree(m: int, n: int, options: dict[str, Any], gpu: None) -> None:
    inputs = transport.matrix(m, n, "float32")
    if options.get("reg_m") == "inf":
        inputs["b"] = inputs["b"] / 1.3
    problem = build(inputs, **options)
    found = solve(problem, **options, storage="float32")
    certificate = CARD.certify(problem, found)
    assert certificate.holds
    assert found.termination is Termination.GAP_REACHED
    wanted = CARD.solve(problem, TransportOptions.model_validate(options), Deadline(60), "cpu")
    apart = abs(found.arrays["plan"] - wanted.arrays["plan"]).sum() / wanted.arrays["plan"].sum()
    assert apart < (0.05 if options.get("reg", 0.05) < 0.05 else 5e-3)  # a gap of 1e-6 allows KL of gap / reg


@pytest.mark.gpu
@pytest.mark.parametrize(("cluster", "stores"), [(1, False), (4, True), (8, True), (16, True)])
def test_every_size_of_cluster_agrees_with_float64(cluster: int, stores: bool, gpu: None) -> None:
    import cupy as cp

    from kernels.uot.dense.gpu_exact import ExactSweeps
    from kernels.uot.iteration import gpu_geometry
    from kernels.uot.iteration import gpu_launch as on
    from kernels.uot.marginals import Marginals

    problem = build(transport.matrix(700, 641, "float32"))
    cut = gpu_geometry.geometry(700, 641, "float32", 96 // cluster, cluster, stores=stores)
    dense = on.Dense(problem, "log", "float32", 3.0, 132, cut, stores)
    dense.begin(problem.reg, cp.zeros(641))
    for _ in range(3):  # a jump ends a launch, and new references start the next
        dense.launch(40, 1e-7)
        if dense.status.get()[on.REASON] == on.JUMPED:
            dense.refer()
    status = dense.status.get()
    assert status[on.REASON] == on.CONVERGED
    f, g = dense.pair(status)
    marginals = Marginals(cp, problem, 3.0)
    exact = ExactSweeps(problem, marginals)
    exact.start(problem.reg)
    wanted, h = exact.sweep(g)
    np.testing.assert_allclose((f - wanted).get(), float((f - wanted).mean()), atol=2e-6)
    assert marginals.evaluate(wanted, g, h, problem.reg).relative_gap <= 1e-6


@pytest.mark.gpu
@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_16_bit_kernels_end_in_float64(storage: str, gpu: None) -> None:
    problem = build(transport.matrix(300, 400, "float32"))
    found = solve(problem, storage=storage)
    assert CARD.certify(problem, found).holds
    assert "float64" in found.facts["storage"]


@pytest.mark.gpu
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "inner"])
@pytest.mark.parametrize("d", [1, 3, 7, 40])
def test_points_agree_with_their_matrix(metric: str, d: int, gpu: None) -> None:
    problem = build(transport.cloud(300, 400, d, "float32"), metric=metric)
    found = solve(problem, metric=metric)
    certificate = CARD.certify(problem, found)
    assert certificate.holds
    assert certificate.gap_rel is not None
    assert certificate.gap_rel <= 1e-6
    assert found.facts["storage"].startswith("float32")


@pytest.mark.gpu
@pytest.mark.parametrize("size", [20, 100, 180, 240])
def test_each_problem_of_a_batch_stops_by_itself(size: int, gpu: None) -> None:
    rng = np.random.default_rng(size)
    inputs = {
        "cost": rng.random((5, size, size + 3)),
        "a": rng.random((5, size)) + 0.1,
        "b": rng.random((5, size + 3)) + 0.1,
    }
    problem = build(inputs)
    found = solve(problem)
    assert found.method == "batch"
    certificate = CARD.certify(problem, found)
    assert certificate.holds
    assert certificate.facts["largest_gap_rel"] <= 1e-6


@pytest.mark.gpu
def test_same_bits_twice(gpu: None) -> None:
    problem = build(transport.matrix(700, 641, "float32"))
    first, second = (solve(problem, storage="float32") for _ in range(2))
    np.testing.assert_array_equal(first.arrays["plan"], second.arrays["plan"])


@pytest.mark.gpu
@pytest.mark.parametrize("inputs", [transport.matrix(70, 90, "float32"), transport.cloud(70, 90, 3, "float32")])
def test_what_memory_held_before_does_not_matter(inputs: dict[str, Array], gpu: None) -> None:
    import cupy as cp

    kept = [cp.full(size, cp.nan, cp.float32) for size in (1 << 8, 1 << 10, 1 << 12, 1 << 13, 1 << 14, 1 << 18)]
    del kept  # to the pool, which gives it out again as it is
    problem = build(inputs)
    found = solve(problem, storage="float32")
    assert found.termination is Termination.GAP_REACHED
    assert found.iterations < 60
    assert CARD.certify(problem, found).holds


@pytest.mark.gpu
def test_one_rank_agrees_with_the_whole(gpu: None) -> None:
    from kernels.uot.dense.gpu_ranks import solve_ranks
    from kernels.uot.iteration import gpu_launch as on

    problem = build(transport.matrix(700, 641, "float32"))
    f, g, status = solve_ranks(problem, 200, 1e-6, Deadline(60), 3.0, [0])
    alone = solve(problem, storage="float32")
    assert status[on.REASON] == on.CONVERGED
    np.testing.assert_allclose(g, alone.arrays["g"], atol=2e-3)
    np.testing.assert_allclose(f, alone.arrays["f"], atol=2e-3)


class Launches:
    """Stands for `gpu_launch.Dense` on a machine without a GPU: the gap falls by thirty a sweep, to a floor."""

    def __init__(self, problem: UnbalancedTransport, floor: float) -> None:
        self.problem, self.floor, self.farthest, self.storage = problem, floor, 0.0, "float32"
        self.m, self.n = problem.shape
        self.spread = float(np.ptp(problem.cost)) if problem.cost is not None else 0.0
        self.done, self.lengths, self.status = 0, list[int](), self

    def begin(self, reg: float, g: Array) -> None:
        self.done = 0

    def launch(self, iterations: int, tolerance: float, *, enough: float, mixes: bool) -> None:
        self.lengths.append(iterations)
        self.done += iterations
        self.mixes = mixes

    def get(self) -> Array:
        gap = max(self.floor, 30.0**-self.done)
        return np.array([self.done, gap, 1.0, 1.0 - gap, 0.0, 0.0, 0.0])

    def pair(self, status: Array) -> tuple[Array, Array]:
        return np.zeros(self.m), np.zeros(self.n)


@pytest.mark.parametrize(("floor", "most"), [(5e-6, 16), (8e-4, 48), (5e-3, 70)])
def test_float32_sweeps_end_soon_after_they_find_nothing_more(
    floor: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = pytest.importorskip("kernels.uot.dense.gpu_dense")
    monkeypatch.setattr(dense, "cp", np)
    launches = Launches(build(transport.balanced(200, 300), reg=1.0, reg_m="inf"), floor)
    chosen = TransportOptions.model_validate({"reg": 1.0, "reg_m": "inf", "acceleration": False})
    run = dense._stage(launches, chosen, Deadline(60), dense.Begun([1.0], np.zeros(300), 10_000), True)
    assert run.termination is Termination.CONVERGED
    assert run.iterations == sum(launches.lengths)
    assert run.iterations <= most
    assert not launches.mixes
