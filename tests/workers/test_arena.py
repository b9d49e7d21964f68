"""Memory that is used again: nobody reads another's bytes, no death leaves it held, and without room it is files."""

import fcntl
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.cli import serve
from tests.workers.test_laid import OWNER, long_array
from workers.jobs.job import UnknownBlob
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.store import disk
from workers.store.arena import KEPT, MARK, Arena, arena_of, is_slab, leased
from workers.store.codec import Limits
from workers.store.digests import PIECE, digest_of
from workers.store.folder import Folder, file_of, name_of
from workers.store.layouts import npy as read_npy
from workers.store.opening import arena_for
from workers.store.store import Store
from workers.store.upload import Expected, Writer

SIZE = 1 << 16
HOLD = """
import os, sys, time
from pathlib import Path
from workers.store.arena import Arena, leased
from concurrent.futures import ThreadPoolExecutor
import numpy as np
arena = Arena(Path(sys.argv[1]), 1 << 30)
if sys.argv[2] == "map":
    with leased(Path(sys.argv[3])) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        found = np.memmap(file, np.uint8, "c")
else:
    found = arena.take(int(sys.argv[3]), ThreadPoolExecutor(1))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path / f"{MARK}test", 4 * SIZE)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def lay(arena: Arena, threads: Any, file: str, fill: int, size: int = SIZE) -> Path:
    slab = arena.take(size, threads)
    assert slab is not None
    slab.ready(0)
    slab.view[:] = bytes([fill]) * size
    slab.written()
    arena.lay(file, slab.path)
    slab.close()
    found = arena.find(file)
    assert found is not None
    return found


def held_by(*told: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, *told], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_memory_is_used_again_and_its_old_name_is_gone(arena: Arena, threads: Any) -> None:
    path = lay(arena, threads, "a", 1)
    inode = path.stat().st_ino
    arena.settled("a")
    assert lay(arena, threads, "b", 2).stat().st_ino == inode
    assert arena.find("a") is None
    assert not arena.is_laid("a")
    assert arena.is_laid("b")


def test_what_no_disk_has_is_never_taken(arena: Arena, threads: Any) -> None:
    for number in range(4):
        lay(arena, threads, f"laid-{number}", number)
    assert arena.take(SIZE, threads) is None
    assert arena.take(SIZE // 2, threads) is None
    arena.settled("laid-2")
    lay(arena, threads, "next", 9)
    assert [arena.is_laid(f"laid-{number}") for number in range(4)] == [True, True, False, True]
    assert sorted(file for file, _ in arena.laid()) == ["laid-0", "laid-1", "laid-3", "next"]


def test_another_size_gets_the_room_of_those_that_a_disk_has(arena: Arena, threads: Any) -> None:
    for file in "abcd":
        lay(arena, threads, file, 1)
    for file in "abcd":
        arena.settled(file)
    lay(arena, threads, "long", 2, 2 * SIZE)
    assert [arena.find(file) is not None for file in "abcd"] == [False, False, True, True]
    assert arena.take(5 * SIZE, threads) is None


def test_what_somebody_maps_is_not_written_until_they_have_died(arena: Arena, threads: Any) -> None:
    path = lay(arena, threads, "a", 7)
    arena.settled("a")
    process = held_by(str(arena.root), "map", str(path))
    try:
        taken = [arena.take(SIZE, threads) for _ in range(4)]
        assert [one is None for one in taken] == [False, False, False, True]
        assert path.read_bytes() == bytes([7]) * SIZE
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert arena.take(SIZE, threads) is not None
    assert arena.find("a") is None


def test_a_mapping_here_holds_on_too_and_slices_of_it(arena: Arena, threads: Any, tmp_path: Path) -> None:
    array = np.arange(SIZE // 8)
    file = io.BytesIO()
    np.save(file, array)
    slab = arena.take(len(file.getvalue()), threads)
    assert slab is not None
    slab.view[:] = file.getvalue()
    slab.written()
    found: Any = read_npy(slab.path, SIZE)[5:9]
    arena.lay("a", slab.path)
    arena.settled("a")
    slab.close()
    del slab
    others = [one for _ in range(4) if (one := arena.take(file.getbuffer().nbytes, threads)) is not None]
    assert len(others) == 2  # three would fit
    for one in others:
        one.view[:] = b"x" * len(one.view)
    assert found.tolist() == [5, 6, 7, 8]
    assert found.base.base is not None
    del found
    assert arena.take(file.getbuffer().nbytes, threads) is not None


def test_whoever_opened_a_slab_before_it_was_taken_sees_that_it_is_another(arena: Arena, threads: Any) -> None:
    path = lay(arena, threads, "a", 1)
    arena.settled("a")
    descriptor = os.open(path, os.O_RDONLY)
    slab = arena.take(SIZE, threads)
    assert slab is not None
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(descriptor)
    with pytest.raises(FileNotFoundError), leased(slab.path):
        raise AssertionError
    with pytest.raises(FileNotFoundError), leased(path):
        raise AssertionError


def test_a_writer_that_dies_leaves_its_slab_to_the_next(arena: Arena, threads: Any) -> None:
    process = held_by(str(arena.root), "write", str(4 * SIZE))
    assert arena.take(4 * SIZE, threads) is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert arena.take(4 * SIZE, threads) is not None


def test_a_frozen_process_with_the_lock_holds_nobody_up(arena: Arena, threads: Any) -> None:
    with (arena.root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert arena.take(SIZE, threads) is None
    assert arena.take(SIZE, threads) is not None


@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_memory_that_is_not_there_is_no_error(pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found out piece by piece, and the body goes on in a file."""
    large, real = Arena(tmp_path / f"{MARK}large", 16 * PIECE), os.posix_fallocate
    data = body(PIECE // 8 * 5)

    def full(descriptor: int, at: int, count: int) -> None:
        if at >= pieces * PIECE:
            raise OSError(28, "no room")
        real(descriptor, at, count)

    monkeypatch.setattr(os, "posix_fallocate", full)
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data), arena=large)) as writer:
        writer.write(data)
        assert not is_slab(writer.flush())
        assert writer.path.read_bytes() == data
        assert writer.digest == digest_of(data)
    monkeypatch.undo()
    found: list[int] = []

    def noted(descriptor: int, at: int, count: int) -> None:
        found.append(at)
        real(descriptor, at, count)

    monkeypatch.setattr(os, "posix_fallocate", noted)
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data), arena=large)) as writer:
        writer.write(data)
        assert is_slab(writer.flush())
    assert sorted(found) == list(range(0, len(data), PIECE))  # what was left of the first was no whole slab


