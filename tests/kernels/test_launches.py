"""Launches pass what their kernels declare: a missing or unknown name raises here, without a GPU."""

import importlib
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("cupy", reason="cupy is not installed")
import cupy

from kernels import layout
from kernels.auction import AuctionOptions
from kernels.auction import gpu_buffers as auction
from kernels.auction.layout import AUCTION, AUGMENT_ROWS_ARGS, BEST_NETS_ARGS, PATH_FOREST, RUN_AUCTION_ARGS
from kernels.auction.scaling import Arithmetic
from kernels.lap.auto import gpu_forest, gpu_seats
from kernels.lap.auto.gpu_warm import Start
from kernels.lap.auto.layout import (
    BID_SHARED_ARGS,
    BID_WIDE_ARGS,
    GROW_ARGS,
    REDUCE_COLUMNS_ARGS,
    TAKE_SEATS_ARGS,
    TIES,
)
from kernels.lap.batched import gpu_batched
from kernels.lap.batched.layout import SOLVE_EACH_ARGS
from kernels.lap.columns import gpu_dense
from kernels.lap.columns.layout import (
    GATHER_ARGS,
    JOIN_PIECES_ARGS,
    LEAST_OF_COLUMNS_ARGS,
    PRICE_ROWS_ARGS,
    SOFT_MINIMA_OF_COLUMNS_ARGS,
    SOFT_MINIMA_OF_ROWS_ARGS,
)
from kernels.lap.points import gpu_points
from kernels.lap.points.layout import DISTANCES_ARGS, OVERLAPS_ARGS
from kernels.lap.proof import gpu_proof
from kernels.lap.proof.layout import ADD_UP_ARGS, WEIGH_PROBLEMS_ARGS, WEIGH_ROWS_ARGS
from kernels.papers.hungarian import gpu as hungarian
from kernels.papers.hungarian.layout import HUNGARIAN_STEP_ARGS, STEPS
from kernels.papers.map_uot import gpu as map_uot
from kernels.papers.map_uot.layout import FACTORS_ARGS, SCALE_COLUMNS_ARGS, SCALE_ROWS_ARGS
from kernels.qap.exact import gpu_branch, gpu_forms
from kernels.qap.exact.layout import ASCEND_ARGS, TASK
from kernels.qap.memetic import gpu_memetic
from kernels.qap.memetic.layout import EVOLVE_ARGS, JUDGE_ARGS
from kernels.qap.multistart import gpu_multistart
from kernels.qap.multistart.layout import FOUND, PLAN, PROBLEM, SEARCH_ARGS
from kernels.uot.batch import gpu_sweeps
from kernels.uot.dense import gpu_ranks
from kernels.uot.iteration import gpu_launch
from kernels.uot.iteration.layout import (
    ADD_TEAMS_ARGS,
    ITERATE_ARGS,
    REFERENCE_OF_COSTS_ARGS,
    REFERENCE_OF_POINTS_ARGS,
    SOLVE_BATCH_ARGS,
    SWEEP_ONLY,
    WHOLE,
)
from kernels.uot.points.gpu_clouds import PointClouds
from kernels.uot.sparse import gpu_sparse
from kernels.uot.sparse.flow import Lines
from kernels.uot.sparse.layout import SOFT_MAXIMA_ARGS


class OnDevice(np.ndarray):
    """Looks like an array of a device."""

    def get(self, out: Any, blocking: bool) -> None:
        """Nothing is there to copy."""

    @property
    def data(self) -> Any:
        """Where it lies, as CuPy says it."""
        return SimpleNamespace(ptr=self.ctypes.data)


class Launched:
    """Stands for a compiled kernel, and keeps what it was given."""

    def __init__(self) -> None:
        self.given: dict[str, tuple[Any, ...]] = {}

    def kernel(self, path: str, name: str, defines: Any = (), cooperative: bool = True) -> Any:
        def launch(grid: Any, block: Any, arguments: tuple[Any, ...], shared_mem: int = 0) -> None:
            self.given[name] = arguments

        return launch


def on_device(*shape: int, dtype: Any = np.float64) -> Any:
    """Zeros that look like an array of a device."""
    return np.zeros(shape, dtype).view(OnDevice)


def named(given: tuple[Any, ...], declared: layout.Parameter) -> dict[str, Any]:
    """What a launch was given, by the names that the kernel has for it; of an array where it lies."""
    (passed,) = given
    assert passed.dtype.fields is None
    struct = passed.view(declared.dtype)
    return {name: struct[name] for name in declared.names}


