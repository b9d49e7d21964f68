"""Blobs: whole or absent, known to their owners alone, and kept exactly as long as somebody holds them."""

import dataclasses
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from kernels import Csr
from tests.workers.test_codec import npy
from workers.jobs.job import DigestMismatch, Submission, UnknownBlob, UploadTooLarge
from workers.jobs.queue import Jobs
from workers.runtime.config import Settings
from workers.store.codec import Form, InvalidUpload
from workers.store.names import name_of
from workers.store.reference import of_array
from workers.store.store import Store, open_store

MATRIX = np.arange(16.0).reshape(4, 4)


@pytest.fixture
def store(settings: Settings, tmp_path: Path) -> Store:
    made = open_store(dataclasses.replace(settings, store_url=f"file://{tmp_path}/blobs"))
    made._redis.flushall()
    return made


def files(store: Store) -> list[Path]:
    return [path for path in store.folder.temporary.parent.rglob("*") if path.is_file()]


def upload(store: Store, data: bytes, owner: str = "ann") -> str:
    with store.write([data[:10], data[10:]]) as writer:
        return writer.commit(owner).digest


def test_there_and_back(store: Store) -> None:
    digest = upload(store, npy(MATRIX))
    np.testing.assert_array_equal(np.asarray(store.read(digest, "ann").value), MATRIX)
    info = store.stat(digest, "ann")
    assert info is not None
    assert (info.size, info.dtype, info.shape) == (len(npy(MATRIX)), "float64", [4, 4])
    assert store.path(digest, "ann").read_bytes() == npy(MATRIX)
    assert store.path(digest, "ann").stat().st_mode & 0o077 == 0


def test_the_same_bytes_are_kept_once_for_each_owner(store: Store) -> None:
    digest = upload(store, npy(MATRIX))
    assert upload(store, npy(MATRIX)) == digest == store.put_array(MATRIX, "ann")["blob"]
    assert len(files(store)) == 1
    assert upload(store, npy(MATRIX), "bob") == digest
    assert len(files(store)) == 2
    assert store.path(digest, "ann") != store.path(digest, "bob")


