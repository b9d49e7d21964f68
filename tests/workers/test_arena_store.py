"""Uploads and results in the arena: the same bytes and digests as in files, on the disk before anybody is told."""

import errno
import io
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.cli import serve
from tests.workers.laid import SIZE
from tests.workers.service import allowed
from tests.workers.test_arena import Nobody, body, lay
from tests.workers.test_laid import OWNER, long_array
from tests.workers.totals import total_of
from workers.jobs.job import UnknownBlob
from workers.jobs.queue import Jobs
from workers.runtime import config
from workers.runtime.config import Settings, private_folder
from workers.runtime.redis_server import EmbeddedRedis
from workers.store import disk
from workers.store import folder as folder_of_blobs
from workers.store.arena import MARK, Arena, is_slab
from workers.store.digests import PIECE, digest_of
from workers.store.expected import Expected
from workers.store.folder import Folder
from workers.store.lying import KEPT
from workers.store.names import file_of, name_of
from workers.store.opening import arena_for
from workers.store.store import Store
from workers.store.upload import WORTH_A_SLAB, Writer


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


@pytest.mark.parametrize("count", [WORTH_A_SLAB // 8, 300_000, PIECE // 8 - 16, PIECE // 8 - 15])
def test_what_fits_into_one_piece_has_a_plain_digest_there_too(tmp_path: Path, count: int) -> None:
    data = body(count)
    with Writer(
        Nobody(),
        1 << 40,
        tmp_path,
        look=True,
        size=Expected(len(data), arena=Arena(tmp_path / f"{MARK}one", 4 * PIECE)),
    ) as writer:
        writer.write(data)
        assert is_slab(writer.flush())
        assert writer.digest == digest_of(data)
        assert writer.sight is not None


@pytest.mark.parametrize("seed", range(12))
def test_any_portions_of_any_announced_size_give_the_same(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arena = Arena(tmp_path / f"{MARK}any", 8 * PIECE)
    for _ in range(6):
        said, odd = 1_200_000 + int(rng.integers(3)) * PIECE // 2 * 3, int(rng.integers(1 << 20))
        full = body((PIECE if rng.random() < 0.3 else said + odd) // 8 - 16)  # 16 words of header: one piece exactly
        data = full + rng.bytes(9) if rng.random() < 0.2 else full[: len(full) - int(rng.integers(2)) * 12_345]
        expected = Expected(len(full), exact=bool(rng.integers(2)), arena=arena)
        with Writer(Nobody(), 1 << 40, tmp_path, look=True, sums=True, size=expected) as writer:
            fill(writer, data, rng)
            path = writer.look() if rng.random() < 0.5 else writer.flush()
            assert is_slab(path) is (data == full)
            assert path.read_bytes() == data
            assert writer.digest == digest_of(data)
            sight = writer.sight
            assert (sight is not None) is (data == full)
            if sight is not None:
                numbers = np.frombuffer(data, np.float64, offset=128)
                assert (sight.seen.low, sight.seen.high) == (numbers.min(), numbers.max())
                assert sight.seen.total == total_of(numbers)


def fill(writer: Writer, data: bytes, rng: np.random.Generator) -> None:
    """In portions of a kind, through one door or the other."""
    view, most = memoryview(data), int(rng.choice([60_000, 1 << 20, 3 << 20, 9 << 20]))
    while view:
        count = min(len(view), 1 + int(rng.integers(most)) if rng.random() < 0.5 else most)
        room = writer.place() if rng.random() < 0.7 else None
        if room is None:
            writer.write(view[:count])
        else:
            count = min(count, len(room))
            room[:count] = view[:count]
            writer.came(count)
        view = view[count:]


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


@pytest.mark.parametrize("keep", [Store.lay, Store.adopt])
def test_bytes_are_kept_while_whoever_has_the_lock_of_the_arena_is_frozen(
    store: Store, monkeypatch: pytest.MonkeyPatch, keep: Any
) -> None:
    monkeypatch.setattr(folder_of_blobs, "PATIENCE_S", 0.01)
    data = body(PIECE // 8 * 3)
    with store.writer(size=Expected(len(data))) as writer:
        writer.write(data)
        assert is_slab(writer.flush())
        with arena_in(store)._alone():
            keep(store, writer, OWNER)
            kept = store.folder.path(name_of(writer.digest, OWNER))
            assert not is_slab(kept)
            assert kept.read_bytes() == data
            with pytest.raises(BlockingIOError):
                store.folder.lay(name_of(writer.digest, OWNER), writer.path, patient=False)
            monkeypatch.setattr(store.folder, "_most_laid", 0)
            assert not store.folder.lay(name_of("sha256:" + "b" * 64, OWNER), writer.path)
        assert not list(store.folder.temporary.glob("copied-*"))


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


def test_a_job_that_looks_as_its_bytes_are_laid_does_not_wait_for_the_disk(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get their name while a worker takes the job: it may look just before, and again when they are there."""
    array, swift = long_array(), store.folder.swift
    digest, name = laid(store, array)
    looks = iter((None, swift(name)))
    monkeypatch.setattr(store.folder, "swift", lambda _: next(looks))
    reference = {"blob": digest, "format": "npy"}
    with pytest.raises(UnknownBlob):  # a job whose owner waits is told to look again
        store.resolve(reference, OWNER)
    assert store.folder.is_laid(name)  # type: ignore[union-attr]
    np.testing.assert_array_equal(np.asarray(store.resolve(reference, OWNER)), array)
    assert store.folder.is_laid(name)  # type: ignore[union-attr]


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


def test_memory_without_room_for_what_was_seen_fails_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    arena = Arena(tmp_path / f"{MARK}one", 4 * SIZE)
    folder, name = Folder(tmp_path / "blobs", arena=arena), name_of("sha256:" + "e" * 64, OWNER)
    monkeypatch.setattr("workers.store.folder.io", SimpleNamespace(FileIO=Full))
    folder.remark(name, b"seen", coming=True)
    assert folder.remarked(name) == b""


def test_what_was_seen_stays_in_memory_until_the_disk_has_the_bytes(tmp_path: Path) -> None:
    arena = Arena(tmp_path / f"{MARK}one", 4 * SIZE)
    folder, name = Folder(tmp_path / "blobs", arena=arena), name_of("sha256:" + "e" * 64, OWNER)
    on_disk = tmp_path / "blobs" / "ee" / f"{file_of(name)}.seen"
    with ThreadPoolExecutor(1) as threads:
        lay(arena, threads, file_of(name), 5)
        folder.remark(name, b"seen")
        assert folder.remarked(name) == b"seen"
        assert not on_disk.exists()
        folder.settle(name)
        assert on_disk.read_bytes() == folder.remarked(name) == b"seen"
        assert list(arena.seen.iterdir()) == []
        lay(arena, threads, file_of(name), 5)
        folder.remark(name, b"seen again")
        folder.delete(name)
        assert folder.remarked(name) == b""
        (arena.seen / "left").write_bytes(b"of a process that died")
        assert list(folder.older_than(0.0)) == []
        assert list(arena.seen.iterdir()) == []


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


def test_a_named_arena_is_kept_for_others_and_the_disk_has_what_lay_there(tmp_path: Path) -> None:
    """The last container of a machine takes the memory with it."""
    named = Settings(data_dir=tmp_path / "data", arena_dir=str(private_folder(tmp_path / "shared")))
    with serve.memory_for(named, alone=False) as told, ThreadPoolExecutor(1) as threads:
        arena = arena_for(told)
        assert arena is not None
        file = file_of(name_of("sha256:" + "c" * 64, OWNER))
        lay(arena, threads, file, 6)
    assert (
        Folder(tmp_path / "data" / "blobs").path(name_of("sha256:" + "c" * 64, OWNER)).read_bytes() == bytes([6]) * SIZE
    )
    assert arena.find(file) is not None
    assert not arena.is_laid(file)


def test_workers_that_are_told_to_end_bring_home_what_lies_in_memory(tmp_path: Path) -> None:
    name = name_of("sha256:" + "d" * 64, OWNER)
    with EmbeddedRedis(tmp_path / "redis") as url:
        settings = Settings(
            redis_url=url, data_dir=tmp_path / "data", arena_dir=str(private_folder(tmp_path / "shared"))
        )
        command = [sys.executable, "-m", "app.cli.main", "worker", "--workers", "1"]
        process = subprocess.Popen(command, env={**os.environ, **settings.to_env()}, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert "run under process" in process.stdout.readline()
        arena = arena_for(settings)
        assert arena is not None
        with ThreadPoolExecutor(1) as threads:
            lay(arena, threads, file_of(name), 7)
        process.send_signal(signal.SIGTERM)
        assert process.wait(allowed(60)) == 0
    assert Folder(tmp_path / "data" / "blobs").path(name).read_bytes() == bytes([7]) * SIZE


@pytest.mark.parametrize(("memory", "arena", "pinned"), [(8, 2, 2), (48, 3, 2), (256, 16, 8), (4096, 16, 16)])
def test_room_for_arrays_grows_with_the_machine(
    monkeypatch: pytest.MonkeyPatch, memory: int, arena: int, pinned: int
) -> None:
    monkeypatch.setattr(config, "host_bytes", lambda: memory << 30)
    for settings in (Settings(), Settings.from_env({})):
        assert (settings.arena_bytes, settings.pinned_bytes) == (arena << 30, pinned << 30)
        assert settings.ready_bytes == min(16 << 30, (memory << 30) // 32)
    assert Settings.from_env({"ALLOT_ARENA_BYTES": "0"}).arena_bytes == 0
