"""Short arrays are kept and read like any others, in one trip to Redis and without being mapped."""

import dataclasses
import os
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import Array
from workers.jobs.job import QuotaFull, StoreFull
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.store import shorts
from workers.store.codec import InvalidUpload
from workers.store.digests import digest_of_short
from workers.store.folder import Folder
from workers.store.shorts import WORTH_A_THREAD, Short, read_short, shorts_of
from workers.store.store import Store, open_store

ARRAYS: dict[str, Array] = {
    "vector": np.arange(5000.0),
    "single": np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 2, 2),
    "marks": np.array([True, False, True]),
    "whole": np.arange(7, dtype=np.int32),
}


@pytest.fixture
def store(settings: Settings, tmp_path: Path) -> Store:
    made = open_store(dataclasses.replace(settings, store_url=f"file://{tmp_path}/blobs"))
    made._redis.flushall()
    return made


def put(store: Store, *arrays: Array) -> list[dict[str, Any]]:
    files = [Short.of(array) for array in arrays]
    assert all(files)
    store.put_shorts([file for file in files if file is not None], "ann")
    return [file.reference for file in files if file is not None]


@pytest.mark.parametrize("name", ARRAYS)
def test_a_short_file_is_the_file_of_any_array(store: Store, name: str) -> None:
    array = ARRAYS[name]
    (reference,) = put(store, array)
    written = store.path(reference["blob"], "ann").read_bytes()
    assert store.path(reference["blob"], "ann").stat().st_mode & 0o077 == 0
    assert reference == store.put_array(array, "bob")
    assert written == store.path(reference["blob"], "bob").read_bytes()
    read = read_short(store.folder, reference, "ann")
    assert read is not None
    assert read.dtype == array.dtype
    assert read.flags.writeable  # compiled loops know no other
    np.testing.assert_array_equal(read, array)
    np.testing.assert_array_equal(store.open_array(reference, "ann"), array)


