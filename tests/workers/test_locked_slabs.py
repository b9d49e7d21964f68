"""Slabs that are page-locked where they lie: what is sent is the job's, and nobody cuts what a device reads."""

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import Ahead, locked
from tests.workers.laid import laid
from tests.workers.test_codec import npy
from workers.runtime import gpu_memory, locked_slabs
from workers.runtime.locked_slabs import LockedSlabs
from workers.store.arena import MARK, Arena
from workers.store.layouts import npy as read_npy
from workers.store.sizes import keep_size, may_resize

COUNT = 1 << 17
"""Of float64: as many bytes as are sent ahead at least."""
SIZE = len(npy(np.zeros(COUNT)))
HOLD = """
import os, sys, time
from workers.store.sizes import keep_size
descriptor = os.open(sys.argv[1], os.O_RDWR)
keep_size(descriptor)
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path / f"{MARK}test", 8 * SIZE)


class Locks:
    """What is page-locked, by address."""

    def __init__(self) -> None:
        self.now: dict[int, int] = {}
        self.times = 0

    def lock(self, address: int, count: int) -> Callable[[], object]:
        self.now[address] = count
        self.times += 1
        return lambda: self.now.pop(address)


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Locks:
    made = Locks()
    monkeypatch.setattr(locked, "page_lock", made.lock)
    monkeypatch.setattr(locked_slabs, "page_lock", made.lock)
    return made


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was sent ahead, as it lies where the device reads it."""
    found: list[bytes] = []

    class Sent:
        def __init__(self, array: Any, lies: int | None) -> None:
            self.lies = array.ctypes.data if lies is None else lies

        def send(self, begin: int, end: int) -> None:
            found.append(ctypes.string_at(self.lies + begin, end - begin))

        def all_sent(self) -> None:
            pass

    monkeypatch.setattr(Ahead, "of", lambda array, lies=None: Sent(array, lies))
    return found


def lay(arena: Arena, threads: Any, file: str, array: Any) -> Any:
    """An upload in the arena, mapped as a job maps it."""
    return read_npy(laid(arena, threads, file, npy(array)), 1 << 30)


def give_up(arena: Arena, file: str) -> Path:
    """The one slab of the arena is spare."""
    arena.settled(file)
    arena.drop(file)
    (path,) = arena.spare.iterdir()
    return path


