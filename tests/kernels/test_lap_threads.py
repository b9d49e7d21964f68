"""Problems side by side: each is solved once, and how they are dealt out changes no answer."""

from collections.abc import Callable
from itertools import pairwise

import numba
import numpy as np
import pytest

from kernels import SOLVERS, Array, Deadline
from kernels.lap.cpu import rejecting
from kernels.lap.cpu.reject_pieces import shared_out
from kernels.lap.cpu.threads import in_threads, together
from kernels.problems.arrays import Integers, untouched

CARD = SOLVERS["lap"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_piece_is_taken_once(threads: int) -> None:
    taken: list[int] = []
    in_threads(taken.append, range(500), threads)
    assert sorted(taken) == list(range(500))


@pytest.mark.parametrize("threads", [1, 3])
def test_what_goes_wrong_in_a_piece_is_raised(threads: int) -> None:
    def work(piece: int) -> None:
        if piece == 7:
            raise KeyError(piece)

    with pytest.raises(KeyError, match="7"):
        in_threads(work, range(20), threads)
    in_threads(work, range(5), threads)  # and the threads are still there


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_small_pieces_in_threads_have_the_answer_of_one(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    random = np.random.default_rng(4)
    sizes = random.integers(0, 30, (150, 2))
    entries: Array = (100 * random.random(int((sizes[:, 0] * sizes[:, 1]).sum()))).astype(dtype)
    options = CARD.options.model_validate({"cost_limit": 40})
    problem = CARD.build({"cost": entries, "sizes": sizes}, options)
    counts: list[int] = []

    def counted(some: Callable[[], None], threads: int) -> None:
        counts.append(threads)
        together(some, threads)

    monkeypatch.setattr(rejecting, "together", counted)
    whole = CARD.solve(problem, options, Deadline(), "cpu")
    monkeypatch.setattr(rejecting, "PIECE", 64)
    monkeypatch.setattr(rejecting, "CHUNK", 512)
    monkeypatch.setattr(rejecting, "threads_for", lambda *_: 5)
    apart = CARD.solve(problem, options, Deadline(), "cpu")
    assert counts == [1 + (numba.get_num_threads() > 1), 5]
    for name in ("assignment", "u", "v"):
        assert whole.arrays[name].tobytes() == apart.arrays[name].tobytes()


@pytest.mark.parametrize("seed", range(20))
def test_small_problems_are_shared_out_in_pieces_of_about_one_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = rng.integers(0, 200, rng.integers(0, 60))
    starts: Integers = np.zeros((len(entries) + 1, 3), np.int64)
    starts[1:, 0] = np.cumsum(entries)
    small, ends, work = shared_out(untouched(starts), 150, 100)
    assert small.tolist() == np.flatnonzero(entries < 150).tolist()
    assert work == entries[small].sum()
    assert ends[0] == 0
    assert ends[-1] == len(small)
    assert (np.diff(ends) > 0).all()
    before = np.cumsum(entries[small]) // 100  # a problem belongs to the piece that it ends in
    assert all(len(set(before[first:last])) == 1 for first, last in pairwise(ends.tolist()))
    assert len(ends) - 1 == len(set(before.tolist()))
