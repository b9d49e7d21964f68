"""Mappings that stay from upload to upload: they are of what the file is now, hold nobody off, and hold no memory."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.workers.laid import laid
from workers.store.arena import BLOCK, MARK, Arena, leased
from workers.store.mappings import Mappings
from workers.store.sizes import keep_size

SIZE = 1 << 16
MANY = 4


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path / f"{MARK}test", MANY * SIZE)


def other(arena: Arena) -> Arena:
    """The same, of another process."""
    return Arena(arena.root, arena.most)


def lay(arena: Arena, threads: Any, fill: int, size: int = SIZE) -> Path:
    """A blob that a disk has, too."""
    path = laid(arena, threads, "blob", bytes([fill]) * size)
    arena.settled("blob")
    return path


def test_a_slab_that_comes_again_is_mapped_already(arena: Arena, threads: Any) -> None:
    lay(arena, threads, 1)
    slab = arena.take(SIZE, threads)
    assert slab is not None
    assert arena.mapped(slab.path).used
    assert not other(arena).mapped(slab.path).used
    slab.close()


def test_what_is_written_through_it_is_in_the_file(arena: Arena, threads: Any) -> None:
    inode = lay(arena, threads, 1).stat().st_ino
    for who, fill in ((other(arena), 2), (arena, 3), (other(arena), 4)):
        path = lay(who, threads, fill)
        assert path.stat().st_ino == inode
        assert path.read_bytes() == bytes([fill]) * SIZE
        with leased(path) as descriptor:
            assert os.pread(descriptor, SIZE, 0) == bytes([fill]) * SIZE
    slab = arena.take(SIZE, threads)
    assert slab is not None
    assert bytes(slab.view) == b"\4" * SIZE
    slab.close()


@pytest.mark.parametrize("size", [SIZE - 100, SIZE + 1, 2 * SIZE])
def test_of_a_slab_that_was_cut_or_lengthened_all_is_mapped(arena: Arena, threads: Any, size: int) -> None:
    inode = lay(arena, threads, 1).stat().st_ino
    arena.drop("blob")
    changed = other(arena).take(size, threads)
    assert changed is not None
    assert os.stat(changed.path).st_ino == inode
    found = arena.mapped(changed.path)
    assert not found.used
    assert len(found.memory) == size
    changed.close()


def test_it_holds_no_lock(arena: Arena, threads: Any) -> None:
    inode = lay(arena, threads, 1).stat().st_ino
    slab = other(arena).take(SIZE, threads)
    assert slab is not None
    assert os.stat(slab.path).st_ino == inode
    slab.close()


def given_up(arena: Arena, threads: Any, path: Path) -> os.stat_result:
    """What a slab is once its memory was wanted for another."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        slab = other(arena).take(MANY * SIZE, threads)
        assert slab is not None
        slab.close()
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def test_memory_that_is_given_up_is_free_though_it_is_mapped(arena: Arena, threads: Any) -> None:
    found = given_up(arena, threads, lay(arena, threads, 1))
    assert (found.st_nlink, found.st_blocks * BLOCK) == (0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="locks of open files")
def test_who_keeps_its_size_keeps_its_memory(arena: Arena, threads: Any) -> None:
    path = lay(arena, threads, 1)
    descriptor = os.open(path, os.O_RDONLY)
    keep_size(descriptor)
    found = given_up(arena, threads, path)
    assert (found.st_nlink, found.st_size) == (0, SIZE)
    assert os.pread(descriptor, SIZE, 0) == b"\1" * SIZE
    os.close(descriptor)


def test_only_so_many_and_so_much_is_kept(tmp_path: Path) -> None:
    files = [tmp_path / str(k) for k in range(4)]
    for k, file in enumerate(files):
        file.write_bytes(bytes(SIZE * (k + 1)))
    few = Mappings(10 * SIZE, 2)
    assert [few.of(files[k]).used for k in (0, 1, 0, 2, 0, 1)] == [False, False, True, False, True, False]
    small = Mappings(3 * SIZE, 9)
    assert [small.of(files[k]).used for k in (3, 3, 0, 1, 0, 2, 0)] == [False] * 4 + [True, False, False]


def test_memory_in_use_outlasts_being_forgotten(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"\1" * SIZE)
    second.write_bytes(b"\2" * SIZE)
    one = Mappings(SIZE, 1)
    view = memoryview(one.of(first).memory)
    one.of(second)
    assert bytes(view) == b"\1" * SIZE
