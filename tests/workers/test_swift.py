"""Long arrays of the arena are mapped in one go, under the same lock and with the same doubts as in the general way."""

import fcntl
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kernels.problems.seen import seen_of
from tests.workers.test_arena_store import arena_in, laid, store  # noqa: F401
from tests.workers.test_laid import OWNER, long_array
from workers.store.arena import Arena
from workers.store.codec import InvalidUpload, Limits
from workers.store.folder import Folder
from workers.store.store import Store
from workers.store.swift import read_swift

ANY = Limits()


@pytest.fixture
def kept(store: Store) -> tuple[Store, dict[str, Any], Any]:  # noqa: F811
    array = long_array()
    digest, _ = laid(store, array)
    return store, {"blob": digest, "format": "npy", "dtype": "float64", "shape": list(array.shape)}, array


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def read(store: Store, reference: dict[str, Any], limits: Limits = ANY) -> Any:  # noqa: F811
    return read_swift(store.folder, reference, OWNER, limits)


def test_it_is_the_array_and_what_was_seen_of_it(kept: Any) -> None:
    store, reference, array = kept  # noqa: F811
    found = read(store, reference)
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable  # compiled loops know no other
    found[0, 0] += 1.0  # a copy of its own
    np.testing.assert_array_equal(read(store, reference), array)
    for _ in range(2):
        seen = seen_of(store.resolve(reference, OWNER))
        assert seen is not None
        assert (seen.low, seen.high) == (array.min(), array.max())
        store.settle(list(store.folder.left(0.0)))  # its notes lie on the disk from now on


def test_nobody_takes_the_slab_while_it_is_mapped(kept: Any, threads: ThreadPoolExecutor) -> None:
    store, reference, array = kept  # noqa: F811
    found = read(store, reference)
    store.settle(list(store.folder.left(0.0)))
    arena: Arena = arena_in(store)
    (slab,) = arena.blobs.iterdir()
    size, inode = slab.stat().st_size, slab.stat().st_ino
    other = arena.take(size, threads)
    assert other is not None
    assert os.fstat(other._descriptor).st_ino != inode
    other.close()
    np.testing.assert_array_equal(found, array)
    del found
    again = arena.take(size, threads), arena.take(size, threads)
    assert inode in [os.fstat(one._descriptor).st_ino for one in again if one is not None]
    for one in again:
        assert one is not None
        one.close()


def test_a_slab_that_is_written_is_not_read(kept: Any) -> None:
    store, reference, _ = kept  # noqa: F811
    (slab,) = arena_in(store).blobs.iterdir()
    with slab.open("r+b") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        assert read(store, reference) is None
    assert read(store, reference) is not None


def test_a_name_that_became_another_slabs_is_not_read(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, reference, _ = kept  # noqa: F811
    (slab,) = arena_in(store).blobs.iterdir()
    locked = fcntl.flock

    def late(descriptor: int, lock: int) -> None:
        locked(descriptor, lock)
        other = slab.with_name("other")
        other.write_bytes(bytes(slab.stat().st_size))
        other.rename(slab)

    monkeypatch.setattr("workers.store.swift.fcntl.flock", late)
    assert read(store, reference) is None
    monkeypatch.undo()
    assert read(store, reference) is None  # its header is not one


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [3, 5]},
        {"shape": []},
        {"shape": [0, 7]},
        {"shape": [True, 9]},
        {"shape": "3"},
        {"dtype": "int64"},
        {"dtype": "<f8"},
        {"dtype": "object"},
        {"dtype": "bfloat16"},
        {"format": "raw"},
        {"member": "cost"},
        {"scale": 2.0},
        {"blob": "sha256:../../x"},
        {"blob": "sha256:" + 64 * "0"},
    ],
)
def test_whatever_is_unusual_goes_the_general_way(kept: Any, change: dict[str, Any]) -> None:
    store, reference, _ = kept  # noqa: F811
    assert read(store, reference) is not None
    assert read(store, reference | change) is None


def test_claims_are_held_against_the_bytes_in_the_usual_words(kept: Any) -> None:
    store, reference, array = kept  # noqa: F811
    with pytest.raises(InvalidUpload, match="shape"):
        store.resolve(reference | {"shape": [3, 5]}, OWNER)
    assert read(store, reference, Limits(max_elements=array.size - 1)) is None
    assert read_swift(Folder(store.folder.root), reference, OWNER, ANY) is None
    assert read_swift(store.folder, reference, "bob", ANY) is None
