"""Frames of points or boxes whose lines may be left: their answer is that to the costs, to the last bit."""

from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernels import (
    SOLVERS,
    Array,
    Certificate,
    Deadline,
    Device,
    InvalidProblem,
    Solution,
    deriving,
    recheck,
    solve_and_prove,
)
from kernels.arriving import glance, together
from kernels.certificates.exact import rounded_points
from kernels.certificates.rejecting import between as own_costs
from kernels.certificates.rejecting import certify, many, pair_loops
from kernels.lap import extended
from kernels.lap.cpu import between, rejecting
from kernels.lap.cpu import solver as cpu
from kernels.lap.cpu.reject_pieces import solve_pieces
from kernels.problems import Rejecting
from kernels.problems.clouds import ROUNDED, PointRejecting
from kernels.problems.points import PointAssignment
from kernels.problems.seen import Seen, note
from tests.fuzz.judge import claim_of

CARD = SOLVERS["lap"]
Frames = list[tuple[Array, Array]]
Answer = tuple[Solution, Certificate]
HARD = np.array(
    [
        [0, 0, 2, 2], [2, 0, 4, 2], [0, 0, 4, 4], [1, 1, 2, 2], [1, 1, 1, 3], [1, 1, 1, 1], [0, 0, 2, 2],
        [-1e100, -1e100, 1e100, 1e100], [0, 0, 1e-200, 1e-200], [0, 0, 5e-324, 5e-324], [-0.0, -0.0, 0.0, 0.0],
        [0.1, 0.1, 0.3, 0.3], [0.1, 0.2, 0.3, 0.7], [1e16, 0, 1e16 + 2, 1],
    ]
)  # fmt: skip
"""Boxes that touch, that hold each other, that are alike, without area, huge, and so small that areas vanish."""


