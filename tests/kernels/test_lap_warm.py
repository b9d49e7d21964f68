"""Warm starts on the CPU: whatever the old duals are, the answer is the optimum; and what the lists say is so."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, Array, Certificate, Deadline, Solution, Termination
from kernels.lap import warm
from kernels.lap.cpu import by_rows, by_steps, near, near_back, near_both, near_early, near_rows, near_seats, whole
from kernels.problems import InvalidProblem, ranges
from kernels.problems.arrays import untouched
from tests.oracles.assignment import scipy_optimum

LAP = SOLVERS["lap"]
Rng = np.random.Generator
TRIALS = 60


def answer(cost: Array, maximize: bool, **duals: Any) -> tuple[Solution, Certificate]:
    options = LAP.options(maximize=maximize)
    problem = LAP.build({"cost": cost, **duals}, options)
    solution = LAP.solve(problem, options, Deadline(), "cpu")
    return solution, LAP.certify(problem, solution)


def floats(rng: Rng, n: int, m: int) -> Array:
    return rng.random((n, m)) * 10.0 ** rng.integers(-6, 7)


def short_floats(rng: Rng, n: int, m: int) -> Array:
    return floats(rng, n, m).astype(np.float32)


def steep(rng: Rng, n: int, m: int) -> Array:
    return np.asarray(np.exp(rng.normal(size=(n, m)) * 6))


def plane(rng: Rng, n: int, m: int) -> Array:
    x, y = rng.random((n, 1, 2)), rng.random((1, m, 2))
    return np.asarray(np.hypot(*np.moveaxis(x - y, -1, 0)))


def clusters(rng: Rng, n: int, m: int) -> Array:
    centre = rng.random((4, 2)) * 1e3
    x, y = (centre[rng.integers(0, 4, k)] + rng.normal(0, 5, (k, 2)) for k in (n, m))
    return np.asarray(((x[:, None] - y) ** 2).sum(-1))


def ties(rng: Rng, n: int, m: int) -> Array:
    return rng.integers(0, 3, (n, m), dtype=np.int32)


def crowded(rng: Rng, n: int, m: int) -> Array:
    return rng.integers(0, max(4, n // 5), (n, m), dtype=np.int32)


def tied_floats(rng: Rng, n: int, m: int) -> Array:
    return np.asarray(rng.integers(-3, 4, (n, m)) * 0.1)


def narrow(rng: Rng, n: int, m: int) -> Array:
    return rng.integers(-10 * n, 10 * n, (n, m), dtype=np.int32)


def edge(rng: Rng, n: int, m: int) -> Array:
    return rng.choice(np.array([-whole.NARROW, whole.NARROW - 1, whole.NARROW], np.int32), (n, m))


def wide(rng: Rng, n: int, m: int) -> Array:
    return rng.integers(-(10**9), 10**9, (n, m))


def barred_floats(rng: Rng, n: int, m: int) -> Array:
    return np.where(rng.random((n, m)) < 0.4, np.inf, rng.random((n, m)))


def barred_integers(rng: Rng, n: int, m: int) -> Array:
    return np.where(rng.random((n, m)) < 0.4, FORBIDDEN, rng.integers(0, 500, (n, m)))


FAMILIES = [
    floats,
    short_floats,
    steep,
    plane,
    clusters,
    ties,
    tied_floats,
    narrow,
    edge,
    wide,
    barred_floats,
    barred_integers,
]


def garbage(rng: Rng, given: dict[str, Array], cost: Array) -> dict[str, Array]:
    """Duals that are none: other lines' duals, nothing, noise of the costs' size and far beyond it."""
    known = np.abs(cost[np.isfinite(cost) & (cost != FORBIDDEN)].astype(float))
    size = float(known.max(initial=1.0)) * float(rng.choice([1e-3, 1.0, 3.0, 1e3, 1e9]))
    size = min(size, 2.0**60)
    kind = rng.integers(0, 4)
    made: dict[str, Array] = {}
    for name, array in given.items():
        noise = rng.normal(size=array.size) * size
        made[name] = [rng.permutation(array), np.zeros_like(array), noise, array + noise][kind].astype(array.dtype)
    return made


@pytest.mark.parametrize("pieces", ["at once", "lists", "lists of threads", "lists of the checks"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_whatever_the_duals_are_the_answer_is_the_optimum(family: Any, pieces: str) -> None:
    """0 to 100% of the rows drawn anew; square and not; u, v or both; duals of the old problem, and garbage."""
    rng = np.random.default_rng([21, FAMILIES.index(family)])
    at_once = by_rows.AT_ONCE if pieces == "at once" else 0
    piece, thread = (1 << 9, 1 << 9) if pieces == "lists of threads" else (near_rows.PIECE, near_rows.A_THREAD)
    for trial in range(TRIALS):
        n = int(rng.choice([1, 2, 3, 7, 20, 64, 65, 130]))
        m = n if trial % 4 else max(1, n + int(rng.integers(-n // 2, n // 2 + 1)))
        old, maximize = family(rng, n, m), trial % 3 == 2
        if maximize and old.dtype.kind == "f":
            old = -old  # so that -inf forbids
        share = float(rng.choice([0.0, 0.01, 0.1, 0.5, 1.0]))
        cost = old.copy()
        changed = rng.permutation(n)[: round(share * n)]
        fresh = family(rng, n, m)
        cost[changed] = (-fresh if maximize and fresh.dtype.kind == "f" else fresh)[changed]
        first = answer(old, maximize)[0].arrays
        given = {"u0": first["u"], "v0": first["v"]} if "u" in first else {"u0": np.zeros(n), "v0": np.zeros(m)}
        if trial % 5 == 1:
            given.pop(("u0", "v0")[trial % 2])
        if trial % 5 == 2:
            given = garbage(rng, given, cost)
        with (
            patch.object(by_rows, "AT_ONCE", at_once),
            patch.object(near_rows, "PIECE", piece),
            patch.object(near_rows, "A_THREAD", thread),
            patch.object(near_early, "MOST_THREADS", 1 << 10),
            patch.object(ranges, "beside", near_early.early if pieces == "lists of the checks" else None),
        ):
            solution, certificate = answer(cost, maximize, **given)
        seen = np.where(cost == FORBIDDEN, -np.inf if maximize else np.inf, cost) if cost.dtype == np.int64 else cost
        expected = scipy_optimum(seen, maximize)
        if expected is None:
            assert solution.termination is Termination.INFEASIBLE
            assert certificate.holds
            continue
        assert solution.termination is Termination.OPTIMAL
        assert certificate.termination is None, certificate.proved
        if cost.dtype.kind == "i":
            assert certificate.objective == expected
            assert certificate.gap_abs == 0
        else:
            assert certificate.objective == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("n", [1030, 1100])
@pytest.mark.parametrize("family", [floats, short_floats, plane, narrow], ids=lambda family: family.__name__)
def test_large_warm_problems_agree_with_a_cold_start(family: Any, n: int) -> None:
    rng = np.random.default_rng(22)
    cost = family(rng, n, n)
    duals = answer(cost, False)[0].arrays
    cost[rng.permutation(n)[: n // 100]] = family(rng, n, n)[: n // 100]
    _, cold = answer(cost, False)
    solution, certificate = answer(cost, False, u0=duals["u"], v0=duals["v"])
    assert solution.facts["paths"] <= n // 50
    assert certificate.termination is None
    assert certificate.objective == pytest.approx(cold.objective, rel=1e-12)


def searched(cost: Array, v: Array) -> whole.Whole:
    """A search at prices v, before anything was done."""
    prepared = by_rows.prepared_costs(cost, False, False, True)
    assert prepared is not None
    v = v.astype(prepared.limits.dtype)
    return whole.new_whole(untouched(prepared.cost), prepared.limits, prepared.bits, v, np.empty(len(cost), np.int64))


def listed(cost: Array, v: Array, a_thread: int = near_rows.A_THREAD) -> tuple[whole.Whole, near.Near]:
    s = searched(cost, v)
    lists = near.new_near(s)
    assert lists is not None
    with patch.object(near_rows, "PIECE", 1 << 13), patch.object(near_rows, "A_THREAD", a_thread):
        assert near_rows.list_in_pieces(s, lists, Deadline().expired) is None
    return s, lists


def same_lists(some: near.Near, others: near.Near) -> None:
    for name in ("held", "bound", "ties", "window"):
        assert (getattr(some, name) == getattr(others, name)).all(), name
    for first, held in zip(some.start.tolist(), some.held.tolist(), strict=True):
        assert (some.cols[first : first + held] == others.cols[first : first + held]).all()


LISTED = [floats, short_floats, plane, narrow, wide, crowded, barred_floats]


@pytest.mark.parametrize("n", [63, 64, 130, 257])
@pytest.mark.parametrize("family", LISTED, ids=lambda family: family.__name__)
def test_a_list_holds_all_columns_up_to_its_bound(family: Any, n: int) -> None:
    """A list that lacks a column below its bound would make a wrong pair look cheapest."""
    rng = np.random.default_rng([23, n])
    cost = family(rng, n, n)
    v = rng.integers(-3, 4, n) if cost.dtype.kind == "i" else rng.normal(size=n) * 0.1
    s, lists = listed(cost, v)
    kinds = {narrow: np.int32, crowded: np.int32, wide: np.int64, short_floats: np.float32}
    assert s.cost.dtype == kinds.get(family, np.float64)
    least = (s.cost - s.v).min(axis=1)
    near_seats.seat_listed(s, lists)
    count = 0
    for i in range(n):
        if lists.held[i] == near.CROWDED:
            continue
        count += 1
        here = slice(lists.start[i], lists.start[i] + lists.held[i])
        assert sorted(lists.cols[here]) == np.flatnonzero(s.cost[i] - s.v <= lists.bound[i]).tolist()
        assert (lists.costs[here] == s.cost[i, lists.cols[here]]).all()
        assert lists.bound[i] >= least[i]
        ties, reduced_here = lists.ties[i], (s.cost[i] - s.v)[lists.cols[here]]
        assert ties >= 1
        assert (reduced_here[:ties] <= reduced_here.min() + 1e-12 * (1 + abs(reduced_here.min()))).all()
        assert (reduced_here[ties:] > reduced_here.min()).all()
        assert s.col_of[i] < 0 or s.col_of[i] in lists.cols[here][:ties]
    assert count > n // 2 or family is crowded


def test_threads_list_what_one_thread_lists() -> None:
    rng = np.random.default_rng(24)
    cost, v = rng.random((500, 500)), rng.normal(size=500) * 0.01
    same_lists(*(listed(cost, v, a_thread)[1] for a_thread in (1 << 30, 1 << 12)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_checks_list_what_a_search_lists(dtype: Any) -> None:
    rng = np.random.default_rng(26)
    cost, v = rng.normal(size=(500, 500)).astype(dtype), rng.normal(size=500) * 0.01
    with patch.object(near_rows, "PIECE", 1 << 13), patch.object(near_early, "MOST_THREADS", 1 << 10):
        early = near_early.early(cost, False, v)
        assert early is not None
        assert early() == np.abs(cost).max()
    made = early.take(cost, v)
    assert made is not None
    same_lists(listed(cost, v)[1], made[1])
    assert early.take(cost, v) is None, "a search has changed them"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("share", [0.001, 0.5, 0.9])
def test_the_checks_list_beside_what_is_forbidden(dtype: Any, share: float) -> None:
    rng, n = np.random.default_rng(35), 400
    cost, v = rng.normal(size=(n, n)).astype(dtype), rng.normal(size=n) * 0.01
    cost[rng.random((n, n)) < share] = np.inf
    cost[5, :-1] = cost[:-1, 9] = np.inf
    cost[5, -1] = cost[-1, 9] = 2
    with patch.object(near_rows, "PIECE", 1 << 13), patch.object(near_early, "MOST_THREADS", 1 << 10):
        early = near_early.early(cost, False, v)
        assert early is not None
        assert early() == np.abs(cost[np.isfinite(cost)]).max()
        assert early.suits(v)
        for odd in (-np.inf, np.nan):
            spoiled = cost.copy()
            spoiled[7, 8] = odd
            other = near_early.early(spoiled, False, v)
            assert other is not None
            assert other() is None
    made = early.take(cost, v)
    assert made is not None
    same_lists(listed(cost, v)[1], made[1])


@pytest.mark.parametrize("odd", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (299, 299), (64, 7)])
def test_lists_of_the_checks_change_nothing_of_what_is_refused(odd: float, place: tuple[int, int]) -> None:
    rng = np.random.default_rng(27)
    cost, v = rng.random((300, 300)), rng.normal(size=300) * 0.01
    cost[place] = odd
    with patch.object(ranges, "beside", near_early.early), patch.object(near_early, "MOST_THREADS", 1 << 10):
        if odd == np.inf:
            _, certificate = answer(cost, False, v0=v)
            assert certificate.objective == pytest.approx(scipy_optimum(cost, False), rel=1e-12)
            return
        with pytest.raises(InvalidProblem, match=rf"cost.*\[{place[0]}, {place[1]}\]"):
            answer(cost, False, v0=v)


def test_lists_at_other_prices_are_not_taken() -> None:
    rng = np.random.default_rng(28)
    cost, v = rng.random((300, 300)), rng.normal(size=300) * 0.01
    with patch.object(near_early, "MOST_THREADS", 1 << 10):
        for other in (cost.copy(), v + 1e-9):
            early = near_early.early(cost, False, v)
            assert early is not None
            assert early() is not None
            assert early.take(*((other, v) if other.ndim == 2 else (cost, other))) is None


@pytest.mark.parametrize("family", [floats, short_floats, plane, narrow, wide, crowded], ids=lambda f: f.__name__)
def test_a_search_from_both_ends_keeps_duals_feasible(family: Any) -> None:
    """After each path: pairs are at the least of their rows, and what is not listed is not below the row's bound."""
    paths = 0
    for seed in range(6):
        rng = np.random.default_rng([29, seed])
        n = int(rng.choice([70, 150, 300]))
        cost = family(rng, n, n)
        v = answer(cost, False)[0].arrays["v"]
        changed = rng.permutation(n)[: n // 10]
        cost[changed] = family(rng, n, n)[changed]
        s, lists = listed(cost, v)
        near_seats.seat_listed(s, lists)
        free = np.flatnonzero(s.col_of < 0)
        s.free[: len(free)] = free
        both = near_back.new_both(s, lists)
        tiny = 0.0 if cost.dtype.kind == "i" else 1e-12 * float(np.abs(cost).max())
        for k in range(len(free)):
            if near_both.augment_both(s, lists, both, k, k + 1, 1) != k + 1:
                break
            paths += 1
            net = s.cost.astype(s.v.dtype) - s.v
            rows = np.flatnonzero(s.col_of >= 0)
            assert (s.row_of[s.col_of[rows]] == rows).all()
            assert len(rows) == n - len(free) + k + 1
            own = net[rows, s.col_of[rows]]
            assert (own <= net[rows].min(axis=1) + tiny).all()
            assert both.own[rows] == pytest.approx(own, abs=tiny)
            for i in range(n):
                if lists.held[i] != near.CROWDED:
                    rest = np.delete(net[i], lists.cols[lists.start[i] : lists.start[i] + lists.held[i]])
                    assert rest.min(initial=s.inf) >= lists.bound[i] - tiny
    assert paths > (4 if family is crowded else 20)


@pytest.mark.parametrize("family", [floats, short_floats, narrow, wide], ids=lambda family: family.__name__)
@pytest.mark.parametrize("forbidden", [False, True])
def test_the_last_free_column_may_be_dear_to_all(family: Any, forbidden: bool) -> None:
    """No row lists it then, and the column itself is read: no row is read whole for it."""
    rng = np.random.default_rng(31)
    n, dear = 600, 77
    cost = family(rng, n, n)
    if forbidden and cost.dtype.kind == "f":
        cost[rng.random((n, n)) < 0.3] = np.inf
    first = answer(cost, False)[0].arrays
    u, v = first["u"], first["v"].copy()
    row = int(np.flatnonzero(first["assignment"] == dear)[0])
    cost[row] = family(rng, n, n)[row]
    size = np.abs(cost[np.isfinite(cost)]).max()
    v[dear] -= size if cost.dtype.kind == "i" else float(size)
    solution, certificate = answer(cost, False, u0=u, v0=v)
    assert certificate.termination is None
    assert certificate.objective == pytest.approx(scipy_optimum(cost, False), rel=1e-12)
    assert solution.facts["paths"] >= 1
    assert solution.facts["rows_read_whole"] <= near_both.MOST_WIDER


@pytest.mark.parametrize("n", [64, 130, 257, 320])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("wrong", [0.0, 0.02, 1.0, np.nan, np.inf])
def test_lists_of_the_checks_hold_all_columns_up_to_their_bounds(n: int, dtype: Any, wrong: float) -> None:
    """Whatever the old duals of rows are: the least of each row, of some rows, noise, or no numbers."""
    rng = np.random.default_rng([33, n])
    for size in (1e-3, 1.0, 1e3):
        cost, v = (rng.normal(size=(n, n)) * size).astype(dtype), rng.normal(size=n) * 0.01 * size
        net = cost - v
        old = net.min(axis=1)
        bad = rng.random(n) < (wrong if np.isfinite(wrong) else 0.02)
        old[bad] = rng.normal(size=int(bad.sum())) * size if np.isfinite(wrong) else wrong
        with patch.object(near_early, "MOST_THREADS", 1 << 10), patch.object(by_rows, "AT_ONCE", 0):
            early = near_early.early(cost, False, v, old)
            assert early is not None
            assert early() == np.abs(cost).max()
        made = early.take(cost, v)
        assert made is not None
        lists, count = made[1], 0
        for i in range(n):
            here = slice(lists.start[i], lists.start[i] + lists.held[i])
            if lists.held[i] != near.CROWDED:
                count += 1
                assert sorted(lists.cols[here]) == np.flatnonzero(net[i] <= lists.bound[i]).tolist()
                assert (lists.costs[here] == cost[i, lists.cols[here]]).all()
                assert lists.ties[i] == 1
                assert net[i, lists.cols[here][0]] == net[i].min()
        assert count > 0.9 * n


def test_lists_of_the_checks_suit_useful_prices_alone() -> None:
    rng = np.random.default_rng(32)
    cost, v = rng.random((300, 300)), rng.normal(size=300) * 0.01
    with patch.object(near_early, "MOST_THREADS", 1 << 10), patch.object(ranges, "beside", near_early.early):
        for prices, useful in ((v, True), (v + 3.9, True), (v + 4.1, False), (v * 1e9, False), (v + 1e300, False)):
            problem = LAP.build({"cost": cost, "v0": prices}, LAP.options())
            assert problem.looked.beside.suits(problem.v0) is useful
            assert not problem.looked.beside.suits(prices.copy())
            _, certificate = answer(cost, False, v0=prices)
            assert certificate.objective == pytest.approx(scipy_optimum(cost, False), rel=1e-12)
        few_large = np.where(rng.random((300, 300)) < 0.01, 2.0**20, 1 + cost)
        for size, useful in ((2.0**16, True), (2.0**18, False)):
            problem = LAP.build({"cost": few_large, "v0": np.append(v[1:], size)}, LAP.options())
            assert problem.looked.beside.suits(problem.v0) is useful
        for odd in (np.nan, np.inf, -np.inf):
            with pytest.raises(InvalidProblem, match=r"v0.*\[3\]"):
                answer(cost, False, v0=np.where(np.arange(300) == 3, odd, v))


def test_integers_lose_no_bits_when_they_are_cut() -> None:
    given = np.array([2**53 + 1, -(2**60), 7])
    for these, most, expected in (
        (given, 2**55, [2**53 + 1, -(2**55), 7]),
        (np.array([2**31 - 1, -(2**31)], np.int32), 2**40, [2**31 - 1, -(2**31)]),
    ):
        found = warm.cut(these, most, True)
        assert found is not None
        assert found.tolist() == expected


def test_a_bound_told_from_between_the_paths_is_one() -> None:
    """Prices rise in a search from both ends, and so what a free row offers falls."""
    rng = np.random.default_rng(30)
    cost = rng.random((400, 400))
    duals = answer(cost, False)[0].arrays
    cost[:20] = rng.random((20, 400))
    optimum, bounds = float(answer(cost, False)[1].objective or 0), []
    deadline = Deadline(on_progress=lambda progress: bounds.append(progress.bound))
    options = LAP.options()
    problem = LAP.build({"cost": cost, "u0": duals["u"], "v0": duals["v"]}, options)
    with patch.object(by_steps, "CHUNK", 1), patch.object(by_rows, "AT_ONCE", 0):
        LAP.solve(problem, options, deadline, "cpu")
    told = [bound for bound in bounds if bound is not None]
    assert len(told) > 5
    assert max(told) <= optimum * (1 + 1e-12)
