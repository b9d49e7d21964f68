"""Long uploads through blocks: the bytes, the digest and what was seen are those of one thread that does it all."""

import errno
import hashlib
import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workers.totals import total_of
from workers.jobs.job import StoreFull, UploadTooLarge
from workers.store import blocks, disk, pool
from workers.store.arena import MARK, Arena, is_slab
from workers.store.codec import Limits, read
from workers.store.digests import OLD_TREE, PIECE, PLAIN, digest_of
from workers.store.expected import Expected
from workers.store.pieces import SHORT
from workers.store.upload import Writer

LONG = 3 * PIECE + 8 * 1001


class Nobody:
    limits = Limits()

    def adopt(self, writer: Writer, owner: str, brief: bool = False) -> None:
        raise AssertionError


def upload(data: bytes, folder: Path, portion: int = 1_000_003, **how: Any) -> Writer:
    writer = Writer(Nobody(), 1 << 40, folder, look=True, **how)
    for start in range(0, len(data), portion):
        writer.write(data[start : start + portion])
    writer.flush()
    return writer


def npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture
def no_blocks() -> Iterator[None]:
    """All blocks are in others' hands."""
    taken = []
    while (block := pool.pool().take()) is not None:
        taken.append(block)
    yield
    for block in taken:
        pool.pool().give(block)


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 2 * PIECE, LONG])
@pytest.mark.parametrize("portion", [65_537, PIECE, 3 * PIECE])
def test_bytes_and_digest(size: int, portion: int, tmp_path: Path) -> None:
    data = np.random.default_rng(size).bytes(size)
    with upload(data, tmp_path, portion) as writer:
        assert writer.path.read_bytes() == data
        assert writer.digest == digest_of(data)
    assert not writer.path.exists()
    for scheme in (PLAIN, OLD_TREE):
        with upload(data, tmp_path, portion, scheme=scheme) as writer:
            assert writer.path.read_bytes() == data
            assert writer.digest == digest_of(data, like=f"{scheme}:")


