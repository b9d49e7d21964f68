"""Proofs of points by boxes: what boxes rule out, against whole numbers, on clouds and prices made to mislead them."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from kernels import SOLVERS, Array, Certificate, Deadline, Solution, Termination, recheck
from kernels.certificates import boxed
from kernels.certificates.assignment_bound import usable
from kernels.certificates.metrics import assignment, boxes
from kernels.certificates.metrics.coarsely import Costs
from kernels.problems.arrays import Floats, Indices
from kernels.problems.points import METRICS, PointAssignment
from kernels.solution import unheard
from tests.fuzz.judge import claim_of

LAP = SOLVERS["lap"]


class Drawn(NamedTuple):
    """Points, prices of y, pairs that stand for an answer's, and how small leaves, blocks and lists are."""

    metric: str
    x: Floats
    y: Floats
    price: Floats
    lines: Indices
    others: Indices
    leaf: int
    block: int
    most: int


CLOUDS = (
    "normal", "whole", "twice", "line", "far", "tight and far", "scales", "huge", "tiny", "beside one", "equal",
)  # fmt: skip


def cloud(rng: np.random.Generator, kind: str, count: int, d: int) -> Floats:
    found = rng.normal(size=(count, d))
    if kind == "whole":
        return rng.integers(-2, 3, (count, d)).astype(float)
    if kind == "twice":
        return np.asarray(np.round(found, 2)[rng.integers(0, 1 + count // 2, count)])
    if kind == "line":
        return np.repeat(found[:, :1], d, 1)
    if kind == "far":
        return np.asarray(found + 2.0 ** rng.integers(10, 60))
    if kind == "tight and far":
        return np.asarray(1e8 + rng.integers(0, 3, (count, d)) + 1e-7 * found)
    if kind == "scales":
        return np.ldexp(found, rng.integers(-40, 40, (count, d)))
    if kind == "huge":
        return np.clip(1e100 * found, -1e100, 1e100)
    if kind == "tiny":
        return np.asarray(found * float(rng.choice([5e-324, 1e-310, 1e-160, 1e-155, 1e-150])))
    if kind == "beside one":
        return np.asarray(1.0 + rng.integers(-3, 4, (count, d)) * 2.0**-52)
    return np.asarray(np.ones((count, d)) if kind == "equal" else found)


PRICES = ("none", "a slope", "random", "tight", "tight twice", "steep", "one row's", "large", "no numbers", "shifted")


def prices(rng: np.random.Generator, kind: str, x: Floats, y: Floats, metric: str) -> Floats:
    """Prices that tie, that lean, that say nothing; a few of them an ulp or some beside."""
    away = np.abs(x[:, None] - y)
    cost = away.sum(2) if metric == "cityblock" else (away * away).sum(2)
    cost = np.sqrt(cost) if metric == "euclidean" else cost
    n, size = len(y), float(cost.max())
    price = np.zeros(n)
    if kind == "random":
        price = size * rng.normal(size=n)
    elif kind == "tight":  # each column is the cheapest of some row, or ties with it
        price = (cost - size * rng.integers(0, 3) * rng.random((len(x), 1))).min(axis=0)
    elif kind in ("tight twice", "shifted"):
        u = (cost - cost.mean(axis=0)).min(axis=1)
        price = (cost - u[:, None]).min(axis=0)
        u = (cost - price).min(axis=1)
        price = (cost - u[:, None]).min(axis=0) + (2.0 ** rng.integers(-3, 60) * size if kind == "shifted" else 0.0)
    elif kind == "steep":
        price = size * 10.0 ** rng.integers(-6, 6) * (y @ rng.normal(size=y.shape[1]) / (1e-300 + np.abs(y).max()))
    elif kind == "a slope":  # from nothing at one point, so that much cancels
        lean = min(size, 1e150) * 10.0 ** rng.integers(-3, 9) * rng.normal(size=y.shape[1])
        price = (y - y[rng.integers(n)]) @ lean
    elif kind == "one row's":
        price = cost[rng.integers(len(x))] + 0.0
    elif kind == "large":
        price = rng.choice([1e300, -1e300, 2.0**1000, 1.0, 1e306], n)
    elif kind == "no numbers":
        price = rng.choice([np.nan, np.inf, -np.inf, 0.0, size], n)
    ulps = rng.integers(-2, 3, n) * (rng.random(n) < rng.choice([0.0, 0.1, 0.5]))
    with np.errstate(invalid="ignore", over="ignore"):
        price = price + ulps * np.spacing(np.maximum(np.abs(price), size * (rng.random() < 0.5)))
    return np.asarray(usable(price[None], bool(rng.random() < 0.2))[0])


def drawn(rng: np.random.Generator) -> Drawn:
    metric = METRICS[rng.integers(3)]
    m, n, d = (int(k) for k in (rng.integers(1, 13), rng.integers(1, 15), rng.choice([1, 2, 2, 3, 4, 8])))
    kind = CLOUDS[rng.integers(len(CLOUDS))]
    x, y = cloud(rng, kind, m, d), cloud(rng, kind, n, d)
    if rng.random() < 0.2:
        y = x[rng.integers(0, m, n)]
    price = prices(rng, PRICES[rng.integers(len(PRICES))], x, y, metric)
    pairs = int(rng.choice(np.array([0, min(m, n), rng.integers(0, min(m, n) + 1)])))
    lines, others = rng.permutation(m)[:pairs], rng.permutation(n)[:pairs]
    sizes = (int(rng.integers(1, 5)), int(rng.integers(1, 9)), int(rng.choice([256, 256, 256, 6, 3, 1, 0])))
    return Drawn(metric, x, y, price, lines, others, *sizes)


def bounded(case: Drawn) -> tuple[Array, Array, Array]:
    """`assignment._searched` of a case."""
    costs = Costs(case.x, case.y, case.metric)
    pairs = assignment._Pairs(case.lines, case.others, costs.exact(case.lines, case.others))
    before = boxes.LEAF, boxes.BLOCK, assignment.MOST
    boxes.LEAF, boxes.BLOCK, assignment.MOST = case.leaf, case.block, case.most
    try:
        least, is_left = assignment._searched(costs, case.price, pairs, unheard)
        return least.high, least.low, is_left
    finally:
        boxes.LEAF, boxes.BLOCK, assignment.MOST = before


def whole(*arrays: Any) -> tuple[list[Any], int]:
    """Numbers as integers over one power of two, and its exponent."""
    ratios = [[value.as_integer_ratio() for value in array.ravel().tolist()] for array in arrays]
    shift = max((below.bit_length() - 1 for ratio in ratios for _, below in ratio), default=0)
    found = []
    for array, ratio in zip(arrays, ratios, strict=True):
        flat = [above << (shift - below.bit_length() + 1) for above, below in ratio]
        found.append(np.array(flat, object).reshape(array.shape).tolist() if flat else [])
    return found, shift


def refuted(case: Drawn, high: Array, low: Array, is_left: Array) -> str:
    """Which row's lower end is above a cost less its price, or far below all of them; nothing where each is right.

    All in whole numbers of 2^-shift, or of its square for squares; a root is compared by its square.
    """
    (x, y, price, first, second), shift = whole(case.x, case.y, case.price, high, low)
    rooted, squared = case.metric == "euclidean", case.metric == "sqeuclidean"
    unit = 1 << (shift if squared else 0)
    tiny = Fraction(1 << shift) * unit / (1 << (480 if rooted else 1000))
    for i in np.flatnonzero(~is_left).tolist():
        least = (first[i] + second[i]) * unit
        if not all(np.isfinite([high[i], low[i]])):
            return f"row {i} is no number"
        near = False
        for j, v in enumerate(price):
            steps = [abs(a - b) for a, b in zip(x[i], y[j], strict=True)]
            cost = sum(steps) if case.metric == "cityblock" else sum(step * step for step in steps)
            most = least + v * unit  # to be at most the cost
            if most > 0 and (most * most if rooted else most) > cost:
                return f"row {i} is above column {j}"
            if not near:
                size = abs(v) * unit + abs(least)
                reached = most + Fraction(size, 1 << 80) + tiny
                near = reached >= 0 and (reached * reached if rooted else reached) >= cost
        if not near:
            return f"row {i} is far below all"
    return ""


@pytest.mark.parametrize("seed", range(8))
def test_no_row_is_proved_to_be_dearer_than_it_is(seed: int) -> None:
    """Nor much cheaper: what boxes rule out is never the least."""
    searched = 0
    for k in range(250):
        case = drawn(np.random.default_rng([seed, k]))
        found = bounded(case)
        assert refuted(case, *found) == "", (seed, k)
        searched += int((~found[2]).sum())
    assert searched > 250


def exact_cost(metric: str, x: list[float], y: list[float]) -> Fraction:
    """Of `euclidean` the square."""
    steps = [abs(Fraction(a) - Fraction(b)) for a, b in zip(x, y, strict=True)]
    return sum((step if metric == "cityblock" else step * step for step in steps), Fraction(0))


def is_at_most(bound: Fraction, cost: Fraction, metric: str) -> bool:
    """Whether bound <= cost, whose square is given where it is a distance."""
    return bound <= 0 or (bound * bound if metric == "euclidean" else bound) <= cost


SLOPES = ("zero", "gentle", "steep", "cancelling", "long", "wild")


def slopes(rng: np.random.Generator, kind: str, count: int, d: int) -> Floats:
    found = rng.normal(size=(count, d))
    if kind == "wild":
        return np.asarray(rng.choice(np.array([np.nan, np.inf, -np.inf, 1e308, -1e200, 1e-320, 1.0, 0.0]), (count, d)))
    size = {"zero": 0.0, "gentle": 1e-3, "steep": 1e3, "cancelling": 1e9}.get(kind)
    if size is None:  # of length 1 but for rounding
        return np.asarray(found / np.sqrt((found * found).sum(axis=1, keepdims=True)))
    return np.asarray(found * size)


@pytest.mark.parametrize("metric", METRICS)
def test_planes_lie_above_all_prices(metric: str) -> None:
    """Whatever slopes are asked for; and the slopes that are kept are those that bounds may be built on."""
    from kernels.certificates.metrics import box_loops

    kept = 0
    for seed in range(1200):
        rng = np.random.default_rng([METRICS.index(metric), seed])
        nodes, size, d = (int(k) for k in (rng.choice([1, 2, 4]), rng.integers(1, 6), rng.integers(1, 4)))
        y = cloud(rng, CLOUDS[seed % len(CLOUDS)], nodes * size, d)
        sides, tops = np.zeros((2 * nodes, 4, d)), np.zeros((2 * nodes, 3))
        sides[:, 3] = slopes(rng, SLOPES[rng.integers(len(SLOPES))], 2 * nodes, d)
        if metric != "sqeuclidean" and seed % 4:
            with np.errstate(all="ignore"):
                sides[:, 3] /= np.maximum(1, np.sqrt((sides[:, 3] ** 2).sum(axis=1, keepdims=True)) * (1 + 2.0**-47))
        sides[:, 2] = y[rng.integers(0, len(y), 2 * nodes)] if seed % 3 else rng.normal(size=(2 * nodes, d))
        price = prices(rng, PRICES[rng.integers(len(PRICES))], y[:1], y, metric)
        if seed % 2:  # on the planes, but for rounding
            with np.errstate(all="ignore"):
                own = np.repeat(np.arange(nodes, 2 * nodes), size)
                price = usable((sides[own, 3] * (y - sides[own, 2])).sum(axis=1)[None], False)[0]
        box_loops.cover(nodes, 2 * nodes, nodes, METRICS.index(metric), y, price, sides, tops)
        for node in range(nodes, 2 * nodes):
            slope = [Fraction(value) for value in sides[node, 3].tolist()]
            kept += any(slope)
            middle = [Fraction(value) for value in sides[node, 2].tolist()]
            length = sum((value * value for value in slope), Fraction(0))
            assert metric != "cityblock" or all(abs(value) <= 1 for value in slope)
            rest = Fraction(float(tops[node, 2]) if metric == "euclidean" else 0)
            assert metric != "euclidean" or (0 <= rest <= 1 and length <= (1 - rest) ** 2)
            for j in range((node - nodes) * size, (node - nodes + 1) * size):
                at = [Fraction(value) for value in y[j].tolist()]
                lean = sum((s * (a - b) for s, a, b in zip(slope, at, middle, strict=True)), Fraction(0))
                assert Fraction(float(price[j])) <= Fraction(float(tops[node, 0])) + lean, (seed, node, j)
                assert price[j] <= tops[node, 1]
    assert kept > 200


@pytest.mark.parametrize("metric", METRICS)
def test_a_box_never_promises_more_than_its_columns_cost(metric: str) -> None:
    """For planes that are at hand without an error: so nothing but the bound's own error is allowed for."""
    from kernels.certificates.metrics import box_loops

    close = 0
    for seed in range(3000):
        rng = np.random.default_rng([METRICS.index(metric), seed])
        d = int(rng.integers(1, 4))
        y = cloud(rng, CLOUDS[seed % len(CLOUDS)], int(rng.integers(1, 4)), d)
        x = y[:1] if rng.random() < 0.3 else cloud(rng, CLOUDS[seed % len(CLOUDS)], 1, d)
        steep = slopes(rng, SLOPES[rng.integers(5)], 1, d)[0]
        rest = 0.0
        if metric == "cityblock":
            steep = np.clip(steep, -1, 1)
        elif metric == "euclidean":
            steep = steep / max(1.0, float(np.sqrt((steep * steep).sum()))) * (1 - 2.0**-50)
            rest = max(0.0, 1 - 2.0**-40 - float(np.sqrt((steep * steep).sum())))
        middle = y[0] + rng.choice([0.0, 1.0, 1e6]) * rng.normal(size=d)
        lean = [
            sum((Fraction(s) * (Fraction(a) - Fraction(b)) for s, a, b in zip(*point, strict=True)), Fraction(0))
            for point in ((steep.tolist(), at, middle.tolist()) for at in y.tolist())
        ]
        top = float(rng.choice([0.0, 1.0, -float(lean[0])]))
        above = [Fraction(top) + some for some in lean]
        flat = np.nextafter(float(max(above)), np.inf)
        sides = np.array([[y.min(axis=0), y.max(axis=0), middle, steep]])
        bound = box_loops.least_of(x, 0, sides, np.array([[top, flat, rest]]), 0, METRICS.index(metric))
        assert bound != np.inf
        if not np.isfinite(bound):
            continue
        for at, price in zip(y.tolist(), above, strict=True):
            cost = exact_cost(metric, x[0].tolist(), at)
            assert is_at_most(Fraction(float(bound)) + price, cost, metric), seed
            size = abs(Fraction(float(bound))) + abs(price)
            close += not is_at_most(Fraction(float(bound)) + price + size / 2**30 + Fraction(1, 2**490), cost, metric)
    assert close > 300


@pytest.mark.parametrize("metric", METRICS)
def test_ends_of_pairs_enclose_what_they_cost(metric: str) -> None:
    from kernels.certificates.metrics import box_loops

    for seed in range(1500):
        rng = np.random.default_rng([METRICS.index(metric), seed])
        d, size = (int(k) for k in rng.integers(1, 5, 2))
        kind = CLOUDS[seed % len(CLOUDS)]
        x, y = cloud(rng, kind, 1, d), cloud(rng, kind, size, d)
        price = prices(rng, PRICES[rng.integers(len(PRICES))], x, y, metric)
        low, high = np.zeros(size), np.zeros(size)
        leaf = np.ascontiguousarray(y.T[None])
        box_loops.weigh(x, 0, leaf, price[None], 0, METRICS.index(metric), low, high)
        for t in range(size):
            if not (np.isfinite(low[t]) and np.isfinite(high[t])):
                continue
            v, cost = Fraction(float(price[t])), exact_cost(metric, x[0].tolist(), y[t].tolist())
            assert is_at_most(Fraction(float(low[t])) + v, cost, metric), (seed, t)
            most = Fraction(float(high[t])) + v
            assert most >= 0, (seed, t)
            assert (most * most if metric == "euclidean" else most) >= cost, (seed, t)


def clustered(rng: np.random.Generator, n: int, d: int) -> Floats:
    return np.asarray(rng.random((6, d))[rng.integers(0, 6, n)] + rng.normal(0, 0.03, (n, d)))


PAIRS_OF_CLOUDS: dict[str, Callable[[np.random.Generator, int, int], Floats]] = {
    "uniform": lambda rng, n, d: rng.random((n, d)),
    "clustered": clustered,
    "whole": lambda rng, n, d: rng.integers(0, 5, (n, d)).astype(float),
    "twice": lambda rng, n, d: clustered(rng, n, d)[rng.integers(0, n // 3, n)],
    "far": lambda rng, n, d: 1e9 + clustered(rng, n, d),
    "line": lambda rng, n, d: np.repeat(rng.random((n, 1)), d, 1),
    "float32": lambda rng, n, d: clustered(rng, n, d).astype(np.float32),
}


def solved(x: Array, y: Array, metric: str) -> tuple[PointAssignment, Solution]:
    options = LAP.options(metric=metric)
    problem = LAP.build({"x": x, "y": y}, options)
    assert isinstance(problem, PointAssignment)
    return problem, LAP.solve(problem, options, Deadline(60), "cpu")


def both_ways(monkeypatch: pytest.MonkeyPatch, problem: Any, solution: Solution) -> tuple[Certificate, Certificate]:
    """By boxes, however small the problem is, and by the sweep over all pairs."""
    found = []
    for fewest in (0, 1 << 60):
        monkeypatch.setattr(boxed, "FEWEST", fewest)
        found.append(LAP.certify(problem, solution))
    return found[0], found[1]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", PAIRS_OF_CLOUDS)
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_a_certificate_says_what_the_sweep_says(
    metric: str, kind: str, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Word for word, number for number: rows that have many ties go through the sweep itself."""
    monkeypatch.setattr(boxes, "LEAF", 4)
    rng = np.random.default_rng([d, 5])
    for m, n in ((150, 150), (60, 170), (170, 60)):
        problem, solution = solved(PAIRS_OF_CLOUDS[kind](rng, m, d), PAIRS_OF_CLOUDS[kind](rng, n, d), metric)
        ours, theirs = both_ways(monkeypatch, problem, solution)
        assert ours == theirs
        assert ours.holds
        assert ours.termination is None


@pytest.mark.parametrize("metric", METRICS)
def test_one_pair_that_breaks_the_duals_is_seen(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an ulp and by more: the bound falls by what it must, and the duals are said to be broken."""
    monkeypatch.setattr(boxes, "LEAF", 2)
    rng = np.random.default_rng(METRICS.index(metric))
    for kind in ("uniform", "far", "whole"):
        x, y = (PAIRS_OF_CLOUDS[kind](rng, 24, 2) for _ in range(2))
        problem, solution = solved(x, y, metric)
        for _ in range(12):
            i, j = (int(k) for k in rng.integers(0, 24, 2))
            i = (
                i if rng.random() < 0.5 else int(solution.arrays["assignment"].tolist().index(j))
            )  # no pair but this one
            u, v = solution.arrays["u"], solution.arrays["v"].copy()
            cost = float(problem.written_out().weights[i, j])  # type: ignore[index]
            v[j] = cost - u[i]
            v[j] += np.spacing(abs(cost) + abs(u[i])) * 2.0 ** int(rng.choice([0, 1, 2, 5, 20, 45]))
            broken = replace(solution, arrays={**solution.arrays, "v": v})
            ours, theirs = both_ways(monkeypatch, problem, broken)
            assert ours == theirs
            assert ours.max_violation is not None
            assert ours.max_violation > 0
            claim = claim_of(broken, ours)
            said = recheck("lap", {"x": x, "y": y}, {"metric": metric}, claim)
            assert [one for one in said if one.holds is not True] == []


@pytest.mark.parametrize("metric", METRICS)
def test_wrong_and_unfinished_answers_are_told_alike(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "LEAF", 4)
    rng = np.random.default_rng(1)
    for scale in (1.0, 2.0**-300, 2.0**300):
        x, y = scale * clustered(rng, 90, 2), scale * clustered(rng, 90, 2)
        problem, solution = solved(x, y, metric)
        u, v, pairs = (solution.arrays[name] for name in ("u", "v", "assignment"))
        unpaired = np.where(rng.random(90) < 0.3, -1, pairs)
        for changed in (
            {"v": v * rng.normal(size=90)},
            {"v": np.where(rng.random(90) < 0.1, np.nan, v)},
            {"v": np.full(90, 1e306)},
            {"v": v + 1e200},
            {"v": v / scale * 2.0**700},
            {"u": u + 1.0, "v": np.zeros(90)},
            {"assignment": pairs[rng.permutation(90)]},
            {"assignment": unpaired},
        ):
            other = replace(solution, arrays={**solution.arrays, **changed}, termination=Termination.TIME_LIMIT)
            ours, theirs = both_ways(monkeypatch, problem, other)
            assert ours == theirs
        twice = replace(solution, arrays={**solution.arrays, "assignment": 0 * pairs})
        refused, _ = both_ways(monkeypatch, problem, twice)
        assert not refused.holds


@pytest.mark.parametrize("most", [0, 1, 3, 256])
def test_rows_with_many_ties_are_left_to_the_sweep(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "LEAF", 4)
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 4, (400, 2)).astype(float) for _ in range(2))
    problem, solution = solved(x, y, "sqeuclidean")
    monkeypatch.setattr(assignment, "MOST", most)
    heard: list[float] = []
    swept: list[int] = []
    sweep = assignment._swept

    def counted(costs: Costs, *given: Any) -> assignment.Least:
        swept.append(costs.shape[0])
        return sweep(costs, *given)

    monkeypatch.setattr(assignment, "_swept", counted)
    monkeypatch.setattr(boxed, "FEWEST", 0)
    ours = LAP.certify(problem, solution, heard.append)
    assert bool(swept) == (most < 256)
    assert sum(swept) <= 400
    assert heard == sorted(heard)
    assert heard[-1] == 1
    monkeypatch.setattr(boxed, "FEWEST", 1 << 60)
    assert LAP.certify(problem, solution) == ours


def test_blocks_lists_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    problem, solution = solved(clustered(rng, 500, 3), clustered(rng, 500, 3), "sqeuclidean")
    monkeypatch.setattr(boxed, "FEWEST", 0)
    first = LAP.certify(problem, solution)
    for block, room, threads, leaf in ((7, 1, 1, 32), (64, 1, 4, 1), (2048, 4, 2, 3)):
        monkeypatch.setattr(boxes, "BLOCK", block)
        monkeypatch.setattr(boxes, "ROOM", room)
        monkeypatch.setattr(boxes, "LEAF", leaf)
        monkeypatch.setattr(assignment, "THREADS", threads)
        assert LAP.certify(problem, solution) == first


def test_large_clouds_are_proved_without_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few pairs of a row are looked at, so a search that rules nothing out is seen here."""
    rng = np.random.default_rng(5)
    problem, solution = solved(rng.random((1000, 2)), rng.random((1000, 2)), "euclidean")
    theirs = LAP.certify(problem, solution)

    def unwanted(*given: Any) -> Any:
        raise AssertionError("a look at all pairs")

    monkeypatch.setattr(assignment, "_swept", unwanted)
    assert LAP.certify(problem, solution) == theirs
    with pytest.raises(AssertionError, match="all pairs"):
        LAP.certify(replace(problem, maximize=True), solution)


def test_an_estimate_knows_where_boxes_prove() -> None:
    """Time grows about as the number of points does, and to maximise as that of all pairs."""

    def seconds(n: int, maximize: bool, metric: str = "euclidean") -> float:
        points = np.random.default_rng(0).random((n, 2))
        options = LAP.options(metric=metric, maximize=maximize)
        return LAP.estimate(LAP.build({"x": points, "y": points}, options), options, "cpu").certify_seconds

    assert 3 < seconds(65536, False) / seconds(16384, False) < 7
    for maximize, metric in ((True, "euclidean"), (False, "inner")):
        assert seconds(16384, maximize, metric) > 10 * seconds(16384, False)
        assert 15 < seconds(65536, maximize, metric) / seconds(16384, maximize, metric) < 17
