"""The certificate of points on a device: its sweep leaves out no pair that matters, and its words are the CPU's."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline
from kernels.certificates.exact import points as exact
from kernels.certificates.metrics import assignment, certify_assignment
from kernels.certificates.metrics.assignment import LEAST, WIDER, Near, Sweep
from kernels.certificates.metrics.coarsely import SLACK, TINIEST, UNIT, Costs
from kernels.certificates.metrics.exactly import DIRECTIONS, LARGE, TOO_SMALL
from kernels.proving import solve_and_prove
from tests.fuzz.families.points import METRICS
from tests.kernels.test_metrics import points
from tests.kernels.test_metrics_loops import cloud

LAP = SOLVERS["lap"]
SHAPES = [(40, 40, 3), (30, 45, 9), (45, 30, 9), (7, 250, 5), (300, 3, 20)]


def by_arrays(costs: Costs, sign: int, price: Array, most: int) -> Callable[[], Near]:
    """What sweep.cu does."""
    relative, off = costs.by_differences()
    with np.errstate(under="ignore"):
        values, error = worked_out(costs, relative, off[:, None])
    nets = sign * values - price
    low, best, widest = (nets - error).min(axis=1), (nets + error).min(axis=1), error.max(axis=1)
    limit = best + WIDER * (np.abs(best) + 2 * widest + LEAST)
    kept = nets - error <= limit[:, None]
    kept[kept.sum(axis=1) > most] = False
    lines, others = np.nonzero(kept)
    return lambda: Near(lines, others, low, widest)


def worked_out(costs: Costs, relative: float, off: Array) -> tuple[Array, Array]:
    """Costs and their errors, from differences."""
    if costs.metric == "iou":
        return shares(costs, relative)
    if costs.metric == "inner":
        return -(costs.x @ costs.y.T), np.broadcast_to(off, costs.shape)
    away = costs.x[:, None] - costs.y
    sums = np.abs(away).sum(axis=2) if costs.metric == "cityblock" else (away * away).sum(axis=2)
    error = SLACK * (relative * sums + off)
    if costs.metric == "euclidean":
        root = np.sqrt(sums)
        return root, SLACK * (error / np.maximum(root, np.sqrt(error)) + 2 * UNIT * root)
    return sums / 2 if costs.metric in DIRECTIONS else sums, error


def shares(costs: Costs, relative: float) -> tuple[Array, Array]:
    a, b = costs.x[:, None], costs.y
    wide, high = (np.minimum(a[..., k + 2], b[:, k + 2]) - np.maximum(a[..., k], b[:, k]) for k in (0, 1))
    both = np.maximum(wide, 0) * np.maximum(high, 0)
    own, other = ((box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1]) for box in (a, b))
    union = own + other - both
    tiny = (wide > 0) & (high > 0) & (both < TOO_SMALL) & (union < LARGE)
    known = (both > 0) & (union >= TINIEST)
    found = 1 - np.where(known, both / np.where(known, union, 1.0), 0.0)
    return np.where(tiny, 1.0, found), np.where(tiny, 1.0, relative)


@pytest.fixture
def sweep(device: str) -> Sweep:
    """The device's, or what is said of it."""
    if device == "cpu":
        return by_arrays
    from kernels.certificates.metrics.gpu_sweep import near_least

    return near_least


def solved(inputs: dict[str, Array], **options: Any) -> tuple[Any, Any, Certificate]:
    given = LAP.options(**options)
    problem = LAP.build(inputs, given)
    return problem, *solve_and_prove(LAP, problem, given, Deadline(60), "cpu")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("maximize", [False, True])
def test_it_says_what_the_cpu_says(sweep: Sweep, metric: str, shape: tuple[int, int, int], maximize: bool) -> None:
    problem, solution, here = solved(points(metric, *shape), metric=metric, maximize=maximize)
    there = certify_assignment(problem, solution, sweep=sweep)
    assert (there.holds, there.termination, there.objective) == (here.holds, here.termination, here.objective)
    assert there.bound == pytest.approx(here.bound, rel=2.0**-50)
    assert there.gap_abs == pytest.approx(here.gap_abs, abs=2.0**-45 * abs(here.objective or 0))


def hard(rng: np.random.Generator, metric: str, count: int, d: int) -> Array:
    if metric != "iou":
        return cloud(rng, count, d)
    corner = rng.integers(0, 4, (count, 2)).astype(float)
    sides = rng.random((count, 2)) * rng.choice([1.0, 2.0**-40], (count, 1))
    return np.asarray(np.concatenate([corner, corner + sides], axis=1) * rng.choice([1.0, 2.0**-500, 1e60]))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("sign", [1, -1])
