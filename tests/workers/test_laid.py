"""Bytes that jobs are solved from before the disk has them: where they lie, who settles them, what a death leaves."""

import gc
import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import SOLVERS, seen_of
from workers.jobs.job import Unavailable, UnknownBlob
from workers.jobs.queue import Jobs
from workers.jobs.records import Records
from workers.runtime.document import Bench
from workers.runtime.run import _found
from workers.store import folder as folders
from workers.store.digests import PIECE
from workers.store.folder import Folder
from workers.store.names import name_of
from workers.store.store import LEFT_S, Store

OWNER = "ann"
DATA = bytes(range(256)) * 16


def written(folder: Folder, data: bytes = DATA) -> Path:
    path = folder.temporary / f"came-{len(data)}-{time.monotonic_ns()}"
    path.write_bytes(data)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "blobs")


NAME = name_of("sha256:" + "a" * 64, OWNER)


def test_laid_bytes_are_found_by_every_process_and_then_settle(folder: Folder) -> None:
    assert folder.lay(NAME, written(folder))
    assert folder.is_laid(NAME)
    other = Folder(folder.root)
    assert other.path(NAME).read_bytes() == DATA
    assert other.start(NAME, 4) == (DATA[:4], len(DATA))
    folder.settle(NAME)
    assert not folder.is_laid(NAME)
    assert other.path(NAME).read_bytes() == DATA
    folder.settle(NAME)
    assert list(folder.temporary.iterdir()) == []


def test_a_mapping_outlives_the_settling(folder: Folder) -> None:
    folder.lay(NAME, written(folder))
    mapped = np.memmap(folder.path(NAME), np.uint8, "c")
    folder.settle(NAME)
    folder.delete(NAME)
    assert bytes(mapped) == DATA