def _made_by(name: str) -> Any:
    """What CuPy has under that name, on no device."""
    return lambda *given: getattr(np, name)(*given).view(OnDevice)


class Carved:
    """Stands for buffers of a device."""

    def __init__(self, *parts: Any) -> None:
        self._arrays = {name: on_device(*shape, dtype=dtype) for each in parts for name, (shape, dtype) in each.items()}
        self.at = {name: array.data.ptr for name, array in self._arrays.items()}

    def array(self, name: str) -> Any:
        """One of them."""
        return self._arrays[name]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Launched:
    found = Launched()
    for module in (gpu_proof, gpu_points, gpu_dense, gpu_batched, gpu_forest, gpu_seats, hungarian, gpu_sparse):
        monkeypatch.setattr(module, "kernel", found.kernel)
    for module in (gpu_proof, gpu_batched):
        monkeypatch.setattr(module, "attribute", lambda name: 1 << 17)
    for module in (gpu_forest, gpu_sparse):
        monkeypatch.setattr(module, "attribute", lambda name: 132)
    monkeypatch.setattr(map_uot, "cuda", SimpleNamespace(kernel=found.kernel))
    monkeypatch.setattr(cupy, "empty", lambda shape, dtype: np.empty(shape, dtype).view(OnDevice))
    return found


COST, U, V, ROW_COL = on_device(3, 4), on_device(3), on_device(4), on_device(3, dtype=np.int32)


def test_of_proofs(launched: Launched) -> None:
    gpu_proof.prove(COST, True, U, V, ROW_COL)
    values = named(launched.given["weigh_rows"], WEIGH_ROWS_ARGS)
    arrays = {"cost": COST, "u": U, "v": V, "row_col": ROW_COL}
    assert {name: values[name] for name in arrays} == {name: one.data.ptr for name, one in arrays.items()}
    assert [values[name] for name in ("n_rows", "n_cols", "negate")] == [3, 4, 1]
    assert named(launched.given["add_up"], ADD_UP_ARGS)["n_partial"] == 3
    gpu_proof.row_minima(COST, False, U, V, ROW_COL)
    assert named(launched.given["weigh_rows"], WEIGH_ROWS_ARGS)["negate"] == 0


@pytest.mark.parametrize("sizes", [None, on_device(2, 2, dtype=np.int32)])
def test_of_batches(launched: Launched, sizes: Any) -> None:
    out = {"u": on_device(2, 3), "v": on_device(2, 4), "assignment": on_device(2, 3, dtype=np.int64)}
    batch, place = on_device(2, 3, 4), 0 if sizes is None else sizes.data.ptr
    gpu_proof.prove_batch(batch, sizes, True, out)
    assert named(launched.given["weigh_problems"], WEIGH_PROBLEMS_ARGS)["sizes"] == place
    gpu_batched.launch_solve_each(batch, sizes, 1, 1, True, out, on_device(2, dtype=np.int32))
    values = named(launched.given["solve_each"], SOLVE_EACH_ARGS)
    assert [values[name] for name in ("sizes", "first", "max_rows", "max_cols", "negate")] == [place, 1, 3, 4, 1]


def test_of_costs_of_points(launched: Launched) -> None:
    x, turned, cost = on_device(3, 2), on_device(2, 4), on_device(3, 4)
    gpu_points._launch_distances(x, turned, "cityblock", cost)
    gpu_points._launch_overlaps(x, turned, cost)
    values = named(launched.given["distances"], DISTANCES_ARGS)
    assert [values[name] for name in ("m", "n", "d")] == [3, 4, 2]
    assert named(launched.given["overlaps"], OVERLAPS_ARGS)["cost"] == cost.data.ptr


