"""A store whose disk is full says so, whichever call finds out; it leaves nothing behind, and goes on with room."""

import dataclasses
import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.disks import fill, small_disk
from tests.workers.test_codec import npy
from workers.jobs.job import StoreFull
from workers.runtime.config import Settings
from workers.store import disk as disk_module
from workers.store.store import Store, open_store

MATRIX = np.arange(1024.0).reshape(32, 32)
LARGE = np.zeros((512, 512))


@pytest.fixture
def store(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(disk_module, "SPARE_BYTES", 0)
    with small_disk(tmp_path / "small", "1m") as disk:
        yield open_store(dataclasses.replace(settings, store_url=f"file://{disk}/blobs"))


def left(store: Store) -> list[Path]:
    return list(store.folder.temporary.iterdir())


def disk_of(store: Store) -> Path:
    return store.folder.temporary.parent.parent


@pytest.mark.parametrize("array", [MATRIX, LARGE], ids=["found out when it is flushed", "found out when it is written"])
def test_an_array_that_does_not_fit_leaves_nothing(store: Store, array: np.ndarray) -> None:
    ballast = fill(disk_of(store))
    for brief in (True, False):
        with pytest.raises(StoreFull, match="No space left"):
            store.put_array(array, "ann", brief)
    with pytest.raises(StoreFull), store.write([npy(array)]) as writer:
        writer.commit("ann")
    assert left(store) == []
    ballast.unlink()
    reference = store.put_array(MATRIX, "ann")
    np.testing.assert_array_equal(store.open_array(reference, "ann"), MATRIX)


def zipped(array: np.ndarray) -> bytes:
    target = io.BytesIO()
    np.savez_compressed(target, array)
    return target.getvalue()


@pytest.mark.parametrize("packed", [gzip.compress(npy(LARGE)), zipped(LARGE)], ids=["gzip", "npz"])
def test_an_upload_that_does_not_fit_once_inflated_is_not_called_damaged(store: Store, packed: bytes) -> None:
    with pytest.raises(StoreFull, match="No space left"), store.write([packed]) as writer:
        writer.commit("ann")
    assert left(store) == []


def test_an_upload_that_is_dropped_on_a_full_disk_leaves_nothing(store: Store) -> None:
    with store.writer() as writer:
        writer.write(b"x" * 100)  # still in its buffer, from where closing will try to write it
        fill(disk_of(store))
    assert left(store) == []


def test_the_probe_writes(store: Store) -> None:
    store.check()
    ballast = fill(disk_of(store))
    with pytest.raises(StoreFull):
        store.check()
    assert left(store) == []
    ballast.unlink()
    store.check()


def test_a_disk_that_is_nearly_full_is_told_before_redis_suffers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "SPARE_BYTES", 64 << 20)
    with pytest.raises(StoreFull, match="less than 64 MiB"):
        store.check()