@pytest.fixture
def work(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything that is asked of Redis and of the disk, without the names of blobs and files."""
    done: list[str] = []

    def noted(what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **more: Any) -> Any:
            done.append(what)
            return call(*args, **more)

        return noting

    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    for verb in ("rename", "unlink", "mkdir", "open"):
        monkeypatch.setattr(Path, verb, noted(verb, getattr(Path, verb)))
    command, run = store._redis.execute_command, store._redis.run

    def asked(*args: Any, **more: Any) -> Any:
        answer = command(*args, **more)
        done.append(f"{args[0]} {answer}")
        return answer

    def scripted(*args: Any) -> Any:
        answer = run(*args)
        done.append(f"EVALSHA {answer}")
        return answer

    monkeypatch.setattr(store._redis, "execute_command", asked)
    monkeypatch.setattr(store._redis, "run", scripted)
    return done


@pytest.mark.parametrize("form", [Form(), Form("raw", dtype="uint8", shape=(256,))])
def test_an_upload_does_the_same_work_whoever_has_the_bytes(store: Store, work: list[str], form: Form) -> None:
    def worked(data: bytes) -> list[str]:
        work.clear()
        with store.write([data]) as writer:
            assert writer.commit("bob", form).size == 256
        return list(work)

    worked(npy(MATRIX))  # whatever is done once in a process is done
    anns, bobs, jobs, new = (npy(MATRIX + i) for i in (1, 2, 3, 4))
    for data, owner in ((anns, "ann"), (bobs, "bob")):
        upload(store, data, owner)
    store.put_array(MATRIX + 3, "ann", brief=True)
    fresh = worked(new)
    assert fresh.count("fsync") == 2
    assert worked(anns) == worked(bobs) == worked(jobs) == worked(new) == fresh


@pytest.mark.parametrize("owner", ["ann", "bob"])
def test_giving_a_blob_up_costs_a_stranger_no_time(store: Store, work: list[str], owner: str) -> None:
    """While bytes are being deleted, only their owner waits for that."""
    digest = upload(store, npy(MATRIX))
    store.delete(digest, "ann")
    assert store._records.condemn(name_of(digest, "ann"))
    work.clear()
    ended = threading.Event()

    def bury() -> None:
        while "EVALSHA 0" not in work and not ended.is_set():  # nobody has been told to wait yet
            time.sleep(0.01)
        store._records.buried(name_of(digest, "ann"))

    waited = threading.Thread(target=bury)
    waited.start()
    upload(store, npy(MATRIX), owner)
    ended.set()
    waited.join()
    assert ("EVALSHA 0" in work) is (owner == "ann")


def test_a_brief_copy_leaves_a_durable_one_alone(store: Store) -> None:
    digest = upload(store, npy(MATRIX))
    before = store.path(digest, "ann").stat().st_ino
    assert store.put_array(MATRIX, "ann", brief=True)["blob"] == digest
    assert store.path(digest, "ann").stat().st_ino == before
    store.path(digest, "ann").write_bytes(npy(MATRIX)[:-9])  # as a power cut leaves one that was not durable
    reference = store.put_array(MATRIX, "ann", brief=True)
    np.testing.assert_array_equal(store.open_array(reference, "ann"), MATRIX)


def test_a_blob_is_unknown_to_strangers(store: Store) -> None:
    digest = upload(store, npy(MATRIX))
    assert store.stat(digest, "bob") is None
    with pytest.raises(UnknownBlob):
        store.delete(digest, "bob")
    assert upload(store, npy(MATRIX), "bob") == digest
    assert store.stat(digest, "bob") is not None
    store.delete(digest, "bob")
    store.sweep()
    assert store.stat(digest, "bob") is None
    assert store.stat(digest, "ann") is not None


@pytest.mark.parametrize(
    "digest", ["", "../../etc/passwd", "sha256:../../../x", "sha256:" + "A" * 64, "md5:" + "0" * 64]
)
def test_a_digest_is_never_a_path(store: Store, digest: str) -> None:
    for ask in (store.stat, store.path, store.read, store.delete):
        with pytest.raises(UnknownBlob):
            ask(digest, "ann")


def test_a_bad_upload_leaves_nothing(store: Store, settings: Settings) -> None:
    with pytest.raises(InvalidUpload):
        upload(store, b"nothing that anybody knows")
    with pytest.raises(DigestMismatch), store.write([npy(MATRIX)]) as writer:
        writer.commit("ann", expected="sha256:" + "0" * 64)
    small = open_store(dataclasses.replace(settings, store_url="file:", max_upload_bytes=100))
    with pytest.raises(UploadTooLarge):
        small.write([b"x" * 60, b"x" * 60])
    assert files(store) == files(small) == []


def test_a_gigabyte_passes_through_little_memory(store: Store) -> None:
    """256 MiB stand for it: memory does not grow with the upload."""
    head = npy(np.zeros(0, np.uint8))
    head = head.replace(b"(0,), }            ", b"(268435456,), }    ")
    chunk = bytes(1 << 20)
    before = psutil.Process().memory_info().rss
    with store.writer() as writer:
        writer.write(head)
        for _ in range(256):
            writer.write(chunk)
        info = writer.commit("ann")
        grown = psutil.Process().memory_info().rss - before
    assert info.reference["shape"] == [1 << 28]
    assert grown < 50 << 20


def test_uploads_expire_unless_a_job_holds_them(settings: Settings, jobs: Jobs) -> None:
    short = Jobs(dataclasses.replace(settings, blob_ttl_s=0.05))
    held, loose = (short.store.put(MATRIX + i, "ann") for i in range(2))
    short.submit(Submission("ann", "lap", {"cost": held}, queue="cpu"))
    time.sleep(0.1)
    assert short.store.sweep() == 1
    assert short.store.stat(held["blob"], "ann") is not None
    assert short.store.stat(loose["blob"], "ann") is None
    with pytest.raises(UnknownBlob):
        short.submit(Submission("ann", "lap", {"cost": loose}, queue="cpu"))


def test_a_mapped_blob_outlives_its_file(store: Store) -> None:
    reference = store.put_array(MATRIX, "ann")
    mapped = store.open_array(reference, "ann")
    store.delete(reference["blob"], "ann")
    assert store.sweep() == 1
    np.testing.assert_array_equal(mapped, MATRIX)
    with pytest.raises(UnknownBlob):
        store.open_array(reference, "ann")


def test_uploads_and_sweeps_at_once_lose_nothing(store: Store) -> None:
    """One thread uploads and gives up the same bytes over and over, the other sweeps: kept means there."""
    done = threading.Event()
    sweeper = threading.Thread(target=lambda: [store.sweep() for _ in iter(done.is_set, True)])
    sweeper.start()
    try:
        for _ in range(150):
            reference = store.put_array(MATRIX, "ann")
            np.testing.assert_array_equal(store.open_array(reference, "ann"), MATRIX)
            store.delete(reference["blob"], "ann")
    finally:
        done.set()
        sweeper.join()


def test_sparse_inputs_are_three_blobs(store: Store) -> None:
    graph = Csr(np.array([0, 1, 2]), np.array([1, 0]), np.array([5.0, 6.0]), (2, 2))
    reference = store.put(graph, "ann")
    assert reference == of_array(graph)
    assert [reference["csr"][part]["dtype"] for part in ("indptr", "indices", "values")] == [
        "int64",
        "int64",
        "float64",
    ]
    found = store.resolve(reference, "ann")
    assert isinstance(found, Csr)
    np.testing.assert_array_equal(found.values, graph.values)


def test_files_that_redis_never_heard_of_are_scrubbed(store: Store) -> None:
    kept, lost = (store.put_array(MATRIX + i, "ann")["blob"] for i in range(2))
    store._redis.delete(f"allot:blob:{name_of(lost, 'ann')}")
    (store.folder.temporary.parent / "00" / ".unpacked-and-left").write_bytes(b"x")
    long_ago = time.time() - 1e6
    for path in files(store):
        os.utime(path, (long_ago, long_ago))
    assert store.scrub() == 1
    assert len(files(store)) == 1
    assert store.stat(lost, "ann") is None
    assert store.stat(kept, "ann") is not None