def test_of_pricing(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_dense, "attribute", lambda name: 2)
    cost, n = on_device(12, 8, dtype=np.float32), 8
    part = gpu_dense.HeldRows(0, 5, cost)
    search = gpu_dense.DeviceSearch([part], True)
    search._launch_price_rows(part, on_device(n), on_device(3, dtype=np.int32), on_device(3), 4)
    values = named(launched.given["price_rows"], PRICE_ROWS_ARGS)
    assert [values[name] for name in ("n", "k", "most", "negate", "cost")] == [8, 3, 4, 1, cost.data.ptr]
    assert values["wide"] == (cost.data.ptr % 16 == 0)
    search._launch_least_of_columns(part, 0)
    values = named(launched.given["least_of_columns"], LEAST_OF_COLUMNS_ARGS)
    assert [values[name] for name in ("n", "held", "piece", "negate")] == [8, 12, 1, 0]
    assert named(launched.given["join_pieces"], JOIN_PIECES_ARGS)["pieces"] == 12
    search._launch_gather(part, on_device(7, dtype=np.int64))
    assert named(launched.given["gather"], GATHER_ARGS)["k"] == 7
    search._launch_soft_minima_of_rows(part, on_device(n), 0.5)
    values = named(launched.given["soft_minima_of_rows"], SOFT_MINIMA_OF_ROWS_ARGS)
    assert [values[name] for name in ("n", "held", "scale")] == [8, 12, gpu_dense.LOG2_E / 0.5]
    search._launch_soft_minima_of_columns(part, on_device(12), 0.5)
    values = named(launched.given["soft_minima_of_columns"], SOFT_MINIMA_OF_COLUMNS_ARGS)
    assert [values[name] for name in ("held", "piece", "negate")] == [12, 1, 1]


def test_of_the_published_transport(launched: Launched) -> None:
    plan = map_uot.Plan.__new__(map_uot.Plan)
    plan.m, plan.n, plan.ld, plan.plan = 3, 4, 4, on_device(3, 4, dtype=np.float32)
    plan.mass_a = plan.row_sum = plan.u = plan.row_factor = on_device(3, dtype=np.float32)
    plan.mass_b = plan.column_sum = plan.v = plan.column_factor = on_device(4, dtype=np.float32)
    plan.iterate((0.5, 1.0), corrected=True)
    values = named(launched.given["factors"], FACTORS_ARGS)
    assert [values[name] for name in ("mass", "count", "power")] == [plan.mass_a.data.ptr, 3, 0.5]
    assert named(launched.given["scale_rows"], SCALE_ROWS_ARGS)["row_factor"] == plan.row_factor.data.ptr
    assert named(launched.given["scale_columns"], SCALE_COLUMNS_ARGS)["column_factor"] == plan.column_factor.data.ptr


@pytest.mark.parametrize(
    ("of", "declared"),
    [(gpu_launch.Dense, REFERENCE_OF_COSTS_ARGS), (PointClouds, REFERENCE_OF_POINTS_ARGS)],
)
def test_of_the_rows_references(launched: Launched, of: type[gpu_launch.Dense], declared: layout.Parameter) -> None:
    dense = of.__new__(of)
    problem = SimpleNamespace(reg_m=(2.0, np.inf), x=np.zeros((3, 2)), reference="product")
    cut = SimpleNamespace(width=8, ld=16, blocks=2)
    dense.__dict__ |= {"m": 3, "n": 4, "reg": 0.5, "problem": problem, "cut": cut, "status": np.zeros(8)}
    dense.__dict__ |= dict.fromkeys(("matrix", "log_a", "values", "potential"), on_device(3))
    dense.row_reference = launched.kernel("", "row_reference")
    dense.refer()
    assert named(launched.given["row_reference"], declared)["power_a"] == np.float32(0.8)


