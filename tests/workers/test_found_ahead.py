"""Pages of the arena that are found before anybody asks for them: how far, in which slabs, and where there are none."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.workers.laid import SIZE
from workers.store.arena import Arena
from workers.store.sizes import keep_size


def test_pages_are_found_ahead_in_slabs_of_whole_steps_up_to_half_of_all(
    arena: Arena, threads: ThreadPoolExecutor
) -> None:
    step = SIZE // 4
    own = arena.take(SIZE // 8, threads)
    assert own is not None
    own.close()  # not of whole steps: it is somebody's size, and stays
    for _ in range(20):
        arena.find_ahead(step, 3 * step)
    assert spare(arena) == [SIZE // 8, step, 3 * step, 3 * step]
    slab = arena.take(3 * step - 100, threads)  # as a first upload of nearly that size
    assert slab is not None
    assert slab.is_whole
    assert spare(arena) == [SIZE // 8, step, 3 * step]
    arena.find_ahead(step, 3 * step)
    assert spare(arena) == [SIZE // 8, step, 3 * step]  # that half is in use


def test_a_spare_slab_whose_size_somebody_keeps_grows_no_more(arena: Arena, threads: ThreadPoolExecutor) -> None:
    step = SIZE // 4
    arena.find_ahead(step, SIZE)
    (path,) = arena.spare.iterdir()
    with path.open("rb") as kept:
        keep_size(kept.fileno())
        arena.find_ahead(step, SIZE)
        assert spare(arena) == [step, step]
    arena.find_ahead(step, SIZE)
    assert spare(arena) == [step, 2 * step]


def test_without_room_for_a_step_the_slab_is_nobodys_and_lacks_pages(
    arena: Arena, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = SIZE // 4
    arena.find_ahead(step, SIZE)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match="no space left"):
            arena.find_ahead(step, SIZE)
    assert not list(arena._taken.iterdir())
    slab = arena.take(2 * step, threads)
    assert slab is not None
    assert not slab.is_whole  # its pages are found before anybody writes to them


def spare(arena: Arena) -> list[int]:
    """Sizes of what is nobody's."""
    return sorted(path.stat().st_size for path in arena.spare.iterdir())