def by_numpy(x: Array, y: Array, metric: str) -> Array:
    """The formulas of kernels/problems/clouds.py, operation by operation."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    if metric != "iou":
        total = np.zeros((len(x), len(y)))
        for k in range(x.shape[1]):
            apart = x[:, k, None] - y[:, k]
            total = total + (abs(apart) if metric == "cityblock" else apart * apart)
        return np.sqrt(total) if metric == "euclidean" else total
    ends = [(np.minimum(x[:, k + 2, None], y[:, k + 2]), np.maximum(x[:, k, None], y[:, k])) for k in (0, 1)]
    sides = [np.maximum(high - low, 0) for high, low in ends]
    areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (x, y)]
    common = sides[0] * sides[1]
    union = (areas[0][:, None] + areas[1]) - common
    return np.asarray(np.where(common > 0, 1 - common / np.where(common > 0, union, 1), 1))


def boxes(rng: np.random.Generator, count: int) -> Array:
    corner = rng.uniform(0, 80, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(10, 30, (count, 2))], axis=1)


def frames(seed: int, sizes: list[tuple[int, int]], metric: str, dtype: Any = np.float64) -> Frames:
    rng = np.random.default_rng(seed)
    made = boxes if metric == "iou" else lambda rng, count: rng.normal(size=(count, 3))
    return [(made(rng, n).astype(dtype), made(rng, m).astype(dtype)) for n, m in sizes]


def as_points(pairs: Frames, d: int = 4) -> dict[str, Array]:
    sizes = np.array([(len(x), len(y)) for x, y in pairs], np.int64).reshape(-1, 2)
    x, y = (np.concatenate([np.zeros((0, d), pairs[0][0].dtype), *(one[side] for one in pairs)]) for side in (0, 1))
    return {"x": x, "y": y, "sizes": sizes}


def as_costs(pairs: Frames, metric: str) -> dict[str, Array]:
    found = [by_numpy(x, y, metric) for x, y in pairs]
    return {
        "cost": np.concatenate([np.zeros(0), *(one.reshape(-1) for one in found)]),
        "sizes": np.array([one.shape for one in found], np.int64).reshape(-1, 2),
    }


def answered(inputs: dict[str, Array], device: Device = "cpu", **options: Any) -> tuple[Any, Answer]:
    chosen = CARD.options(**options)
    problem = CARD.build(inputs, chosen)
    return problem, solve_and_prove(CARD, problem, chosen, Deadline(30), device)


def told(answer: Answer) -> list[Any]:
    solution, certificate = answer
    arrays = {name: (array.dtype, array.tobytes()) for name, array in solution.arrays.items()}
    words = certificate.proved.partition("; costs of the given")[0]
    numbers = [getattr(certificate, one.name) for one in fields(certificate) if one.name != "proved"]
    return [solution.termination, arrays, words, *map(repr, numbers)]


def verified(inputs: dict[str, Array], options: dict[str, Any], answer: Answer) -> None:
    claim = replace(claim_of(*answer), proved=answer[1].proved)
    said = recheck("lap", inputs, options, claim)
    assert [one for one in said if one.holds is not True] == []


ASKED: list[dict[str, Any]] = [{"cost_limit": 0.8}, {"cost_limit": 0.0}, {"cost_limit": 3.0}, {}, {"maximize": True}]
SIZES = [(5, 7), (7, 5), (0, 3), (3, 0), (0, 0), (1, 1), (40, 33), (6, 6)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("metric", ROUNDED)
def test_an_answer_to_points_is_that_to_their_costs(metric: str, dtype: Any, device: Device) -> None:
    pairs = frames(3, SIZES, metric, dtype)
    d = pairs[0][0].shape[1]
    for asked in ASKED:
        options = {**asked, "metric": metric}
        points = as_points(pairs, d)
        problem, found = answered(points, device, **options)
        assert isinstance(problem, PointRejecting)
        assert found[1].holds
        _, expected = answered(as_costs(pairs, metric), device, **asked)
        assert told(found) == told(expected)
        verified(points, options, found)


@pytest.mark.parametrize("sizes", [SIZES, [(0, 0), (0, 3)], [(2, 0)]])
@pytest.mark.parametrize("metric", ROUNDED)
def test_both_sides_may_stand_in_one_array(metric: str, sizes: list[tuple[int, int]]) -> None:
    """The answer is the same, and `allot verify` reads it so, too."""
    d = 4 if metric == "iou" else 3
    apart = as_points([(np.zeros((0, d)), np.zeros((0, d))), *frames(3, sizes, metric)], d)
    both = {"x": np.concatenate([apart["x"], apart["y"]]), "sizes": apart["sizes"]}
    options: dict[str, Any] = {"metric": metric, "cost_limit": 0.8}
    _, expected = answered(apart, **options)
    problem, found = answered(both, **options)
    assert told(found) == told(expected)
    verified(both, options, found)
    assert np.shares_memory(problem.points.x, both["x"]) or not problem.points.x.size
    assert np.shares_memory(problem.points.y, both["x"]) or not problem.points.y.size


@pytest.mark.parametrize("count", [3, 40], ids=["few", "many"])
@pytest.mark.parametrize("metric", ROUNDED)
def test_boxes_that_touch_or_have_no_area(metric: str, count: int) -> None:
    """Few problems are proved one by one, many together."""
    rng = np.random.default_rng(5)
    pairs = [(HARD[rng.permutation(14)[:9]], HARD[rng.permutation(14)[:8]]) for _ in range(count)]
    points, prices = as_points(pairs), {"reject_rows": rng.random(9 * count), "reject_cols": rng.random(8 * count)}
    for more in ({}, prices):
        options: dict[str, Any] = {"metric": metric, **({} if more else {"cost_limit": 0.9})}
        _, found = answered({**points, **more}, **options)
        _, expected = answered({**as_costs(pairs, metric), **more}, **{**options, "metric": "sqeuclidean"})
        assert told(found) == told(expected)
        verified({**points, **more}, options, found)


@pytest.mark.parametrize("metric", ROUNDED)
def test_the_three_ways_to_the_costs_agree_in_every_bit(metric: str) -> None:
    """The solver's, the certificate's and that of `allot verify`; on many coordinates too."""
    rng = np.random.default_rng(7)
    for d in (4,) if metric == "iou" else (1, 2, 7, 8, 9, 40):
        clouds = [HARD, HARD[::-1]]
        if d != 4:
            clouds = [rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4) for n in (30, 70)]
        x, y = (np.concatenate([one, one[:5]]) for one in clouds)
        sizes = np.array([[4, len(y) - 3], [0, 2], [len(x) - 4, 1]])
        problem = CARD.build({"x": x, "y": y, "sizes": sizes}, CARD.options(metric=metric))
        costs = between.written_out(problem).costs
        assert costs.tobytes() == own_costs.with_costs(problem).costs.tobytes()
        slow = rounded_points.matrices(x, y, sizes.tolist(), metric)
        assert costs.tobytes() == np.concatenate([one.reshape(-1) for one in slow]).tobytes()
        pairs = [(x[:4], y[: len(y) - 3]), (x[:0], y[:2]), (x[4:], y[-1:])]
        assert costs.tobytes() == as_costs(pairs, metric)["cost"].tobytes()


@pytest.mark.parametrize("metric", ROUNDED)
def test_one_pair_of_clouds_with_prices(metric: str, device: Device) -> None:
    ((x, y),) = frames(11, [(12, 9)], metric)
    rng = np.random.default_rng(0)
    prices = {"reject_rows": rng.random(12) * 0.7, "reject_cols": rng.random(9) * 0.7}
    for asked, beside in (({"cost_limit": 0.7}, {}), ({}, prices), ({"maximize": True}, prices)):
        options: dict[str, Any] = {**asked, "metric": metric}
        problem, found = answered({"x": x, "y": y, **beside}, device, **options)
        assert problem.form == "one"
        assert found[0].arrays["assignment"].shape == (12,)
        _, expected = answered({"cost": by_numpy(x, y, metric), **beside}, device, **asked)
        assert told(found) == told(expected)
        verified({"x": x, "y": y, **beside}, options, found)
    for x0, y0 in ((x[:0], y), (x, y[:0]), (np.zeros(0), y[:0])):  # an empty list has one dimension
        _, (solution, certificate) = answered({"x": x0, "y": y0}, cost_limit=0.7, metric=metric)
        assert certificate.objective == 0
        assert solution.arrays["assignment"].tolist() == [-1] * len(x0)
    assert isinstance(CARD.build({"x": x, "y": y}, CARD.options(metric=metric)), PointAssignment)


def test_frames_without_a_pair_keep_whole_prices_whole() -> None:
    points = {"x": np.zeros((3, 4)), "y": np.zeros((0, 4)), "sizes": np.array([[3, 0], [0, 0]])}
    more = {"reject_rows": np.array([1, 2, 3])}
    _, found = answered({**points, **more}, metric="iou")
    _, expected = answered({"cost": np.zeros(0), "sizes": points["sizes"], **more})
    assert told(found) == told(expected)
    assert found[1].objective == 6
    assert found[0].arrays["u"].dtype == np.int64
    verified({**points, **more}, {"metric": "iou"}, found)


def test_a_large_problem_is_written_out_in_threads() -> None:
    rng = np.random.default_rng(1)
    x, y = boxes(rng, 700), boxes(rng, 600)
    problem, found = answered({"x": x, "y": y}, metric="iou", cost_limit=0.8)
    assert between.written_out(problem).costs.tobytes() == by_numpy(x, y, "iou").tobytes()
    assert own_costs.with_costs(problem).costs.tobytes() == by_numpy(x, y, "iou").tobytes()
    _, expected = answered({"cost": by_numpy(x, y, "iou")}, cost_limit=0.8)
    assert told(found) == told(expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_loops_are_compiled_for_one_form(dtype: Any) -> None:
    """What a worker has compiled is what jobs need, of whatever type and from wherever their points come."""
    loops: list[Any] = [between.write_rows, solve_pieces, pair_loops.write, pair_loops.prove_pairs]
    for warm_up in (between.warm_up, rejecting.warm_up, own_costs.warm_up, many.warm_up):
        warm_up()
    known = [loop.signatures for loop in loops]
    assert all(known)
    for metric in ROUNDED:
        points = as_points(frames(3, SIZES, metric, dtype), 4 if metric == "iou" else 3)
        mapped = {
            name: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape) for name, array in points.items()
        }
        turned = {**points, "x": np.asfortranarray(points["x"])}
        for inputs in (points, mapped, turned, {"x": points["x"], "y": points["y"], "reject_rows": np.ones(62)}):
            assert answered(inputs, metric=metric)[1][1].holds
    assert [loop.signatures for loop in loops] == known


def test_a_gpu_solves_the_costs_that_are_worked_out() -> None:
    """The longer form, whose solver is here the CPU's."""
    points = as_points(frames(13, SIZES, "iou"))
    options = CARD.options(metric="iou", cost_limit=0.8)
    problem = CARD.build(points, options)
    solution = extended.solve_extended(problem, options, Deadline(), cpu.solve)
    certificate = certify(problem, solution)
    assert certificate.holds
    assert certificate.objective == answered(points, metric="iou", cost_limit=0.8)[1][1].objective
    assert CARD.suits(problem, options) == ("cpu", "gpu")
    assert not CARD.prefers_gpu(problem, options)