def test_no_pair_that_attains_the_minimum_is_left_out(sweep: Sweep, metric: str, sign: int) -> None:
    kept = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, 5])
        d = 4 if metric == "iou" else int(rng.integers(2, 20))
        x, y = (hard(rng, metric, count, d) for count in (9, 14))
        y[:2] = x[:2]
        costs = Costs(x, y, metric)
        known = costs.exact(*(index.ravel() for index in np.indices((9, 14)))).high.reshape(9, 14)
        price = rng.choice(known.ravel(), 14) if seed % 2 else rng.normal(size=14)
        found = sweep(costs, sign, price, 256)()
        near = set(zip(found.lines.tolist(), found.others.tolist(), strict=True))
        for i, line in enumerate(least_of(x, y, metric, sign, price)):
            assert {(i, j) for j in line} <= near
        assert (np.diff(found.lines) >= 0).all()
        kept += len(near)
    assert kept < 40 * 9 * 14 * 0.75 or metric == "iou"


def least_of(x: Array, y: Array, metric: str, sign: int, price: Array) -> list[list[int]]:
    """Of each row the columns that attain the minimum of cost less price, by fractions where these say it."""
    costs = Costs(x, y, metric)
    lines = []
    for i in range(len(x)):
        known = costs.exact(np.full(len(y), i), np.arange(len(y)))
        nets = [
            (sign * (Fraction(float(high)) + Fraction(float(low))) - Fraction(float(cut)), Fraction(float(error)))
            for high, low, error, cut in zip(*known, price, strict=True)
        ]
        least = min(net + error for net, error in nets)
        lines.append([j for j, (net, error) in enumerate(nets) if net + error <= least])
    return lines


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner", "cityblock"])
def test_whole_coordinates_leave_no_error(sweep: Sweep, metric: str) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(-3, 4, (2, 50, 6)).astype(float)
    near = sweep(Costs(x, y, metric), 1, np.zeros(50), 256)()
    table, _ = exact.table({"x": x, "y": y}, {"metric": metric})
    least = [min(row) for row in table]
    assert near.low.tolist() == least
    assert not near.widest.any()
    tied = {(i, j) for i, row in enumerate(table) for j, cost in enumerate(row) if cost == least[i]}
    assert set(zip(near.lines.tolist(), near.others.tolist(), strict=True)) == tied


def test_costs_that_are_all_alike_are_left_to_the_sweep(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "MOST", 3)
    monkeypatch.setattr(assignment, "SMALL", 10)
    problem, solution, here = solved({"x": np.zeros((20, 9)) + 0.1, "y": np.ones((20, 9))}, metric="euclidean")
    there = certify_assignment(problem, solution, sweep=sweep)
    assert there.holds
    assert there.bound == pytest.approx(here.bound, rel=1e-12)
    assert there.bound is not None
    assert there.objective is not None
    assert there.bound <= there.objective


def test_some_lines_have_too_many(sweep: Sweep) -> None:
    """A line of ties beside lines without any."""
    x = np.concatenate([np.zeros((1, 4)), np.random.default_rng(0).normal(size=(9, 4))])
    y = np.concatenate([np.eye(4), np.random.default_rng(1).normal(size=(30, 4)) + 2])
    near = sweep(Costs(x, y, "euclidean"), 1, np.zeros(34), 3)()
    assert 0 not in near.lines
    assert set(range(1, 10)) <= set(near.lines.tolist())
    assert near.low[0] == pytest.approx(1.0)


def test_wrong_answers_are_refused(sweep: Sweep) -> None:
    problem, solution, _ = solved(points("euclidean", 12, 12), metric="euclidean")
    solution.arrays["assignment"] = np.zeros_like(solution.arrays["assignment"])
    assert not certify_assignment(problem, solution, sweep=sweep).holds


@pytest.mark.parametrize("metric", ["inner", "cityblock"])
def test_float32_below_the_normal_numbers_are_no_zeros(sweep: Sweep, metric: str) -> None:
    """Halves of 2^-126 and less, which CuPy's kernels flush to 0 in float32."""
    x = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 5.0]], np.float32)
    y = (np.array([[1.0, 3.0], [2.0, 0.0], [5.0, 1.0]]) * 2.0**-140).astype(np.float32)
    problem, solution, here = solved({"x": x, "y": y}, metric=metric)
    there = certify_assignment(problem, solution, sweep=sweep)
    assert (there.objective, there.termination) == (here.objective, here.termination)
    assert there.bound == pytest.approx(here.bound, rel=2.0**-50)


def test_the_kernels_count_with_the_numbers_of_the_host() -> None:
    """A tile that is cut otherwise there would leave pairs out, and a smaller slack would prove what is not so."""
    pytest.importorskip("cupy", reason="cupy is not installed")
    from kernels.certificates.metrics import gpu_sweep
    from kernels.sources import source

    defined = dict(re.findall(r"^#define (\w+) (\(.*\)|\S+)", source(gpu_sweep.SOURCE), re.MULTILINE))
    for name in ("THREADS", "ROWS", "COLUMNS"):
        assert int(defined[name]) == getattr(gpu_sweep, name)
    floats = {"UNIT": UNIT, "TINIEST": TINIEST, "WIDER": WIDER, "LEAST": LEAST, "TOO_SMALL": TOO_SMALL, "LARGE": LARGE}
    assert {name: float.fromhex(defined[name]) for name in floats} == floats
    assert 1 + float.fromhex(defined["SLACK"].strip("()").removeprefix("1 + ")) == SLACK