def test_what_is_announced_and_never_comes_takes_no_memory(tmp_path: Path) -> None:
    large = Arena(tmp_path / f"{MARK}large", 64 * PIECE)
    data = body(PIECE // 8 * 40)
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data), arena=large)) as writer:
        writer.write(data[: PIECE + 1])
        assert writer.path.stat().st_blocks * 512 <= 6 * PIECE
    (spare,) = large.spare.iterdir()
    assert spare.stat().st_size == len(data)


def test_no_arena_where_there_can_be_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert arena_of(tmp_path, str(tmp_path / "file"), 1) is None
    assert arena_of(tmp_path, "", 1) is None


def test_the_end_of_a_service_gives_memory_back_but_what_no_disk_has(arena: Arena, threads: Any) -> None:
    lay(arena, threads, "laid", 1)
    lay(arena, threads, "kept", 2)
    arena.settled("kept")
    arena.clear()
    assert arena.find("kept") is None
    assert arena.find("laid") is not None


class Nobody:
    limits = Limits()

    def adopt(self, writer: Writer, owner: str, brief: bool = False) -> None:
        raise AssertionError


def body(count: int, seed: int = 0) -> bytes:
    file = io.BytesIO()
    np.save(file, np.random.default_rng(seed).random(count))
    return file.getvalue()


@pytest.mark.parametrize(("change", "in_slab"), [(0, True), (-8, False), (8, False), (3 * PIECE, False)])
def test_an_upload_in_a_slab_has_the_bytes_and_digest_of_a_file(tmp_path: Path, change: int, in_slab: bool) -> None:
    """Also where its header lies about its length."""
    large = Arena(tmp_path / f"{MARK}large", 16 * PIECE)
    data = body(PIECE // 8 * 3 + 7)
    data = (data + bytes(change)) if change > 0 else data[: len(data) + change]
    with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=Expected(len(data) + 300, arena=large)) as writer:
        for start in range(0, len(data), 777_777):
            writer.write(data[start : start + 777_777])
        path = writer.flush()
        assert is_slab(path) is in_slab
        assert path.read_bytes() == data
        assert writer.digest == digest_of(data)
        assert (writer.sight is not None) is (change == 0)
    assert not path.exists()