@pytest.mark.parametrize("count", [2, 30], ids=["few", "many"])
@pytest.mark.parametrize("metric", ROUNDED)
def test_costs_that_the_solver_got_wrong_are_found_out(
    metric: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is wrong about is no word of an optimum any more; the objective stays true."""
    pairs = frames(17, [(9, 11), (12, 8)] * count, metric)
    points, true = as_points(pairs, pairs[0][0].shape[1]), between.written_out

    def wrong(problem: PointRejecting) -> Rejecting:
        made = true(problem)
        made.costs[:] = made.costs[::-1].copy()
        return made

    _, (_, right) = answered(points, metric=metric)
    monkeypatch.setattr(between, "written_out", wrong)
    monkeypatch.setattr(rejecting, "LARGE", 1)  # so that all costs are written out
    problem = CARD.build(points, CARD.options(metric=metric))
    solution = CARD.solve(problem, CARD.options(metric=metric), Deadline(), "cpu")
    assert solution.termination == "optimal"
    certificate = certify(problem, solution)
    assert certificate.termination == "converged"
    assert certificate.loose
    chosen = solution.arrays["assignment"]
    starts = problem.starts
    sums = Fraction(0)
    for k, (x, y) in enumerate(pairs):
        cost = by_numpy(x, y, metric)
        own = chosen[starts[k, 1] : starts[k + 1, 1]]
        sums += sum(Fraction(cost[i, j]) for i, j in enumerate(own) if j >= 0)
    assert certificate.objective == pytest.approx(float(sums), rel=1e-14)
    assert certificate.bound is not None
    assert right.objective is not None
    assert certificate.bound <= right.objective * (1 + 1e-12) < certificate.objective  # type: ignore[operator]


def test_one_bit_of_a_cost_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An objective that is one ulp beside: the gap says so, and is not 0."""
    x, y = np.array([[0.0, 0, 3, 3]]), np.array([[0.0, 0, 2, 2]])
    true = between.written_out

    def wrong(problem: PointRejecting) -> Rejecting:
        made = true(problem)
        made.costs[:] = np.nextafter(made.costs, 2)
        return made

    right = answered({"x": x, "y": y}, metric="iou", cost_limit=0.8)[1][1]
    monkeypatch.setattr(between, "written_out", wrong)
    monkeypatch.setattr(rejecting, "LARGE", 1)  # so that all costs are written out
    problem = CARD.build({"x": x, "y": y}, CARD.options(metric="iou", cost_limit=0.8))
    solution = CARD.solve(problem, CARD.options(metric="iou", cost_limit=0.8), Deadline(), "cpu")
    found = certify(problem, solution)
    assert found.objective == right.objective == by_numpy(x, y, "iou")[0, 0]
    assert solution.arrays["u"][0] + solution.arrays["v"][0] != found.objective
    assert found.max_violation > 0


def test_a_loose_answer_is_mended_with_the_costs() -> None:
    points = as_points(frames(19, [(6, 5), (4, 7)], "iou"))
    options = CARD.options(metric="iou", cost_limit=0.8)
    problem = CARD.build(points, options)
    solution = CARD.solve(problem, options, Deadline(), "cpu")
    solution.arrays["v"] = np.zeros_like(solution.arrays["v"]) - 0.5
    assert certify(problem, solution).termination == "converged"
    assert CARD.mend is not None
    mended = CARD.mend(problem, options, solution, Deadline(), "cpu")
    assert mended is not None
    assert certify(problem, mended).termination is None


BOXES = np.array([[0.0, 0, 2, 2], [1, 1, 3, 3]])
TWO = {"x": BOXES, "y": BOXES, "sizes": np.array([[1, 1], [1, 1]])}


@pytest.mark.parametrize(
    ("inputs", "options", "field", "message"),
    [
        (TWO, {"metric": "cosine"}, "metric", "is cosine; beside sizes, cost_limit, reject_rows"),
        ({"x": BOXES, "y": BOXES}, {"metric": "inner", "cost_limit": 1.0}, "metric", "one of iou, sqeuclidean"),
        ({**TWO, "sizes": np.array([[1, 1], [0, 1]])}, {}, "x", "has 2 points; expected 1, the sum of sizes[:, 0]"),
        ({**TWO, "sizes": np.array([[1, 1], [1, 2]])}, {}, "y", "has 2 points; expected 3"),
        ({**TWO, "sizes": np.array([[1, -1], [1, 3]])}, {}, "sizes", "gives problem 0 the size [1, -1]"),
        ({**TWO, "sizes": np.array([[2**40, 1], [1, 1]])}, {}, "sizes", "gives problem 0"),
        ({**TWO, "sizes": np.array([1, 1])}, {}, "sizes", "expected integers (count, 2)"),
        ({**TWO, "x": np.array([[0, 0, 1, 1], [0, np.nan, 1, 1]])}, {}, "x", "holds nan in problem 1 at [0, 1]"),
        ({**TWO, "y": np.array([[0, 0, 1, 1], [0, 0, np.inf, 1]])}, {}, "y", "holds inf in problem 1 at [0, 2]"),
        ({**TWO, "y": np.array([[0, 0, 1, 1], [0, 0, np.inf, 1]], np.float32)}, {}, "y", "holds inf in problem 1"),
        ({**TWO, "y": np.array([[0, 0, 1, np.nan]] * 2, np.float32)}, {}, "y", "holds nan in problem 0"),
        ({**TWO, "x": BOXES * 1e100}, {}, "x", "expected finite numbers up to 1e100"),
        ({**TWO, "x": -BOXES}, {"metric": "iou"}, "x", "expected x1 <= x2 and y1 <= y2"),
        ({**TWO, "y": BOXES[:, [0, 3, 2, 1]]}, {"metric": "iou"}, "y", "holds the box [0.0, 2.0, 2.0, 0.0] in"),
        ({"x": BOXES, "y": -BOXES}, {"metric": "iou", "cost_limit": 1.0}, "y", "at [0]; expected x1"),
        ({**TWO, "x": BOXES[:, :3], "y": BOXES[:, :3]}, {"metric": "iou"}, "x", "has 3 coordinates a box"),
        ({**TWO, "x": BOXES[:, :3]}, {}, "y", "has dimension 4 and x 3"),
        ({**TWO, "x": np.array([[2**60, 1, 1, 1]] * 2)}, {}, "x", "beyond 2^53"),
        ({**TWO, "x": BOXES.ravel()}, {}, "x", "expected a 2-dimensional array"),
        ({**TWO, "x": np.array([["a"] * 4] * 2)}, {}, "x", "has dtype"),
        ({"x": BOXES, "sizes": TWO["sizes"]}, {}, "x", "has 2 points and y is left out; expected 4, the sum of all"),
        ({"x": BOXES, "sizes": np.array([[2**31 - 1] * 2] * 4)}, {}, "x", f"expected {8 * (2**31 - 1)}, the sum"),
        ({"x": np.concatenate([BOXES, -BOXES]), "sizes": TWO["sizes"]}, {"metric": "iou"}, "y", "in problem 0 at [0]"),
        ({"x": BOXES}, {"cost_limit": 1.0}, "y", "is missing or sparse"),
        ({"y": BOXES, "sizes": TWO["sizes"]}, {}, "x", "is missing or sparse"),
        ({**TWO, "cost": np.ones(2)}, {}, "cost", "is given beside x and y"),
        ({**TWO, "u0": np.ones(2)}, {}, "u0", "starts an assignment of all lines"),
        (TWO, {"cost_limit": 1.0, "maximize": True}, "cost_limit", "`maximize` is set"),
        ({**TWO, "reject_rows": np.ones(2)}, {"cost_limit": 1.0}, "cost_limit", "beside prices of lines"),
        ({**TWO, "reject_rows": np.ones(3)}, {}, "reject_rows", "expected (2,)"),
        ({**TWO, "reject_rows": np.array([1, np.nan])}, {}, "reject_rows", "holds nan"),
        ({**TWO, "reject_cols": np.array([1, 1e308])}, {}, "reject_cols", "could overflow float64"),
        (TWO, {"cost_limit": 1e308}, "cost_limit", "could overflow float64"),
        (TWO, {"k_best": 3}, "k_best", "belongs to a matrix of costs"),
        (TWO, {"cardinality": 1}, "cardinality", "belongs to a matrix of costs"),
        (TWO, {"method": "tree"}, "method", "takes a matrix of costs"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(inputs: Any, options: Any, field: str, message: str) -> None:
    with pytest.raises(InvalidProblem) as wrong:
        CARD.build(inputs, CARD.options(**options))
    assert wrong.value.field == field
    assert message in wrong.value.message


def test_the_build_works_no_costs_out() -> None:
    """As many boxes as a few megabytes hold have more costs than any machine."""
    many = np.tile(BOXES[:1], (200_000, 1))
    problem = CARD.build({"x": many, "y": many}, CARD.options(metric="iou", cost_limit=0.5))
    assert problem.costs.size == 0
    needs = CARD.estimate(problem, CARD.options(), "cpu")
    assert needs.host_bytes > 16 * 200_000**2
    assert needs.first_seconds > 10
    few = CARD.build(TWO, CARD.options(metric="iou"))
    flat = CARD.build({"cost": np.ones(2), "sizes": TWO["sizes"]}, CARD.options())
    small, known = (CARD.estimate(one, CARD.options(), "cpu").host_bytes for one in (few, flat))
    assert small < 1.01 * known


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2e100, -2e100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_points_that_were_seen_as_they_came_are_refused_the_same(bad: float, dtype: Any) -> None:
    """Who looks at them as they come says nothing of a NaN, and says so of what is too large."""
    good = np.ascontiguousarray(np.tile(BOXES, (4, 1)), dtype)
    sizes, options = np.array([[2, 1], [2, 3]]), CARD.options(metric="iou", cost_limit=0.8)
    for row in (None, 1, 6):
        both = good.copy()
        if row is not None:
            both[row, 2] = np.clip(bad, np.finfo(dtype).min, np.finfo(dtype).max) if np.isfinite(bad) else bad
        note(both, together([glance(both.reshape(-1).view(np.uint8), both.dtype.str, False)]))
        told = []
        for x in (both, both.copy()):
            try:
                told.append(CARD.build({"x": x, "sizes": sizes}, options).points.x.tolist())
            except InvalidProblem as wrong:
                told.append((wrong.field, wrong.message))
        assert told[0] == told[1]
        assert isinstance(told[0], list) == (row is None or (dtype is np.float32 and bad == 2e100))


def test_points_that_were_seen_are_not_read_for_their_range() -> None:
    """A note that is wrong is believed, so that nothing but reading less can make this pass."""
    both = np.tile(BOXES, (4, 1))
    both[1, 2] = 2e100
    note(both, Seen(0.0, 3.0))
    CARD.build({"x": both, "sizes": np.array([[4, 4]])}, CARD.options(metric="iou", cost_limit=0.8))


def test_boxes_that_were_found_good_are_not_looked_at_again() -> None:
    """By who builds the same problem anew, and is told so. The checks of everything else are made again."""
    inputs = {"x": np.tile(BOXES, (4, 1)), "sizes": np.array([[4, 4]])}
    options = CARD.options(cost_limit=0.8, metric="iou")
    with deriving() as numbers:
        CARD.build(inputs, options)
    assert numbers.found == [1.0]
    inputs["x"][1, 2] = -1.0
    with deriving(numbers.found):
        CARD.build(inputs, options)
        with pytest.raises(InvalidProblem, match="the sum of all sizes"):
            CARD.build({**inputs, "sizes": np.array([[4, 5]])}, options)
    for told in ([], [0.0], [2.0], [np.nan]):
        with deriving(told), pytest.raises(InvalidProblem, match=r"problem 0 at \[1\]; expected x1 <= x2"):
            CARD.build(inputs, options)


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_a_limit_is_refused_for_what_is_there(rows: int) -> None:
    """Lines are counted in the longest problem, and a limit that no line has is none, however soon that is known."""
    most = np.finfo(np.float64).max / 32
    sizes = np.array([[rows, 1], [1, rows]])
    points = {"x": np.tile(BOXES[:1], (rows + 1, 1)), "y": np.tile(BOXES[:1], (rows + 1, 1)), "sizes": sizes}
    costs = {"cost": np.zeros(2 * rows), "sizes": sizes}
    note(costs["cost"], Seen(0.0, 0.0))
    for inputs, metric in ((points, "iou"), (costs, "sqeuclidean")):
        CARD.build(inputs, CARD.options(metric=metric, cost_limit=most / (rows + 1) * 0.999))
        with pytest.raises(InvalidProblem, match="could overflow float64"):
            CARD.build(inputs, CARD.options(metric=metric, cost_limit=most / (rows + 1) * 1.001))


@pytest.mark.parametrize("limit_s", [5.0, 1e-6])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_whole_prices_stay_whole_where_there_is_no_pair(count: int, limit_s: float) -> None:
    inputs = {"x": np.zeros((0, 2)), "y": np.ones((count, 2)), "sizes": np.array([[0, 1]] * count)}
    options = SOLVERS["lap"].options(metric="sqeuclidean")
    problem = SOLVERS["lap"].build({**inputs, "reject_cols": np.arange(count)}, options)
    _, certificate = solve_and_prove(SOLVERS["lap"], problem, options, Deadline(limit_s), "cpu")
    assert certificate.holds
    assert certificate.objective == certificate.bound == count * (count - 1) // 2
