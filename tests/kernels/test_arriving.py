"""What is seen of an array as it arrives is what the checks of problems would have found by reading it."""

import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels import FORBIDDEN, SOLVERS, Array, InvalidProblem, Seen, glance, note, seen_of, summing, together
from kernels.arriving import Arrived
from kernels.certificates.gpu.checksum import PIECE, InputChanged, checksum
from kernels.problems.assignment import _largest
from tests.workers.totals import total_of

RNG = np.random.default_rng(5)
STRANGE: dict[str, Callable[[Array], object]] = {
    "plain": lambda a: None,
    "+inf": lambda a: a.__setitem__((3, 5), np.inf),
    "-inf": lambda a: a.__setitem__((0, 0), -np.inf),
    "all +inf": lambda a: a.__setitem__(..., np.inf),
    "huge": lambda a: a.__setitem__((7, 1), 1e300 if a.dtype == np.float64 else 1e38),
    "-0": lambda a: a.__setitem__(..., -0.0),
}


def pieces_of(array: Array, cuts: list[int], sums: bool = True) -> Seen | None:
    raw = array.reshape(-1).view(np.uint8)
    ends = [0, *cuts, raw.size]
    parts = [raw[a:b] for a, b in itertools.pairwise(ends) if b > a]
    RNG.shuffle(parts)
    return together(glance(part, array.dtype.str, sums) for part in parts)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("maximize", [False, True])
def test_a_range_in_pieces_is_that_of_the_whole(strange: str, dtype: Any, maximize: bool) -> None:
    array = (1000 * RNG.standard_normal((40, 60))).astype(dtype)
    with np.errstate(over="ignore"):
        STRANGE[strange](array)
    seen = pieces_of(array, [8 * 100, 8 * 777])
    assert seen is not None
    allowed = -np.inf if maximize else np.inf
    if seen.allows(allowed):
        assert (seen.largest, seen.masked) == _largest(array, maximize)
    else:
        with pytest.raises(InvalidProblem):
            _largest(array, maximize)


def test_integers_with_forbidden_entries() -> None:
    array = RNG.integers(-99, 50, (30, 30))
    array[4, 4] = FORBIDDEN
    seen = pieces_of(array, [800, 4000])
    assert seen is not None
    assert (seen.largest, seen.masked) == _largest(array, False) == (99, True)
    assert pieces_of(np.full((4, 4), FORBIDDEN), [64]) == Seen(None, None, masked=True, total=16 * FORBIDDEN % 2**64)
    assert pieces_of(np.arange(6, dtype=np.int32), [8], sums=False) == Seen(0, 5)


def test_nan_in_any_piece_is_left_to_who_reads_the_array() -> None:
    for at in (0, 500, 999):
        array = RNG.random(1000)
        array[at] = np.nan
        assert pieces_of(array, [8 * 300, 8 * 600]) is None


def test_a_note_is_of_memory_type_and_length_and_ends_with_its_array() -> None:
    array, seen = RNG.random((8, 8)), Seen(0.0, 1.0)
    note(array, seen)
    assert seen_of(array) == seen_of(array.reshape(-1)) == seen
    assert seen_of(array.view(np.int64)) is None
    assert seen_of(array[:4]) is None
    assert seen_of(array.T) is None
    note(array, None)
    assert seen_of(array) is None
    view = array[:]
    note(view, seen)
    assert seen_of(array) == seen
    del view
    assert seen_of(array) is None


def test_a_problem_that_was_seen_is_not_read_again() -> None:
    """The array holds what the note denies: only who reads it would find out."""
    card = SOLVERS["lap"]
    array = np.full((4, 4), np.nan)
    with pytest.raises(InvalidProblem, match=r"\[0, 0\]"):
        card.build({"cost": array}, card.options())
    note(array, Seen(0.0, 1.0))
    assert card.build({"cost": array}, card.options()).weights.shape == (4, 4)
    note(array, Seen(0.0, 1.0, minus=True))
    with pytest.raises(InvalidProblem, match=r"\[0, 0\]"):
        card.build({"cost": array}, card.options())
    note(array, Seen(0.0, 1e308))
    with pytest.raises(InvalidProblem, match="overflow"):
        card.build({"cost": array}, card.options())


