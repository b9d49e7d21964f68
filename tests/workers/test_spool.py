"""Short uploads in memory: a file with them is made once somebody wants it, whole or not at all."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from tests.workers.test_upload import Nobody, npy
from workers.jobs.job import StoreFull, UploadTooLarge
from workers.store.codec import AS_FOUND, Limits, read
from workers.store.digests import digest_of
from workers.store.expected import Expected
from workers.store.in_place import read_in_place
from workers.store.inline import carried
from workers.store.reference import frozen
from workers.store.upload import Writer

DATA = npy(np.random.default_rng(0).random((40, 50)))


def short(folder: Path, data: bytes = DATA, held: int = 1 << 18, most: int = 1 << 40) -> Writer:
    writer = Writer(Nobody(), most, folder, look=True, size=Expected(held=held))
    for start in range(0, len(data), 1001):
        writer.write(data[start : start + 1001])
    return writer


def test_it_has_no_file_until_one_is_wanted(tmp_path: Path) -> None:
    with short(tmp_path) as writer:
        assert bytes(writer.short or b"") == DATA
        assert writer.digest == digest_of(DATA)
        assert not writer.is_long
        assert list(tmp_path.iterdir()) == []
        path = writer.flush()
        assert path.read_bytes() == DATA
        assert writer.short is None
        assert writer.digest == digest_of(DATA)
    assert list(tmp_path.iterdir()) == []


def test_more_than_may_stay_goes_to_a_file(tmp_path: Path) -> None:
    with short(tmp_path, held=len(DATA) - 1) as writer:
        assert writer.short is None
        assert writer.path.read_bytes() == DATA
    assert list(tmp_path.iterdir()) == []


def test_the_reference_and_the_record_are_those_of_a_file(tmp_path: Path) -> None:
    for array in (np.eye(9, dtype=np.float32), np.arange(12, dtype=np.uint16).reshape(3, 4), np.eye(3, dtype=bool)):
        with short(tmp_path, npy(array)) as writer:
            here = read_in_place(writer, AS_FOUND, Limits())
            assert here is not None
            assert list(tmp_path.iterdir()) == []
            there = read(writer.flush(), AS_FOUND, "cost", Limits())
            assert frozen(writer.digest, here) == frozen(writer.digest, there)
            assert isinstance(here.value, np.ndarray)
            assert isinstance(there.value, np.ndarray)
            named = frozen(writer.digest, there)
            assert carried(named, here.value) == carried(named, there.value)
            assert not here.value.flags.writeable


def test_the_array_outlives_its_upload(tmp_path: Path) -> None:
    with short(tmp_path) as writer:
        reading = read_in_place(writer, AS_FOUND, Limits())
        writer.flush()
    assert reading is not None
    np.testing.assert_array_equal(reading.value, np.random.default_rng(0).random((40, 50)))


def test_too_many_entries_are_left_to_whoever_says_so(tmp_path: Path) -> None:
    with short(tmp_path) as writer:
        assert read_in_place(writer, AS_FOUND, Limits(max_elements=1999)) is None


def test_it_may_be_too_large(tmp_path: Path) -> None:
    with pytest.raises(UploadTooLarge), short(tmp_path, most=len(DATA) - 1):
        pass
    with short(tmp_path, most=len(DATA)) as writer:
        assert writer.size == len(DATA)


def test_a_disk_that_fills_meanwhile_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with short(tmp_path) as writer:

        def half(descriptor: int, data: memoryview) -> int:
            if len(data) < len(DATA):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(descriptor, data[:100])

        monkeypatch.setattr("workers.store.spool.os.write", half)
        with pytest.raises(StoreFull):
            writer.flush()
        assert list(tmp_path.iterdir()) == []
        monkeypatch.setattr("workers.store.spool.os.write", write)
        assert writer.flush().read_bytes() == DATA


def test_the_reserve_of_the_disk_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with short(tmp_path) as writer:
        monkeypatch.setattr("workers.store.disk.SPARE_BYTES", 1 << 60)
        with pytest.raises(StoreFull):
            writer.flush()
        assert list(tmp_path.iterdir()) == []
        assert bytes(writer.short or b"") == DATA