def test_the_next_boot_finds_nothing_that_was_not_settled(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.lay(NAME, written(folder))
    monkeypatch.setattr(folders, "boot", lambda: "another")
    again = Folder(folder.root)
    with pytest.raises(UnknownBlob):
        again.path(NAME)
    assert again.start(NAME, 4) is None
    assert list(again.left(0)) == []
    old = time.time() - 7200
    for path in folder.root.glob("fresh/*"):
        os.utime(path, (old, old))
    assert list(again.older_than(3600)) == []
    assert not folder.is_laid(NAME)
    assert folder.lay(NAME, written(folder))  # a machine that shares the folder and was silent for an hour


def test_no_more_is_laid_than_may_be(tmp_path: Path) -> None:
    small = Folder(tmp_path / "blobs", most_laid=2 * len(DATA))
    names = [name_of(f"sha256:{letter * 64}", OWNER) for letter in "abc"]
    assert [small.lay(name, written(small)) for name in names] == [True, True, False]
    small.settle(names[0])
    assert small.lay(names[2], written(small))


def test_what_gets_the_name_is_what_was_forced_to_the_disk(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal bytes are laid anew while the first are being settled."""
    folder.lay(NAME, written(folder))
    first = folder.path(NAME).stat().st_ino
    real, synced = os.fsync, []

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(os.fstat(descriptor).st_ino)
        if len(synced) == 1:
            folder.lay(NAME, written(folder))

    monkeypatch.setattr(os, "fsync", fsync)
    folder.settle(NAME)
    assert synced[0] == first
    assert not folder.is_laid(NAME)
    assert folder.path(NAME).stat().st_ino in synced[1:]


def test_settling_copies_nothing(folder: Folder) -> None:
    folder.lay(NAME, written(folder))
    before = folder.path(NAME).stat().st_ino
    folder.settle(NAME)
    assert folder.path(NAME).stat().st_ino == before


def test_a_disk_without_links_gets_a_copy(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*args: Any, **kwargs: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", link)
    folder.lay(NAME, written(folder))
    folder.settle(NAME)
    assert not folder.is_laid(NAME)
    assert folder.path(NAME).read_bytes() == DATA


@pytest.mark.parametrize("point", ["os.fsync", "os.link", "Path.rename"])
def test_a_process_killed_while_it_settles_loses_nothing(folder: Folder, point: str) -> None:
    """Before the fsync, after it, and before the new name is there: the next who settles finds the bytes."""
    folder.lay(NAME, written(folder))
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom workers.store.folder import Folder\n"
        "folder = Folder(Path(sys.argv[1]))\n"
        f"{point} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "folder.settle(sys.argv[2])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(folder.root), NAME])
    assert ended.returncode == -9
    assert folder.path(NAME).read_bytes() == DATA
    folder.settle(NAME)
    assert not folder.is_laid(NAME)
    assert folder.path(NAME).read_bytes() == DATA


@pytest.fixture
def store(jobs: Jobs, tmp_path: Path) -> Store:
    """A store of this test's own."""
    return Store(Folder(tmp_path / "kept"), jobs._redis, jobs.settings)


def long_array(seed: int = 0) -> Any:
    return np.random.default_rng(seed).random((3, PIECE // 8))


def laid(store: Store, array: Any) -> tuple[str, str]:
    """(digest, name) of an .npy that was laid, as the API does it."""
    file = io.BytesIO()
    np.save(file, array)
    with store.write([file.getvalue()]) as writer:
        return writer.digest, store.lay(writer, OWNER)


def test_a_job_reads_laid_bytes_and_what_was_seen_of_them(store: Store) -> None:
    array = long_array()
    digest, name = laid(store, array)
    reference = {"blob": digest, "format": "npy", "dtype": "float64", "shape": [3, PIECE // 8]}
    for _ in range(2):
        value = store.resolve(reference, OWNER)
        np.testing.assert_array_equal(np.asarray(value), array)
        seen = seen_of(value)
        assert seen is not None
        assert (seen.low, seen.high) == (array.min(), array.max())
        store.settle([name])
    raw = {"blob": digest, "format": "raw", "dtype": "int64", "shape": [3 * PIECE // 8 + 16]}
    assert seen_of(store.resolve(raw, OWNER)) is None  # the same bytes in another form were not seen


@pytest.mark.parametrize(("solver", "given"), [("lap", "cost"), ("auction", "benefit"), ("uot", "cost")])
def test_a_problem_keeps_what_was_seen_of_its_input(store: Store, solver: str, given: str) -> None:
    """Its certificate asks for it, when nobody holds the mapping itself any more."""
    digest, _ = laid(store, long_array())
    card = SOLVERS[solver]
    reference = {"blob": digest, "format": "npy"}
    problem: Any = card.build({given: store.resolve(reference, OWNER)}, card.options())
    gc.collect()
    assert seen_of(problem.cost if solver == "uot" else problem.weights) is not None


@pytest.mark.parametrize("torn", [b"", b"{", b"[]", b'{"dtype": "<f8"}', bytes(40)])
def test_what_was_seen_may_be_torn(store: Store, torn: bytes) -> None:
    digest, name = laid(store, long_array())
    store.folder.remark(name, torn)
    assert seen_of(store.resolve({"blob": digest, "format": "npy"}, OWNER)) is None


def test_a_new_job_with_a_laid_blob_waits_for_the_disk(store: Store) -> None:
    digest, _ = laid(store, long_array())
    assert isinstance(store.folder, Folder)
    path = store.find(digest, OWNER)
    assert not store.folder.is_laid(name_of(digest, OWNER))
    assert path.exists()
    with pytest.raises(UnknownBlob):
        store.find(digest, "bob")


def test_what_a_dead_process_laid_is_settled_by_a_janitor(store: Store) -> None:
    digest, name = laid(store, long_array())
    assert store.settle_left() == 0  # whoever laid it may be about to
    _, forgotten = laid(store, long_array(1))
    old = time.time() - 2 * LEFT_S
    assert isinstance(store.folder, Folder)
    for one in (name, forgotten):
        os.utime(store.folder.path(one), (old, old))
    store._redis.delete(f"allot:blob:{forgotten}")
    assert store.settle_left() == 1
    assert not store.folder.is_laid(name)
    assert store.find(digest, OWNER).exists()
    with pytest.raises(UnknownBlob):
        store.folder.path(forgotten)


def test_a_swept_blob_takes_along_what_was_seen_of_it(store: Store) -> None:
    digest, name = laid(store, long_array())
    store.settle([name])
    assert store.folder.remarked(name)
    store.delete(digest, OWNER)
    assert store.sweep() == 1
    assert store.folder.remarked(name) == b""
    assert isinstance(store.folder, Folder)
    assert [path for path in store.folder.root.rglob("*") if path.is_file()] == []


def test_a_writer_that_died_leaves_nothing_that_can_be_read(store: Store) -> None:
    """kill -9 while receiving: the half of an upload has no name."""
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom workers.store.upload import Writer\n"
        "writer = Writer(None, 1 << 40, Path(sys.argv[1]), look=True)\n"
        "writer.write(bytes(9 << 20))\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(store.folder.temporary)])
    left = list(store.folder.temporary.iterdir())
    assert len(left) == 1
    assert isinstance(store.folder, Folder)
    assert not list(store.folder.root.glob("??/*"))
    old = time.time() - 7200
    os.utime(left[0], (old, old))
    assert list(store.folder.older_than(3600)) == []
    assert list(store.folder.temporary.iterdir()) == []


def test_the_folder_of_laid_bytes_may_have_been_tidied_up(store: Store) -> None:
    assert isinstance(store.folder, Folder)
    shutil.rmtree(store.folder.root / "fresh")
    assert store.settle_left() == 0
    digest, _ = laid(store, long_array())
    assert store.find(digest, OWNER).exists()


@pytest.mark.parametrize(("reply", "age_s", "raised"), [("api", 0, Unavailable), ("", 0, UnknownBlob),
                                                        ("api", 60, UnknownBlob)])  # fmt: skip
def test_a_worker_elsewhere_waits_for_bytes_that_are_settling(
    store: Store, reply: str, age_s: float, raised: type[Exception]
) -> None:
    """They are laid on another machine; or that machine has started anew, and nobody was told that they are kept."""
    digest, name = laid(store, long_array())
    assert isinstance(store.folder, Folder)
    elsewhere = Store(Folder(store.folder.root), store._redis, store._settings)
    elsewhere.folder._fresh = store.folder.root / "fresh" / "another"  # type: ignore[union-attr]
    bench = Bench(Records(store._redis), elsewhere, "cpu", "test")
    record = {"owner": OWNER, "reply": reply, "created_at": str(store._redis.now() - age_s)}
    reference = {"blob": digest, "format": "npy"}
    with pytest.raises(raised):
        _found(reference, record, bench)
    store.settle([name])
    assert isinstance(_found(reference, record, bench), np.ndarray)


def test_bytes_that_are_settled_while_they_are_opened_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    array = long_array()
    digest, name = laid(store, array)
    found = store.path(digest, OWNER)
    store.settle([name])
    assert not found.exists()
    places = iter((found, store.path(digest, OWNER)))
    monkeypatch.setattr(store, "path", lambda *_, **__: next(places))
    reference = {"blob": digest, "format": "npy", "dtype": "float64", "shape": [3, PIECE // 8]}
    np.testing.assert_array_equal(np.asarray(store.resolve(reference, OWNER)), array)