def test_of_the_tree(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    slots = gpu_branch.DeviceSlots()
    slots._arenas = {5: on_device(1, dtype=np.int32), 6: on_device(1, dtype=np.int32)}
    slots.__dict__["_forms"] = {5: (launched.kernel("", "ascend"), gpu_forms.TreeForm("ascend", 64, group=3))}
    monkeypatch.setattr(gpu_branch, "cupyx", mock.Mock())
    monkeypatch.setattr(cupy.cuda, "Event", mock.Mock())
    monkeypatch.setattr(cupy, "empty", lambda shape, dtype: np.empty(shape, dtype).view(OnDevice))
    monkeypatch.setattr(cupy, "asarray", lambda array: array.view(OnDevice))
    slots.launch(5, np.zeros(2, TASK.dtype), 3, 2)
    values = named(launched.given["ascend"], ASCEND_ARGS)
    assert [values[name] for name in ("m", "sweeps", "patience", "sharp", "group")] == [5, 3, 2, 1.0, 3]


@pytest.mark.parametrize(("n", "replicate", "stages"), [(2048, True, [1, 3, 5]), (200, False, [1, 3])])
def test_of_the_forest(
    launched: Launched, monkeypatch: pytest.MonkeyPatch, n: int, replicate: bool, stages: list[int]
) -> None:
    """The whole chain of method `auto`, with either form of its auction."""
    monkeypatch.setattr(gpu_forest, "Carved", Carved)
    monkeypatch.setattr(gpu_forest, "cupyx", SimpleNamespace(zeros_pinned=np.zeros))
    forest = gpu_forest.Forest(n, n, np.float32, gpu_forest.Tuning(replicate=replicate))
    cost, seen = on_device(1, dtype=np.float32), []
    forest.launch(cost, True, mark=lambda: seen.append(launched.given.get("grow")))
    first = named(launched.given["reduce_columns"], REDUCE_COLUMNS_ARGS)
    assert (first["cost"], first["minima"], first["n_words"]) == (cost.data.ptr, 1, forest.n_words)
    auction, declared = ("bid_shared", BID_SHARED_ARGS) if replicate else ("bid_wide", BID_WIDE_ARGS)
    assert named(launched.given[auction], declared)["scale"] == 1
    values = [named(one, GROW_ARGS) for one in {id(one): one for one in filter(None, seen)}.values()]
    assert [one["stage"] for one in values] == stages
    assert all(one["negate"] == 1 for one in values)
    assert [one["share"] > 0 for one in values] == [0 < k < len(stages) - 1 for k in range(len(stages))]


@pytest.mark.parametrize(
    ("n", "both", "changed", "minima"),
    [(2048, True, 8, 2), (2048, True, 9, 1), (2048, True, 129, 2), (2048, False, 9, 2), (2047, True, 9, 2)],
)
def test_of_seats(
    launched: Launched, monkeypatch: pytest.MonkeyPatch, n: int, both: bool, changed: int, minima: int
) -> None:
    """Of many rows, from duals of both sides. Where a few have changed, and not all, the start is a cold one."""
    monkeypatch.setattr(gpu_forest, "Carved", Carved)
    monkeypatch.setattr(gpu_forest, "cupyx", SimpleNamespace(zeros_pinned=np.zeros))
    forest = gpu_forest.Forest(n, n, np.float64)
    forest.u[:changed] = 1e-3
    start = Start(np.arange(float(n)), on_device(n) if both else None)
    forest.launch(on_device(n, n), False, start)
    np.testing.assert_array_equal(forest.array("v_first"), start.v)
    assert named(launched.given["reduce_columns"], REDUCE_COLUMNS_ARGS)["minima"] == minima
    assert ("take_seats" in launched.given) is (both and n >= 2048)
    if "take_seats" in launched.given:
        values = named(launched.given["take_seats"], TAKE_SEATS_ARGS)
        assert (values["own"], values["v"], values["few"]) == (start.own.data.ptr, forest.v.data.ptr, n // 64)
        sizes = [values[b] - values[a] for a, b in pairwise(("columns", "n_columns", "wanted", "claim", "counters"))]
        assert sizes == [4 * n * TIES, 4 * n, 4 * n, 4 * n]


def test_of_a_step_of_the_published_system(launched: Launched) -> None:
    """Its other kernel takes the problem alone."""
    run: Any = SimpleNamespace(source="", defines=(), blocks=2, opt=-1, n_rows=0, problem=on_device(1))
    run.flags = np.zeros(16, np.int32).view(Flags)
    hungarian._drive_from_host(run, None)  # type: ignore[arg-type]
    values = named(launched.given["hungarian_step"], HUNGARIAN_STEP_ARGS)
    assert values == {"problem": run.problem.data.ptr, "step": STEPS.index("COVER_STARS")}


class Flags(np.ndarray):
    """Words of a device that are read one by one."""

    def __getitem__(self, at: Any) -> Any:
        return SimpleNamespace(get=lambda: 0)


def test_of_independent_searches(launched: Launched) -> None:
    searches = gpu_multistart.Searches.__new__(gpu_multistart.Searches)
    zeros = {name: 0 for one in (PROBLEM, FOUND) for name in one.names}
    news = np.zeros((), FOUND.dtype["news"])
    searches.problem, searches.found = PROBLEM.filled(zeros | {"n": 30}), FOUND.filled(zeros | {"news": news[()]})
    form, laid = SimpleNamespace(n=30), SimpleNamespace(streamed=1, threads=64, shared_bytes=0)
    searches.__dict__ |= {"form": form, "layout": laid, "starts": np.zeros((5, 30)), "seed": 0, "round": 3, "grid": 5}
    searches.kernel = launched.kernel("", "search")
    searches.launch(7, (2, 6))
    plan = named(launched.given["search"], SEARCH_ARGS)["plan"]
    assert [plan[name] for name in ("iterations", "tenure_least", "tenure_span", "round")] == [7, 2, 5, 3]
    assert (plan.dtype, plan["given"], plan["tabu"]) == (PLAN.dtype, 0, 1)


def test_of_a_generation(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    population = gpu_memetic.DevicePopulation.__new__(gpu_memetic.DevicePopulation)
    structs = {name: np.zeros((), EVOLVE_ARGS.dtype[name]) for name in EVOLVE_ARGS.names}
    population.__dict__ |= {"_matrices": structs["m"], "_members": structs["all"], "_recipe": structs["recipe"]}
    population.__dict__ |= {"_news": structs["news"], "_epoch": on_device(1), "_random": np.random.default_rng(0)}
    population.__dict__ |= {"generations": 1, "members": 9, "geometry": SimpleNamespace(threads=32), "_shared": 0}
    population._evolve, population._judge = launched.kernel("", "evolve"), launched.kernel("", "judge")
    monkeypatch.setattr(cupy.cuda, "Event", mock.Mock())
    population.generation()
    assert named(launched.given["evolve"], EVOLVE_ARGS)["all"]["parity"] == 1
    values = named(launched.given["judge"], JUDGE_ARGS)
    assert (values["members"], values["all"]["parity"]) == (9, 0)
    assert values["state"] == population._epoch.data.ptr


@pytest.fixture
def dense() -> gpu_launch.Dense:
    """A problem laid out, with what `iterate` is given and no device."""
    made = gpu_launch.Dense.__new__(gpu_launch.Dense)
    problem = SimpleNamespace(reg_m=(2.0, 3.0), reference="product", reg=0.5)
    cut = SimpleNamespace(ld=16, slots=6, flight=3, own_history=True, blocks=2, block_threads=64, shared=0, teams=2)
    made.__dict__ |= {"m": 3, "n": 4, "reg": 0.5, "problem": problem, "cut": cut, "masses": (5.0, 7.0), "spread": 9.0}
    buffers = ("log_a", "log_b", "potential", "values", "matrix", "history", "mixing", "words", "partial", "status")
    made.__dict__ |= {name: on_device(1) for name in buffers}
    return made


def test_of_the_iteration(launched: Launched, dense: gpu_launch.Dense) -> None:
    dense.iterate = launched.kernel("", "iterate")
    dense.launch(11, 1e-6, enough=0.25, every=13, mixes=False)
    values = named(launched.given["iterate"], ITERATE_ARGS)
    numbers = {"eps": 0.5, "rho_a": 2, "rho_b": 3, "mass_a": 5, "mass_b": 7, "mass_reference": 35, "spread": 9}
    numbers |= {"tolerance": 1e-6, "enough": 0.25, "iterations": 11, "every": 13, "mixes": 0, "part": WHOLE}
    numbers |= {"m": 3, "n": 4, "ld": 16, "product": 1, "dimension": 0, "slots": 6, "flight": 3, "own_history": 1}
    assert {name: values[name] for name in numbers} == numbers
    assert values["g"] == dense.values.data.ptr
    assert values["memory"] == dense.mixing.data.ptr


def test_of_the_ranks(launched: Launched, dense: gpu_launch.Dense, monkeypatch: pytest.MonkeyPatch) -> None:
    dense.iterate, dense._defines = launched.kernel("", "iterate"), tuple  # type: ignore[method-assign]
    monkeypatch.setattr(gpu_launch, "Dense", lambda *_: dense)
    monkeypatch.setattr(gpu_ranks, "cuda", SimpleNamespace(kernel=launched.kernel, attribute=lambda name: 132))
    monkeypatch.setattr(gpu_ranks, "replace", lambda problem, **_: problem)
    monkeypatch.setattr(cupy, "zeros", lambda shape, dtype: np.zeros(shape, dtype).view(OnDevice))
    problem: Any = SimpleNamespace(reg_m=(2.0, 3.0), a=np.ones(3), b=np.ones(4), cost=np.ones((3, 4)))
    rank = gpu_ranks.Rank(problem, slice(0, 3), "log", 9.0, None)
    dense.start(rank._arguments(SWEEP_ONLY, 1e-6, 16))
    assert named(launched.given["iterate"], ITERATE_ARGS)["partial"] == rank.team_sums.data.ptr
    sums = {"partial": rank.team_sums.data.ptr, "sums": rank.column_sums.data.ptr}
    assert named(rank.adds, ADD_TEAMS_ARGS) == sums | {"teams": 2, "n": 4, "ld": 16}


def test_of_a_batch_of_transports(launched: Launched) -> None:
    batch = gpu_sweeps.Batch.__new__(gpu_sweeps.Batch)
    problem: Any = SimpleNamespace(reg=0.5, reg_m=(2.0, 3.0), reference="uniform", batch=2)
    batch.problem = problem
    batch.kernel, batch.threads, batch.shared = launched.kernel("", "solve_batch"), 64, 0
    buffers = {name: on_device(1) for name in ("cost", "log_a", "log_b", "items", "potential", "g", "status")}
    for name, one in buffers.items():
        setattr(batch, name, one)
    batch.launch(11, 1e-6, 13)
    places = {name: one.data.ptr for name, one in buffers.items()}
    numbers = {"eps": 0.5, "rho_a": 2.0, "rho_b": 3.0, "tolerance": 1e-6, "iterations": 11, "every": 13, "product": 0}
    assert named(launched.given["solve_batch"], SOLVE_BATCH_ARGS) == places | numbers


@pytest.fixture
def rows_of_ones(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Upload an auction of equal benefits, to no device."""

    for name in ("empty", "zeros", "full", "asarray"):
        monkeypatch.setattr(cupy, name, _made_by(name))
    monkeypatch.setattr(auction, "cuda", SimpleNamespace(kernel=launched.kernel, attribute=lambda name: 132))
    return lambda: auction.upload(
        np.ones((3, 4), np.int32), Arithmetic(5, 1), AuctionOptions.model_validate({}), spread=True
    )


def test_of_the_rounds_of_an_auction(launched: Launched, rows_of_ones: Any) -> None:
    device = rows_of_ones()
    device.run_rounds(limit=7, stop=2, patience=5)
    values = named(launched.given["run_auction"], RUN_AUCTION_ARGS)
    struct = values["a"]
    assert struct.dtype == AUCTION.dtype
    assert (struct["n_rows"], struct["n_cols"], struct["scale"], struct["deterministic"]) == (3, 4, 5, 1)
    assert struct["held"] == device.buffers["held"].data.ptr
    assert struct["indptr"] == struct["epsilons"] == 0
    limits = [values[name] for name in ("limit", "stop", "patience")]
    assert limits == [7, 2, 5]
    assert {one.dtype for one in limits} == {np.dtype(np.int64)}


def test_of_the_paths_of_an_auction(launched: Launched, rows_of_ones: Any) -> None:
    device = rows_of_ones()
    nets = device.best_nets()
    assert named(launched.given["best_nets"], BEST_NETS_ARGS)["nets"] == nets.data.ptr
    auction.forest_of(device).augment(device, 3)
    values = named(launched.given["augment_rows"], AUGMENT_ROWS_ARGS)
    assert (values["f"].dtype, values["most_forests"]) == (PATH_FOREST.dtype, 3)


def test_of_lines_of_entries(launched: Launched) -> None:
    starts, ends, value, out = on_device(10, dtype=np.int64), on_device(5, dtype=np.int32), on_device(3), on_device(9)
    gpu_sparse._launch_soft_maxima(Lines(starts, ends, COST), 2.5, value, out)
    values = named(launched.given["soft_maxima"], SOFT_MAXIMA_ARGS)
    arrays = {"starts": starts, "ends": ends, "cost": COST, "value": value, "out": out}
    assert {name: values[name] for name in arrays} == {name: one.data.ptr for name, one in arrays.items()}
    assert (values["count"], values["scale"]) == (9, 2.5)


def test_every_kernels_arguments_are_tried_here() -> None:
    rooms = Path(layout.__file__).parent
    found = [importlib.import_module("kernels." + ".".join(path.relative_to(rooms).with_suffix("").parts))
             for path in rooms.rglob("*/layout.py")]  # fmt: skip
    declared = {one.name for module in found for one in vars(module).values() if isinstance(one, layout.Parameter)}
    tried = {one.name for one in globals().values() if isinstance(one, layout.Parameter)}
    assert len(declared) > 20
    assert declared == tried


def test_a_field_that_nobody_fills_raises(rows_of_ones: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A null pointer would be read on the device."""
    matching = auction._matching
    kept = lambda *sizes: {name: one for name, one in matching(*sizes).items() if name != "held"}  # noqa: E731
    monkeypatch.setattr(auction, "_matching", kept)
    with pytest.raises(KeyError, match="held"):
        rows_of_ones()