def test_a_header_that_claims_more_than_was_announced_gets_no_slab(tmp_path: Path) -> None:
    large = Arena(tmp_path / f"{MARK}large", 16 * PIECE)
    data = body(PIECE // 8 * 3)
    for size in (Expected(2 * PIECE, arena=large), Expected(arena=large)):
        with Writer(Nobody(), 1 << 40, tmp_path, look=True, size=size) as writer:
            writer.write(data)
            assert not is_slab(writer.flush())
            assert writer.digest == digest_of(data)


@pytest.fixture
def store(jobs: Jobs, tmp_path: Path) -> Store:
    arena = Arena(tmp_path / f"{MARK}store", 8 * PIECE)
    return Store(Folder(tmp_path / "kept", arena=arena), jobs._redis, jobs.settings)


def laid(store: Store, array: Any, owner: str = OWNER) -> tuple[str, str]:
    file = io.BytesIO()
    np.save(file, array)
    with store.writer(size=Expected(len(file.getvalue()))) as writer:
        writer.write(file.getvalue())
        return writer.digest, store.lay(writer, owner)


def arena_in(store: Store) -> Arena:
    assert isinstance(store.folder, Folder)
    assert store.folder.arena is not None
    return store.folder.arena


def test_a_job_reads_the_slab_and_then_the_disk(store: Store) -> None:
    array = long_array()
    digest, name = laid(store, array)
    reference = {"blob": digest, "format": "npy"}
    for _ in range(2):
        value: Any = store.resolve(reference, OWNER)
        assert is_slab(Path(value.filename))
        np.testing.assert_array_equal(value, array)
        store.settle([name])
    assert not store.folder.is_laid(name)  # type: ignore[union-attr]
    arena_in(store).drop(value.filename.rpartition("/")[2])
    again: Any = store.resolve(reference, OWNER)
    assert not is_slab(Path(again.filename))
    np.testing.assert_array_equal(again, array)


def test_a_full_arena_is_files(store: Store) -> None:
    found = [laid(store, long_array(seed)) for seed in range(3)]
    for seed, (digest, name) in enumerate(found):
        value: Any = store.resolve({"blob": digest, "format": "npy"}, OWNER)
        assert is_slab(Path(value.filename)) is (seed < 2)
        np.testing.assert_array_equal(value, long_array(seed))
        assert store.folder.is_laid(name)  # type: ignore[union-attr]


def test_a_blob_is_on_the_disk_before_anybody_is_told(store: Store) -> None:
    array = long_array()
    file = io.BytesIO()
    np.save(file, array)
    with store.writer(size=Expected(len(file.getvalue()), exact=True)) as writer:
        writer.write(file.getvalue())
        digest = writer.commit(OWNER).digest
    (slab,) = (arena_in(store).root / "blobs").iterdir()
    assert slab.stat().st_mode & 0o777 == KEPT
    slab.unlink()  # as after a power cut
    assert store.find(digest, OWNER).read_bytes() == file.getvalue()


def test_bytes_that_a_power_cut_took_are_unknown(store: Store) -> None:
    digest, _ = laid(store, long_array())
    for slab in (arena_in(store).root / "blobs").iterdir():
        slab.unlink()
    with pytest.raises(UnknownBlob):
        store.resolve({"blob": digest, "format": "npy"}, OWNER)


def test_a_result_is_in_memory_and_is_settled_by_whoever_comes(store: Store) -> None:
    array = long_array(5)
    reference = store.put_array(array, OWNER, brief=True)
    value: Any = store.open_array(reference, OWNER)
    assert is_slab(Path(value.filename))
    (name,) = store.folder.left(0.0)
    assert name == name_of(str(reference["blob"]), OWNER)
    assert store.folder.free() < disk_free(store)  # type: ignore[operator]
    store.settle([name])
    assert list(store.folder.left(0.0)) == []
    np.testing.assert_array_equal(np.load(store.folder.path(name)), array)


def disk_free(store: Store) -> int:
    import shutil

    return shutil.disk_usage(store.folder.temporary).free + (1 << 20)


@pytest.mark.parametrize("point", ["os.fsync", "Path.rename"])
def test_a_process_killed_while_it_copies_a_slab_out_loses_nothing(store: Store, point: str, tmp_path: Path) -> None:
    digest, name = laid(store, long_array())
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom workers.store.arena import Arena\n"
        "from workers.store.folder import Folder\n"
        "folder = Folder(Path(sys.argv[1]), arena=Arena(Path(sys.argv[2]), 1 << 30))\n"
        f"{point} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\nfolder.settle(sys.argv[3])\n"
    )
    assert isinstance(store.folder, Folder)
    told = [str(store.folder.root), str(arena_in(store).root), name]
    assert subprocess.run([sys.executable, "-c", code, *told]).returncode == -signal.SIGKILL
    assert store.folder.is_laid(name)
    store.settle([name])
    assert digest_of(store.folder.path(name).read_bytes()) == digest


@pytest.mark.parametrize("refused", [False, True])
def test_a_slab_gets_to_the_disk_whole_with_the_page_cache_or_past_it(
    store: Store, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if refused:
        monkeypatch.setattr(disk, "_past_cache", lambda *_: False)
    array = long_array()
    digest, name = laid(store, array)
    store.settle([name])
    assert isinstance(store.folder, Folder)
    assert digest_of((store.folder.root / digest.partition(":")[2][:2]).joinpath(
        next(p.name for p in (arena_in(store).root / "blobs").iterdir())).read_bytes()) == digest  # fmt: skip


def test_equal_bytes_of_two_owners_are_two_slabs(store: Store) -> None:
    array = long_array()
    laid(store, array)
    laid(store, array, "bob")
    assert len(list((arena_in(store).root / "blobs").iterdir())) == 2


def test_a_service_has_shared_memory_where_nobody_else_reads_its_store_and_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "SHARED_MEMORY", tmp_path / "shm")
    (tmp_path / "shm").mkdir()
    plain = Settings(data_dir=tmp_path / "data")
    with serve.memory_for(plain, alone=False) as told:
        assert arena_for(told) is None
    with serve.memory_for(plain, alone=True) as told, ThreadPoolExecutor(1) as threads:
        arena = arena_for(told)
        assert arena is not None
        name = name_of("sha256:" + "b" * 64, OWNER)
        lay(arena, threads, file_of(name), 5)
    assert list((tmp_path / "shm").iterdir()) == []
    assert Folder(tmp_path / "data" / "blobs").path(name).read_bytes() == bytes([5]) * SIZE
