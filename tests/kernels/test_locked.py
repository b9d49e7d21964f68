"""Memory that is page-locked as far as somebody needs it, with a note in place of CUDA's call."""

import gc
from collections.abc import Callable

import numpy as np
import pytest

from kernels import Locked, locked
from kernels.locked import CHUNK, Rooms
from tests.conftest import need_gpu


class Locks:
    """What is locked, by address, and what was."""

    def __init__(self) -> None:
        self.now: dict[int, int] = {}
        self.were: list[int] = []
        self.refuse = False

    def __call__(self, address: int, count: int) -> Callable[[], object]:
        if self.refuse:
            raise RuntimeError("nothing more can be locked")
        assert address not in self.now
        self.now[address] = count
        self.were.append(count)
        return lambda: self.now.pop(address)


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Locks:
    found = Locks()
    monkeypatch.setattr(locked, "page_lock", found)
    return found


def test_memory_grows_in_its_place_and_keeps_what_it_holds(locks: Locks) -> None:
    memory = Locked(5 * CHUNK // 2)
    assert (memory.held, locks.were) == (0, [])
    memory.ready(10)
    first = memory.bytes(10)
    first[:] = 7
    memory.ready(CHUNK)
    memory.ready(CHUNK + 1)
    memory.ready(5 * CHUNK // 2)
    assert locks.were == [CHUNK, 2 * CHUNK, 5 * CHUNK // 2]
    assert list(locks.now.values()) == [5 * CHUNK // 2]
    assert memory.bytes(CHUNK).ctypes.data == first.ctypes.data == next(iter(locks.now))
    assert (memory.bytes(10) == 7).all()
    with pytest.raises(MemoryError, match="at most"):
        memory.ready(5 * CHUNK // 2 + 1)


def test_it_is_let_go_of_with_its_last_user(locks: Locks) -> None:
    memory = Locked(CHUNK)
    memory.ready(1)
    del memory
    gc.collect()
    assert locks.now == {}


def test_without_locks_nothing_is_held_and_it_can_be_tried_again(locks: Locks) -> None:
    memory = Locked(2 * CHUNK)
    memory.ready(1)
    locks.refuse = True
    with pytest.raises(MemoryError, match="cannot be page-locked: nothing more"):
        memory.ready(2 * CHUNK)
    assert (memory.held, locks.now) == (0, {})
    locks.refuse = False
    memory.ready(1)
    assert memory.held == CHUNK


def test_addresses_that_there_are_not_are_said_to_be_none() -> None:
    with pytest.raises(MemoryError, match="no addresses"):
        Locked(1 << 60)


def test_memory_of_answers_is_used_again_once_nobody_holds_any_of_it(locks: Locks) -> None:
    rooms = Rooms(CHUNK)
    first = rooms.bytes(800).view(np.float64).reshape(10, 10)
    place, row = first.ctypes.data, first[3]
    del first
    assert rooms.bytes(8).ctypes.data != place  # a row of it is held
    del row
    assert rooms.bytes(8).ctypes.data in locks.now
    both = [rooms.bytes(8), rooms.bytes(8)]
    assert {one.ctypes.data for one in both} == set(locks.now)
    assert len(locks.were) == 2
    del both
    rooms.let_go()
    gc.collect()
    assert locks.now == {}


def test_what_is_held_while_the_rest_is_given_back_comes_back_later(locks: Locks) -> None:
    rooms = Rooms(CHUNK)
    held = rooms.bytes(8)
    rooms.let_go()
    held[:] = 1
    place = held.ctypes.data
    del held
    assert rooms.bytes(8).ctypes.data == place


def test_a_room_that_cannot_be_locked_is_not_lost(locks: Locks) -> None:
    rooms = Rooms(2 * CHUNK)
    rooms.ready(CHUNK)
    locks.refuse = True
    with pytest.raises(MemoryError):
        rooms.bytes(2 * CHUNK)
    locks.refuse = False
    assert rooms.bytes(CHUNK).size == CHUNK
    assert len(locks.now) == 1


def test_an_array_may_end_while_a_room_is_chosen(locks: Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the auditor's thread, for one, which lets go of an answer whenever it is through with it."""
    rooms = Rooms(CHUNK)
    audited, others = [rooms.bytes(8)], [rooms.bytes(8), rooms.bytes(8)]
    del others

    def held(room: Locked) -> int:
        audited.clear()
        return CHUNK

    monkeypatch.setattr(Locked, "held", property(held, lambda room, count: None), raising=False)
    assert rooms.bytes(8).size == 8
    assert len([rooms.bytes(8), rooms.bytes(8)]) == 2
    assert len(locks.were) == 3


@pytest.mark.gpu
def test_a_gpu_takes_it_for_page_locked() -> None:
    need_gpu()
    import cupy

    rooms = Rooms(3 * CHUNK)
    for count in (1, CHUNK + 1, 3 * CHUNK):
        array = rooms.bytes(count)
        array[:] = 5
        assert cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type == 1  # cudaMemoryTypeHost
        there = cupy.empty(count, np.uint8)
        there.set(array)
        assert int(there.astype(np.int64).sum()) == 5 * count
        there[:] = 9
        there.get(out=array)
        assert int(array[-1]) == 9
        del array
