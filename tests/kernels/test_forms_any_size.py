"""No job on a GPU waits for NVRTC, whatever its size and kind: the form that its solver takes was compiled ahead.

The solvers' own code chooses; of the device only what it is asked about itself stands in. Sizes are drawn, and none
is one that the list was made for.
"""

import random
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

pytest.importorskip("kernels.cuda", reason="cupy is not installed")

import cupy

from kernels import SOLVERS, Deadline, shelf
from kernels.certificates.gpu import gpu_lines, gpu_sums
from kernels.lap.auto import gpu_forest
from kernels.lap.auto.layout import GROW_BLOCK
from kernels.problems import InvalidProblem, QuadraticAssignment
from kernels.problems.transport import METRICS
from kernels.qap.memetic import gpu_memetic
from kernels.qap.memetic.gpu_geometry import MemeticForm, chosen
from kernels.qap.multistart import gpu_multistart
from kernels.qap.multistart.gpu_geometry import C_TYPES, TILES, defines, lay
from kernels.qap.parts import split
from kernels.shelf import Form
from kernels.uot import TransportOptions, gpu
from kernels.uot.iteration import gpu_launch
from kernels.uot.iteration.gpu_geometry import STORAGE, MatrixSize, NoGeometry
from kernels.uot.points.gpu_clouds import PointClouds
from tests.instances import quadratic as instances
from tests.kernels.asked_forms import OF_BLOCK, OF_PROCESSOR, SHARED_KIB, STRIPS
from tests.kernels.asked_transport import KINDS, Kind