def test_all_of_an_answer_take_one_trip(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run, told = store._records._run, list[str]()

    def noted(name: str, *rest: Any, **how: Any) -> Any:
        told.append(name)
        return run(name, *rest, **how)

    monkeypatch.setattr(store._records, "_run", noted)
    references = put(store, *ARRAYS.values(), ARRAYS["vector"])
    assert told == ["keep"]
    assert references[0] == references[-1]
    for reference in references:
        assert store.stat(reference["blob"], "ann") is not None


@pytest.mark.parametrize(
    "array", [np.zeros(0), np.zeros(1 << 20), np.arange(12.0).reshape(3, 4).T, np.array([1j]), np.array([None])]
)
def test_what_is_not_short_goes_the_long_way(array: Array) -> None:
    assert Short.of(array) is None


@pytest.mark.parametrize("wrong", [{"shape": [4999]}, {"dtype": "float32"}, {"format": "npz"}, {"member": "a"}])
def test_a_reference_that_is_not_so_is_left_to_the_codec(store: Store, wrong: dict[str, Any]) -> None:
    (reference,) = put(store, ARRAYS["vector"])
    assert read_short(store.folder, {**reference, **wrong}, "ann") is None
    assert read_short(store.folder, reference, "bob") is None


def test_a_torn_file_is_refused_and_written_anew(store: Store) -> None:
    (reference,) = put(store, ARRAYS["vector"])
    path = store.path(reference["blob"], "ann")
    whole = path.read_bytes()
    for torn in (whole[:-8], b"x" + whole[1:]):
        path.write_bytes(torn)
        assert read_short(store.folder, reference, "ann") is None
        with pytest.raises(InvalidUpload):
            store.open_array(reference, "ann")
    path.write_bytes(whole[:-8])
    put(store, ARRAYS["vector"])
    assert path.read_bytes() == whole


def inode(store: Store, reference: dict[str, Any], owner: str = "ann") -> int:
    return store.path(reference["blob"], owner).stat().st_ino


def test_what_is_there_is_not_written_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (reference,) = put(store, ARRAYS["vector"])
    path, before, written = store.path(reference["blob"], "ann"), inode(store, reference), list[int]()
    os.utime(path, (1.0, 1.0))
    monkeypatch.setattr(Short, "written", lambda file, folder: written.append(file.size))
    put(store, ARRAYS["vector"])
    assert not written
    assert inode(store, reference) == before
    assert path.stat().st_mtime > 1.0  # its time begins anew


def test_one_that_is_deleted_while_redis_is_told_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that took it just before Redis knew that it is wanted again."""
    (reference,) = put(store, ARRAYS["vector"])
    path, run = store.path(reference["blob"], "ann"), store._records._run

    def swept(name: str, *rest: Any, **how: Any) -> Any:
        answer = run(name, *rest, **how)
        path.unlink()
        return answer

    monkeypatch.setattr(store._records, "_run", swept)
    put(store, ARRAYS["vector"])
    np.testing.assert_array_equal(store.open_array(reference, "ann"), ARRAYS["vector"])


def blobs(store: Store) -> list[Path]:
    assert isinstance(store.folder, Folder)
    return list(store.folder.root.glob("??/*"))


def test_none_has_its_name_before_redis_knows_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run, seen = store._records._run, list[tuple[int, int]]()

    def looked(name: str, *rest: Any, **how: Any) -> Any:
        answer = run(name, *rest, **how)
        seen.append((len(list(store.folder.temporary.iterdir())), len(blobs(store))))
        return answer

    monkeypatch.setattr(store._records, "_run", looked)
    put(store, *ARRAYS.values())
    assert seen == [(len(ARRAYS), 0)]
    assert list(store.folder.temporary.iterdir()) == []


def test_what_an_upload_made_durable_meanwhile_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result's file waits for no disk. One that an upload forced to the disk may not be replaced by it."""
    run, durable = store._records._run, list[int]()

    def uploaded(name: str, *rest: Any, **how: Any) -> Any:
        answer = run(name, *rest, **how)
        if not durable:
            durable.append(0)
            digest = store.put_array(ARRAYS["vector"], "ann")["blob"]
            durable.append(store.path(digest, "ann").stat().st_ino)
        return answer

    monkeypatch.setattr(store._records, "_run", uploaded)
    (reference,) = put(store, ARRAYS["vector"])
    assert inode(store, reference) == durable[1]
    assert list(store.folder.temporary.iterdir()) == []


def test_what_redis_refuses_leaves_nothing_behind(jobs: Jobs) -> None:
    jobs.store.quota_of = jobs.quotas.of
    jobs.quotas.set("ann", {"bytes": "10"})
    before = blobs(jobs.store)
    with pytest.raises(QuotaFull):
        put(jobs.store, ARRAYS["vector"] - 1)
    assert blobs(jobs.store) == before
    assert list(jobs.store.folder.temporary.iterdir()) == []


def test_alike_arrays_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those that begin alike, or have the same bytes in another form."""
    masses = np.full(100, 0.01)
    arrays = {"rows": masses, "columns": masses.copy(), "other": np.append(masses[1:], 0.02), "wide": masses[None]}
    arrays |= {"few": np.zeros(3), "numbers": np.zeros(3, np.int64)}
    expected = {name: Short.of(array) for name, array in arrays.items()}
    hashed, digest = list[str](), digest_of_short

    def counted(*parts: Any) -> str:
        hashed.append(digest(*parts))
        return hashed[-1]

    monkeypatch.setattr(shorts, "digest_of_short", counted)
    found = shorts_of(arrays)
    assert len(hashed) == len(set(hashed)) == 5
    assert {name: file.reference for name, file in found.items()} == {
        name: file.reference for name, file in expected.items() if file
    }


def test_long_arrays_in_another_order_are_not_copied() -> None:
    """Only what can become a short file is compared with others."""
    plan = np.zeros((1 << 10, 1 << 12)).T
    tracemalloc.start()
    try:
        assert shorts_of({"plan": plan, "few": np.ones(3)}).keys() == {"few"}
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_they_count_like_all_bytes(jobs: Jobs) -> None:
    jobs.store.quota_of = jobs.quotas.of
    jobs.quotas.set("ann", {"bytes": "50000"})
    put(jobs.store, ARRAYS["vector"], ARRAYS["whole"])
    assert 40_000 < jobs.quotas.used("ann")["bytes_store"] < 40_500
    with pytest.raises(QuotaFull):
        put(jobs.store, ARRAYS["marks"], ARRAYS["vector"] + 1)


def test_a_disk_that_is_full_leaves_nothing_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.writev", full)
    with pytest.raises(StoreFull):
        put(store, ARRAYS["vector"])
    assert list(store.folder.temporary.iterdir()) == []


def test_a_disk_that_takes_a_part_is_asked_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    writev = os.writev
    monkeypatch.setattr("os.writev", lambda descriptor, pieces: writev(descriptor, [pieces[0][:50]]))
    (reference,) = put(store, ARRAYS["vector"])
    np.testing.assert_array_equal(store.open_array(reference, "ann"), ARRAYS["vector"])


def test_long_ones_are_hashed_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two waits until the other has begun."""
    count = WORTH_A_THREAD // 8
    arrays = {"left": np.zeros(count), "few": np.ones(3), "right": np.ones(count)}
    both, digest = threading.Barrier(2), digest_of_short

    def met(*parts: Any) -> str:
        if sum(memoryview(part).nbytes for part in parts) > WORTH_A_THREAD:
            both.wait(30)
        return digest(*parts)

    expected = {name: Short.of(array) for name, array in arrays.items()}
    monkeypatch.setattr(shorts, "digest_of_short", met)
    found = shorts_of(arrays | {"long": np.zeros(1 << 20)})
    assert list(found) == list(arrays)
    assert {name: file.digest for name, file in found.items()} == {n: one.digest for n, one in expected.items() if one}
