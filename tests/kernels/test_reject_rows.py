"""A row as vectors read it, against NumPy; and many threads at one counter."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline
from kernels.counter import new_counter, take, taken
from kernels.lap.cpu import reject, reject_pieces, rejecting
from kernels.lap.cpu.reject_rows import BEST, INF, SECOND, SIGN, least_of, look_at, turn
from kernels.lap.cpu.shortlist import jit
from kernels.problems.arrays import Flags, Integers
from kernels.solution import Termination
from tests.kernels.patience import Patience

CARD = SOLVERS["lap"]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]
DRAWN: dict[str, Draw] = {
    "floats": lambda rng, shape: rng.random(shape),
    "ties": lambda rng, shape: rng.integers(0, 3, shape).astype(float),
    "barred": lambda rng, shape: np.where(rng.random(shape) < 0.7, np.inf, rng.random(shape)),
    "whole": lambda rng, shape: rng.integers(-4, 4, shape),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_the_least_entries_of_rows_of_any_length(kind: str) -> None:
    rng = np.random.default_rng(3)
    for m in range(1, 40):
        for sign in (1, -1) if kind != "barred" else (1,):
            cost = DRAWN[kind](rng, (6, m))
            v = DRAWN["ties" if kind == "barred" else kind](rng, (1, m))[0].astype(cost.dtype)
            inf = 1 << 40 if kind == "whole" else np.inf
            look = np.zeros(4, cost.dtype)
            look[SIGN], look[INF] = sign, inf
            for i in range(6):
                net = cost[i] * sign - v
                first, *others = np.sort(net).tolist()
                j = look_at(cost, v, i, look)
                assert j == (int(net.argmin()) if first < inf else -1)
                assert look[BEST] == first
                assert look[SECOND] == (others[0] if others else inf)
                assert least_of(cost, v, i, look) == first


def test_what_is_not_below_infinity_is_no_choice() -> None:
    cost, v, look = np.full((1, 9), 200), np.zeros(9, np.int64), np.array([1, 100, 0, 0])
    assert look_at(cost, v, 0, look) == -1
    assert (look[BEST], look[SECOND]) == (100, 100)
    cost[0, 8] = 7
    assert look_at(cost, v, 0, look) == 8
    assert (look[BEST], look[SECOND]) == (7, 100)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_costs_of_any_shape_are_turned(dtype: type) -> None:
    for n in (1, 2, 3, 4, 5, 7, 8, 13):
        for m in (1, 3, 4, 6, 9, 16):
            cost: Array = np.arange(n * m, dtype=dtype).reshape(n, m)
            into: Array = np.full(n * m, -1, dtype)
            turn(cost, into)
            assert into.reshape(m, n).tolist() == cost.T.tolist()


@jit
def mark(arrived: Integers, threads: int, counter: Integers, marks: Flags) -> None:
    """Count every place that is taken, once all threads are there."""
    taken(arrived, 1)
    for _ in range(1 << 28):
        if taken(arrived, 0) >= threads:
            break
    at = taken(counter, 1)
    while at < len(marks):
        marks[at] += 1
        at = taken(counter, 1)


def test_threads_at_one_counter_take_everything_once() -> None:
    counter, marks = new_counter(), np.zeros(5_000_000, np.int8)
    mark(new_counter(), 1, new_counter(), marks[:0])
    arrived = new_counter()
    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(mark, arrived, 2, counter, marks) for _ in range(2)]:
            one.result()
    assert (marks == 1).all()
    assert take(counter, 10) == len(marks) + 2
    assert take(counter, 0) == counter[0]


@pytest.mark.parametrize("threads", [1, 3])
def test_problems_that_nobody_took_in_time_have_a_first_answer(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    sizes = rng.integers(0, 20, (90, 2))
    inputs = {"cost": rng.random(int(sizes.prod(axis=1).sum())), "sizes": sizes}
    problem = CARD.build(inputs, options := CARD.options(cost_limit=0.4))
    whole = CARD.solve(problem, options, Deadline())
    greedily, first_answers = rejecting._greedily, []

    def counted(*given: Any) -> None:
        first_answers.append(given[1])
        greedily(*given)

    monkeypatch.setattr(rejecting, "_greedily", counted)
    monkeypatch.setattr(rejecting, "PIECE", 300)
    monkeypatch.setattr(rejecting, "CHUNK", 1000)
    monkeypatch.setattr(rejecting, "threads_for", lambda *_: threads)
    for looks in (0, 4):
        solution = CARD.solve(problem, options, Patience(looks))
        assert solution.termination is Termination.TIME_LIMIT
        once = first_answers[:]
        first_answers.clear()
        late = solution.evidence["ended"] == list(Termination).index(Termination.TIME_LIMIT)
        assert late.any()
        assert once == np.flatnonzero(late).tolist()
        assert late.all() == (looks == 0)
        assert (np.diff(late.astype(int)) >= 0).all()  # those before were all solved
        rows = np.repeat(~late, sizes[:, 0])
        assert solution.arrays["assignment"][rows].tolist() == whole.arrays["assignment"][rows].tolist()
        assert solution.arrays["u"][rows].tobytes() == whole.arrays["u"][rows].tobytes()
        assert CARD.certify(problem, solution).holds


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_frames_from_bytes_need_no_other_loops(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    loops: list[Any] = [reject_pieces.solve_pieces]
    loops += [reject.set_out, reject.reduce_rows, reject.place_all, reject.close]
    rejecting.warm_up()
    known = [loop.signatures[:] for loop in loops]
    for sizes in (np.array([[5, 6], [7, 3]]), np.array([[520, 530], [530, 520]])):
        cost = rng.integers(0, 9, int(sizes.prod(axis=1).sum())).astype(dtype)
        inputs = {name: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape)
                  for name, a in (("cost", cost), ("sizes", sizes))}  # fmt: skip
        options = CARD.options(cost_limit=3)
        CARD.solve(CARD.build(inputs, options), options, Deadline())
    assert [loop.signatures for loop in loops] == known