UOT, DTYPES = SOLVERS["uot"], ("float16", "float32", "float64", "int8", "uint16", "int32", "uint32", "int64")
SQUARES = ("sqeuclidean", 2)
USUAL = 60_000
"""Rows and columns up to which every shape has a form: a matrix of so many takes 14 GB in float32."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Form]:
    """What transport on an H100 asks for; it runs eight clusters of 16 blocks, and launches nothing."""
    found: list[Form] = []
    device = SimpleNamespace(compute_capability="90", id=0)
    monkeypatch.setattr(cupy.cuda, "Device", lambda: device)
    monkeypatch.setattr(gpu_launch, "_meet", lambda _, cluster, teams: (cluster, teams) <= (16, 8))
    monkeypatch.setattr(gpu_launch, "_allow", lambda *_: None)
    kernels = SimpleNamespace(kernel=lambda path, _, defines: found.append(Form(path, defines)))
    monkeypatch.setattr(gpu_launch, "cuda", kernels)
    return found


def cut(method: str, m: int, n: int, storage: str, kind: tuple[str, int] = SQUARES, processors: int = 132) -> None:
    """Choose as a solve does; `kind` is the metric and the dimension of points. Raises NoGeometry."""
    made: Any = PointClouds if method == "points" else gpu_launch.Dense
    dense = made.__new__(made)
    points = SimpleNamespace(metric=kind[0], x=np.broadcast_to(np.float32(0), (m, kind[1])))
    dense.__dict__ |= {"m": m, "n": n, "method": method, "storage": storage, "problem": points, "streams": False}
    dense._fit(processors)


def hostile(rng: random.Random, most: float) -> tuple[int, int]:
    """Rows and columns from one to so many, often of one length."""
    m = int(most ** rng.random())
    return m, m if rng.random() < 0.3 else int(most ** rng.random())


@pytest.mark.parametrize("storage", STORAGE)
def test_a_matrix_of_any_size_in_any_storage(storage: str, asked: list[Form]) -> None:
    rng, ahead, fitted = random.Random(f"{storage} 1"), set(shelf.forms("90")), 0
    for method in ("log", "fused") if storage == "float32" else ("fused",):
        for most in [USUAL] * 150 + [1_000_000] * 50:
            m, n = hostile(rng, most)
            try:
                cut(method, m, n, storage)
            except NoGeometry:
                continue
            assert asked[-1] in ahead or (max(m, n) > USUAL and m * n >= gpu_launch.WORTH_COMPILING), (m, n)
            fitted += 1
    assert fitted > 100


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 3, 4, 700])
def test_points_of_any_number_metric_and_dimension(metric: str, d: int, asked: list[Form]) -> None:
    rng, ahead, fitted = random.Random(f"{metric} {d}"), set(shelf.forms("90")), 0
    for most in [USUAL] * 60 + [10_000_000] * 20:
        m, n = hostile(rng, most)
        try:
            cut("points", m, n, "float32", (metric, d))
        except NoGeometry:
            continue
        assert asked[-1] in ahead or (max(m, n) > USUAL and m * n >= gpu_launch.WORTH_COMPILING), (m, n)
        fitted += 1
    assert fitted > 30


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.method}-{kind.storage}-{len(kind.mores)}")
def test_parts_of_a_gpu(kind: Kind, asked: list[Form], monkeypatch: pytest.MonkeyPatch) -> None:
    """That run fewer clusters at once: a team takes more of the rows, and remembers more."""
    rng, ahead, fitted = random.Random(5), set(shelf.forms("90")), 0
    for teams in (1, 2, 4):
        monkeypatch.setattr(gpu_launch, "_meet", lambda _, cluster, most, teams=teams: (cluster, most) <= (16, teams))
        for _ in range(20):
            m, n = hostile(rng, USUAL)
            with suppress(NoGeometry):
                cut(kind.method, m, n, kind.storage, processors=16 * teams)
                assert asked[-1] in ahead or m * n >= gpu_launch.WORTH_COMPILING, (m, n, teams)
                fitted += 1
    assert fitted > 20


def test_of_the_pieces_of_a_thread_only_the_last_lies_outside_of_a_row() -> None:
    """sweep.cuh looks at no other: one that did would be written into the next row."""
    rng, seen = random.Random(8), 0
    for storage, stores, points in (("float32", True, False), ("float16", False, False), ("float32", True, True)):
        for _ in range(40):
            size = MatrixSize(*hostile(rng, USUAL), storage, rng.choice((7, 8)), 16, stores, points)
            vector = 16 // STORAGE[storage][1]
            for _, one in size.cuts():
                assert (one.pieces - 1) * one.lanes * vector < one.width <= one.pieces * one.lanes * vector
                assert one.checks or one.pieces * one.lanes * vector == one.width
                seen += 1
    assert seen > 5000


def told(inputs: dict[str, Any], options: TransportOptions, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str] | None:
    """Method and storage that a job is swept with on a GPU; None for what has no cut of its own."""
    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(gpu, "solve_dense", lambda _, __, ___, method, storage, *____: seen.append((method, storage)))
    monkeypatch.setattr(gpu, "exact", lambda *_: None)
    monkeypatch.setattr(gpu, "_spread_over_devices", lambda _: False)
    monkeypatch.setattr(gpu, "cp", np)
    problem = UOT.build(inputs, options)
    gpu._find(problem, options, Deadline(), 1.0, [1.0])
    return seen[0] if seen else None


@pytest.mark.parametrize("storage", get_args(TransportOptions.model_fields["storage"].annotation))
@pytest.mark.parametrize("method", ["auto", "fused", "log", "points"])
@pytest.mark.parametrize("metric", [None, *get_args(TransportOptions.model_fields["metric"].annotation)])
def test_what_options_ask_for(
    metric: str | None, method: str, storage: str, asked: list[Form], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each option of the card that has a say in it: what comes of it is a kind that is listed."""
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {"method": method, "storage": storage, "reg": 1.0}
    if metric is None:
        inputs = {"cost": rng.random((71, 83))}
    else:
        inputs, given["metric"] = {name: rng.random((k, 2)) for name, k in (("x", 71), ("y", 83))}, metric
    options = TransportOptions.model_validate(given)
    try:
        swept = told(inputs, options, monkeypatch)
    except InvalidProblem:
        return
    if swept is not None:
        cut(swept[0], 71, 83, swept[1], (metric or "", 2))
        assert asked[-1] in set(shelf.forms("90"))


@pytest.mark.parametrize("architecture", SHARED_KIB)
@pytest.mark.parametrize("dtype", C_TYPES)
def test_searches_of_any_number_of_facilities(dtype: str, architecture: str) -> None:
    rng = random.Random(f"{dtype} {architecture}")
    ahead = set(shelf.forms(architecture))
    most, all_of_it = (kib << 10 for kib in SHARED_KIB[architecture])
    device, laid_out = {OF_BLOCK: most, OF_PROCESSOR: all_of_it}, 0
    for _ in range(200):
        form: Any = SimpleNamespace(
            n=int(10 * 204.8 ** rng.random()), dtype=np.dtype(dtype), symmetric=rng.random() < 0.5
        )
        for tile in TILES:
            if laid := lay(form, tile, device):
                laid_out += 1
                wanted = defines(form, laid, rng.random() < 0.5)
                assert Form(gpu_multistart.SOURCE, wanted) in ahead, (form.n, tile)
                (threads,) = (int(one.split("=")[1]) for one in wanted if one.startswith("-DTHREADS="))
                assert threads >= laid.threads * laid.blocks or threads == 1024
    assert laid_out > 200