def test_the_device_reads_an_upload_where_it_lies_and_nothing_is_copied(
    arena: Arena, threads: Any, locks: Locks, sent: list[bytes]
) -> None:
    staging, inode = gpu_memory.Staging(1 << 30), None
    for k in range(3):
        cost = np.random.default_rng(k).random((COUNT // 64, 64))
        mapped = lay(arena, threads, f"blob{k}", cost)
        assert inode in (None, mapped.inode)  # the slab of the upload before
        inode = mapped.inode
        assert staging.stage({"cost": mapped}, {"cost": "f"})["cost"] is mapped
        assert sent == [cost.tobytes()]
        sent.clear()
        del mapped  # and with it the lock of who reads
        give_up(arena, f"blob{k}")
    assert locks.times == 1
    assert [*locks.now.values()] == [SIZE]


def test_each_of_several_jobs_is_sent(arena: Arena, threads: Any, locks: Locks, sent: list[bytes]) -> None:
    staging, costs = gpu_memory.Staging(1 << 30), np.random.default_rng(0).random((2, COUNT))
    mapped = [lay(arena, threads, f"blob{k}", cost) for k, cost in enumerate(costs)]
    with staging.several():
        for one in mapped:
            staging.stage({"cost": one, "a": np.ones(3)}, {"cost": "f"})
    assert sent == [cost.tobytes() for cost in costs]


def test_what_is_not_sent_whole_is_staged(arena: Arena, threads: Any, locks: Locks, sent: list[bytes]) -> None:
    cost = np.random.default_rng(0).random(COUNT)
    mapped = lay(arena, threads, "blob", cost)
    staged = gpu_memory.Staging(1 << 30).stage({"cost": mapped}, ())["cost"]
    assert staged is not mapped
    assert sent == []
    np.testing.assert_array_equal(staged, cost)


@pytest.mark.parametrize("size", [SIZE - 4096, SIZE + 4096])
def test_a_slab_that_a_device_reads_keeps_its_size(
    arena: Arena, threads: Any, locks: Locks, sent: list[bytes], size: int
) -> None:
    slabs, mapped = LockedSlabs(1 << 30), lay(arena, threads, "blob", np.zeros(COUNT))
    inode = mapped.inode[1]
    assert slabs.sent(mapped)
    del mapped
    give_up(arena, "blob")
    with taken(arena, threads, size) as other:
        assert other != inode
    assert {path.stat().st_size for path in arena.spare.iterdir()} == {size, SIZE}
    with taken(arena, threads, SIZE) as same:
        assert same == inode
    slabs._held.popitem()[1].close()
    assert locks.now == {}
    with taken(arena, threads, size), taken(arena, threads, size + 1) as cut:
        assert cut == inode


@contextlib.contextmanager
def taken(arena: Arena, threads: Any, size: int) -> Iterator[int]:
    """A slab in the hands of who writes; its inode."""
    slab = arena.take(size, threads)
    assert slab is not None
    try:
        yield slab.path.stat().st_ino
    finally:
        slab.close()


def test_whose_holder_died_is_cut_again(arena: Arena, threads: Any) -> None:
    lay(arena, threads, "blob", np.zeros(COUNT))
    path = give_up(arena, "blob")
    inode = path.stat().st_ino
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with taken(arena, threads, SIZE - 4096) as other:
        assert other != inode
        holder.kill()
        holder.wait()
        with taken(arena, threads, SIZE - 8192) as cut:
            assert cut == inode


def test_the_lock_of_a_size_is_given_back_with_the_open_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1234")
    first, second = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    assert may_resize(second)
    keep_size(first)
    assert not may_resize(second)
    os.close(os.open(path, os.O_RDWR))  # as a job opens and closes it beside
    assert not may_resize(second)
    os.close(first)
    assert may_resize(second)
    os.close(second)


def test_memory_that_the_arena_gave_up_is_let_go(
    arena: Arena, threads: Any, locks: Locks, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locked_slabs, "LOOK_S", 0.0)
    slabs = LockedSlabs(1 << 30)
    assert slabs.sent(lay(arena, threads, "blob", np.zeros(COUNT)))
    give_up(arena, "blob").unlink()
    assert slabs.sent(lay(arena, threads, "other", np.zeros(COUNT)))
    assert locks.times == 2
    assert len(locks.now) == 1


def test_the_least_recently_used_is_let_go(arena: Arena, threads: Any, locks: Locks, sent: list[bytes]) -> None:
    slabs = LockedSlabs(2 * SIZE)
    mapped = [lay(arena, threads, f"blob{k}", np.full(COUNT, k)) for k in range(3)]
    for k in (0, 1, 0, 2, 0):
        assert slabs.sent(mapped[k])
        assert sent.pop() == np.full(COUNT, k).tobytes()
    assert locks.times == 3
    assert slabs.sent(mapped[1])
    assert locks.times == 4
    assert len(locks.now) == 2
    assert not LockedSlabs(8 * COUNT - 1).sent(mapped[0])


def test_a_name_that_is_another_slabs_by_now_is_not_sent(
    arena: Arena, threads: Any, locks: Locks, sent: list[bytes]
) -> None:
    mapped = lay(arena, threads, "blob", np.zeros(COUNT))
    arena.drop("blob")
    lay(arena, threads, "blob", np.ones(COUNT))
    assert not LockedSlabs(1 << 30).sent(mapped)
    assert sent == []


def test_what_cannot_be_locked_is_copied_and_not_tried_again(
    arena: Arena, threads: Any, sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def lock(address: int, count: int) -> Callable[[], object]:
        tried.append(count)
        if count == SIZE:
            raise RuntimeError("this system locks only what it allocates itself")
        return lambda: None

    monkeypatch.setattr(locked, "page_lock", lock)
    monkeypatch.setattr(locked_slabs, "page_lock", lock)
    staging, cost = gpu_memory.Staging(1 << 30), np.random.default_rng(0).random(COUNT)
    for k in range(2):
        staged = staging.stage({"cost": lay(arena, threads, f"blob{k}", cost)}, {"cost": "f"})["cost"]
        np.testing.assert_array_equal(staged, cost)
    assert tried.count(SIZE) == 1
    assert b"".join(sent) == 2 * cost.tobytes()