@pytest.mark.parametrize("solver", ["auction", "uot"])
def test_other_solvers_ask_for_the_note_as_well(solver: str) -> None:
    card = SOLVERS[solver]
    array = np.full((4, 4), np.nan)
    name = "benefit" if solver == "auction" else "cost"
    with pytest.raises(InvalidProblem):
        card.build({name: array}, card.options())
    note(array, Seen(0.0, 1.0))
    card.build({name: array}, card.options())


@pytest.mark.parametrize("size", [0, 1, 8, 13, PIECE - 8, PIECE, PIECE + 8, 3 * PIECE + 20, 19 * PIECE + 13])
@pytest.mark.parametrize("kind", ["may be written to", "may not", "begins at an odd place"])
def test_a_compiled_sum_is_the_checksum(size: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = RNG.integers(0, 256, size + 3, dtype=np.uint8)
    raw = raw[3:] if kind == "begins at an odd place" else raw[:size]
    raw.flags.writeable = kind != "may not"
    total = total_of(raw)
    for short, share in ((summing.SHORT, summing.SHARE), (64, 5 * PIECE // 2)):
        monkeypatch.setattr(summing, "SHORT", short)
        monkeypatch.setattr(summing, "SHARE", share)
        found = summing.Sum(raw)
        assert (found.value, found.total) == (checksum(raw), total)


def test_the_certificate_is_handed_the_checksum_of_what_arrived() -> None:
    array, other = RNG.random((64, 64)), RNG.random((64, 64))
    note(array, Seen(0.0, 1.0, checksum=12345))
    arrived = Arrived([array, other])
    assert arrived.of(array.reshape(-1)) == 12345
    assert arrived.of(other) == checksum(other)


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_an_input_that_is_not_the_one_that_arrived_is_no_input(size: int) -> None:
    """Another slab, one that was written anew, or a mapping that went wrong: one bit is enough."""
    array = RNG.random(size)
    note(array, together([glance(array.view(np.uint8), "<f8", True)]))
    assert Arrived([array]).of(array) == checksum(array)
    array.view(np.uint64)[size // 3] ^= 1
    with pytest.raises(InputChanged):
        Arrived([array]).of(array)


UNREAD = [
    (name, given, kind) for name, card in SOLVERS.items() for given, kinds in card.unread.items() for kind in kinds
]


STRENGTHS = {"uot": {"reg": 0.05, "reg_m": 1.0}}
"""Left out, they are shares of the mean cost, for which some entries are read."""


@pytest.mark.parametrize(("solver", "given", "kind"), UNREAD)
def test_what_was_seen_is_neither_read_nor_copied(solver: str, given: str, kind: str) -> None:
    """Building it and estimating what it needs takes no memory by the entry; every entry denies the note."""
    card = SOLVERS[solver]
    array = np.full((2000, 2000), np.nan) if kind == "f" else np.full((2000, 2000), np.iinfo(np.int64).max)
    assert card.reads(given, array)
    note(array, Seen(0, 9) if kind == "i" else Seen(0.0, 9.0))
    assert not card.reads(given, array)
    options = card.options(**STRENGTHS.get(solver, {}))
    card.estimate(card.build({given: np.eye(9)}, options), options, "cpu")  # loads what it needs
    tracemalloc.start()
    problem: Any = card.build({given: array}, options)
    for device in card.modules:
        card.estimate(problem, options, device)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < array.size / 2


def test_the_solvers_of_large_matrices_do_without_reading() -> None:
    assert {name for name, *_ in UNREAD} == {"lap", "auction", "uot"}
    card, array = SOLVERS["uot"], np.zeros((4, 4), np.int64)
    note(array, Seen(0, 0))
    assert card.reads("cost", array)  # it is widened, which takes memory
    masked = np.full((4, 4), FORBIDDEN)
    note(masked, Seen(None, None, masked=True))
    assert SOLVERS["auction"].reads("benefit", masked)