@pytest.mark.parametrize("architecture", ["80", "90"])
@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize(("entry", "worst"), [("float", 1.22), ("int", 1.5), ("double", 1.5), ("long long", 1.7)])
def test_a_population_of_any_number_of_facilities(entry: str, worst: float, skew: bool, architecture: str) -> None:
    """A size that is compiled ahead, and how much more work a move in it is at most."""
    ahead = shelf.ahead(gpu_memetic.SOURCE, (), architecture)
    for n in range(10, gpu_memetic.LARGEST_N + 1):
        for linear in (False, True):
            form = chosen(MemeticForm(n, entry, skew, linear), ahead)
            assert form.defines in ahead
            assert form.holds(MemeticForm(n, entry, skew, linear))
            assert (form.size / n) ** 2 <= (1.7 if skew else worst)
            assert form.entry == entry or (entry, form.entry, skew) == ("float", "int", True)


def test_a_size_that_is_listed_is_searched_as_it_is() -> None:
    ahead = shelf.ahead(gpu_memetic.SOURCE, (), "90")
    for n, linear, size in ((30, False, 30), (100, False, 100), (29, False, 30), (23, True, 24), (27, True, 28)):
        form = chosen(MemeticForm(n, "float", skew=False, linear=linear), ahead)
        assert (form.size, form.linear) == (size, linear or size > n)
    alone = MemeticForm(37, "float", skew=False, linear=False)
    assert chosen(alone, frozenset()) == alone


@pytest.mark.parametrize("label", ["symmetric", "one-sided", "asymmetric", "large", "huge", "real"])
def test_what_a_quadratic_problem_asks_for(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy.cuda, "Device", lambda: SimpleNamespace(compute_capability="80"))
    flow, distance = {
        "symmetric": (instances.symmetric(23, 40, 1), instances.symmetric(23, 40, 2)),
        "one-sided": (instances.symmetric(61, 40, 1), instances.asymmetric(61, 0, 90, 2)),
        "asymmetric": (instances.asymmetric(37, -9, 40, 1), instances.asymmetric(37, -9, 40, 2)),
        "large": (instances.symmetric(77, 2**11, 1), instances.symmetric(77, 2**10, 2)),
        "huge": (instances.symmetric(95, 2**20, 1), instances.symmetric(95, 2**20, 2)),
        "real": (np.random.default_rng(0).random((41, 41)), np.random.default_rng(1).random((41, 41))),
    }[label]
    matrices = split(QuadraticAssignment(flow, distance))
    kinds = {"symmetric": "float", "one-sided": "float", "large": "int", "huge": "long long", "real": "double"}
    assert matrices.delta == kinds.get(label, "float")
    form = gpu_memetic._ahead(gpu_memetic._exact(matrices))
    assert Form(gpu_memetic.SOURCE, form.defines) in set(shelf.forms("80"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solver", ["lap", "auction"])
def test_entries_of_any_type(solver: str, dtype: str) -> None:
    """They come as one of four types, each of which is listed for every source of the solver."""
    card = SOLVERS[solver]
    name = {"lap": "cost", "auction": "benefit"}[solver]
    problem = card.build({name: np.ones((3, 4), dtype)}, card.options())
    value = problem.weights.dtype.name
    word = gpu_lines.CTYPES[value]
    sources = ("certificates/gpu/assignment.cu", *{
        "lap": ("lap/auto/bid.cu", "lap/auto/start.cu", "lap/auto/forest.cu", "lap/batched/batched.cu"),
        "auction": ("auction/auction.cu", "auction/paths.cu"),
    }[solver])  # fmt: skip
    for architecture in ("80", "90"):
        of = {form.path: form for form in shelf.forms(architecture) if f"={word}" in "".join(form.defines)}
        assert set(sources) <= of.keys()


def test_the_forest_of_any_width() -> None:
    """On GPUs of few multiprocessors too: beyond the widest strips that are listed no block has room for its slice."""
    rng = random.Random(4)
    for _ in range(500):
        width = gpu_forest.slice_width(int(65_536 ** rng.random()), rng.choice((7, 14, 20, 42, 58, 84, 132, 148)))
        strips = next(2**k for k in range(20) if 32 * 2**k >= width)
        folded = GROW_BLOCK // 32 // (2 if strips >= 16 else 1)
        assert strips in STRIPS or width * (40 + 12 * folded) > 227 << 10


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inputs", ["cost", "points"])
def test_transport_of_any_type_is_proved_by_what_is_listed(inputs: str, dtype: str) -> None:
    ones = np.ones((5, 2), dtype)
    problem: Any = UOT.build(
        {"cost": ones} if inputs == "cost" else {"x": ones, "y": ones}, TransportOptions.model_validate({})
    )
    sent = problem.cost if inputs == "cost" else problem.x
    form = Form("certificates/gpu/transport.cu", (
        f"-DCOST={gpu_sums.CTYPES[sent.dtype.name]}", f"-DPOINTS={int(inputs == 'points')}"
    ))  # fmt: skip
    assert form in set(shelf.forms("80"))