def test_without_a_free_block_the_upload_does_it_by_itself(no_blocks: None, tmp_path: Path) -> None:
    data = npy(np.random.default_rng(1).random(LONG // 8))
    with upload(data, tmp_path) as writer:
        assert writer.path.read_bytes() == data
        assert writer.digest == digest_of(data)
        assert writer.sight is None


def test_blocks_come_back_whatever_happens(tmp_path: Path) -> None:
    def left() -> int:
        taken = []
        while (block := pool.pool().take()) is not None:
            taken.append(block)
        for block in taken:
            pool.pool().give(block)
        return len(taken)

    before = left()
    for _ in range(4 * before):
        writer = Writer(Nobody(), LONG, tmp_path)
        writer.write(bytes(PIECE + 5))
        with pytest.raises(UploadTooLarge):
            writer.write(bytes(LONG))
        writer.close()
        writer.close()
    assert left() == before
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_under_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, here = os.pwrite, threading.current_thread()

    def full(descriptor: int, data: Any, at: int) -> int:
        if at >= 2 * PIECE and threading.current_thread() is not here:
            raise OSError(errno.ENOSPC, "no room")
        return real(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    with Writer(Nobody(), 1 << 40, tmp_path) as writer:
        for _ in range(3 * PIECE // (1 << 20)):
            writer.write(bytes(1 << 20))
        with pytest.raises(StoreFull):
            writer.flush()


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i4", "<i8"])
def test_what_is_seen_is_what_is_there(dtype: str, tmp_path: Path) -> None:
    array = (1000 * np.random.default_rng(2).standard_normal((7, LONG // 28))).astype(dtype)
    with upload(npy(array), tmp_path, sums=True) as writer:
        sight = writer.sight
        assert sight is not None
        assert (sight.seen.low, sight.seen.high) == (array.min(), array.max())
        assert sight.seen.total == total_of(array)
        value = read(writer.path).value
        assert sight.fits(value)
        assert not sight.fits(np.asarray(array))
        assert isinstance(value, np.memmap)
        assert not sight.fits(value.view("<u4" if dtype[2] == "4" else "<u8"))


@pytest.mark.parametrize("at", [0, PIECE // 8, LONG // 8 - 1])
def test_nan_in_any_piece_is_not_seen_away(at: int, tmp_path: Path) -> None:
    array = np.zeros(LONG // 8)
    array[at] = np.nan
    with upload(npy(array), tmp_path) as writer:
        assert writer.sight is None


def test_what_is_no_one_array_is_not_looked_at(tmp_path: Path) -> None:
    long = np.zeros(LONG // 8)
    columns_first = npy(np.asfortranarray(np.zeros((1000, LONG // 8000))))
    short = npy(long)[:-8]
    more = npy(long) + bytes(8)
    for data in (bytes(LONG), npy(long.astype("<f2").repeat(4)), npy(long.astype(">f8")), columns_first, short, more):
        with upload(data, tmp_path) as writer:
            assert writer.sight is None


def test_no_total_unless_somebody_compares_it(tmp_path: Path) -> None:
    with upload(npy(np.zeros(LONG // 8)), tmp_path) as writer:
        assert writer.sight is not None
        assert writer.sight.seen.total is None


def test_the_disk_is_begun_with_while_bytes_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, int]] = []
    monkeypatch.setattr(blocks, "hasten", lambda descriptor, at, count: begun.append((at, count)))
    with upload(bytes(LONG), tmp_path):
        assert sum(count for _, count in begun) == LONG
        assert {at for at, _ in begun} == {0, PIECE, 2 * PIECE, 3 * PIECE}
    begun.clear()
    with Writer(Nobody(), 1 << 40, tmp_path) as result:  # nobody waits for the disk to have it
        result.write(bytes(LONG))
        result.flush()
    assert begun == []


def test_a_system_without_that_call_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_sync_file_range", lambda: None)
    with upload(bytes(LONG), tmp_path) as writer:
        assert writer.path.stat().st_size == LONG


def numbers(count: int) -> bytes:
    return npy(np.random.default_rng(0).random(count))


def test_a_slab_needs_no_file_beside_it(tmp_path: Path) -> None:
    data, arena = numbers(PIECE // 4), Arena(tmp_path / f"{MARK}one", 4 * PIECE)
    (folder := tmp_path / "aside").mkdir()
    with Writer(Nobody(), 1 << 40, folder, look=True, size=Expected(len(data), arena=arena)) as writer:
        writer.write(data)
        assert is_slab(writer.flush())
        assert not list(folder.iterdir())


def test_what_came_is_read_while_it_is_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, arena = numbers(PIECE // 8 * 2 + SHORT // 4), Arena(tmp_path / f"{MARK}one", 4 * PIECE)
    go_on, sha256 = threading.Event(), hashlib.sha256

    def late(view: Any = b"") -> Any:
        assert go_on.wait(10)
        return sha256(view)

    monkeypatch.setattr(pool._Pool, "size", 32)  # a thread for each task
    pool.pool.cache_clear()
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data), arena=arena)) as writer:
        monkeypatch.setattr(hashlib, "sha256", late)
        try:
            writer.write(data)
            assert writer.look().read_bytes() == data
            assert writer.sight is not None
        finally:
            go_on.set()
            monkeypatch.undo()
        assert writer.digest == digest_of(data)
    pool.pool.cache_clear()


@pytest.mark.parametrize("size", [LONG, 3 << 20])
def test_who_waits_for_a_look_takes_it_where_no_thread_has(size: int, tmp_path: Path) -> None:
    data, go, mark = numbers(size // 8), threading.Event(), b"--a boundary"
    arena = Arena(tmp_path / f"{MARK}one", 4 * PIECE)
    with Writer(Nobody(), 1 << 40, tmp_path, size=Expected(len(data), arena=arena)) as writer:
        writer.write(data)  # whose pages threads find
    others = [pool.pool().threads.submit(go.wait, 30) for _ in range(pool.THREADS)]
    with Writer(Nobody(), 1 << 40, tmp_path, sums=True, look=True, size=Expected(len(data), arena=arena)) as writer:
        try:
            writer.seek(mark)
            writer.write(data)
            looking = threading.Thread(target=writer.look)
            looking.start()
            looking.join(10)
            assert not looking.is_alive()
            assert writer.marked(b"") is None
            assert writer.sight is not None
            assert writer.sight.seen.total == int(np.frombuffer(data[128:], "<u8").sum(dtype=np.uint64))
        finally:
            go.set()
        assert all(other.result() for other in others)
        assert writer.digest == digest_of(data)


@pytest.mark.parametrize("came", [LONG - PIECE, LONG])
def test_who_is_dropped_waits_for_no_hashing(came: int, tmp_path: Path) -> None:
    """The event loop closes what a client has left behind, and threads may have much to do for others."""
    data, go = numbers(LONG // 8), threading.Event()
    arena = Arena(tmp_path / f"{MARK}one", 4 * PIECE)
    writer = Writer(Nobody(), 1 << 40, tmp_path, sums=True, look=True, size=Expected(len(data), arena=arena))
    writer.write(data[:PIECE])
    others = [pool.pool().threads.submit(go.wait, 30) for _ in range(pool.THREADS)]
    try:
        writer.write(data[PIECE:came])
        closing = threading.Thread(target=writer.close)
        closing.start()
        closing.join(10)
        assert not closing.is_alive()
    finally:
        go.set()
    assert all(other.result() for other in others)
    assert [path.stat().st_size for path in arena.spare.iterdir()] == [len(data)]


def test_more_may_come_after_a_slab_was_full(tmp_path: Path) -> None:
    """The piece that filled it was taken for the last, and is hashed again with what follows."""
    data, more = numbers(PIECE // 8 + 7), b"more of it" * 1000
    arena = Arena(tmp_path / f"{MARK}one", 4 * PIECE)
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data), arena=arena)) as writer:
        writer.write(data)
        writer.write(more)
        assert writer.flush().read_bytes() == data + more
        assert writer.digest == digest_of(data + more)
        assert writer.sight is None
